//! The parameter sets: learning parity with noise over GF(2), regular noise.
//!
//! A refill is `trees` blocks of `2^depth` samples with one noisy position each, a
//! secret of `secret` bits and a code of [`WEIGHT`] ones a row before its convolution with [`TAPS`].
//! `scripts/lpn_estimate.py` reads the table below out of this file and prints the bits of
//! security of each set against each attack; docs/protocols/ferret.md discusses them.
//! The handshake names the table, so that both parties use the same one.

/// Positions of the secret that are added up for each row of the code.
pub(crate) const WEIGHT: usize = 6;

/// Distances of the rows before it in the same block that are added to each row of the code. No two of 0 and
/// these differ by the same number as two others, so that the relations of two rows (docs/protocols/ferret.md) have one
/// sample in common at most.
pub(crate) const TAPS: [usize; 4] = [3, 4, 9, 11];

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
    Set { trees: 560, secret: 41_984, depth: 9 },
    Set { trees: 1200, secret: 84_992, depth: 10 },
    Set { trees: 1760, secret: 166_912, depth: 11 },
    Set { trees: 2200, secret: 322_560, depth: 12 },
    Set { trees: 1800, secret: 620_544, depth: 13 },
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
        self.secret + self.seeds()
    }

    /// Correlations that the trees consume: one per level of each.
    pub(crate) const fn seeds(self) -> usize {
        self.trees * self.depth as usize
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

    /// The relations of two rows have one sample in common at most.
    #[test]
    fn no_two_differences_of_taps_are_alike() {
        let places = [[0].as_slice(), &TAPS].concat();
        let mut differences: Vec<usize> = Vec::new();
        for (i, place) in places.iter().enumerate() {
            differences.extend(places[..i].iter().map(|before| place - before));
        }
        let count = differences.len();
        differences.sort_unstable();
        differences.dedup();
        assert_eq!(differences.len(), count);
        assert!(TAPS.is_sorted());
    }

    #[test]
    fn the_table_is_the_documented_one() {
        let outputs = SETS.map(Set::outputs);
        assert_eq!(outputs, [286_720, 1_228_800, 3_604_480, 9_011_200, 14_745_600]);
        for (set, next) in SETS.iter().zip(&SETS[1..]) {
            assert!(set.base() < set.outputs() / 5 && set.base() < next.base());
        }
        // The smallest refill alone feeds the next two, the second alone the largest.
        assert!(SETS[0].outputs() - SETS[0].base() > SETS[2].base());
        assert!(SETS[1].outputs() - SETS[1].base() > SETS[4].base());
    }
}
