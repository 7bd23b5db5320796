//! The end that holds the choice bits.

use ring::Random;
use wire::{Channel, Result, Role};

use super::batch::ReceiverBatch;
use super::end::{End, Pool, Side};
use super::ferret::params::Set;
use super::ferret::{self, corrections_layout};
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
        let pool = ReceiverBatch { hash: PadHash::new(&domain), first: 0, blocks, choices };
        Self::new(domain, sourcing, cot_sender, trees, pool)
    }
}

impl Side for ReceiverSide {
    const NAME: &str = "CotReceiver";
    type Trees = softspoken::Receiver;
    type Refill = ferret::Receiver;
    type Batch = ReceiverBatch;

    fn soft(
        trees: &mut softspoken::Receiver,
        ch: &mut Channel,
        grains: usize,
        pool: &mut ReceiverBatch,
    ) -> Result<()> {
        ch.send(&trees.extend(grains, pool.blocks.items(), pool.choices.items()))
    }

    fn start(domain: &Domain, number: u64, set: Set, base: &ReceiverBatch) -> ferret::Receiver {
        ferret::Receiver::new(domain, number, set, &base.blocks, &base.choices)
    }

    fn grow(
        refill: &mut ferret::Receiver,
        ch: &mut Channel,
        threads: usize,
        set: Set,
        messages: &[usize],
        pool: &mut ReceiverBatch,
    ) -> Result<()> {
        let count = messages.iter().sum::<usize>();
        let mut received = ferret::Received::default();
        for trees in messages {
            received.add(*trees, ch.receive(&corrections_layout(set, *trees))?);
        }
        let leaves = pool.blocks.grow(count << set.depth);
        refill.encode(threads, &received, leaves)?;
        pool.choices.items().extend(leaves.iter().map(|t| *t as u8 & 1));
        Ok(())
    }

    fn is_spent(refill: &ferret::Receiver) -> bool {
        refill.is_empty()
    }
}

impl Pool for ReceiverBatch {
    fn len(&self) -> usize {
        self.len()
    }

    fn first(&self) -> u64 {
        self.first
    }

    fn make_room(&mut self, count: usize) {
        self.blocks.make_room(count);
        self.choices.make_room(count);
    }

    fn split_off(&mut self, count: usize) -> Self {
        self.split_off(count)
    }
}
