//! The end that holds Delta.

use std::ops::Range;

use ring::{Random, Wiped};
use wire::{Channel, Result, Role};

use super::arrived::{Arrived, Blocks, Ticket};
use super::batch::SenderBatch;
use super::end::{End, Line, Side, When};
use super::ferret::params::Set;
use super::ferret::{self, SenderTrees};
use super::queue::{Chunk, Made};
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
        let keys = SenderBatch { hash, first: 0, delta: trees.delta(), blocks: Store::new() };
        Self::new(domain, sourcing, cot_sender, Arrived::new(trees), keys)
    }
}

impl Side for SenderSide {
    const NAME: &str = "CotSender";
    type Trees = Arrived;
    type Refill = ferret::Sender;
    type Made = Blocks;
    type Later = Later;
    type Batch = SenderBatch;

    fn soft(
        trees: &mut Arrived,
        ch: &mut Channel,
        grains: usize,
        when: When,
    ) -> Result<Chunk<Self>> {
        let ticket = trees.receive(ch, grains)?;
        Ok(match when {
            When::Now => Chunk::Made(ticket.make()?),
            When::Later => Chunk::Later(Later::Corrected(ticket), grains * softspoken::GRAIN),
        })
    }

    fn start(domain: &Domain, number: u64, set: Set, base: &SenderBatch) -> ferret::Sender {
        ferret::Sender::new(domain, number, set, *base.delta, &base.blocks)
    }

    fn grow(
        refill: &mut ferret::Sender,
        line: &mut Line<'_>,
        threads: usize,
        messages: &[usize],
        when: When,
    ) -> Result<Chunk<Self>> {
        let trees = refill.next(messages.iter().sum());
        let mut blocks = Wiped::new(vec![0; trees.leaves()]);
        let sent = trees.grow(threads, &mut blocks);
        sent.messages(messages).try_for_each(|message| line.send(message))?;
        if when == When::Later {
            let count = blocks.len();
            return Ok(Chunk::Later(Later::Grown(trees), count));
        }
        trees.finish(threads, &mut blocks);
        Ok(Chunk::Made(blocks.into()))
    }

    fn make(later: &Later, count: usize, threads: usize) -> Result<Blocks> {
        let trees = match later {
            Later::Grown(trees) => trees,
            Later::Corrected(ticket) => return ticket.make(),
        };
        let mut blocks = Wiped::new(vec![0; count]);
        trees.remake(threads, &mut blocks);
        Ok(blocks.into())
    }

    fn is_spent(refill: &ferret::Sender) -> bool {
        refill.is_empty()
    }

    fn batch(like: &SenderBatch, first: u64, blocks: Blocks) -> SenderBatch {
        SenderBatch { hash: like.hash, first, delta: like.delta.clone(), blocks }
    }
}

/// What the sender makes correlations of when they are needed.
pub(crate) enum Later {
    /// Trees whose messages were sent.
    Grown(SenderTrees),
    /// Corrections that have arrived.
    Corrected(Ticket),
}

impl Made for Blocks {
    fn len(&self) -> usize {
        <[u128]>::len(self)
    }

    fn part(&self, range: Range<usize>) -> Self {
        Self::part(self, range)
    }

    fn join(count: usize, parts: impl Iterator<Item = Result<Self>>) -> Result<Self> {
        let mut blocks = Wiped::new(Vec::with_capacity(count));
        for part in parts {
            blocks.extend_from_slice(&part?);
        }
        Ok(blocks.into())
    }
}
