//! All-but-one oblivious transfer of 2^k seeds from k base OTs.
//!
//! The owner grows a binary tree of seeds (Goldreich, Goldwasser, Micali) and
//! sends, for each level, the xor of all left and of all right children, each
//! under one key of a base OT. The other party holds the key of the side
//! *off* the path to its secret leaf and so recovers every leaf but that one
//! (Boyle et al., "Efficient two-round OT extension and silent non-interactive
//! secure computation", CCS 2019; used by SoftSpokenOT).

use ring::Seed;
use zeroize::{Zeroize, Zeroizing};

use crate::block::mask_of_secret;
use crate::session::Domain;

/// The seeds of the 2^k leaves, as AES keys.
pub(crate) type Leaves = Zeroizing<Vec<u128>>;
/// Masked left and right sums of each of the k levels, root first.
pub(crate) type Sums = Vec<[u128; 2]>;

/// Grows tree number `tree` from `root`; `pairs` are its base OTs, one for
/// each level. Leaf `x` is at position `x`.
pub(crate) fn grow(domain: &Domain, tree: u8, root: u128, pairs: &[[Seed; 2]]) -> (Leaves, Sums) {
    let mut nodes = Zeroizing::new(vec![0; 1 << pairs.len()]);
    nodes[0] = root;
    let mut sums = Sums::with_capacity(pairs.len());
    for (level, pair) in pairs.iter().enumerate() {
        let mut sum = [0, 1].map(|side| u128::from_le_bytes(pair[side].0));
        // Downwards, so that a node is read before its place is taken.
        for at in (0..1 << level).rev() {
            let [left, right] = children(domain, tree, level, nodes[at]);
            (nodes[2 * at], nodes[2 * at + 1]) = (left, right);
            sum[0] ^= left;
            sum[1] ^= right;
        }
        sums.push(sum);
    }
    (nodes, sums)
}

/// Recovers all leaves but number `hole` (below 2^k) from the keys of the sides
/// off its path and the sums of the k levels. Leaf `x` is at position `x xor hole`,
/// so that what follows does not depend on `hole`; position 0 is zero.
pub(crate) fn puncture(
    domain: &Domain,
    tree: u8,
    hole: u8,
    keys: &[Seed],
    sums: &[[u128; 2]],
) -> Leaves {
    let mut nodes = Zeroizing::new(vec![0; 1 << keys.len()]);
    for (level, (sum, key)) in sums.iter().zip(keys).enumerate() {
        let side = mask_of_secret(u128::from(path_bit(hole, level, keys.len())));
        // The sum of the sides off the path: right when the path goes left.
        let mut missing = u128::from_le_bytes(key.0) ^ sum[1] ^ (side & (sum[0] ^ sum[1]));
        for at in (1..1 << level).rev() {
            let [left, right] = children(domain, tree, level, nodes[at]);
            let swap = side & (left ^ right);
            (nodes[2 * at], nodes[2 * at + 1]) = (left ^ swap, right ^ swap);
            missing ^= right ^ swap;
        }
        (nodes[0], nodes[1]) = (0, missing);
        missing.zeroize();
    }
    nodes
}

/// Bit `level` of the path from the root to leaf `hole` of a tree of `depth`
/// levels (1 to 8): 0 goes left.
pub(crate) const fn path_bit(hole: u8, level: usize, depth: usize) -> u8 {
    (hole >> (depth - 1 - level)) & 1
}

fn children(domain: &Domain, tree: u8, level: usize, node: u128) -> [u128; 2] {
    let node = Zeroizing::new(node.to_le_bytes());
    domain.blocks(b"children", &[&[tree, level as u8], &*node])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionId;
    use ring::Random;
    use wire::Role;

    #[test]
    fn every_hole_hides_one_leaf() {
        let domain = Domain::new(SessionId([3; 32]), Role::Server);
        let mut rng = Random::seeded(1);
        for depth in [2, 4, 8] {
            let pairs: Vec<[Seed; 2]> = (0..depth).map(|_| [rng.seed(), rng.seed()]).collect();
            let (leaves, sums) = grow(&domain, 5, rng.block(), &pairs);
            for hole in 0..(1u16 << depth) {
                let hole = hole as u8;
                let off = |(level, pair): (usize, &[Seed; 2])| {
                    pair[usize::from(1 - path_bit(hole, level, depth))].clone()
                };
                let keys: Vec<Seed> = pairs.iter().enumerate().map(off).collect();
                let got = puncture(&domain, 5, hole, &keys, &sums);
                assert_eq!((got.len(), got[0]), (1 << depth, 0));
                let all = (1..got.len()).all(|y| got[y] == leaves[y ^ usize::from(hole)]);
                assert!(all, "hole {hole} of depth {depth}");
            }
        }
    }
}
