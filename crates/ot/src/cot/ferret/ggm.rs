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

use super::check::Weigher;
use crate::session::Domain;
use crate::simd::EIGHT;
use crate::simd::aes::Hasher;
use crate::simd::trees::add_pair;

/// Nodes hashed at a time.
const BATCH: usize = 64;
/// Leaves worked on together, so that a group of trees stays in the second-level cache.
const GROUP: usize = 1 << 13;
/// The lowest bit of a leaf is zero, so that a receiver's block carries its choice there.
pub(crate) const CLEAR: u128 = !1;

/// The trees of a refill, `depth` levels each, and `H` under keys that follow from the refill's.
#[derive(Clone, Copy)]
pub(crate) struct Forest {
    domain: Domain,
    key: u128,
    depth: usize,
}

/// The hashes of a group of trees, level by level. Eight keys are made at a time: those of some
/// levels of all its trees.
struct Expander {
    forest: Forest,
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

impl Forest {
    /// The trees of a refill with the hash's `key`, which both parties know. `depth` is at least 4.
    pub(crate) const fn new(domain: Domain, key: u128, depth: usize) -> Self {
        Self { domain, key, depth }
    }

    /// The key that expands `level` of the tree of this number; that of level `depth` makes tags.
    const fn of(self, tree: usize, level: usize) -> u128 {
        self.key ^ ((tree as u128) << 8 | level as u128)
    }

    /// Grows trees of `2^depth` leaves each into `leaves`, from `depth` blocks `q` per
    /// tree, and writes `depth` blocks per tree for the receiver to `sent`: a correction for each level
    /// but the first, and the sum of the tags. `sums` gets the weighted sum of each tree's tags. The
    /// first tree is number `first` of its refill.
    pub(crate) fn grow(
        self,
        mut first: usize,
        delta: u128,
        seeds: &[u128],
        leaves: &mut [u128],
        sent: &mut [u128],
        sums: &mut [u128],
    ) {
        let (depth, mut tags) = (self.depth, Tags::new(self));
        let jobs = leaves
            .chunks_mut(group(depth) << depth)
            .zip(seeds.chunks(group(depth) * depth))
            .zip(sent.chunks_mut(group(depth) * depth))
            .zip(sums.chunks_mut(group(depth)));
        for (((leaves, seeds), sent), sums) in jobs {
            let trees = leaves.len() >> depth;
            plant(depth, delta, seeds, leaves);
            let mut expander = Expander::new(self, first);
            for level in 1..depth {
                expander.enter(level);
                let sums = expander.expand(level, trees, leaves);
                let seeds = seeds.iter().skip(level).step_by(depth);
                let sent = sent.iter_mut().skip(level - 1).step_by(depth);
                for ((sent, seed), [left, _]) in sent.zip(seeds).zip(sums.iter()) {
                    *sent = seed ^ left;
                }
            }
            let sums_of_tags = tags.make(&mut expander, leaves);
            for (tree, (sent, sum)) in sent.chunks_exact_mut(depth).zip(sums).enumerate() {
                sent[depth - 1] = sums_of_tags[tree];
                *sum = tags.weigh(first, tree, sent);
            }
            first += trees;
        }
    }

    /// Grows trees of which all has been sent again: [`Forest::grow`] without what it sends.
    pub(crate) fn regrow(self, mut first: usize, delta: u128, seeds: &[u128], leaves: &mut [u128]) {
        let depth = self.depth;
        let jobs = leaves.chunks_mut(group(depth) << depth).zip(seeds.chunks(group(depth) * depth));
        for (leaves, seeds) in jobs {
            let trees = leaves.len() >> depth;
            plant(depth, delta, seeds, leaves);
            let mut expander = Expander::new(self, first);
            for level in 1..depth {
                expander.enter(level);
                expander.expand(level, trees, leaves);
            }
            first += trees;
        }
    }

    /// Recovers the trees' leaves from `depth` blocks `t` and choice bits (0 or 1) per tree
    /// and what the sender sent. The leaf at the missing position is the sender's
    /// xor Delta, with the lowest bit set; that bit of all others is zero. The first tree is number
    /// `first` of its refill. `sums` gets the weighted sums that the sender must have.
    pub(crate) fn puncture(
        self,
        mut first: usize,
        seeds: &[u128],
        choices: &[u8],
        leaves: &mut [u128],
        sent: &[u128],
        sums: &mut [u128],
    ) {
        let (depth, mut tags) = (self.depth, Tags::new(self));
        let jobs = leaves
            .chunks_mut(group(depth) << depth)
            .zip(seeds.chunks(group(depth) * depth))
            .zip(choices.chunks(group(depth) * depth))
            .zip(sent.chunks(group(depth) * depth))
            .zip(sums.chunks_mut(group(depth)));
        for ((((leaves, seeds), choices), sent), sums) in jobs {
            let trees = leaves.len() >> depth;
            let mut paths = roots(depth, seeds, choices, leaves);
            let mut expander = Expander::new(self, first);
            for level in 1..depth {
                expander.enter(level);
                let empty = expander.empty(level);
                let sums = expander.expand(level, trees, leaves);
                let nodes = leaves.chunks_exact_mut(2 << level);
                for (tree, (nodes, path)) in nodes.zip(&mut paths[..trees]).enumerate() {
                    let at = tree * depth + level;
                    let sum = seeds[at] ^ sent[at - 1];
                    let last = level + 1 == depth;
                    let pair = missing(choices[at], sum, sums[tree], empty[tree], last);
                    add(nodes, *path, pair);
                    *path = 2 * *path + u64::from(1 - choices[at]);
                }
            }
            let sums_of_tags = tags.make(&mut expander, leaves);
            let trees_of = sent.chunks_exact(depth).zip(paths.iter());
            for (tree, ((sent, path), sum)) in trees_of.zip(sums).enumerate() {
                tags.change(tree, *path, sent[depth - 1] ^ sums_of_tags[tree]);
                *sum = tags.weigh(first, tree, sent);
            }
            first += trees;
        }
    }
}

/// The tags of the leaves of a group of trees.
struct Tags {
    depth: usize,
    tags: Zeroizing<Vec<u128>>,
    weigher: Weigher,
}

impl Tags {
    fn new(forest: Forest) -> Self {
        let Forest { domain, key, depth } = forest;
        let weigher = Weigher::new(Level::best(), domain, key, depth);
        Self { depth, tags: Zeroizing::new(vec![0; group(depth) << depth]), weigher }
    }

    /// Makes the tags of these trees' leaves, and returns the sum of those of each tree.
    fn make(&mut self, expander: &mut Expander, leaves: &[u128]) -> Zeroizing<[u128; EIGHT]> {
        expander.enter(self.depth);
        let place = expander.place(self.depth);
        let mut sums = Zeroizing::new([0; EIGHT]);
        let hasher = &expander.hasher;
        let eights = (1 << self.depth) / EIGHT;
        let (tags, leaves_of) = (self.tags.as_chunks_mut().0, leaves.as_chunks().0);
        let trees = tags.chunks_exact_mut(eights).zip(leaves_of.chunks_exact(eights));
        let made =
            trees.zip(sums.iter_mut()).enumerate().try_for_each(|(tree, ((tags, leaves), sum))| {
                *sum = hasher.tag(place + tree, leaves, tags)?;
                Some(())
            });
        if made.is_some() {
            return sums;
        }
        let batch = BATCH.min(1 << self.depth);
        let tags = self.tags.chunks_exact_mut(batch).zip(leaves.chunks_exact(batch));
        for (start, (tags, leaves)) in (0..).step_by(batch).zip(tags) {
            let tree = start >> self.depth;
            tags.iter_mut().zip(leaves).for_each(|(tag, leaf)| *tag = sigma(*leaf));
            expander.hasher.hash(place + tree, self.depth as u32, tags);
            sums[tree] = tags.iter().fold(sums[tree], |sum, tag| sum ^ tag);
        }
        sums
    }

    /// Adds `change` to the tag of a tree of the group that is at position `missing`.
    fn change(&mut self, tree: usize, missing: u64, change: u128) {
        let right = spread(missing as u8 & 1);
        let tags = &mut self.tags[tree << self.depth..][..1 << self.depth];
        add(tags, missing >> 1, [change & !right, change & right]);
    }

    /// The weighted sum of the tags of a tree of the group whose first one has this number.
    fn weigh(&mut self, first: usize, tree: usize, sent: &[u128]) -> u128 {
        let tags = &mut self.tags[tree << self.depth..][..1 << self.depth];
        self.weigher.weigh(first + tree, sent, tags)
    }
}

impl Expander {
    fn new(forest: Forest, first: usize) -> Self {
        Self { forest, hasher: Hasher::new(Level::best()), first, room: group(forest.depth) }
    }

    /// Makes the keys of `level`, and of those after it that are made with it, unless they are
    /// there. Levels are entered in order, from 1 on.
    fn enter(&mut self, level: usize) {
        let at_once = EIGHT / self.room;
        if !(level - 1).is_multiple_of(at_once) {
            return;
        }
        let mut keys = [0; EIGHT];
        for (place, key) in keys.iter_mut().enumerate() {
            *key = self.forest.of(self.first + place % self.room, level + place / self.room);
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
    /// place from the back. Both parties' trees end with [`CLEAR`] leaves.
    fn expand(&self, level: usize, trees: usize, nodes: &mut [u128]) -> Sums {
        let keep = if level + 1 == self.forest.depth { CLEAR } else { !0 };
        let mut sums = Zeroizing::new([[0; 2]; EIGHT]);
        if self.expand_eights(level, keep, trees, nodes, &mut sums).is_some() {
            return sums;
        }
        let total = trees << level;
        let (step, run) = (BATCH.min(total), BATCH.min(1 << level));
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

    /// [`Expander::expand`] in one pass, where a level has eight nodes or more and the processor vectors.
    fn expand_eights(
        &self,
        level: usize,
        keep: u128,
        trees: usize,
        nodes: &mut [u128],
        sums: &mut [[u128; 2]; EIGHT],
    ) -> Option<()> {
        let eights = (1 << level) / EIGHT;
        if eights == 0 {
            return None;
        }
        let nodes = nodes.as_chunks_mut().0;
        for tree in (0..trees).rev() {
            let parents = tree * eights..(tree + 1) * eights;
            sums[tree] = self.hasher.expand(self.place(level) + tree, keep, nodes, parents)?;
        }
        Some(())
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

/// The first level at the sender: a correlation for each tree, at the front of `nodes`.
fn plant(depth: usize, delta: u128, seeds: &[u128], nodes: &mut [u128]) {
    for (root, seeds) in nodes.chunks_exact_mut(2).zip(seeds.chunks_exact(depth)) {
        (root[0], root[1]) = (seeds[0], seeds[0] ^ delta);
    }
}

/// The first level at the receiver: the open node of each tree and an empty one. Returns the positions of
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
    add_pair(Level::best(), children.as_chunks_mut().0, parent, &pair);
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
mod tests;
