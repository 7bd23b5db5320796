//! What the benches measure: the cores without a network. Not part of any
//! release build.

use ring::Random;
use ring::simd::Level;
use wire::{Result, Role};
use zeroize::Zeroizing;

use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::cot::ferret::params::SETS;
use crate::cot::ferret::{self, Received, ReceiverTrees, SenderTrees};
use crate::cot::softspoken::{Corrections, Field, GRAIN, Receiver, Sender};
use crate::cot::tree::Leaves;
use crate::session::{Domain, SessionId};
use crate::simd::aes::Hasher;
use crate::simd::transpose::{Columns, Squares, transpose};

/// Both ends of SoftSpoken on trees out of a hat.
pub struct Extension {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

impl Extension {
    /// Sender at the first level, receiver at the second.
    pub fn new([first, second]: [Level; 2], field: Field, rng: &mut Random) -> Self {
        let domain = Domain::new(SessionId([9; 32]), Role::Client);
        let delta = rng.block();
        let [all, known] = trees(field, delta, rng);
        Self {
            sender: Sender::at_level(first, &domain, field, (&known, [0; 32]), delta),
            receiver: Receiver::at_level(second, &domain, field, (&all, [0; 32])),
        }
    }

    /// Makes `grains * 128` correlations of the receiver, over the old content.
    pub fn receive(
        &mut self,
        grains: usize,
        blocks: &mut Vec<u128>,
        choices: &mut Vec<u8>,
    ) -> Corrections {
        blocks.clear();
        choices.clear();
        self.receiver.extend(grains, blocks, choices)
    }

    /// Makes `grains * 128` correlations of the sender, over the old content.
    ///
    /// # Errors
    /// [`wire::Error::Peer`] for corrections of another message than the next.
    pub fn send(
        &mut self,
        grains: usize,
        corrections: Corrections,
        blocks: &mut Vec<u128>,
    ) -> Result<()> {
        blocks.clear();
        self.sender.extend(grains, corrections, blocks)
    }
}

/// Random trees, and what a sender with this Delta knows of them.
pub(crate) fn trees(field: Field, delta: u128, rng: &mut Random) -> [Vec<Leaves>; 2] {
    let leaves = 1usize << field.bits();
    let tree = |_| Zeroizing::new((0..leaves).map(|_| rng.block()).collect());
    let all: Vec<Leaves> = (0..field.trees()).map(tree).collect();
    let known = |(tree, leaves): (usize, &Leaves)| {
        let hole = usize::from(field.part(delta, tree));
        let leaf = |y: usize| if y == 0 { 0 } else { leaves[y ^ hole] };
        Zeroizing::new((0..leaves.len()).map(leaf).collect())
    };
    let known = all.iter().enumerate().map(known).collect();
    [all, known]
}

/// Both ends of some trees of a refill of Ferret, the smallest set, on base correlations out of a hat.
pub struct Refill {
    sender: SenderTrees,
    receiver: ReceiverTrees,
    received: Received,
    leaves: Vec<u128>,
}

impl Refill {
    /// The first `trees` trees, at most those of a message.
    pub fn new(trees: usize, rng: &mut Random) -> Self {
        let (domain, set) = (Domain::new(SessionId([9; 32]), Role::Client), SETS[0]);
        let (delta, trees) = (rng.block() | 1, trees.min(set.trees_in_message()));
        let sent: Vec<u128> = (0..set.base()).map(|_| rng.block()).collect();
        let choices: Vec<u8> = rng.uniform(set.base(), 1).iter().map(|bit| *bit as u8).collect();
        let pairs = sent.iter().zip(&choices);
        let opened: Vec<u128> =
            pairs.map(|(q, choice)| q ^ (delta & u128::from(*choice).wrapping_neg())).collect();
        let sender = ferret::Sender::new(&domain, 0, set, delta, &sent).next(trees);
        let receiver = ferret::Receiver::new(&domain, 0, set, &opened, &choices).next(trees);
        let mut leaves = vec![0; sender.leaves()];
        let mut received = Received::default();
        let said = sender.grow(1, &mut leaves);
        said.messages(&[trees]).for_each(|message| received.add(trees, message));
        Self { sender, receiver, received, leaves }
    }

    /// Makes the sender's correlations, and says how many.
    pub fn send(&mut self) -> usize {
        drop(self.sender.grow(1, &mut self.leaves));
        self.sender.finish(1, &mut self.leaves);
        self.leaves.len()
    }

    /// Makes the receiver's correlations, and says how many.
    ///
    /// # Errors
    /// [`wire::Error::Peer`] where the trees are not the sender's.
    pub fn receive(&mut self) -> Result<usize> {
        self.receiver.make(1, &self.received, &mut self.leaves)?;
        Ok(self.leaves.len())
    }
}

/// Encrypts blocks, a multiple of eight and at most 256, under one key of AES-128.
pub fn encryptions(level: Level, blocks: &mut [u128]) -> usize {
    let mut hasher = Hasher::new(level);
    hasher.set([7; 8]);
    (0..16).for_each(|_| hasher.hash(0, 8, blocks));
    16 * blocks.len()
}

/// Transposes eight matrices of zeros `times` times.
pub fn transpositions(level: Level, times: usize) -> u128 {
    let mut columns: Columns = [[1; 8]; GRAIN];
    let mut squares: Squares = [[0; GRAIN]; 8];
    (0..times).for_each(|_| transpose(level, &mut columns, &mut squares));
    squares[7][127]
}

/// Returns the sum of all pads of 1-of-2^m OTs, `len() / m` elements.
pub fn sender_pads(mut batch: SenderBatch, choice_bits: u32) -> u128 {
    let (count, mut sum) = (batch.len() / choice_bits as usize, 0);
    batch.pads(choice_bits, count, |pads| pads.iter().for_each(|pad| sum ^= pad));
    sum
}

/// Returns the sum of all opened pads, `len() / m` elements.
pub fn receiver_pads(mut batch: ReceiverBatch, choice_bits: u32) -> u128 {
    let (count, mut sum) = (batch.len() / choice_bits as usize, 0);
    batch.pads(choice_bits, count, |_, pads| pads.iter().for_each(|pad| sum ^= pad));
    sum
}
