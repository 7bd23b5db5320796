//! Correlated transfers with random choices: setup once per session and
//! direction, then batches of correlations.

use std::fmt;

use ring::Random;
use wire::{Channel, Cost, Error, Result, Role};

use crate::base::{self, Offer, Replies};
pub use crate::batch::{ReceiverBatch, SenderBatch};
use crate::hash::PadHash;
use crate::session::Domain;
pub use crate::session::SessionId;
use crate::setup::{self, TreeSums, sums_layout};
use crate::softspoken::{self, Corrections, Field, GRAIN, corrections_layout, messages};
use crate::store::Store;

/// Most correlations a single call makes.
const LIMIT: usize = u32::MAX as usize;
/// The field of SoftSpoken.
const FIELD: Field = Field::Gf16;

/// The party that holds Delta.
pub struct CotSender {
    trees: softspoken::Sender,
    pool: SenderBatch,
}

/// The party that holds the choice bits.
pub struct CotReceiver {
    trees: softspoken::Receiver,
    pool: ReceiverBatch,
}

impl CotSender {
    /// Sets this direction up, with a fresh Delta; the peer runs
    /// [`CotReceiver::setup`].
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn setup(ch: &mut Channel, rng: &mut Random, session: &SessionId) -> Result<Self> {
        let domain = Domain::new(*session, ch.role());
        let offer: Offer = ch.receive(&1)?;
        let (accepting, replies) = setup::accept(domain, FIELD, rng, &offer)?;
        ch.send(&replies)?;
        let sums: TreeSums = ch.receive(&sums_layout().to_vec())?;
        Ok(Self::new(&domain, accepting.finish(sums)?))
    }

    /// Makes at least `count` more correlations, together with the peer's
    /// [`CotReceiver::extend`] of the same `count`.
    ///
    /// # Errors
    /// [`Error::Misuse`] above 2^32, [`Error::Peer`], [`Error::Transport`].
    pub fn extend(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        self.pool.blocks.make_room(rounded(count)?);
        for grains in messages(count) {
            let corrections: Corrections = ch.receive(&corrections_layout(FIELD, grains))?;
            self.trees.extend(grains, corrections, self.pool.blocks.items());
        }
        Ok(())
    }

    /// Correlations made and not taken.
    pub fn available(&self) -> usize {
        self.pool.len()
    }

    /// Takes the next `count` correlations.
    ///
    /// # Errors
    /// [`Error::Misuse`] when fewer are available: nothing is made silently.
    pub fn take(&mut self, count: usize) -> Result<SenderBatch> {
        check(self.available(), count)?;
        Ok(self.pool.split_off(count))
    }

    fn new(domain: &Domain, trees: softspoken::Sender) -> Self {
        let hash = PadHash::new(domain);
        let pool = SenderBatch { hash, first: 0, delta: trees.delta(), blocks: Store::new() };
        Self { trees, pool }
    }
}

impl CotReceiver {
    /// Sets this direction up; the peer runs [`CotSender::setup`].
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn setup(ch: &mut Channel, rng: &mut Random, session: &SessionId) -> Result<Self> {
        let domain = Domain::new(*session, !ch.role());
        let (offering, offer) = setup::offer(domain, FIELD, rng);
        ch.send(&offer)?;
        let replies: Replies = ch.receive(&base::COUNT)?;
        let (trees, sums) = offering.finish(rng, &replies)?;
        ch.send(&sums)?;
        Ok(Self::new(&domain, trees))
    }

    /// Makes at least `count` more correlations with random choices, together with
    /// the peer's [`CotSender::extend`] of the same `count`.
    ///
    /// # Errors
    /// [`Error::Misuse`] above 2^32, [`Error::Transport`].
    pub fn extend(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        let room = rounded(count)?;
        let ReceiverBatch { blocks, choices, .. } = &mut self.pool;
        blocks.make_room(room);
        choices.make_room(room);
        for grains in messages(count) {
            ch.send(&self.trees.extend(grains, blocks.items(), choices.items()))?;
        }
        Ok(())
    }

    /// Correlations made and not taken.
    pub fn available(&self) -> usize {
        self.pool.len()
    }

    /// Takes the next `count` correlations.
    ///
    /// # Errors
    /// [`Error::Misuse`] when fewer are available: nothing is made silently.
    pub fn take(&mut self, count: usize) -> Result<ReceiverBatch> {
        check(self.available(), count)?;
        Ok(self.pool.split_off(count))
    }

    fn new(domain: &Domain, trees: softspoken::Receiver) -> Self {
        let (blocks, choices) = (Store::new(), Store::new());
        let pool = ReceiverBatch { hash: PadHash::new(domain), first: 0, blocks, choices };
        Self { trees, pool }
    }
}

/// Sets both directions up at once, in four rounds instead of six; both parties
/// call it. The sender returned holds this party's Delta.
///
/// # Errors
/// [`Error::Peer`], [`Error::Transport`].
pub fn setup_both(
    ch: &mut Channel,
    rng: &mut Random,
    session: &SessionId,
) -> Result<(CotSender, CotReceiver)> {
    let (ours, theirs) = (Domain::new(*session, ch.role()), Domain::new(*session, !ch.role()));
    let (offering, offer) = setup::offer(theirs, FIELD, rng);
    let (sender, receiver) = match ch.role() {
        Role::Client => {
            ch.send(&offer)?;
            let their_replies: Replies = ch.receive(&base::COUNT)?;
            let their_offer: Offer = ch.receive(&1)?;
            let (receiver, sums) = offering.finish(rng, &their_replies)?;
            let (accepting, replies) = setup::accept(ours, FIELD, rng, &their_offer)?;
            ch.send(&sums)?;
            ch.send(&replies)?;
            (accepting.finish(ch.receive(&sums_layout().to_vec())?)?, receiver)
        }
        Role::Server => {
            let their_offer: Offer = ch.receive(&1)?;
            let (accepting, replies) = setup::accept(ours, FIELD, rng, &their_offer)?;
            ch.send(&replies)?;
            ch.send(&offer)?;
            let sender = accepting.finish(ch.receive(&sums_layout().to_vec())?)?;
            let their_replies: Replies = ch.receive(&base::COUNT)?;
            let (receiver, sums) = offering.finish(rng, &their_replies)?;
            ch.send(&sums)?;
            (sender, receiver)
        }
    };
    Ok((CotSender::new(&ours, sender), CotReceiver::new(&theirs, receiver)))
}

/// What the setup of one direction costs.
pub fn setup_cost(cot_sender: Role) -> Cost {
    [base::offer_cost(!cot_sender), base::replies_cost(cot_sender), setup::sums_cost(!cot_sender)]
        .into_iter()
        .collect()
}

/// What [`setup_both`] costs.
pub fn setup_both_cost() -> Cost {
    let (client, server) = (Role::Client, Role::Server);
    [
        base::offer_cost(client),
        base::replies_cost(server),
        base::offer_cost(server),
        setup::sums_cost(client),
        base::replies_cost(client),
        setup::sums_cost(server),
    ]
    .into_iter()
    .collect()
}

/// What extending one direction by `count` costs.
pub fn extend_cost(cot_sender: Role, count: usize) -> Cost {
    let len = |grains| Corrections::body_len(&corrections_layout(FIELD, grains));
    messages(count).map(|grains| Cost::message(!cot_sender, len(grains))).collect()
}

fn rounded(count: usize) -> Result<usize> {
    if count > LIMIT {
        return Err(Error::misuse(format!("{count} correlations at once")));
    }
    Ok(count.next_multiple_of(GRAIN))
}

fn check(available: usize, count: usize) -> Result<()> {
    if count > available {
        return Err(Error::misuse(format!("{count} correlations, {available} available")));
    }
    Ok(())
}

impl fmt::Debug for CotSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CotSender(<{} correlations>)", self.available())
    }
}

impl fmt::Debug for CotReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CotReceiver(<{} correlations>)", self.available())
    }
}
