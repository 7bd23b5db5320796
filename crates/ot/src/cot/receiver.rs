//! The end that holds the choice bits.

use std::ops::Range;

use ring::{Random, Wiped};
use wire::{Channel, Result, Role};

use super::batch::ReceiverBatch;
use super::end::{End, Line, Side, When};
use super::ferret::params::Set;
use super::ferret::{self, Received, ReceiverTrees, corrections_layout};
use super::queue::{Chunk, Made};
use super::schedule::Sourcing;
use super::setup;
use super::softspoken;
use super::store::Store;
use crate::base::hybrid::Request;
use crate::hash::PadHash;
use crate::session::{Domain, SessionId};

/// The side of the party that holds the choice bits.
pub enum ReceiverSide {}

/// The party that holds the choice bits, which are random.
pub type CotReceiver = End<ReceiverSide>;

impl CotReceiver {
    /// Sets this direction up; the peer runs [`CotSender::setup`](super::CotSender::setup)
    /// with the same `source`.
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
        let domain = Domain::new(*session, !ch.role());
        let request = Request::receive(ch, sourcing.base)?;
        let (trees, expected, offered) =
            setup::offer(&domain, sourcing.source.field(), rng, &request)?;
        offered.send(ch)?;
        setup::verify(ch, &expected)?;
        Ok(Self::with_trees(domain, sourcing, !ch.role(), trees))
    }

    /// Takes the next `count` correlations.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] when fewer are available: nothing is made silently.
    pub fn take(&mut self, count: usize) -> Result<ReceiverBatch> {
        self.split_off(count)
    }

    pub(super) fn with_trees(
        domain: Domain,
        sourcing: Sourcing,
        cot_sender: Role,
        trees: softspoken::Receiver,
    ) -> Self {
        let (blocks, choices) = (Store::new(), Store::new());
        let keys = ReceiverBatch { hash: PadHash::new(&domain), first: 0, blocks, choices };
        Self::new(domain, sourcing, cot_sender, trees, keys)
    }
}

impl Side for ReceiverSide {
    const NAME: &str = "CotReceiver";
    type Trees = softspoken::Receiver;
    type Refill = ferret::Receiver;
    type Made = Chosen;
    type Later = (ReceiverTrees, Received);
    type Batch = ReceiverBatch;

    /// The corrections follow from the correlations, so that these are always made now.
    fn soft(
        trees: &mut softspoken::Receiver,
        ch: &mut Channel,
        grains: usize,
        _: When,
    ) -> Result<Chunk<Self>> {
        // A message makes more than it leaves.
        let room = (grains + 1) * softspoken::GRAIN;
        let mut blocks = Wiped::new(Vec::with_capacity(room));
        let mut choices = Wiped::new(Vec::with_capacity(room));
        ch.send(&trees.extend(grains, &mut blocks, &mut choices))?;
        Ok(Chunk::Made(Chosen { blocks: blocks.into(), choices: choices.into() }))
    }

    fn start(domain: &Domain, number: u64, set: Set, base: &ReceiverBatch) -> ferret::Receiver {
        ferret::Receiver::new(domain, number, set, &base.blocks, &base.choices)
    }

    fn grow(
        refill: &mut ferret::Receiver,
        line: &mut Line<'_>,
        threads: usize,
        messages: &[usize],
        when: When,
    ) -> Result<Chunk<Self>> {
        let trees = refill.next(messages.iter().sum());
        let mut received = Received::default();
        for count in messages {
            let layout = corrections_layout(trees.set(), *count);
            received.add(*count, line.channel()?.receive(&layout)?);
        }
        let (count, later) = (trees.leaves(), (trees, received));
        Ok(match when {
            When::Now => Chunk::Made(Self::make(&later, count, threads)?),
            When::Later => Chunk::Later(later, count),
        })
    }

    fn make((trees, received): &Self::Later, count: usize, threads: usize) -> Result<Chosen> {
        let mut blocks = Wiped::new(vec![0; count]);
        trees.make(threads, received, &mut blocks)?;
        let choices: Vec<u8> = blocks.iter().map(|t| *t as u8 & 1).collect();
        Ok(Chosen { blocks: blocks.into(), choices: choices.into() })
    }

    fn is_spent(refill: &ferret::Receiver) -> bool {
        refill.is_empty()
    }

    fn batch(like: &ReceiverBatch, first: u64, made: Chosen) -> ReceiverBatch {
        let Chosen { blocks, choices } = made;
        ReceiverBatch { hash: like.hash, first, blocks, choices }
    }
}

/// Blocks `t_i` and choice bits `c_i` of the receiver, as many of one as of the other.
pub(crate) struct Chosen {
    blocks: Store<u128>,
    choices: Store<u8>,
}

impl Made for Chosen {
    fn len(&self) -> usize {
        self.blocks.len()
    }

    fn part(&self, range: Range<usize>) -> Self {
        let blocks = self.blocks.part(range.clone());
        Self { blocks, choices: self.choices.part(range) }
    }

    fn join(count: usize, parts: impl Iterator<Item = Result<Self>>) -> Result<Self> {
        let mut blocks = Wiped::new(Vec::with_capacity(count));
        let mut choices = Wiped::new(Vec::with_capacity(count));
        for part in parts {
            let part = part?;
            blocks.extend_from_slice(&part.blocks);
            choices.extend_from_slice(&part.choices);
        }
        Ok(Self { blocks: blocks.into(), choices: choices.into() })
    }
}
