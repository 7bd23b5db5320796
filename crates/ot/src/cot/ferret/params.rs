//! The parameter sets: learning parity with noise over GF(2), regular noise.
//!
//! A refill is `trees` blocks of `2^depth` samples with one noisy position each, a
//! secret of `secret` bits and a code whose columns have [`WEIGHT`] ones.
//! `scripts/lpn_estimate.py` reads the table below out of this file and prints the bits of
//! security of each set against each attack; docs/protocols/ferret.md discusses them.
//! The handshake names the table, so that both parties use the same one.

/// Secret positions that are added up for each sample.
pub(crate) const WEIGHT: usize = 10;

/// One refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    /// Noisy positions.
    pub(crate) trees: usize,
    /// Length of the secret.
    pub(crate) secret: usize,
    /// Logarithm of the samples in a block.
    pub(crate) depth: u32,
}

/// The sets, smallest first.
pub(crate) const SETS: [Set; 5] = [
    Set { trees: 560, secret: 52_224, depth: 9 },
    Set { trees: 950, secret: 108_544, depth: 10 },
    Set { trees: 880, secret: 206_848, depth: 11 },
    Set { trees: 1100, secret: 411_648, depth: 12 },
    Set { trees: 1400, secret: 819_200, depth: 13 },
];

/// The set with the best rate.
pub(crate) const LARGEST: Set = SETS[SETS.len() - 1];

impl Set {
    /// Samples in a block.
    pub(crate) const fn leaves(self) -> usize {
        1 << self.depth
    }

    /// Correlations that a refill makes.
    pub(crate) const fn outputs(self) -> usize {
        self.trees << self.depth
    }

    /// Correlations that a refill consumes: the secret, and one per level of each tree.
    pub(crate) const fn base(self) -> usize {
        self.secret + self.trees * self.depth as usize
    }

    /// Blocks sent for each tree: one for each level but the first, and the sum of the tags.
    pub(crate) const fn blocks(self) -> usize {
        self.depth as usize
    }

    /// Trees in the longest message.
    pub(crate) const fn trees_in_message(self) -> usize {
        (1 << 16) >> self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_documented_one() {
        let outputs = SETS.map(Set::outputs);
        assert_eq!(outputs, [286_720, 972_800, 1_802_240, 4_505_600, 11_468_800]);
        for (set, next) in SETS.iter().zip(&SETS[1..]) {
            assert!(set.base() < set.outputs() / 5 && set.base() < next.base());
        }
        // The smallest refill alone feeds the next two, the second alone the largest.
        assert!(SETS[0].outputs() - SETS[0].base() > SETS[2].base());
        assert!(SETS[1].outputs() - SETS[1].base() > SETS[4].base());
    }
}
