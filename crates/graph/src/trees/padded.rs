//! A tree in the shape that all trees of an ensemble have.

use super::grown::Grown;
use crate::error::Check;
use crate::keys::key;
use crate::ops::trees::{NO_FEATURE, Paths, Trees};

/// What a test says that pads a tree: it goes left.
pub(super) const LEFT: i64 = 1;

/// The tests and leaves of a padded tree.
pub(super) struct Padded {
    /// For each comparison of each test twice its feature, plus 1 if a missing value goes left.
    pub(super) codes: Vec<i32>,
    /// For each comparison the key at which numbers begin to go right, twice where missing values go
    /// left.
    pub(super) thresholds: Vec<i64>,
    /// The node of the tree that each leaf is.
    pub(super) leaves: Vec<usize>,
    /// The number of comparisons of a test.
    comparisons: usize,
}

impl Padded {
    /// Pads a tree, whose depth, tests and comparisons fit `op`.
    pub(super) fn new(grown: &Grown<'_>, op: &Trees, ties_left: bool) -> Check<Self> {
        let mut padded = Self {
            codes: vec![NO_FEATURE; op.tests_of_tree()],
            thresholds: vec![LEFT; op.tests_of_tree()],
            leaves: vec![0; op.paths.leaves()],
            comparisons: op.comparisons,
        };
        match op.paths {
            Paths::Complete(_) => padded.complete(grown, ties_left)?,
            Paths::Table(_) => padded.tabulate(grown, ties_left)?,
            Paths::Walk(_) => return Err("trees of a pool are not padded one by one".into()),
        }
        Ok(padded)
    }

    /// Puts a test of the tree at a place.
    fn test(&mut self, at: usize, grown: &Grown<'_>, node: usize, ties_left: bool) -> Check<()> {
        let places = at * self.comparisons..(at + 1) * self.comparisons;
        let to = (&mut self.codes[places.clone()], &mut self.thresholds[places]);
        test(to, grown, node, ties_left)
    }

    /// The nodes below a leaf are tests that pad the tree, and all their leaves are this leaf.
    fn complete(&mut self, grown: &Grown<'_>, ties_left: bool) -> Check<()> {
        let (tree, tests) = (grown.tree(), self.leaves.len() - 1);
        let mut waiting = vec![(0usize, 0usize)];
        while let Some((place, node)) = waiting.pop() {
            if place >= tests {
                self.leaves[place - tests] = node;
                continue;
            }
            let mut children = [node, node];
            if !grown.is_leaf(node) {
                self.test(place, grown, node, ties_left)?;
                children = [tree.left[node], tree.right[node]];
            }
            waiting.extend([(2 * place + 1, children[0]), (2 * place + 2, children[1])]);
        }
        Ok(())
    }

    /// Walks the tree for all outcomes of its tests.
    fn tabulate(&mut self, grown: &Grown<'_>, ties_left: bool) -> Check<()> {
        let tree = grown.tree();
        let mut place = vec![0; tree.feature.len()];
        for (at, node) in grown.tests().iter().enumerate() {
            self.test(at, grown, *node, ties_left)?;
            place[*node] = at;
        }
        for (outcomes, leaf) in self.leaves.iter_mut().enumerate() {
            let mut node = 0;
            while !grown.is_leaf(node) {
                let right = (outcomes >> place[node]) & 1 == 1;
                node = if right { tree.right[node] } else { tree.left[node] };
            }
            *leaf = node;
        }
        Ok(())
    }
}

/// Writes codes and thresholds of a test's comparisons. Missing values go left in all of them but
/// the first, so that this one decides; comparisons that it does not have stay as they are.
pub(super) fn test(
    (codes, thresholds): (&mut [i32], &mut [i64]),
    grown: &Grown<'_>,
    node: usize,
    ties_left: bool,
) -> Check<()> {
    let tree = grown.tree();
    let feature = i32::try_from(tree.feature[node]).ok().and_then(|f| f.checked_mul(2));
    let feature = feature.ok_or("a tree with too many features")?;
    let places = codes.iter_mut().zip(thresholds).zip(grown.thresholds(node));
    for (at, ((code, place), threshold)) in places.enumerate() {
        let missing_left = tree.missing_left[node] || at > 0;
        let threshold = key(threshold) + i64::from(ties_left);
        *code = feature + i32::from(missing_left);
        *place = threshold << u32::from(missing_left);
    }
    Ok(())
}
