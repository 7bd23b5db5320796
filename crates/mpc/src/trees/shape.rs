//! Sizes that all trees of an ensemble have.

use graph::ops;
use wire::{Error, Result};

/// Words of the server's randomness in each pool, a byte in each.
pub(super) const FRESH: usize = 16;

/// Sizes of trees that have one shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How tests lead to leaves.
    pub paths: ops::Paths,
    /// Number of values of a leaf.
    pub values: usize,
    /// Number of comparisons of a test, which goes right where an odd number of them does.
    pub comparisons: usize,
    /// Width of the tests' values.
    pub bits: u32,
    /// Width of the results.
    pub out_bits: u32,
}

impl Shape {
    /// Returns how many values go in for each tree: those of its comparisons, test by test, then
    /// those of its leaves; or for each pool: those of its comparisons, its words, and
    /// [`Shape::fresh`].
    pub fn inputs(&self) -> usize {
        self.tests() + self.paths.words(self.values) + self.fresh()
    }

    /// Returns the number of comparisons of all tests of a tree, or of a pool.
    pub fn tests(&self) -> usize {
        self.paths.tests() * self.comparisons
    }

    /// Returns the number of random bytes of the server that follow a pool's words, one in each
    /// value. No two pools share them.
    pub fn fresh(&self) -> usize {
        if matches!(self.paths, ops::Paths::Walk(_)) { FRESH } else { 0 }
    }

    pub(super) fn check(&self) -> Result<()> {
        let widths = (2..=64).contains(&self.bits) && (1..=self.bits).contains(&self.out_bits);
        let known = match self.paths {
            ops::Paths::Complete(depth) => (1..=ops::trees::MAX_DEPTH).contains(&depth),
            ops::Paths::Table(tests) => (1..=ops::trees::MAX_TABLE).contains(&tests),
            ops::Paths::Walk(sizes) => sizes.check().is_ok(),
        };
        match widths && known && self.values > 0 && self.comparisons > 0 {
            true => Ok(()),
            false => Err(Error::misuse("trees of these sizes and widths")),
        }
    }
}
