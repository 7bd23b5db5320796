//! Correlated trees: a block of correlations with one random position from a few.
//!
//! A node `x` has the children `H(x)` and `x xor H(x)`, so that all nodes of a level
//! add up to Delta, and the two sides of a level differ by Delta. The first level is a
//! correlation `(q, q xor Delta)`. One further correlation and one block per level
//! give the receiver the sum of the side *off* the path to its position, and with it
//! every leaf but that one; the sum of the known leaves is the missing one plus
//! Delta. (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao, "Half-Tree: halving the cost of
//! tree expansion in COT and DPF", EUROCRYPT 2023, section 4.)
//!
//! The position is uniform anyway, so that it follows from the correlations' own choice
//! bits (it takes the side they do not open) and nothing goes back to the sender.
//!
//! `H(x) = P(sigma(x)) xor sigma(x)` with `P` = AES-128 under a key that hashes session,
//! direction and refill and differs for each level of each tree, and
//! `sigma(high, low) = (high xor low, high)`: circular correlation robust in the ideal-cipher
//! model (Guo, Katz, Wang, Yu, "Efficient and secure multiparty computation from fixed-key block
//! ciphers", IEEE S&P 2020). The receiver learns `H(x xor Delta)` for one known `x` a level. With one
//! key for D levels a guess of Delta would be compared with all of them, and 2^128/D would do (Guo,
//! Katz, Wang, Weng, Yu, CRYPTO 2020, ePrint 2019/1168, section 3).

use ring::simd::Level;
use zeroize::Zeroizing;

use crate::simd::EIGHT;
use crate::simd::aes::Hasher;

/// Nodes hashed at a time.
const BATCH: usize = 64;
/// Leaves worked on together, so that a group of trees stays in the second-level cache.
const GROUP: usize = 1 << 13;
/// The lowest bit of a leaf is zero, so that a receiver's block carries its choice there.
pub(crate) const CLEAR: u128 = !1;

/// `H`, under keys that follow from that of a refill.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    key: u128,
}

/// The hashes of a group of trees, level by level. Eight keys are made at a time: those of some
/// levels of all its trees.
struct Expander {
    keys: Keys,
    hasher: Hasher,
    /// Number of the first tree in its refill.
    first: usize,
    /// Trees that a full group has, a power of two.
    room: usize,
}

/// Left and right sums of the children of a level, by tree.
type Sums = Zeroizing<[[u128; 2]; EIGHT]>;

/// Trees of `depth` levels that are worked on together: 1, 2, 4 or 8.
fn group(depth: usize) -> usize {
    (GROUP >> depth).clamp(1, EIGHT)
}

impl Keys {
    /// Hashes under `key` of a refill, which both parties know.
    pub(crate) const fn new(key: u128) -> Self {
        Self { key }
    }

    /// The key that expands `level` of the tree of this number.
    const fn of(self, tree: usize, level: usize) -> u128 {
        self.key ^ ((tree as u128) << 8 | level as u128)
    }

    /// Grows trees of `2^depth` leaves each into `leaves`, from `depth` blocks `q` per
    /// tree, and writes the `depth - 1` blocks per tree for the receiver to
    /// `corrections`. The first of them is number `first` of its refill.
    pub(crate) fn grow(
        self,
        mut first: usize,
        depth: usize,
        delta: u128,
        seeds: &[u128],
        leaves: &mut [u128],
        corrections: &mut [u128],
    ) {
        let jobs = leaves
            .chunks_mut(group(depth) << depth)
            .zip(seeds.chunks(group(depth) * depth))
            .zip(corrections.chunks_mut(group(depth) * (depth - 1)));
        for ((leaves, seeds), corrections) in jobs {
            let trees = leaves.len() >> depth;
            for (root, seeds) in leaves.chunks_exact_mut(2).zip(seeds.chunks_exact(depth)) {
                (root[0], root[1]) = (seeds[0], seeds[0] ^ delta);
            }
            let mut expander = Expander::new(self, first, group(depth));
            for level in 1..depth {
                expander.enter(level);
                let sums = expander.expand(level, depth, trees, leaves);
                let seeds = seeds.iter().skip(level).step_by(depth);
                let corrections = corrections.iter_mut().skip(level - 1).step_by(depth - 1);
                for ((correction, seed), [left, _]) in corrections.zip(seeds).zip(sums.iter()) {
                    *correction = seed ^ left;
                }
            }
            first += trees;
        }
    }

    /// Recovers the trees' leaves from `depth` blocks `t` and choice bits (0 or 1) per tree
    /// and the sender's corrections. The leaf at the missing position is the sender's
    /// xor Delta, with the lowest bit set; that bit of all others is zero. The first tree is number
    /// `first` of its refill.
    pub(crate) fn puncture(
        self,
        mut first: usize,
        depth: usize,
        seeds: &[u128],
        choices: &[u8],
        leaves: &mut [u128],
        corrections: &[u128],
    ) {
        let jobs = leaves
            .chunks_mut(group(depth) << depth)
            .zip(seeds.chunks(group(depth) * depth))
            .zip(choices.chunks(group(depth) * depth))
            .zip(corrections.chunks(group(depth) * (depth - 1)));
        for (((leaves, seeds), choices), corrections) in jobs {
            let trees = leaves.len() >> depth;
            let mut paths = roots(depth, seeds, choices, leaves);
            let mut expander = Expander::new(self, first, group(depth));
            for level in 1..depth {
                expander.enter(level);
                let empty = expander.empty(level);
                let sums = expander.expand(level, depth, trees, leaves);
                let nodes = leaves.chunks_exact_mut(2 << level);
                for (tree, (nodes, path)) in nodes.zip(&mut paths[..trees]).enumerate() {
                    let at = tree * depth + level;
                    let sum = seeds[at] ^ corrections[tree * (depth - 1) + level - 1];
                    let last = level + 1 == depth;
                    let pair = missing(choices[at], sum, sums[tree], empty[tree], last);
                    add(nodes, *path, pair);
                    *path = 2 * *path + u64::from(1 - choices[at]);
                }
            }
            first += trees;
        }
    }
}

impl Expander {
    fn new(keys: Keys, first: usize, room: usize) -> Self {
        Self { keys, hasher: Hasher::new(Level::best()), first, room }
    }

    /// Makes the keys of `level`, and of those after it that are made with it, unless they are
    /// there. Expander are entered in order, from 1 on.
    fn enter(&mut self, level: usize) {
        let at_once = EIGHT / self.room;
        if !(level - 1).is_multiple_of(at_once) {
            return;
        }
        let mut keys = [0; EIGHT];
        for (place, key) in keys.iter_mut().enumerate() {
            *key = self.keys.of(self.first + place % self.room, level + place / self.room);
        }
        self.hasher.set(keys);
    }

    /// The place of the first tree's key of `level` among those that are there.
    const fn place(&self, level: usize) -> usize {
        (level - 1) % (EIGHT / self.room) * self.room
    }

    /// `H(0)` of each tree: what an empty node expands to, on both sides.
    fn empty(&self, level: usize) -> [u128; EIGHT] {
        let mut hashed = [0; EIGHT];
        self.hasher.hash(0, 0, &mut hashed);
        hashed.rotate_left(self.place(level));
        hashed
    }

    /// Replaces the nodes of `level` of so many trees at the front of `nodes` by their children, in
    /// place from the back. Both parties' trees end after `depth` levels, with [`CLEAR`] leaves.
    fn expand(&self, level: usize, depth: usize, trees: usize, nodes: &mut [u128]) -> Sums {
        let keep = if level + 1 == depth { CLEAR } else { !0 };
        let total = trees << level;
        let (step, run) = (BATCH.min(total), BATCH.min(1 << level));
        let mut sums = Zeroizing::new([[0; 2]; EIGHT]);
        let mut parents = Zeroizing::new([0; BATCH]);
        let mut blocks = Zeroizing::new([0; BATCH]);
        for start in (0..total).step_by(step).rev() {
            let count = step.min(total - start);
            let parents = &mut parents[..count];
            parents.copy_from_slice(&nodes[start..start + count]);
            blocks.iter_mut().zip(&*parents).for_each(|(to, parent)| *to = sigma(*parent));
            let place = self.place(level) + (start >> level);
            self.hasher.hash(place, level as u32, &mut blocks[..count.next_multiple_of(EIGHT)]);
            let runs = parents.chunks_exact(run).zip(blocks.chunks_exact(run));
            let pairs = nodes[2 * start..][..2 * count].chunks_exact_mut(2 * run);
            for (at, (pairs, (parents, hashed))) in pairs.zip(runs).enumerate() {
                let [left, right] = children(parents, hashed, keep, pairs);
                let sum = &mut sums[(start + at * run) >> level];
                *sum = [sum[0] ^ left, sum[1] ^ right];
            }
        }
        sums
    }
}

/// What turns the children of an empty node, both of them `empty`, into the open one
/// on side `open` and a hidden one: empty again, or, among the leaves, the sum of
/// all others. `sum` is that of side `open`, `sums` are those of what the
/// receiver holds.
fn missing(open: u8, sum: u128, sums: [u128; 2], empty: u128, last: bool) -> [u128; 2] {
    let side = spread(open) & (sums[0] ^ sums[1]);
    let (sibling, leaf) = (sum ^ sums[0] ^ side, sum ^ sums[1] ^ side);
    let (sibling, hidden) =
        if last { (sibling & CLEAR, (leaf & CLEAR) | 1) } else { (sibling, empty) };
    let swap = spread(open) & (sibling ^ hidden);
    [sibling ^ swap, hidden ^ swap]
}

/// The first level: the open node of each tree and an empty one. Returns the positions of
/// the empty ones.
fn roots(
    depth: usize,
    seeds: &[u128],
    choices: &[u8],
    nodes: &mut [u128],
) -> Zeroizing<[u64; EIGHT]> {
    let mut paths = Zeroizing::new([0; EIGHT]);
    let trees = seeds.iter().step_by(depth).zip(choices.iter().step_by(depth));
    let roots = nodes.chunks_exact_mut(2).zip(paths.iter_mut());
    for ((root, path), (seed, open)) in roots.zip(trees) {
        (root[0], root[1]) = (seed & spread(1 - open), seed & spread(*open));
        *path = u64::from(1 - open);
    }
    paths
}

/// Writes the children `H(x)` and `x xor H(x)` of each parent, cut by `keep`, and returns
/// their sums, uncut.
#[inline]
fn children(parents: &[u128], hashed: &[u128], keep: u128, pairs: &mut [u128]) -> [u128; 2] {
    let mut sums = [0; 2];
    for ((pair, parent), left) in pairs.as_chunks_mut().0.iter_mut().zip(parents).zip(hashed) {
        let right = left ^ parent;
        sums = [sums[0] ^ left, sums[1] ^ right];
        *pair = [left & keep, right & keep];
    }
    sums
}

/// Adds `pair` to the children of node number `parent`, touching all children.
fn add(children: &mut [u128], parent: u64, pair: [u128; 2]) {
    for (at, children) in (0u64..).zip(children.as_chunks_mut::<2>().0) {
        let here = ((at ^ parent).wrapping_sub(1) as i64 >> 63) as i128 as u128;
        *children = [children[0] ^ (pair[0] & here), children[1] ^ (pair[1] & here)];
    }
}

/// All ones for 1, zero for 0.
fn spread(bit: u8) -> u128 {
    u128::from(bit).wrapping_neg()
}

const fn sigma(x: u128) -> u128 {
    let high = x >> 64;
    (((high ^ x) & (u64::MAX as u128)) << 64) | high
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128Enc;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};
    use ring::Random;

    /// Sizes with one tree a group, several, and a group that is not full.
    #[test]
    fn one_leaf_of_each_tree_differs_by_delta() {
        for (depth, trees) in [(2, 1), (5, 37), (10, 11), (13, 3)] {
            check(depth, trees, &mut Random::seeded(depth as u64));
        }
    }

    fn check(depth: usize, trees: usize, rng: &mut Random) {
        let (keys, delta) = (Keys::new(rng.block()), rng.block() | 1);
        let seeds: Vec<u128> = (0..trees * depth).map(|_| rng.block()).collect();
        let choices: Vec<u8> = seeds.iter().map(|_| rng.word() as u8 & 1).collect();
        let opened = seeds.iter().zip(&choices).map(|(q, c)| q ^ (delta & spread(*c)));
        let opened: Vec<u128> = opened.collect();
        let (mut q, mut t) = (vec![0; trees << depth], vec![0; trees << depth]);
        let mut corrections = vec![0; trees * (depth - 1)];
        let first = 1000;
        keys.grow(first, depth, delta, &seeds, &mut q, &mut corrections);
        keys.puncture(first, depth, &opened, &choices, &mut t, &corrections);
        let bits = choices.chunks(depth);
        for ((q, t), bits) in q.chunks(1 << depth).zip(t.chunks(1 << depth)).zip(bits) {
            let hidden = bits.iter().fold(0, |at, bit| 2 * at + usize::from(1 - bit));
            for (at, (q, t)) in q.iter().zip(t).enumerate() {
                assert_eq!((q ^ t, q & 1), (if at == hidden { delta } else { 0 }, 0));
            }
            let sum = q.iter().fold(0, |sum, q| sum ^ q);
            assert_eq!(sum, delta & CLEAR);
        }
    }

    #[test]
    fn sigma_is_an_orthomorphism() {
        let x = Random::seeded(1).block();
        let (high, low) = (x >> 64, x & u128::from(u64::MAX));
        assert_eq!(sigma(x), ((high ^ low) << 64) | high);
        assert_eq!(sigma(x) ^ x, (low << 64) | (high ^ low));
    }

    /// Blocks of this many bits, few enough to search all of them.
    const TOY: u32 = 20;
    /// Expander of which the toy's receiver knows `H(x xor Delta)`.
    const KNOWN: usize = 256;

    /// `H` on toy blocks: four Feistel rounds under a key in the place of AES.
    fn toy(key: u128, x: u32) -> u32 {
        let half = TOY / 2;
        let mask = (1 << half) - 1;
        let sigma = (((x >> half) ^ x) & mask) << half | x >> half;
        let cipher = Aes128Enc::new(&key.to_le_bytes().into());
        let round = |number: u32, right: u32| {
            let mut block = (u128::from(number) << 32 | u128::from(right)).to_le_bytes().into();
            cipher.encrypt_block(&mut block);
            u32::from_le_bytes([block[0], block[1], block[2], block[3]]) & mask
        };
        let (mut left, mut right) = (sigma >> half, sigma & mask);
        for number in 0..4 {
            (left, right) = (right, left ^ round(number, right));
        }
        (left << half | right) ^ sigma
    }

    /// Tries to find Delta from `H(x xor Delta)` of known `x`, with so many evaluations of `H`, each
    /// level under its `key`. A guess is compared with all levels of its key.
    fn attack(
        key: impl Fn(usize) -> u128,
        known: &[(u32, u32)],
        evaluations: u32,
        delta: u32,
    ) -> bool {
        let one_key = key(0) == key(1);
        (0..evaluations).any(|guess| {
            let level = if one_key { 0 } else { guess as usize % known.len() };
            let hash = toy(key(level), guess);
            let under = if one_key { known } else { &known[level..=level] };
            under.iter().any(|(x, seen)| *seen == hash && x ^ guess == delta)
        })
    }

    #[test]
    fn a_key_for_each_level_leaves_nothing_to_compare_a_guess_with() {
        let (mut found, mut trials) = ([0, 0], 0);
        let mut rng = Random::seeded(20);
        while trials < 20 {
            trials += 1;
            let (refill, delta) = (rng.block(), rng.word() as u32 & ((1 << TOY) - 1) | 1);
            let keys = [|_: usize, key: u128| key, |level: usize, key: u128| key ^ level as u128];
            for (form, found) in keys.iter().zip(&mut found) {
                let key = |level: usize| form(level, refill);
                let level = |level: usize| {
                    let x = rng.word() as u32 & ((1 << TOY) - 1);
                    (x, toy(key(level), x ^ delta))
                };
                let known: Vec<(u32, u32)> = (0..KNOWN).map(level).collect();
                // Twice what the attack on one key takes on average.
                let evaluations = 2 * (1 << TOY) / KNOWN as u32;
                *found += u32::from(attack(key, &known, evaluations, delta));
            }
        }
        assert!(found[0] >= 12, "one key: {found:?}");
        assert!(found[1] <= 1, "a key for each: {found:?}");
    }

    #[test]
    fn every_level_of_every_tree_has_a_key_of_its_own() {
        let empty = |tree, level| {
            let mut expander = Expander::new(Keys::new(7), tree, 1);
            (1..=level).for_each(|level| expander.enter(level));
            expander.empty(level)[0]
        };
        let trees = [0, 1, 2, 255, 256, 257, 1 << 20];
        let all: Vec<u128> =
            trees.iter().flat_map(|tree| (1..13).map(move |level| empty(*tree, level))).collect();
        let distinct: std::collections::BTreeSet<u128> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
        for room in [2, 4, 8] {
            let mut expander = Expander::new(Keys::new(7), 300, room);
            for level in 1..13 {
                expander.enter(level);
                let wanted: Vec<u128> = (300..300 + room).map(|tree| empty(tree, level)).collect();
                assert_eq!(expander.empty(level)[..room], wanted);
            }
        }
    }
}
