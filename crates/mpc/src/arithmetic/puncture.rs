//! All of 2^k seeds but one, from k OTs of two seeds.
//!
//! | | |
//! |---|---|
//! | In | k OTs of two 128-bit seeds, of which the receiver has those off the path to its leaf |
//! | Out | the owner's 2^k leaves; the receiver's, but the one that it chose |
//! | Reveals | nothing: every sum is under a seed that is used once |
//! | Security | semi-honest, given the OTs; AES in counter mode as a pseudo-random generator |
//! | Cost | 2 sums of 128 bits for each level but the first, from the owner |
//! | Paper | Boyle et al., "Efficient two-round OT extension and silent non-interactive secure computation" (CCS 2019) |
//!
//! The owner grows a binary tree of seeds (Goldreich, Goldwasser, Micali). The first level is
//! the first OT's seeds. Of each further level it sends the xor of all left and of all right
//! children, each under a seed of the level's OT. The receiver opens the sum of the side off its
//! path and so recovers the one node there that does not come from nodes that it knows.

use ring::{Prg, Seed};
use zeroize::Zeroizing;

/// Separates these streams from all others.
const DOMAIN: u64 = 0x7472_6565;

/// Seeds of leaves, as AES keys.
pub(super) type Leaves = Zeroizing<Vec<u128>>;

/// Both children of a node of tree number `tree`, so that nodes of different trees are not
/// keys of the same blocks.
fn children(tree: u32, node: u128) -> [u128; 2] {
    let mut prg = Prg::new(&Seed(node.to_le_bytes()), (u64::from(tree) << 32) | DOMAIN);
    [prg.block(), prg.block()]
}

/// Grows tree number `tree` of the OTs `pairs`, one for each level, the root's first. Returns all
/// leaves, leaf x at position x, and the masked sums of each level but the first.
pub(super) fn grow(tree: u32, pairs: &[[u128; 2]]) -> (Leaves, Vec<[u128; 2]>) {
    let mut nodes = Zeroizing::new(Vec::with_capacity(1 << pairs.len()));
    let Some((first, rest)) = pairs.split_first() else { return (nodes, Vec::new()) };
    nodes.extend(first);
    let mut sums = Vec::with_capacity(rest.len());
    for pair in rest {
        let mut sum = *pair;
        let mut next = Zeroizing::new(Vec::with_capacity(1 << pairs.len()));
        for node in nodes.iter() {
            let both = children(tree, *node);
            sum.iter_mut().zip(both).for_each(|(sum, child)| *sum ^= child);
            next.extend(both);
        }
        nodes = next;
        sums.push(sum);
    }
    (nodes, sums)
}

/// Recovers all leaves of the tree but one, from `keys`, the seeds of the sides off its path by level, and
/// from the sums of all levels but the first. `path` has a mask for each level, of ones where
/// the path goes right. Leaf x is at position x xor the one that is missing, so that nothing
/// depends on which that is; position 0 is zero.
pub(super) fn puncture(tree: u32, path: &[u128], keys: &[u128], sums: &[[u128; 2]]) -> Leaves {
    let mut nodes = Zeroizing::new(Vec::with_capacity(1 << keys.len()));
    let Some((first, rest)) = keys.split_first() else { return nodes };
    nodes.extend([0, *first]);
    for ((side, key), [left, right]) in path.iter().skip(1).zip(rest).zip(sums) {
        // The sum of the sides off the path: of the right ones where the path goes left.
        let mut missing = key ^ right ^ (side & (left ^ right));
        let mut next = Zeroizing::new(Vec::with_capacity(1 << keys.len()));
        next.extend([0, 0]);
        for node in nodes.iter().skip(1) {
            let [left, right] = children(tree, *node);
            let swap = side & (left ^ right);
            next.extend([left ^ swap, right ^ swap]);
            missing ^= right ^ swap;
        }
        if let Some(node) = next.get_mut(1) {
            *node = missing;
        }
        nodes = next;
    }
    nodes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn all_leaves_but_the_chosen_one_come_out() {
        let mut rng = Random::seeded(95);
        for levels in 1..=5usize {
            for hole in 0..1usize << levels {
                let words = rng.uniform(4 * levels, 64);
                let block = |at: usize| u128::from(words[at]) | (u128::from(words[at + 1]) << 64);
                let pairs: Vec<[u128; 2]> =
                    (0..levels).map(|level| [block(4 * level), block(4 * level + 2)]).collect();
                let right = |level: usize| (hole >> (levels - 1 - level)) & 1;
                let path: Vec<u128> =
                    (0..levels).map(|l| (right(l) as u128).wrapping_neg()).collect();
                let keys: Vec<u128> = (0..levels).map(|l| pairs[l][1 - right(l)]).collect();
                let (all, sums) = grow(7, &pairs);
                let most = puncture(7, &path, &keys, &sums);
                assert_eq!((all.len(), sums.len()), (1 << levels, levels - 1));
                let moved = (0..all.len()).map(|at| if at == 0 { 0 } else { all[at ^ hole] });
                assert!(most.iter().copied().eq(moved), "{levels} {hole}");
            }
        }
    }
}
