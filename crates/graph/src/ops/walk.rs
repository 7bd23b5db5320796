//! All tests of an ensemble in one pool of slots, through which a walk of equally many steps leads
//! for each tree.
//!
//! A slot is a test, whose outcome leads on along one of two edges. Edges carry increments, and the
//! value of the leaf that a tree reaches is the sum of the increments on its walk. Leaves that lie
//! less deep than the depth are followed by tests without a feature, which all leaves of their tree
//! share, so that every walk takes as many steps as the depth says.

use super::checks::ensure;
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// Most steps of a walk.
pub const MAX_STEPS: u32 = 128;

/// The public sizes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Number of trees.
    pub trees: usize,
    /// Number of tests of all trees together, those that pad the pool included.
    pub slots: usize,
    /// Steps of a walk, at least the depth of the deepest tree.
    pub depth: u32,
}

/// What the words of a pool say; [`Pool::words`] is their order.
#[derive(Clone, Copy, Debug)]
pub struct Pool<'a, T> {
    /// For outcomes left and right, where the edge of each slot leads to: a slot, or `slots + t`
    /// at the end of tree t.
    pub next: [&'a [T]; 2],
    /// For outcomes left and right, the increments of each slot's edge.
    pub increments: [&'a [T]; 2],
    /// The first slot of each tree.
    pub roots: &'a [T],
}

impl Walk {
    /// Returns the sizes for so many tests in trees of at most this depth. The depth becomes a
    /// multiple of 4. The slots have room for a chain of that depth in each tree, and are rounded
    /// up by at most a sixteenth.
    pub fn padded(trees: usize, tests: usize, depth: u32) -> Self {
        let depth = depth.max(1).next_multiple_of(4);
        let least = trees.saturating_mul(depth as usize).saturating_add(tests).max(16);
        let step = 1usize << (least.ilog2() - 4);
        Self { trees, slots: least.div_ceil(step).saturating_mul(step), depth }
    }

    /// Returns the number of words of a pool whose leaves have so many values.
    pub fn words(&self, values: usize) -> usize {
        let slots = self.slots.saturating_mul(2).saturating_mul(values.saturating_add(1));
        slots.saturating_add(self.trees)
    }

    /// Returns the bits of a slot's number.
    pub fn place_bits(&self) -> u32 {
        self.slots.next_power_of_two().trailing_zeros().max(1)
    }

    /// Checks the sizes.
    ///
    /// # Errors
    /// The text says that walks of these sizes would meet.
    pub fn check(&self) -> Check<()> {
        let deep = (1..=MAX_STEPS).contains(&self.depth);
        let least = self.trees.checked_mul(self.depth as usize);
        let fits = deep && self.trees > 0 && least.is_some_and(|least| least <= self.slots);
        ensure(fits, || format!("walks of {} steps in {} slots", self.depth, self.slots))
    }
}

impl<'a, T> Pool<'a, T> {
    /// Takes a pool of leaves with so many values apart: where all slots lead on the left and on
    /// the right, their increments on the left and on the right, slot by slot, and the roots.
    pub fn new(walk: &Walk, values: usize, words: &'a [T]) -> Option<Self> {
        let fits = words.len() == walk.words(values);
        let (left, words) = words.split_at_checked(walk.slots).filter(|_| fits)?;
        let (right, words) = words.split_at_checked(walk.slots)?;
        let each = walk.slots.checked_mul(values)?;
        let (on_left, words) = words.split_at_checked(each)?;
        let (on_right, roots) = words.split_at_checked(each)?;
        Some(Self { next: [left, right], increments: [on_left, on_right], roots })
    }
}

impl Pool<'_, i64> {
    /// Returns the slots that walks can reach, by tree and step.
    ///
    /// # Errors
    /// The text says that a walk takes another number of steps, or that a slot can be reached from
    /// two trees or at two steps: then a client would see a slot twice.
    pub fn steps(&self, walk: &Walk) -> Check<Vec<Vec<Vec<usize>>>> {
        let slot = |word: i64| usize::try_from(word).ok().filter(|slot| *slot < walk.slots);
        let mut reached = vec![None; walk.slots];
        let mut all = Vec::with_capacity(walk.trees);
        for (tree, root) in self.roots.iter().enumerate() {
            let mut here = vec![slot(*root).ok_or("has a tree without a root")?];
            let mut steps = Vec::with_capacity(walk.depth as usize);
            for step in 0..walk.depth {
                let mut below = Vec::new();
                for at in &here {
                    let known = reached[*at].replace((tree, step));
                    ensure(known.is_none(), || format!("reaches slot {at} twice"))?;
                }
                for word in here.iter().flat_map(|at| self.next.map(|next| next[*at])) {
                    if step + 1 == walk.depth {
                        let ends = usize::try_from(word) == Ok(walk.slots + tree);
                        ensure(ends, || format!("has a walk of tree {tree} that does not end"))?;
                        continue;
                    }
                    below.push(slot(word).ok_or("has a walk that ends early")?);
                }
                below.sort_unstable();
                below.dedup();
                steps.push(std::mem::replace(&mut here, below));
            }
            all.push(steps);
        }
        Ok(all)
    }

    /// Returns the slots of a tree's walk with the outcome of each, for the outcomes of all tests.
    fn walked(
        &self,
        walk: &Walk,
        tree: usize,
        right: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = (usize, usize)> {
        let mut slot = self.roots.get(tree).and_then(|root| usize::try_from(*root).ok());
        (0..walk.depth).map_while(move |_| {
            let at = slot.filter(|slot| *slot < walk.slots)?;
            let outcome = usize::from(right(at));
            slot = usize::try_from(*self.next[outcome].get(at)?).ok();
            Some((at, outcome))
        })
    }

    /// Returns the values of the leaf that a tree reaches, for the outcomes of all tests.
    pub fn leaf(
        &self,
        walk: &Walk,
        [tree, values]: [usize; 2],
        right: impl Fn(usize) -> bool,
    ) -> Vec<i64> {
        let mut sums = vec![0i64; values];
        for (slot, outcome) in self.walked(walk, tree, right) {
            let increments = self.increments[outcome].iter().skip(slot * values);
            sums.iter_mut().zip(increments).for_each(|(sum, term)| *sum = sum.wrapping_add(*term));
        }
        sums
    }

    /// Returns the ranges of the leaves' values of each tree, value by value.
    ///
    /// # Errors
    /// The text says what [`Pool::steps`] refuses.
    pub fn ranges(&self, walk: &Walk, values: usize) -> Check<Vec<Range>> {
        let mut below = vec![Range::ZERO; (walk.slots + walk.trees).saturating_mul(values)];
        let mut ranges = Vec::with_capacity(walk.trees.saturating_mul(values));
        for (steps, root) in self.steps(walk)?.iter().zip(self.roots) {
            for slot in steps.iter().rev().flatten() {
                for at in 0..values {
                    let edge = |outcome: usize| {
                        let next = self.next[outcome][*slot] as usize;
                        let term = i128::from(self.increments[outcome][slot * values + at]);
                        below[next * values + at].plus(Range::new(term, term))
                    };
                    below[slot * values + at] = edge(0).join(edge(1));
                }
            }
            ranges.extend_from_slice(&below[*root as usize * values..][..values]);
        }
        Ok(ranges)
    }
}
