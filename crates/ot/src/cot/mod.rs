//! Correlated transfers with random choices: setup once per session and
//! direction, then batches of correlations from the source chosen.

pub mod batch;
mod budget;
pub(crate) mod ferret;
pub mod schedule;
pub(crate) mod setup;
pub(crate) mod softspoken;
mod store;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use std::collections::VecDeque;
use std::fmt;

use ring::Random;
use wire::{Channel, Cost, Error, Message, Result, Role};

pub use self::batch::{ReceiverBatch, SenderBatch};
use self::ferret::corrections_layout;
use self::ferret::params::Set;
use self::schedule::{Sourcing, Step, Supply};
use self::setup::{TreeSums, sums_layout};
use self::store::Store;
use crate::base::{self, Offer, Replies};
use crate::hash::PadHash;
use crate::session::Domain;
pub use crate::session::SessionId;

/// Most correlations a single call makes.
const LIMIT: usize = u32::MAX as usize;

/// The party that holds Delta.
pub struct CotSender {
    domain: Domain,
    supply: Supply,
    threads: usize,
    trees: softspoken::Sender,
    started: u64,
    refills: VecDeque<ferret::Sender>,
    pool: SenderBatch,
}

/// The party that holds the choice bits.
pub struct CotReceiver {
    domain: Domain,
    supply: Supply,
    threads: usize,
    trees: softspoken::Receiver,
    started: u64,
    refills: VecDeque<ferret::Receiver>,
    pool: ReceiverBatch,
}

impl CotSender {
    /// Sets this direction up, with a fresh Delta; the peer runs
    /// [`CotReceiver::setup`] with the same `source`.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn setup(
        ch: &mut Channel,
        rng: &mut Random,
        session: &SessionId,
        source: impl Into<Sourcing>,
    ) -> Result<Self> {
        let sourcing = source.into();
        let domain = Domain::new(*session, ch.role());
        let offer: Offer = ch.receive(&1)?;
        let (accepting, replies) = setup::accept(domain, sourcing.source.field(), rng, &offer)?;
        ch.send(&replies)?;
        let sums: TreeSums = ch.receive(&sums_layout().to_vec())?;
        Ok(Self::new(domain, sourcing, ch.role(), accepting.finish(sums)?))
    }

    /// Lets extensions use so many threads; 1 at first.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// Announces that `count` more correlations will be asked for, so that the fitting
    /// sources are used; the peer must announce the same. Nothing is sent.
    pub fn reserve(&mut self, count: usize) {
        self.supply.reserve(count);
    }

    /// Makes sure that `count` correlations can be taken, together with the peer's
    /// [`CotReceiver::extend`] of the same `count`. Does nothing when enough are left.
    ///
    /// # Errors
    /// [`Error::Misuse`] above 2^32, [`Error::Peer`], [`Error::Transport`].
    pub fn extend(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        check_limit(count)?;
        for step in self.supply.steps(count) {
            match step {
                Step::Soft(count) => self.soft(ch, count)?,
                Step::Start(set) => self.start(set),
                Step::Grow(set, trees) => self.grow(ch, set, trees)?,
            }
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
        self.supply.take(count);
        Ok(self.pool.split_off(count))
    }

    fn new(
        domain: Domain,
        sourcing: Sourcing,
        cot_sender: Role,
        trees: softspoken::Sender,
    ) -> Self {
        let hash = PadHash::new(&domain);
        let pool = SenderBatch { hash, first: 0, delta: trees.delta(), blocks: Store::new() };
        let supply = Supply::new(sourcing, cot_sender);
        Self { domain, supply, threads: 1, trees, started: 0, refills: VecDeque::new(), pool }
    }

    fn soft(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        self.pool.blocks.make_room(count);
        for grains in softspoken::messages(count) {
            let corrections = ch.receive(&self.supply.soft_layout(grains))?;
            self.trees.extend(grains, corrections, self.pool.blocks.items());
        }
        Ok(())
    }

    fn start(&mut self, set: Set) {
        let base = self.pool.split_off(set.base());
        let (number, delta) = (self.started, *base.delta);
        self.refills.push_back(ferret::Sender::new(&self.domain, number, set, delta, &base.blocks));
        self.started += 1;
    }

    fn grow(&mut self, ch: &mut Channel, set: Set, trees: usize) -> Result<()> {
        let Some(refill) = self.refills.front_mut() else { return Ok(()) };
        self.pool.blocks.make_room(trees << set.depth);
        let messages: Vec<usize> = ferret::messages(set, trees).collect();
        for messages in messages.chunks(self.threads) {
            let leaves =
                grown(self.pool.blocks.items(), messages.iter().sum::<usize>() << set.depth);
            let corrections = refill.grow(self.threads, leaves);
            let mut rest = corrections.as_slice();
            for trees in messages {
                let (now, later) = rest.split_at(trees * set.blocks());
                ch.send(&ferret::corrections(now))?;
                rest = later;
            }
            refill.encode(self.threads, leaves);
        }
        if refill.is_empty() {
            self.refills.pop_front();
        }
        Ok(())
    }
}

impl CotReceiver {
    /// Sets this direction up; the peer runs [`CotSender::setup`] with the same
    /// `source`.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn setup(
        ch: &mut Channel,
        rng: &mut Random,
        session: &SessionId,
        source: impl Into<Sourcing>,
    ) -> Result<Self> {
        let sourcing = source.into();
        let domain = Domain::new(*session, !ch.role());
        let (offering, offer) = setup::offer(domain, sourcing.source.field(), rng);
        ch.send(&offer)?;
        let replies: Replies = ch.receive(&base::COUNT)?;
        let (trees, sums) = offering.finish(rng, &replies)?;
        ch.send(&sums)?;
        Ok(Self::new(domain, sourcing, !ch.role(), trees))
    }

    /// As [`CotSender::set_threads`].
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// As [`CotSender::reserve`].
    pub fn reserve(&mut self, count: usize) {
        self.supply.reserve(count);
    }

    /// Makes sure that `count` correlations with random choices can be taken,
    /// together with the peer's [`CotSender::extend`] of the same `count`.
    ///
    /// # Errors
    /// [`Error::Misuse`] above 2^32, [`Error::Peer`], [`Error::Transport`].
    pub fn extend(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        check_limit(count)?;
        for step in self.supply.steps(count) {
            match step {
                Step::Soft(count) => self.soft(ch, count)?,
                Step::Start(set) => self.start(set),
                Step::Grow(set, trees) => self.grow(ch, set, trees)?,
            }
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
        self.supply.take(count);
        Ok(self.pool.split_off(count))
    }

    fn new(
        domain: Domain,
        sourcing: Sourcing,
        cot_sender: Role,
        trees: softspoken::Receiver,
    ) -> Self {
        let (blocks, choices) = (Store::new(), Store::new());
        let pool = ReceiverBatch { hash: PadHash::new(&domain), first: 0, blocks, choices };
        let supply = Supply::new(sourcing, cot_sender);
        Self { domain, supply, threads: 1, trees, started: 0, refills: VecDeque::new(), pool }
    }

    fn make_room(&mut self, count: usize) {
        self.pool.blocks.make_room(count);
        self.pool.choices.make_room(count);
    }

    fn soft(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        self.make_room(count);
        let ReceiverBatch { blocks, choices, .. } = &mut self.pool;
        for grains in softspoken::messages(count) {
            ch.send(&self.trees.extend(grains, blocks.items(), choices.items()))?;
        }
        Ok(())
    }

    fn start(&mut self, set: Set) {
        let base = self.pool.split_off(set.base());
        let number = self.started;
        self.refills.push_back(ferret::Receiver::new(
            &self.domain,
            number,
            set,
            &base.blocks,
            &base.choices,
        ));
        self.started += 1;
    }

    fn grow(&mut self, ch: &mut Channel, set: Set, trees: usize) -> Result<()> {
        self.make_room(trees << set.depth);
        let Some(refill) = self.refills.front_mut() else { return Ok(()) };
        let ReceiverBatch { blocks, choices, .. } = &mut self.pool;
        let messages: Vec<usize> = ferret::messages(set, trees).collect();
        for messages in messages.chunks(self.threads) {
            let mut corrections = Vec::with_capacity(messages.iter().sum::<usize>() * set.blocks());
            for trees in messages {
                let message: ferret::Corrections = ch.receive(&corrections_layout(set, *trees))?;
                corrections.extend(ferret::blocks(message));
            }
            let leaves = grown(blocks.items(), messages.iter().sum::<usize>() << set.depth);
            refill.encode(self.threads, &corrections, leaves);
            choices.items().extend(leaves.iter().map(|t| *t as u8 & 1));
        }
        if refill.is_empty() {
            self.refills.pop_front();
        }
        Ok(())
    }
}

/// `count` zeros at the end of `list`, which has room for them.
fn grown(list: &mut Vec<u128>, count: usize) -> &mut [u128] {
    let before = list.len();
    list.resize(before + count, 0);
    &mut list[before..]
}

/// Sets both directions up at once, in four rounds instead of six; both parties
/// call it. The sender returned holds this party's Delta. Each message crosses its like,
/// so that both parties compute at the same time.
///
/// # Errors
/// [`Error::Peer`], [`Error::Transport`].
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
    let sender = CotSender::new(ours, sourcing, ch.role(), accepting.finish(their_sums)?);
    Ok((sender, CotReceiver::new(theirs, sourcing, !ch.role(), receiver)))
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
        base::offer_cost(server),
        base::replies_cost(server),
        base::replies_cost(client),
        setup::sums_cost(client),
        setup::sums_cost(server),
    ]
    .into_iter()
    .collect()
}

fn check_limit(count: usize) -> Result<()> {
    if count > LIMIT {
        return Err(Error::misuse(format!("{count} correlations at once")));
    }
    Ok(())
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
