//! The same circuits, garbled before the server's shares exist.
//!
//! The tables go ahead, for committed random bits of the client. When shares are known, the server sends the labels
//! of its own: what its share is, and how far the client's is off from the random one, in one word.

use std::fmt;

use gc::Tables;
use gc::tagged::{LaterLabels, MacKeys, Weights, evaluate_ahead, garble_ahead, garbler_labels};
use ring::Random;
use wire::{Channel, Cost, Error, Result, Role, tags};

use super::plan::{Checked, Chunk};
use crate::auth::{ClientBits, Keys, ServerBits, Values};
use crate::bytes::{labels_cost, receive_labels, send_labels};
use crate::share::Share;

/// Server to client: the labels of its bits.
const LABELS: u8 = tags::GARBLER_LABELS;

/// The tables that the client has, for one evaluation.
pub struct ClientAhead(Tables);

/// What the server keeps of a garbling, for one choice of its bits.
pub struct ServerAhead {
    made: (Share, Keys),
    later: LaterLabels,
}

impl Checked {
    /// Returns the bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        self.batch.table_bytes()
    }

    /// Returns what [`ClientAhead::evaluate`] and [`ServerAhead::choose`] cost.
    pub fn labels_cost(&self) -> Cost {
        labels_cost(Role::Server, garbler_labels(&self.batch))
    }
}

/// Receives the tables.
///
/// # Errors
/// [`Error::Peer`], [`Error::Transport`].
pub fn client_ahead(ch: &mut Channel, plan: &Checked) -> Result<ClientAhead> {
    let next = |len| ch.receive::<Chunk>(&len).map(|chunk| chunk.0);
    Tables::collect_bytes(plan.batch.table_bytes(), next).map(ClientAhead)
}

/// Garbles for bits that the client has committed to, of which plane `i` has bit `i` of every random integer.
///
/// # Errors
/// [`Error::Internal`] for bits or weights of another plan, [`Error::Transport`].
pub fn server_ahead(
    ch: &mut Channel,
    plan: &Checked,
    keys: &MacKeys,
    bits: &ServerBits,
    weights: &[Weights],
    rng: &mut Random,
) -> Result<ServerAhead> {
    let zeros = plan.in_order(bits.zeros(plan.planes()));
    let send = &mut |chunk| ch.send(&Chunk::new(chunk));
    let (shares, later) = garble_ahead(&plan.batch, keys, &zeros, weights, rng, send)?;
    Ok(ServerAhead { made: plan.garbled(&shares)?, later })
}

impl ClientAhead {
    /// Receives the labels of the server's bits and evaluates on these and the committed random bits.
    ///
    /// # Errors
    /// [`Error::Internal`] for bits of another plan, [`Error::Peer`], [`Error::Transport`].
    pub fn evaluate(self, ch: &mut Channel, plan: &Checked, bits: &ClientBits) -> Result<Values> {
        let all = receive_labels::<LABELS>(ch, garbler_labels(&plan.batch))?;
        let own = plan.in_order(bits.labels(plan.planes()));
        plan.evaluated(&evaluate_ahead(&plan.batch, self.0, &own, &all)?)
    }
}

impl ServerAhead {
    /// Sends the labels of the bits of `x`, mod `2^from`, which is the server's share and what the client's is off from
    /// its random integer; returns the server's shares of the results and the keys of the client's.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares of another plan, [`Error::Transport`].
    pub fn choose(
        self,
        ch: &mut Channel,
        plan: &Checked,
        keys: &MacKeys,
        x: &Share,
    ) -> Result<(Share, Keys)> {
        if (x.len(), x.bits()) != (plan.inputs, plan.from) {
            return Err(Error::misuse("a share that does not fit its tagged circuit"));
        }
        let labels = self.later.choose(&plan.batch, keys, &plan.entered(x))?;
        send_labels::<LABELS>(ch, &labels)?;
        Ok(self.made)
    }
}

impl fmt::Debug for ClientAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientAhead")
    }
}

impl fmt::Debug for ServerAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerAhead")
    }
}
