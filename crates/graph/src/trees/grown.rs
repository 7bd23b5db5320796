//! A tree that was found to be one: every node is reached once, and every number is one.

use super::tree::Tree;
use crate::error::Check;
use crate::ops::ensure;
use std::collections::BTreeMap;

/// A checked tree.
pub(super) struct Grown<'a> {
    tree: &'a Tree,
    /// Values of a leaf.
    values: usize,
    /// The nodes that test, parents before children.
    tests: Vec<usize>,
    leaves: Vec<usize>,
    depth: usize,
    shallowest: usize,
    /// For each node its further thresholds.
    further: BTreeMap<usize, Vec<f32>>,
}

impl<'a> Grown<'a> {
    /// Checks a tree of so many features and values of a leaf.
    pub(super) fn new(tree: &'a Tree, [features, values]: [usize; 2]) -> Check<Self> {
        let nodes = tree.feature.len();
        let lengths =
            [tree.threshold.len(), tree.missing_left.len(), tree.left.len(), tree.right.len()];
        let fits = lengths == [nodes; 4] && nodes.checked_mul(values) == Some(tree.value.len());
        ensure(nodes > 0 && fits, || "has lists of different lengths".into())?;
        let mut grown = Self {
            tree,
            values,
            tests: vec![],
            leaves: vec![],
            depth: 0,
            shallowest: usize::MAX,
            further: further(tree)?,
        };
        let mut reached = vec![false; nodes];
        let mut waiting = vec![(0usize, 0usize)];
        while let Some((node, depth)) = waiting.pop() {
            let new = reached.get(node) == Some(&false);
            ensure(new, || "reaches a node twice, or one that it does not have".into())?;
            reached[node] = true;
            grown.depth = grown.depth.max(depth);
            if tree.feature[node] < 0 {
                let finite = grown.value(node).iter().all(|value| value.is_finite());
                ensure(finite, || format!("has a leaf, node {node}, that is not finite"))?;
                grown.leaves.push(node);
                grown.shallowest = grown.shallowest.min(depth);
                continue;
            }
            let known = (tree.feature[node] as u64) < features as u64;
            ensure(known, || format!("tests feature {} of {features}", tree.feature[node]))?;
            let threshold = f32::from_bits(tree.threshold[node]);
            ensure(!threshold.is_nan(), || format!("has no threshold at node {node}"))?;
            grown.tests.push(node);
            waiting.extend([(tree.right[node], depth + 1), (tree.left[node], depth + 1)]);
        }
        Ok(grown)
    }

    /// Tests on the way to the farthest leaf.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Tests on the way to the nearest leaf.
    pub(super) fn shallowest(&self) -> usize {
        self.shallowest
    }

    /// The nodes that test.
    pub(super) fn tests(&self) -> &[usize] {
        &self.tests
    }

    /// All thresholds of a test, the first of which decides where missing values go.
    pub(super) fn thresholds(&self, node: usize) -> impl Iterator<Item = f32> + '_ {
        let first = self.tree.threshold.get(node).map(|bits| f32::from_bits(*bits));
        first.into_iter().chain(self.further.get(&node).into_iter().flatten().copied())
    }

    /// The largest number of thresholds of any test.
    pub(super) fn comparisons(&self) -> usize {
        1 + self.further.values().map(Vec::len).max().unwrap_or(0)
    }

    /// The tree itself.
    pub(super) fn tree(&self) -> &Tree {
        self.tree
    }

    /// Whether a node is a leaf.
    pub(super) fn is_leaf(&self, node: usize) -> bool {
        self.tree.feature[node] < 0
    }

    /// The values of a node.
    pub(super) fn value(&self, node: usize) -> &[f64] {
        &self.tree.value[node * self.values..][..self.values]
    }

    /// The values of all leaves.
    pub(super) fn values(&self) -> impl Iterator<Item = &f64> {
        self.leaves.iter().flat_map(|leaf| self.value(*leaf))
    }

    /// The largest magnitude of value `at` of any leaf.
    pub(super) fn largest(&self, at: usize) -> f64 {
        self.leaves.iter().map(|leaf| self.value(*leaf)[at].abs()).fold(0.0, f64::max)
    }
}

/// The further thresholds of each node that has some.
fn further(tree: &Tree) -> Check<BTreeMap<usize, Vec<f32>>> {
    let mut found: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    for (node, bits) in &tree.further {
        let threshold = f32::from_bits(*bits);
        ensure(!threshold.is_nan(), || format!("has no further threshold at node {node}"))?;
        let tests = tree.feature.get(*node).is_some_and(|feature| *feature >= 0);
        ensure(tests, || format!("has a further threshold at node {node}, which tests nothing"))?;
        found.entry(*node).or_default().push(threshold);
    }
    Ok(found)
}
