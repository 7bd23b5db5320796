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
//! direction and refill, and `sigma(high, low) = (high xor low, high)`: circular
//! correlation robust in the ideal-cipher model (Guo, Katz, Wang, Yu, "Efficient
//! and secure multiparty computation from fixed-key block ciphers", IEEE S&P 2020).

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::Zeroizing;

/// Nodes hashed at a time.
const BATCH: usize = 64;
/// Leaves worked on together, so that a group of trees stays in the second-level cache.
const GROUP: usize = 1 << 13;
/// Most trees in a group.
const MOST: usize = 16;
/// The lowest bit of a leaf is zero, so that a receiver's block carries its choice there.
pub(crate) const CLEAR: u128 = !1;

/// `H`, under the key of a refill.
#[derive(Clone)]
pub(crate) struct Hasher {
    cipher: Aes128Enc,
    /// `H(0)`: what an empty node expands to, on both sides.
    empty: u128,
}

/// Left and right sums of the children of a level, by tree.
type Sums = Zeroizing<[[u128; 2]; MOST]>;

/// Trees of `depth` levels that are worked on together.
fn group(depth: usize) -> usize {
    (GROUP >> depth).clamp(1, MOST)
}

impl Hasher {
    pub(crate) fn new(key: u128) -> Self {
        let mut hasher = Self { cipher: Aes128Enc::new(&key.to_le_bytes().into()), empty: 0 };
        hasher.empty = u128::from_le_bytes(hasher.hashes(&[0], &mut [[0; 16]])[0]) ^ sigma(0);
        hasher
    }

    /// Grows trees of `2^depth` leaves each into `leaves`, from `depth` blocks `q` per
    /// tree, and writes the `depth - 1` blocks per tree for the receiver to
    /// `corrections`.
    pub(crate) fn grow(
        &self,
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
            for (root, seeds) in leaves.chunks_exact_mut(2).zip(seeds.chunks_exact(depth)) {
                (root[0], root[1]) = (seeds[0], seeds[0] ^ delta);
            }
            for level in 1..depth {
                let sums = self.expand(level, depth, leaves);
                let seeds = seeds.iter().skip(level).step_by(depth);
                let corrections = corrections.iter_mut().skip(level - 1).step_by(depth - 1);
                for ((correction, seed), [left, _]) in corrections.zip(seeds).zip(sums.iter()) {
                    *correction = seed ^ left;
                }
            }
        }
    }

    /// Recovers the trees' leaves from `depth` blocks `t` and choice bits (0 or 1) per tree
    /// and the sender's corrections. The leaf at the missing position is the sender's
    /// xor Delta, with the lowest bit set; that bit of all others is zero.
    pub(crate) fn puncture(
        &self,
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
            for level in 1..depth {
                let sums = self.expand(level, depth, leaves);
                let nodes = leaves.chunks_exact_mut(2 << level);
                for (tree, (nodes, path)) in nodes.zip(&mut paths[..trees]).enumerate() {
                    let at = tree * depth + level;
                    let sum = seeds[at] ^ corrections[tree * (depth - 1) + level - 1];
                    let last = level + 1 == depth;
                    add(nodes, *path, self.missing(choices[at], sum, sums[tree], last));
                    *path = 2 * *path + u64::from(1 - choices[at]);
                }
            }
        }
    }

    /// What turns the children of an empty node, both of them `H(0)`, into the open one
    /// on side `open` and a hidden one: empty again, or, among the leaves, the sum of
    /// all others. `sum` is that of side `open`, `sums` are those of what the
    /// receiver holds.
    fn missing(&self, open: u8, sum: u128, sums: [u128; 2], last: bool) -> [u128; 2] {
        let side = spread(open) & (sums[0] ^ sums[1]);
        let (sibling, leaf) = (sum ^ sums[0] ^ side, sum ^ sums[1] ^ side);
        let (sibling, hidden) =
            if last { (sibling & CLEAR, (leaf & CLEAR) | 1) } else { (sibling, self.empty) };
        let swap = spread(open) & (sibling ^ hidden);
        [sibling ^ swap, hidden ^ swap]
    }

    /// Replaces the nodes of `level` at the front of `nodes` by their children, in place from
    /// the back. Both parties' trees end after `depth` levels, with [`CLEAR`] leaves.
    fn expand(&self, level: usize, depth: usize, nodes: &mut [u128]) -> Sums {
        let keep = if level + 1 == depth { CLEAR } else { !0 };
        let total = (nodes.len() >> depth) << level;
        let step = BATCH.min(total);
        let run = BATCH.min(1 << level);
        let mut sums = Zeroizing::new([[0; 2]; MOST]);
        let mut parents = Zeroizing::new([0; BATCH]);
        let mut blocks = Zeroizing::new([[0; 16]; BATCH]);
        for start in (0..total).step_by(step).rev() {
            let count = step.min(total - start);
            let parents = &mut parents[..count];
            parents.copy_from_slice(&nodes[start..start + count]);
            let hashed = self.hashes(parents, &mut blocks[..count]);
            let runs = parents.chunks_exact(run).zip(hashed.chunks_exact(run));
            let pairs = nodes[2 * start..][..2 * count].chunks_exact_mut(2 * run);
            for (at, (pairs, (parents, hashed))) in pairs.zip(runs).enumerate() {
                let [left, right] = children(parents, hashed, keep, pairs);
                let sum = &mut sums[(start + at * run) >> level];
                *sum = [sum[0] ^ left, sum[1] ^ right];
            }
        }
        sums
    }

    /// `P(sigma(x))` of each, as bytes in `blocks`.
    fn hashes<'a>(&self, inputs: &[u128], blocks: &'a mut [[u8; 16]]) -> &'a [[u8; 16]] {
        for (block, input) in blocks.iter_mut().zip(inputs) {
            *block = sigma(*input).to_le_bytes();
        }
        self.cipher.encrypt_blocks(Block::cast_slice_from_core_mut(blocks));
        blocks
    }
}

/// The first level: the open node of each tree and an empty one. Returns the positions of
/// the empty ones.
fn roots(
    depth: usize,
    seeds: &[u128],
    choices: &[u8],
    nodes: &mut [u128],
) -> Zeroizing<[u64; MOST]> {
    let mut paths = Zeroizing::new([0; MOST]);
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
fn children(parents: &[u128], hashed: &[[u8; 16]], keep: u128, pairs: &mut [u128]) -> [u128; 2] {
    let mut sums = [0; 2];
    for ((pair, parent), hash) in pairs.as_chunks_mut().0.iter_mut().zip(parents).zip(hashed) {
        let left = u128::from_le_bytes(*hash) ^ sigma(*parent);
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
    use ring::Random;

    /// Sizes with one tree a group, several, and a group that is not full.
    #[test]
    fn one_leaf_of_each_tree_differs_by_delta() {
        for (depth, trees) in [(2, 1), (5, 37), (10, 11), (13, 3)] {
            check(depth, trees, &mut Random::seeded(depth as u64));
        }
    }

    fn check(depth: usize, trees: usize, rng: &mut Random) {
        let (hasher, delta) = (Hasher::new(rng.block()), rng.block() | 1);
        let seeds: Vec<u128> = (0..trees * depth).map(|_| rng.block()).collect();
        let choices: Vec<u8> = seeds.iter().map(|_| rng.word() as u8 & 1).collect();
        let opened = seeds.iter().zip(&choices).map(|(q, c)| q ^ (delta & spread(*c)));
        let opened: Vec<u128> = opened.collect();
        let (mut q, mut t) = (vec![0; trees << depth], vec![0; trees << depth]);
        let mut corrections = vec![0; trees * (depth - 1)];
        hasher.grow(depth, delta, &seeds, &mut q, &mut corrections);
        hasher.puncture(depth, &opened, &choices, &mut t, &corrections);
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
}
