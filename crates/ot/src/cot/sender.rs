//! The end that holds Delta.

use ring::Random;
use wire::{Channel, Result, Role};

use super::batch::SenderBatch;
use super::end::{End, Pool, Side};
use super::ferret;
use super::ferret::params::Set;
use super::schedule::Sourcing;
use super::setup::{self, Offered};
use super::softspoken;
use super::store::Store;
use crate::hash::PadHash;
use crate::session::{Domain, SessionId};

/// The side of the party that holds Delta.
pub enum SenderSide {}

/// The party that holds Delta.
pub type CotSender = End<SenderSide>;

impl CotSender {
    /// Sets this direction up, with a fresh Delta; the peer runs
    /// [`CotReceiver::setup`](super::CotReceiver::setup) with the same `source`.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub fn setup(
        ch: &mut Channel,
        rng: &mut Random,
        session: &SessionId,
        source: impl Into<Sourcing>,
    ) -> Result<Self> {
        let sourcing = source.into();
        let domain = Domain::new(*session, ch.role());
        let (accepting, chooser, request) = setup::accept(domain, sourcing, rng);
        request.send(ch)?;
        let (trees, proof) = accepting.finish(chooser, Offered::receive(ch, sourcing)?)?;
        ch.send(&proof)?;
        Ok(Self::with_trees(domain, sourcing, ch.role(), trees))
    }

    /// Takes the next `count` correlations.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] when fewer are available: nothing is made silently.
    pub fn take(&mut self, count: usize) -> Result<SenderBatch> {
        self.split_off(count)
    }

    pub(super) fn with_trees(
        domain: Domain,
        sourcing: Sourcing,
        cot_sender: Role,
        trees: softspoken::Sender,
    ) -> Self {
        let hash = PadHash::new(&domain);
        let pool = SenderBatch { hash, first: 0, delta: trees.delta(), blocks: Store::new() };
        Self::new(domain, sourcing, cot_sender, trees, pool)
    }
}

impl Side for SenderSide {
    const NAME: &str = "CotSender";
    type Trees = softspoken::Sender;
    type Refill = ferret::Sender;
    type Batch = SenderBatch;

    fn soft(
        trees: &mut softspoken::Sender,
        ch: &mut Channel,
        grains: usize,
        pool: &mut SenderBatch,
    ) -> Result<()> {
        let corrections = ch.receive(&trees.corrections_layout(grains))?;
        trees.extend(grains, corrections, pool.blocks.items())
    }

    fn start(domain: &Domain, number: u64, set: Set, base: &SenderBatch) -> ferret::Sender {
        ferret::Sender::new(domain, number, set, *base.delta, &base.blocks)
    }

    fn grow(
        refill: &mut ferret::Sender,
        ch: &mut Channel,
        threads: usize,
        set: Set,
        messages: &[usize],
        pool: &mut SenderBatch,
    ) -> Result<()> {
        let leaves = pool.blocks.grow(messages.iter().sum::<usize>() << set.depth);
        let sent = refill.grow(threads, leaves);
        sent.messages(messages).try_for_each(|message| ch.send(&message))?;
        refill.encode(threads, leaves);
        Ok(())
    }

    fn is_spent(refill: &ferret::Sender) -> bool {
        refill.is_empty()
    }
}

impl Pool for SenderBatch {
    fn len(&self) -> usize {
        self.len()
    }

    fn first(&self) -> u64 {
        self.first
    }

    fn make_room(&mut self, count: usize) {
        self.blocks.make_room(count);
    }

    fn split_off(&mut self, count: usize) -> Self {
        self.split_off(count)
    }
}
