//! Setup of one direction, without a network: base transfers, then the trees.

use ring::word::mask;
use ring::{Prg, Seed};
use wire::{Cost, Error, Packed, Result, Role, Segment};
use zeroize::Zeroizing;

use crate::base::{self, Offer, Offerer, Replies};
use crate::session::Domain;
use crate::softspoken::{Receiver, Sender, TREES};
use crate::tree::{DEPTH, Sums, grow, path_bit, puncture};

/// COT receiver to COT sender: the masked sums of all trees, low word first.
pub(crate) type TreeSums = Packed<0x35>;

/// The COT receiver, waiting for [`Replies`].
pub(crate) struct Offering {
    domain: Domain,
    offerer: Offerer,
}

/// The COT sender, waiting for [`TreeSums`].
pub(crate) struct Accepting {
    domain: Domain,
    delta: Zeroizing<u128>,
    keys: Vec<Seed>,
}

/// First step of the COT receiver.
pub(crate) fn offer(domain: Domain, rng: &mut Prg) -> (Offering, Offer) {
    let (offerer, offer) = base::offer(rng);
    (Offering { domain, offerer }, offer)
}

/// First step of the COT sender: Delta is drawn, with lowest bit 1, and becomes the choice
/// bits.
///
/// # Errors
/// [`Error::Peer`].
pub(crate) fn accept(domain: Domain, rng: &mut Prg, offer: &Offer) -> Result<(Accepting, Replies)> {
    // The fixed bit lets a silent receiver's block carry its choice.
    let delta = Zeroizing::new(rng.block() | 1);
    let off_path = |at| 1 - path_bit(hole(*delta, at / DEPTH), at % DEPTH);
    let choices: Zeroizing<Vec<u8>> = Zeroizing::new((0..base::COUNT).map(off_path).collect());
    let (keys, replies) = base::accept(&domain, rng, &choices, offer)?;
    Ok((Accepting { domain, delta, keys }, replies))
}

impl Offering {
    /// Grows the trees.
    ///
    /// # Errors
    /// [`Error::Peer`].
    pub(crate) fn finish(self, rng: &mut Prg, replies: &Replies) -> Result<(Receiver, TreeSums)> {
        let pairs = self.offerer.finish(&self.domain, replies)?;
        let mut trees = Vec::with_capacity(TREES);
        let mut words = Vec::with_capacity(sums_layout()[0].count);
        for (tree, pairs) in (0u8..).zip(pairs.chunks_exact(DEPTH)) {
            let (leaves, sums) = grow(&self.domain, tree, rng.block(), pairs);
            trees.push(leaves);
            let halves = sums.iter().flatten().flat_map(|sum| [*sum as u64, (sum >> 64) as u64]);
            words.extend(halves);
        }
        Ok((Receiver::new(&self.domain, &trees), Packed::one(words, 64)))
    }
}

impl Accepting {
    /// Recovers the trees.
    ///
    /// # Errors
    /// [`Error::Peer`] when the sums have another layout.
    pub(crate) fn finish(self, sums: TreeSums) -> Result<Sender> {
        let words = sums.concat();
        let (sums, rest) = words.as_chunks::<{ 4 * DEPTH }>();
        if sums.len() != TREES || !rest.is_empty() {
            return Err(Error::peer("the sums of 32 trees", format!("{} words", words.len())));
        }
        let trees = (0u8..).zip(sums.iter().zip(self.keys.chunks_exact(DEPTH)));
        let trees: Vec<_> = trees
            .map(|(tree, (words, keys))| {
                let hole = hole(*self.delta, usize::from(tree));
                puncture(&self.domain, tree, hole, keys, &blocks(words))
            })
            .collect();
        Ok(Sender::new(&self.domain, &trees, *self.delta))
    }
}

/// Layout of [`TreeSums`].
pub(crate) const fn sums_layout() -> [Segment; 1] {
    [Segment { count: TREES * DEPTH * 4, bits: 64 }]
}

/// What [`TreeSums`] costs when `from` sends it.
pub(crate) fn sums_cost(from: Role) -> Cost {
    Cost::message(from, TreeSums::body_len(&sums_layout()))
}

/// The leaf of `tree` that the sender misses: four bits of Delta.
const fn hole(delta: u128, tree: usize) -> u8 {
    ((delta >> (tree * DEPTH)) as u64 & mask(DEPTH as u32)) as u8
}

fn blocks(words: &[u64; 4 * DEPTH]) -> Sums {
    let block = |at: usize| u128::from(words[at]) | (u128::from(words[at + 1]) << 64);
    std::array::from_fn(|level| [block(4 * level), block(4 * level + 2)])
}
