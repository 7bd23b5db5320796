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
}

/// Per-tree input of the sender: one block of a correlation for each level.
pub(crate) type Seeds<'a> = &'a [u128];

impl Hasher {
    pub(crate) fn new(key: u128) -> Self {
        Self { cipher: Aes128Enc::new(&key.to_le_bytes().into()) }
    }

    /// Grows trees of `2^depth` leaves each into `leaves`, from `depth` blocks `q` per
    /// tree, and writes the `depth - 1` blocks per tree for the receiver to
    /// `corrections`.
    pub(crate) fn grow(
        &self,
        depth: usize,
        delta: u128,
        seeds: Seeds<'_>,
        leaves: &mut [u128],
        corrections: &mut [u128],
    ) {
        let group = (GROUP >> depth).clamp(1, MOST);
        let seeds = seeds.chunks(group * depth);
        let corrections = corrections.chunks_mut(group * (depth - 1));
        let mut sums = Zeroizing::new([[0; 2]; MOST]);
        for ((leaves, seeds), corrections) in
            leaves.chunks_mut(group << depth).zip(seeds).zip(corrections)
        {
            let trees = leaves.len() >> depth;
            for (root, seeds) in leaves.chunks_exact_mut(2).zip(seeds.chunks_exact(depth)) {
                (root[0], root[1]) = (seeds[0], seeds[0] ^ delta);
            }
            for level in 1..depth {
                let sums = &mut sums[..trees];
                self.expand(level, level + 1 == depth, leaves, sums);
                for (tree, sum) in sums.iter().enumerate() {
                    corrections[tree * (depth - 1) + level - 1] =
                        seeds[tree * depth + level] ^ sum[0];
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
        seeds: Seeds<'_>,
        choices: &[u8],
        leaves: &mut [u128],
        corrections: &[u128],
    ) {
        let group = (GROUP >> depth).clamp(1, MOST);
        let seeds = seeds.chunks(group * depth).zip(choices.chunks(group * depth));
        let corrections = corrections.chunks(group * (depth - 1));
        let mut sums = Zeroizing::new([[0; 2]; MOST]);
        // What an empty node expands to, on both sides.
        let empty = self.hash(0);
        for ((leaves, (seeds, choices)), corrections) in
            leaves.chunks_mut(group << depth).zip(seeds).zip(corrections)
        {
            let trees = leaves.len() >> depth;
            let mut paths = Zeroizing::new(vec![0u64; trees]);
            for (tree, path) in paths.iter_mut().enumerate() {
                let (seed, open) = (seeds[tree * depth], choices[tree * depth]);
                leaves[2 * tree] = seed & spread(1 - open);
                leaves[2 * tree + 1] = seed & spread(open);
                *path = u64::from(1 - open);
            }
            for level in 1..depth {
                let last = level + 1 == depth;
                self.expand(level, last, leaves, &mut sums[..trees]);
                let pairs = leaves.chunks_exact_mut(2 << level);
                for (tree, (nodes, path)) in pairs.zip(paths.iter_mut()).enumerate() {
                    let at = tree * depth + level;
                    let open = spread(choices[at]);
                    let sum = seeds[at] ^ corrections[tree * (depth - 1) + level - 1];
                    let [left, right] = sums[tree];
                    // The sum of the open side lacks the sibling; the last level's hidden
                    // leaf is the sum of everything else.
                    let mut sibling = sum ^ (left ^ (open & (left ^ right)));
                    let mut hidden = empty;
                    if last {
                        hidden = (sum ^ (right ^ (open & (left ^ right)))) & CLEAR | 1;
                        sibling &= CLEAR;
                    }
                    let swap = open & (sibling ^ hidden);
                    fix(nodes, *path, [sibling ^ swap, hidden ^ swap]);
                    *path = 2 * *path + u64::from(1 - choices[at]);
                }
            }
        }
    }

    /// Replaces the nodes of `level` at the front of `nodes` by their children, in place from
    /// the back; `sums[tree]` are the sums of left and of right children.
    fn expand(&self, level: usize, last: bool, nodes: &mut [u128], sums: &mut [[u128; 2]]) {
        let keep = if last { CLEAR } else { !0 };
        let step = BATCH.min(sums.len() << level);
        let run = step.min(1 << level);
        sums.fill([0; 2]);
        let mut parents = Zeroizing::new([0; BATCH]);
        let mut blocks = Zeroizing::new([[0; 16]; BATCH]);
        let total = sums.len() << level;
        for start in (0..total).step_by(step).rev() {
            let count = step.min(total - start);
            let parents = &mut parents[..count];
            parents.copy_from_slice(&nodes[start..start + count]);
            let hashed = self.hashes(parents, &mut blocks[..count]);
            let pairs = nodes[2 * start..][..2 * count].chunks_exact_mut(2 * run);
            let runs = parents.chunks_exact(run).zip(hashed.chunks_exact(run));
            for (at, (pairs, (parents, hashed))) in pairs.zip(runs).enumerate() {
                let [mut left, mut right] = [0; 2];
                let pairs = pairs.chunks_exact_mut(2);
                for (pair, (parent, hash)) in pairs.zip(parents.iter().zip(hashed)) {
                    let hash = u128::from_le_bytes(*hash) ^ sigma(*parent);
                    let other = hash ^ parent;
                    left ^= hash;
                    right ^= other;
                    (pair[0], pair[1]) = (hash & keep, other & keep);
                }
                let sum = &mut sums[(start + at * run) >> level];
                sum[0] ^= left;
                sum[1] ^= right;
            }
        }
    }

    /// `P(sigma(x))` of each, as bytes in `blocks`.
    fn hashes<'a>(&self, inputs: &[u128], blocks: &'a mut [[u8; 16]]) -> &'a [[u8; 16]] {
        for (block, input) in blocks.iter_mut().zip(inputs) {
            *block = sigma(*input).to_le_bytes();
        }
        self.cipher.encrypt_blocks(Block::cast_slice_from_core_mut(blocks));
        blocks
    }

    fn hash(&self, input: u128) -> u128 {
        let mut block = [[0; 16]];
        u128::from_le_bytes(self.hashes(&[input], &mut block)[0]) ^ sigma(input)
    }
}

/// Adds `pair` to the children number `2*parent` and `2*parent + 1`, touching all of
/// them: what a hidden parent expanded to makes way for what is known of them.
fn fix(children: &mut [u128], parent: u64, pair: [u128; 2]) {
    for (at, children) in (0u64..).zip(children.chunks_exact_mut(2)) {
        let here = ((at ^ parent).wrapping_sub(1) as i64 >> 63) as i128 as u128;
        children[0] ^= pair[0] & here;
        children[1] ^= pair[1] & here;
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
