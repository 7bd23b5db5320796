//! A decision tree as importers give it.

use serde::Deserialize;

/// A decision tree by its nodes, the root first.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The feature that each node tests; -1 at leaves.
    pub feature: Vec<i64>,
    /// The bits of each threshold, a 32-bit floating-point number; numbers below it go left.
    pub threshold: Vec<u32>,
    /// Whether missing values go left.
    pub missing_left: Vec<bool>,
    /// The node on the left.
    pub left: Vec<usize>,
    /// The node on the right.
    pub right: Vec<usize>,
    /// The values of each node, one node after another; only those of leaves count.
    pub value: Vec<f64>,
    /// Further thresholds of nodes, each with its node. A node with some sends a number right where
    /// an odd number of its thresholds is not above it; the first is that in `threshold`.
    #[serde(default)]
    pub further: Vec<(usize, u32)>,
}
