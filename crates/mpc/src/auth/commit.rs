//! Bits to which the client commits by correlated OTs whose sender is the server.
//!
//! The client's labels are those of its bits in garbled circuits under the server's Delta, and the
//! source of their tags. Bits that are random need no message.

use std::fmt;
use std::ops::Range;

use ot::{ReceiverBatch, SenderBatch};
use ring::Bits;
use wire::{Channel, Cost, Lane, Lanes, Result, Role, Values, tags};
use zeroize::{Zeroize, Zeroizing};

use crate::defect::defect;

/// Client to server: choices less random choices.
type Corrections = Lanes<{ tags::COMMITTED_BITS }>;

/// The client's committed bits: planes of `count` bits each, and their labels, plane after plane.
pub struct ClientBits {
    pub(super) planes: Vec<Bits>,
    pub(super) labels: Zeroizing<Vec<u128>>,
}

/// What the server holds of them: their zero labels.
pub struct ServerBits {
    count: usize,
    zeros: Zeroizing<Vec<u128>>,
}

/// Commits to `planes`, equally long, by as many correlations as there are bits.
///
/// # Errors
/// [`wire::Error::Misuse`] for another number of correlations, [`wire::Error::Transport`].
pub fn commit(ch: &mut Channel, ots: ReceiverBatch, planes: Vec<Bits>) -> Result<ClientBits> {
    commit_with(ch, ots, planes, |_| {})
}

/// [`commit`], which does something to the corrections before it sends them.
pub(crate) fn commit_with(
    ch: &mut Channel,
    ots: ReceiverBatch,
    planes: Vec<Bits>,
    change: impl FnOnce(&mut Bits),
) -> Result<ClientBits> {
    let mut all = Zeroizing::new(Bits::default());
    planes.iter().for_each(|plane| all.extend(plane));
    let (mut corrections, labels) = ots.commit(&all)?;
    change(&mut corrections);
    ch.send(&Corrections::new(vec![(lane(all.len()), Values::Planes(vec![corrections]))]))?;
    Ok(ClientBits { planes, labels })
}

/// Accepts the client's commitment to `planes` planes of `count` bits.
///
/// # Errors
/// [`wire::Error::Misuse`] for another number of correlations, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn accept(
    ch: &mut Channel,
    ots: SenderBatch,
    planes: usize,
    count: usize,
) -> Result<ServerBits> {
    let message: Corrections = ch.receive(&vec![lane(planes * count)])?;
    let corrections = match message.0.into_iter().next() {
        Some((_, Values::Planes(planes))) => planes.into_iter().next().unwrap_or_default(),
        _ => return Err(defect("corrections of another layout")),
    };
    Ok(ServerBits { count, zeros: ots.zero_labels(&corrections)? })
}

/// Commits to random bits, `planes` planes of `count`, without a message.
///
/// # Errors
/// [`wire::Error::Internal`] for another number of correlations.
pub fn random(ots: ReceiverBatch, planes: usize, count: usize) -> Result<ClientBits> {
    if ots.len() != planes * count {
        return Err(defect("other correlations than random bits"));
    }
    let (bits, labels) = ots.random_labels();
    let bits = Zeroizing::new(bits);
    let plane = |plane: usize| (0..count).map(|at| bits.get(plane * count + at)).collect();
    Ok(ClientBits { planes: (0..planes).map(plane).collect(), labels })
}

/// Accepts what [`random`] commits to.
///
/// # Errors
/// [`wire::Error::Internal`] for another number of correlations.
pub fn accept_random(ots: SenderBatch, planes: usize, count: usize) -> Result<ServerBits> {
    Ok(ServerBits { count, zeros: ots.zero_labels(&Bits::zeros(planes * count))? })
}

/// Returns what [`commit`] costs.
pub fn commit_cost(planes: usize, count: usize) -> Cost {
    Cost::message(Role::Client, Corrections::body_len(&[lane(planes * count)]))
}

const fn lane(count: usize) -> Lane {
    Lane::Planes { planes: 1, count }
}

impl ClientBits {
    /// Returns the bits, plane by plane.
    pub fn planes(&self) -> &[Bits] {
        &self.planes
    }

    /// Returns all labels, plane after plane.
    pub(crate) fn all_labels(&mut self) -> &mut [u128] {
        &mut self.labels
    }

    /// Returns some planes with their labels.
    pub(super) fn part(&self, planes: Range<usize>) -> Self {
        let labels = Zeroizing::new(self.labels(planes.clone()).to_vec());
        Self { planes: self.planes.get(planes).unwrap_or_default().to_vec(), labels }
    }

    /// Returns the labels of some planes; none beyond the last plane.
    pub fn labels(&self, planes: Range<usize>) -> &[u128] {
        let count = self.planes.first().map_or(0, Bits::len);
        self.labels.get(planes.start * count..planes.end * count).unwrap_or_default()
    }
}

impl ServerBits {
    /// Returns what is held of some planes.
    pub(super) fn part(&self, planes: Range<usize>) -> Self {
        Self { count: self.count, zeros: Zeroizing::new(self.zeros(planes).to_vec()) }
    }

    /// Returns the zero labels of some planes; none beyond the last plane.
    pub fn zeros(&self, planes: Range<usize>) -> &[u128] {
        self.zeros.get(planes.start * self.count..planes.end * self.count).unwrap_or_default()
    }
}

impl Drop for ClientBits {
    fn drop(&mut self) {
        self.planes.zeroize();
    }
}

impl fmt::Debug for ClientBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientBits(<{} bits>)", self.labels.len())
    }
}

impl fmt::Debug for ServerBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerBits(<{} bits>)", self.zeros.len())
    }
}
