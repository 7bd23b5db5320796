//! The leaves that decision trees reach, by garbled circuits against a client that sends anything.
//!
//! What a test compares is shared, and its sign is the test's outcome. The circuit of a tree makes a bit for each
//! leaf, of which one is 1, and each bit counts what its leaf is worth: secrets of the server, which
//! never enter a gate.

use std::sync::Arc;

use gc::tagged::TaggedBatch;
use gc::{Builder, Ring, Wire, Word};
use graph::ops::Paths;
use wire::{Error, Result};

use super::plan::Checked;
use crate::garbled::shape::Entrance;

/// Most bits of an output of a circuit.
const MOST_BITS: usize = 63;
/// Most comparisons of a tree, and most values of all its leaves: a client builds the circuit of a tree that a server
/// offers before it trusts that server.
const MOST_COMPARISONS: usize = 1 << 14;
const MOST_VALUES: usize = 1 << 20;
/// Most comparisons of all trees of a run, and most positions that its results add up: more than fits a run, but listed
/// before that is known.
const MOST_LISTED: usize = 1 << 24;

/// Trees of one shape and what their leaves are worth: public sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forest {
    /// How many trees, those of each input of a batch counted.
    pub trees: usize,
    /// How tests lead to leaves.
    pub paths: Paths,
    /// Comparisons of a test, which goes right where an odd number of them holds.
    pub comparisons: usize,
    /// Values of a leaf.
    pub values: usize,
    /// Results of an input: value j of its tree t counts for its result `(t*values + j) mod outputs`.
    pub outputs: usize,
    /// How many inputs there are, each of which goes through its share of the trees.
    pub batch: usize,
    /// Bits of results, mod 2^bits.
    pub bits: u32,
}

impl Forest {
    /// Comparisons of one tree.
    pub fn comparisons_of_tree(&self) -> usize {
        self.comparisons.saturating_mul(self.paths.tests())
    }

    /// Values of all leaves of one tree.
    fn values_of_tree(&self) -> usize {
        self.values.saturating_mul(self.paths.leaves())
    }

    /// Trees of one input.
    fn each(&self) -> usize {
        self.trees / self.batch.max(1)
    }

    /// Outputs of the circuit for one value of a leaf.
    fn parts(&self) -> usize {
        self.paths.leaves().div_ceil(MOST_BITS)
    }

    /// Returns, for each result, the positions of what it adds up among the results of circuits.
    pub fn sums(&self) -> Vec<Vec<usize>> {
        let mut sums = vec![Vec::new(); self.batch * self.outputs];
        for value in 0..self.values {
            for part in 0..self.parts() {
                for tree in 0..self.trees {
                    let (input, own) = (tree / self.each().max(1), tree % self.each().max(1));
                    let place = (own * self.values + value) % self.outputs.max(1);
                    let result = input * self.outputs + place;
                    let at = (value * self.parts() + part) * self.trees + tree;
                    sums.get_mut(result).into_iter().for_each(|sum| sum.push(at));
                }
            }
        }
        sums
    }

    /// Returns what the bits of the circuit's outputs count: `leaves` has the values of each leaf of each
    /// tree of an input, tree by tree. The order depends on the sizes alone.
    ///
    /// # Errors
    /// [`Error::Misuse`] for another number of values.
    pub fn weights(&self, leaves: &[i64]) -> Result<Vec<gc::tagged::Weights>> {
        let (all, values) = (self.paths.leaves(), self.values);
        if leaves.len() != self.each() * all * values {
            return Err(Error::misuse("leaves of other trees"));
        }
        let of = |value: usize, leaf: usize| {
            let trees = leaves.chunks_exact((all * values).max(1));
            trees.filter_map(move |tree| tree.get(leaf * values + value)).map(|word| *word as u64)
        };
        let part = |value: usize, part: usize| {
            let bits = part * MOST_BITS..all.min((part + 1) * MOST_BITS);
            // Copied once, into memory that is large enough from the start and is cleared.
            let mut words = gc::tagged::Weights::new(Vec::with_capacity(bits.len() * self.trees));
            bits.for_each(|leaf| (0..self.batch).for_each(|_| words.extend(of(value, leaf))));
            words
        };
        let parts = |value| (0..self.parts()).map(move |at| part(value, at));
        Ok((0..values).flat_map(parts).collect())
    }
}

impl Checked {
    /// Plans the values of the leaves that `forest` reaches, of comparisons that are shared mod `2^from`, less
    /// their `skip` lowest bits: a signed `width` bits, tree by tree; one that is not negative holds. Results are
    /// what [`Forest::sums`] adds up.
    ///
    /// # Errors
    /// As [`Checked::map`]; [`Error::Misuse`] for trees that walk through a pool, and for larger ones than a
    /// client plans unseen.
    pub fn leaves(forest: Forest, (from, skip): (u32, u32), width: u32) -> Result<Self> {
        let (comparisons, values) = (forest.comparisons_of_tree(), forest.values_of_tree());
        if comparisons > MOST_COMPARISONS || values > MOST_VALUES {
            return Err(Error::misuse(format!(
                "trees of {comparisons} comparisons and {values} values, more than {MOST_COMPARISONS} and \
                 {MOST_VALUES}; train smaller trees, and merge rare categories"
            )));
        }
        let added = forest.values.saturating_mul(forest.parts());
        if forest.trees.saturating_mul(comparisons.max(added)) > MOST_LISTED {
            return Err(Error::misuse(format!(
                "{} trees of {comparisons} comparisons in a run; use fewer or smaller trees, or a smaller --batch",
                forest.trees
            )));
        }
        let bits = from.checked_sub(skip).filter(|_| from <= 64).unwrap_or(0);
        let entrance = Entrance::signed(Ring::Power(bits), width, 0, 0)?;
        let mut builder = Builder::new();
        let signs = (0..forest.comparisons_of_tree()).map(|_| {
            let sum = entrance.reconstruct(&mut builder);
            sum.last().map_or(Wire::ONE, |sign| sign.negated())
        });
        let signs: Word = signs.collect();
        let outcomes: Word = signs
            .chunks(forest.comparisons.max(1))
            .map(|signs| signs.iter().fold(Wire::ZERO, |odd, sign| builder.xor(odd, *sign)))
            .collect();
        let reached = match forest.paths {
            Paths::Complete(depth) => complete(&mut builder, &outcomes, depth),
            Paths::Table(_) => builder.one_hot(&outcomes),
            Paths::Walk(_) => return Err(Error::misuse("walks through a pool of tests")),
        };
        for _ in 0..forest.values {
            reached.chunks(MOST_BITS).for_each(|part| builder.output(part, false));
        }
        let rings = vec![forest.bits; forest.values * forest.parts()];
        let batch = TaggedBatch::new(Arc::new(builder.finish()?), forest.trees, rings)?;
        let each = forest.comparisons_of_tree();
        let positions =
            (0..each).flat_map(|at| (0..forest.trees).map(move |tree| tree * each + at));
        let (positions, inputs) = (Some(positions.collect()), forest.trees * each);
        Ok(Self { batch, entrance, from, skip, low: 0, inputs, positions })
    }
}

/// Whether each leaf of a complete tree is reached, from left to right: a test that is reached hands its bit to one
/// of two sides, by a gate.
fn complete(builder: &mut Builder, outcomes: &[Wire], depth: u32) -> Word {
    let mut reached = vec![Wire::ONE];
    let mut tests = outcomes.iter();
    for _ in 0..depth {
        let mut below = Word::with_capacity(2 * reached.len());
        for (here, goes) in reached.iter().zip(tests.by_ref()) {
            let right = builder.and(*here, *goes);
            below.extend([builder.xor(*here, right), right]);
        }
        reached = below;
    }
    reached
}
