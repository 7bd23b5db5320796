//! What a layout of paths is.

use std::fmt::Debug;

use ring::Bits;
use wire::{Channel, Cost, Result};

use crate::correlations::{Correlations, Demand};

/// A layout of paths, for trees of one shape: from shared outcomes of tests to the value of a
/// leaf.
pub(super) trait Paths: Debug + Send + Sync {
    /// How it does that, for people.
    fn describe(&self) -> String;

    /// The correlations that one run consumes.
    fn demand(&self) -> Demand;

    /// Bytes and rounds of one run.
    fn cost(&self) -> Cost;

    /// Returns the number of planes in which it takes the outcomes of tests: one for each test of a
    /// tree, or a single one of all tests of all pools.
    fn planes(&self) -> usize;

    /// Runs it on xor shares of whether each test goes right, in [`Paths::planes`] planes,
    /// and the server's values of leaves, tree by tree and
    /// leaf by leaf, or the words of pools. Returns shares of the
    /// values, tree by tree.
    fn run(
        &self,
        channel: &mut Channel,
        right: Vec<Bits>,
        leaves: &[&[u64]],
        ots: Correlations,
    ) -> Result<Vec<u64>>;
}
