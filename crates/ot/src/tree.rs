//! All-but-one transfer of 16 seeds from four base transfers.
//!
//! The owner grows a binary tree of seeds (Goldreich, Goldwasser, Micali) and
//! sends, for each level, the xor of all left and of all right children, each
//! under one key of a base transfer. The other party holds the key of the side
//! *off* the path to its secret leaf and so recovers every leaf but that one
//! (Boyle et al., "Efficient two-round OT extension and silent non-interactive
//! secure computation", CCS 2019; used by SoftSpokenOT).

use ring::Seed;
use zeroize::{Zeroize, Zeroizing};

use crate::session::Domain;

/// Levels below the root: bits of a subfield element.
pub(crate) const DEPTH: usize = 4;
/// Leaves of a tree.
pub(crate) const LEAVES: usize = 1 << DEPTH;

/// The seeds of the leaves, as AES keys.
pub(crate) type Leaves = Zeroizing<[u128; LEAVES]>;
/// Masked left and right sums of each level, root first.
pub(crate) type Sums = [[u128; 2]; DEPTH];

/// Grows tree number `tree` from `root`; `pairs` are its four base transfers.
/// Leaf `x` is at position `x`.
pub(crate) fn grow(domain: &Domain, tree: u8, root: u128, pairs: &[[Seed; 2]]) -> (Leaves, Sums) {
    let mut nodes = Zeroizing::new([0; LEAVES]);
    nodes[0] = root;
    let mut sums = [[0; 2]; DEPTH];
    for (level, (sum, pair)) in sums.iter_mut().zip(pairs).enumerate() {
        *sum = [0, 1].map(|side| u128::from_le_bytes(pair[side].0));
        // Downwards, so that a node is read before its place is taken.
        for at in (0..1 << level).rev() {
            let [left, right] = children(domain, tree, level, nodes[at]);
            (nodes[2 * at], nodes[2 * at + 1]) = (left, right);
            sum[0] ^= left;
            sum[1] ^= right;
        }
    }
    (nodes, sums)
}

/// Recovers all leaves but number `hole` (below 16) from the keys of the sides off
/// its path. Leaf `x` is at position `x xor hole`, so that what follows does not
/// depend on `hole`; position 0 is zero.
pub(crate) fn puncture(domain: &Domain, tree: u8, hole: u8, keys: &[Seed], sums: &Sums) -> Leaves {
    let mut nodes = Zeroizing::new([0; LEAVES]);
    for (level, (sum, key)) in sums.iter().zip(keys).enumerate() {
        let side = u128::from(path_bit(hole, level)).wrapping_neg();
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

/// Bit `level` of the path from the root to leaf `hole`: 0 goes left.
pub(crate) const fn path_bit(hole: u8, level: usize) -> u8 {
    (hole >> (DEPTH - 1 - level)) & 1
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
        let pairs: Vec<[Seed; 2]> = (0..DEPTH).map(|_| [rng.seed(), rng.seed()]).collect();
        let (leaves, sums) = grow(&domain, 5, rng.block(), &pairs);
        for hole in 0..LEAVES as u8 {
            let off = |(level, pair): (usize, &[Seed; 2])| {
                pair[usize::from(1 - path_bit(hole, level))].clone()
            };
            let keys: Vec<Seed> = pairs.iter().enumerate().map(off).collect();
            let got = puncture(&domain, 5, hole, &keys, &sums);
            assert_eq!(got[0], 0);
            for y in 1..LEAVES {
                assert_eq!(got[y], leaves[y ^ usize::from(hole)]);
            }
        }
    }
}
