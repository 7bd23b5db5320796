//! The trees of an ensemble in one pool of tests.

use super::grown::Grown;
use super::padded::{LEFT, test};
use crate::error::Check;
use crate::ops::trees::NO_FEATURE;
use crate::ops::{Trees, Walk};
use crate::tensor::NodeWeights;

/// The slots of a pool, those that are not used yet last.
pub(super) struct Pooled {
    walk: Walk,
    values: usize,
    /// Number of comparisons of a slot.
    comparisons: usize,
    /// For each comparison of each slot twice its feature, plus 1 if a missing value goes left.
    codes: Vec<i32>,
    thresholds: Vec<i64>,
    /// Where edges lead on the left and on the right.
    next: [Vec<i64>; 2],
    /// What edges add on the left and on the right, `values` of each slot.
    increments: [Vec<i64>; 2],
    roots: Vec<i64>,
    used: usize,
}

impl Pooled {
    /// An empty pool of these sizes.
    pub(super) fn new(walk: Walk, op: &Trees) -> Self {
        let (slots, values, comparisons) = (walk.slots, op.values, op.comparisons);
        Self {
            walk,
            values,
            comparisons,
            codes: vec![NO_FEATURE; slots * comparisons],
            thresholds: vec![LEFT; slots * comparisons],
            next: [0, 1].map(|_| vec![slots as i64; slots]),
            increments: [0, 1].map(|_| vec![0; slots * values]),
            roots: Vec::with_capacity(walk.trees),
            used: 0,
        }
    }

    /// Takes the next slot.
    fn slot(&mut self) -> Check<usize> {
        let slot = self.used;
        self.used += 1;
        (slot < self.walk.slots).then_some(slot).ok_or_else(|| "does not fit its pool".into())
    }

    /// Adds a tree, whose values `rounded` makes integers.
    pub(super) fn add(
        &mut self,
        grown: &Grown<'_>,
        ties_left: bool,
        rounded: impl Fn(&f64) -> i64,
    ) -> Check<()> {
        let tree = grown.tree();
        let end = (self.walk.slots + self.roots.len()) as i64;
        let chain = self.chain(grown.shallowest(), end)?;
        let below = |step: usize| chain.get(step).copied().flatten().unwrap_or(end);
        if grown.is_leaf(0) {
            let root = below(0);
            for outcome in 0..2 {
                self.add_values(root as usize, outcome, grown.value(0), &rounded);
            }
            self.roots.push(root);
            return Ok(());
        }
        let root = self.slot()?;
        self.roots.push(root as i64);
        let mut waiting = vec![(root, 0usize, 0usize)];
        while let Some((slot, node, step)) = waiting.pop() {
            let places = slot * self.comparisons..(slot + 1) * self.comparisons;
            let to = (&mut self.codes[places.clone()], &mut self.thresholds[places]);
            test(to, grown, node, ties_left)?;
            for (outcome, child) in [tree.left[node], tree.right[node]].into_iter().enumerate() {
                if grown.is_leaf(child) {
                    self.next[outcome][slot] = below(step + 1);
                    self.add_values(slot, outcome, grown.value(child), &rounded);
                } else {
                    let next = self.slot()?;
                    self.next[outcome][slot] = next as i64;
                    waiting.push((next, child, step + 1));
                }
            }
        }
        Ok(())
    }

    /// By step, the tests without a feature that follow leaves, from the shallowest leaf on.
    fn chain(&mut self, shallowest: usize, end: i64) -> Check<Vec<Option<i64>>> {
        let depth = self.walk.depth as usize;
        let mut chain = vec![None; depth];
        let mut next = end;
        for slot in chain.iter_mut().skip(shallowest).rev() {
            let at = self.slot()?;
            self.next.iter_mut().for_each(|edges| edges[at] = next);
            next = at as i64;
            *slot = Some(next);
        }
        Ok(chain)
    }

    /// Makes an edge of a slot add the values of a leaf.
    fn add_values(
        &mut self,
        slot: usize,
        outcome: usize,
        values: &[f64],
        rounded: &impl Fn(&f64) -> i64,
    ) {
        let sums = self.increments[outcome].iter_mut().skip(slot * self.values);
        sums.zip(values).for_each(|(sum, value)| *sum = rounded(value));
    }

    /// The tests' codes, then the constants without what is added to results.
    pub(super) fn finish(self) -> NodeWeights {
        let [left, right] = self.next;
        let [on_left, on_right] = self.increments;
        let bias = [self.thresholds, left, right, on_left, on_right, self.roots].concat();
        NodeWeights { weight: self.codes, bias }
    }
}
