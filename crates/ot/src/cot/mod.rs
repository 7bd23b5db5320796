//! Correlated oblivious transfers with random choices: setup once per session and
//! direction, then batches of correlations from the source chosen.

pub(crate) mod arrived;
pub mod batch;
pub mod both;
mod budget;
mod check;
mod end;
pub(crate) mod ferret;
pub mod kept;
mod labels;
pub(crate) mod proof;
mod queue;
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
use wire::{Channel, Cost, Result, Role};

pub use self::batch::{ReceiverBatch, SenderBatch};
pub use self::both::{Begun, Setup};
pub use self::end::End;
pub(crate) use self::end::{Line, Side, Taken, When};
pub use self::kept::Kept;
pub use self::receiver::{CotReceiver, ReceiverSide};
use self::schedule::Sourcing;
pub use self::sender::{CotSender, SenderSide};
pub use crate::session::SessionId;

/// Sets both directions up at once, in four rounds instead of six; both parties
/// call it. The sender returned holds this party's Delta.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn setup_both(
    ch: &mut Channel,
    rng: &mut Random,
    session: &SessionId,
    source: impl Into<Sourcing>,
) -> Result<(CotSender, CotReceiver)> {
    let (sender, receiver, _) = Setup::new(*session, source).run(ch, rng)?;
    Ok((sender, receiver))
}

/// Returns what the setup of one direction costs.
pub fn setup_cost(cot_sender: Role, sourcing: impl Into<Sourcing>) -> Cost {
    setup::fresh_cost(cot_sender, sourcing.into())
}

/// Returns what [`setup_both`] costs.
pub fn setup_both_cost(sourcing: impl Into<Sourcing>) -> Cost {
    both::setup_cost(sourcing, false, false)
}
