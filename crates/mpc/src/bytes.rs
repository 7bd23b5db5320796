//! Messages of blocks and of garbled tables.

use std::fmt;

use wire::{Channel, Cost, Error, Message, Result, Role};
use zeroize::Zeroizing;

/// Labels of a frame: 1 MiB.
const LABELS: usize = 1 << 16;
/// Bytes of a label.
const LABEL: usize = 16;

/// Bytes of a length that both parties know. The tag is given by the protocol.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes<const TAG: u8>(pub(crate) Vec<u8>);

impl<const TAG: u8> Bytes<TAG> {
    /// The message with these bytes.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl<const TAG: u8> Message for Bytes<TAG> {
    type Shape = usize;
    const TAG: u8 = TAG;

    fn bounds(len: &usize) -> (u64, u64) {
        (*len as u64, *len as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(body: &[u8], len: &usize) -> Result<Self> {
        if body.len() != *len {
            return Err(Error::peer(format!("{len} bytes"), format!("{} bytes", body.len())));
        }
        Ok(Self(body.to_vec()))
    }
}

impl<const TAG: u8> fmt::Debug for Bytes<TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes(<{} bytes>)", self.0.len())
    }
}

/// Sends labels, a MiB at a time.
///
/// # Errors
/// [`Error::Transport`].
pub(crate) fn send_labels<const TAG: u8>(channel: &mut Channel, labels: &[u128]) -> Result<()> {
    for labels in labels.chunks(LABELS) {
        let bytes = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        channel.send(&Bytes::<TAG>(bytes))?;
    }
    Ok(())
}

/// Receives `count` labels.
///
/// # Errors
/// [`Error::Peer`], [`Error::Transport`].
pub(crate) fn receive_labels<const TAG: u8>(
    channel: &mut Channel,
    count: usize,
) -> Result<Zeroizing<Vec<u128>>> {
    let mut labels = Zeroizing::new(Vec::with_capacity(count));
    for len in frames(count) {
        let bytes: Bytes<TAG> = channel.receive(&(len * LABEL))?;
        labels.extend(bytes.0.as_chunks().0.iter().map(|label| u128::from_le_bytes(*label)));
    }
    Ok(labels)
}

/// What `count` labels cost when `from` sends them.
pub(crate) fn labels_cost(from: Role, count: usize) -> Cost {
    frames(count).map(|len| Cost::message(from, (len * LABEL) as u64)).collect()
}

fn frames(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(LABELS).map(move |start| LABELS.min(count - start))
}
