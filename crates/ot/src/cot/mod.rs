//! Correlated oblivious transfers with random choices: setup once per session and
//! direction, then batches of correlations from the source chosen.

pub mod batch;
mod budget;
mod end;
pub(crate) mod ferret;
mod receiver;
pub mod schedule;
mod sender;
pub(crate) mod setup;
pub(crate) mod softspoken;
mod store;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use ring::Random;
use wire::{Channel, Cost, Message, Result, Role};

pub use self::batch::{ReceiverBatch, SenderBatch};
pub use self::end::End;
pub(crate) use self::end::Side;
pub use self::receiver::{CotReceiver, ReceiverSide};
use self::schedule::Sourcing;
pub use self::sender::{CotSender, SenderSide};
use self::setup::sums_layout;
use crate::base;
use crate::session::Domain;
pub use crate::session::SessionId;

/// Sets both directions up at once, in four rounds instead of six; both parties
/// call it. The sender returned holds this party's Delta. Each message crosses its like,
/// so that both parties compute at the same time.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn setup_both(
    ch: &mut Channel,
    rng: &mut Random,
    session: &SessionId,
    source: impl Into<Sourcing>,
) -> Result<(CotSender, CotReceiver)> {
    let sourcing = source.into();
    let field = sourcing.source.field();
    let (ours, theirs) = (Domain::new(*session, ch.role()), Domain::new(*session, !ch.role()));
    let (offering, offer) = setup::offer(theirs, field, rng);
    let their_offer = crossed(ch, Role::Client, &offer, &1)?;
    let (accepting, replies) = setup::accept(ours, field, rng, &their_offer)?;
    let their_replies = crossed(ch, Role::Server, &replies, &base::COUNT)?;
    let (receiver, sums) = offering.finish(rng, &their_replies)?;
    let their_sums = crossed(ch, Role::Client, &sums, &sums_layout().to_vec())?;
    let sender = CotSender::with_trees(ours, sourcing, ch.role(), accepting.finish(their_sums)?);
    Ok((sender, CotReceiver::with_trees(theirs, sourcing, !ch.role(), receiver)))
}

/// A message each way: that of the party that is `first`, then the other's.
fn crossed<M: Message>(ch: &mut Channel, first: Role, ours: &M, shape: &M::Shape) -> Result<M> {
    if ch.role() == first {
        ch.send(ours)?;
        return ch.receive(shape);
    }
    let theirs = ch.receive(shape)?;
    ch.send(ours)?;
    Ok(theirs)
}

/// Returns what the setup of one direction costs.
pub fn setup_cost(cot_sender: Role) -> Cost {
    [base::offer_cost(!cot_sender), base::replies_cost(cot_sender), setup::sums_cost(!cot_sender)]
        .into_iter()
        .collect()
}

/// Returns what [`setup_both`] costs.
pub fn setup_both_cost() -> Cost {
    let (client, server) = (Role::Client, Role::Server);
    [
        base::offer_cost(client),
        base::offer_cost(server),
        base::replies_cost(server),
        base::replies_cost(client),
        setup::sums_cost(client),
        setup::sums_cost(server),
    ]
    .into_iter()
    .collect()
}
