//! Ensembles of decision trees on the keys of what the client knows.
//!
//! A client encodes each number as a key, an integer in the order of 32-bit floating-point
//! numbers; a missing value is [`MISSING`]. A test compares a key with a threshold of the server.

use super::checks::{ensure, wide_enough};
use super::known::Known;
use super::operator::{Encoding, Operator, Site, Weighted};
use super::range::Range;
use super::walk::{Pool, Walk};
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use serde::{Deserialize, Serialize};

/// Width of the ring in which keys are compared with thresholds.
pub const KEY_BITS: u32 = 34;
/// The key of a value that is missing: half of the ring, so that twice as much is zero.
pub const MISSING: i64 = 1 << (KEY_BITS - 1);
/// Stands for the feature of a test that pads a tree.
pub const NO_FEATURE: i32 = -1;

/// Most features: the client encrypts a key for each.
const MAX_FEATURES: usize = 1 << 16;
/// Most comparisons of all trees.
pub(crate) const MAX_TESTS: usize = 1 << 20;
/// Most values of all leaves.
const MAX_VALUES: usize = 1 << 24;
/// Greatest depth of a complete tree.
pub const MAX_DEPTH: u32 = 8;
/// Most tests of a tree that is a table.
pub const MAX_TABLE: u32 = 7;

/// How the outcomes of a tree's tests lead to a leaf: the same for all trees, which are padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Paths {
    /// Complete trees of this depth. Test 0 is the root, the tests after test i are 2i + 1 on the
    /// left and 2i + 2 on the right; leaves stand from left to right.
    Complete(u32),
    /// A table of the leaf for all outcomes of so many tests; outcome i is bit i of the place.
    Table(u32),
    /// One pool of the tests of all trees, through which each tree's walk takes equally many steps.
    Walk(Walk),
}

impl Paths {
    /// Returns the number of tests of each tree, or of the pool that all trees share.
    pub fn tests(self) -> usize {
        match self {
            Self::Walk(walk) => walk.slots,
            Self::Complete(depth) => (1usize << depth.min(MAX_DEPTH)) - 1,
            Self::Table(tests) => tests.min(MAX_TABLE) as usize,
        }
    }

    /// Returns the number of leaves of each tree; none of pools, where edges carry values.
    pub fn leaves(self) -> usize {
        match self {
            Self::Walk(_) => 0,
            Self::Complete(depth) => 1usize << depth.min(MAX_DEPTH),
            Self::Table(tests) => 1usize << tests.min(MAX_TABLE),
        }
    }

    /// Returns the number of the server's words for each tree with so many values of a leaf: those
    /// of its leaves, or those of the pool that all trees share ([`Pool`]).
    pub fn words(self, values: usize) -> usize {
        match self {
            Self::Walk(walk) => walk.words(values),
            _ => values.saturating_mul(self.leaves()),
        }
    }

    /// Returns the number of trees that share their tests, of so many.
    fn sharing(self, trees: usize) -> usize {
        if matches!(self, Self::Walk(_)) { trees } else { 1 }
    }

    /// Returns the leaf for the outcomes of all tests, each of which is true on the right; the
    /// first one of pools, where [`Pool::leaf`] knows the values.
    pub fn leaf(self, right: impl Fn(usize) -> bool) -> usize {
        match self {
            Self::Walk(_) => 0,
            Self::Complete(depth) => {
                let node = (0..depth).fold(0, |node, _| 2 * node + 1 + usize::from(right(node)));
                node - self.tests()
            }
            Self::Table(_) => (0..self.tests()).map(|test| usize::from(right(test)) << test).sum(),
        }
    }

    fn check(self, trees: usize) -> Check<()> {
        match self {
            Self::Walk(walk) => {
                ensure(walk.trees == trees, || format!("walks of {} trees", walk.trees))?;
                walk.check()
            }
            Self::Complete(depth) => {
                ensure((1..=MAX_DEPTH).contains(&depth), || format!("trees of depth {depth}"))
            }
            Self::Table(tests) => {
                ensure((1..=MAX_TABLE).contains(&tests), || format!("tables of {tests} tests"))
            }
        }
    }
}

/// The sum of the leaves that an input reaches, one of each tree: value j of tree t counts for
/// output `(t*values + j) mod outputs`.
///
/// A test goes right where `w*key - threshold >= 0` in signed integers of [`KEY_BITS`]. The
/// multiplier w is 1 where a missing value goes right, 2 where it goes left (the threshold is
/// twice as large then), and 0 in tests that pad a tree.
///
/// A test may be several such comparisons, all of the same number for all tests: it goes right
/// where an odd number of them does. So a test of a set of categories is one of the ends of the
/// runs of numbers that the set is made of.
///
/// The server's weights are, for each comparison of each test of each tree, twice its feature plus
/// 1 if a missing value goes left, or [`NO_FEATURE`]. Its constants are the thresholds of all
/// comparisons, then the values of all leaves, tree by tree, or the words of the [`Pool`], then what
/// is added to each output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trees {
    /// Number of trees.
    pub trees: usize,
    /// How tests lead to leaves.
    pub paths: Paths,
    /// Number of values of a leaf.
    pub values: usize,
    /// Number of comparisons of a test.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub comparisons: usize,
}

/// One comparison, which most tests are.
fn one() -> usize {
    1
}

fn is_one(comparisons: &usize) -> bool {
    *comparisons == 1
}

impl Trees {
    /// Returns the number of comparisons of all tests of all trees.
    pub fn tests(&self) -> usize {
        self.groups().saturating_mul(self.tests_of_tree())
    }

    /// Returns the number of comparisons of all tests of one tree, or of a pool.
    pub fn tests_of_tree(&self) -> usize {
        self.comparisons.saturating_mul(self.paths.tests())
    }

    /// Returns the number of groups of trees that share tests: one for each tree, or a pool.
    pub fn groups(&self) -> usize {
        self.trees / self.paths.sharing(self.trees).max(1)
    }

    /// Returns the number of values of all leaves of all trees, or of words of their pool.
    pub fn leaf_values(&self) -> usize {
        self.groups().saturating_mul(self.leaves_of_tree())
    }

    /// Returns the number of values of all leaves of one tree, or of words of a pool.
    pub fn leaves_of_tree(&self) -> usize {
        self.paths.words(self.values)
    }

    /// The pool with its sizes, of trees that share one.
    fn pool<'a>(&self, words: &'a [i64]) -> Option<(Walk, Pool<'a, i64>)> {
        let Paths::Walk(walk) = self.paths else { return None };
        Some((walk, Pool::new(&walk, self.values, words)?))
    }

    /// Returns the thresholds, the values of leaves and what is added to outputs.
    ///
    /// # Errors
    /// The text says that there are too few.
    pub fn constants<'a>(&self, bias: &'a [i64]) -> Check<[&'a [i64]; 3]> {
        let split = bias.split_at_checked(self.tests()).and_then(|(thresholds, rest)| {
            let (leaves, base) = rest.split_at_checked(self.leaf_values())?;
            Some([thresholds, leaves, base])
        });
        split.ok_or_else(|| "has too few constants".into())
    }

    /// Returns the multiplier of a key and the feature that it is of, without a branch.
    pub fn selected(code: i32) -> (i64, usize) {
        let tests = i64::from(code != NO_FEATURE);
        (tests * (1 + i64::from(code & 1)), (code.max(0) >> 1) as usize)
    }
}

impl Operator for Trees {
    fn kind(&self) -> &'static str {
        "trees"
    }

    fn encoding(&self) -> Encoding {
        Encoding::Keys
    }

    fn verify(&self, site: &Site<'_>, known: &[bool]) -> Check<bool> {
        self.paths.check(self.trees)?;
        let (input, output) = (site.input(), site.output);
        let known = known.first() == Some(&true);
        ensure(known, || "tests values that the client does not know".into())?;
        let fits = matches!(input.shape[..], [features] if features <= MAX_FEATURES);
        ensure(fits, || format!("tests features of shape {:?}", input.shape))?;
        wide_enough(input, KEY_BITS)?;
        let fits = matches!(output.shape[..], [outputs] if outputs <= MAX_FEATURES);
        ensure(fits, || format!("makes results of shape {:?}", output.shape))?;
        let sized = (1..=MAX_TESTS).contains(&self.tests()) && self.values >= 1;
        ensure(sized, || format!("makes {} comparisons, at most {MAX_TESTS}", self.tests()))?;
        let values = self.leaf_values();
        ensure(values <= MAX_VALUES, || format!("leaves of {values} values"))?;
        let bits = output.format.bits;
        ensure(bits <= KEY_BITS, || format!("results of {bits} bits, at most {KEY_BITS}"))?;
        Ok(true)
    }

    fn multiplied(&self, _known: &[bool]) -> usize {
        1
    }

    fn weighted(&self) -> Option<&dyn Weighted> {
        Some(self)
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let weights = site.needed_weights()?;
        let [thresholds, leaves, base] = self.constants(&weights.bias)?;
        let (tests, each) = (self.tests_of_tree(), self.leaves_of_tree());
        let compared = |at: usize| {
            let (times, feature) = Self::selected(weights.weight[at]);
            let key = inputs[0].get(feature).copied().unwrap_or(0);
            let y = times.wrapping_mul(key).wrapping_sub(thresholds[at]);
            y << (i64::BITS - KEY_BITS) >= 0
        };
        let mut sums = base.to_vec();
        let odd = |first: usize| {
            (first..first + self.comparisons).fold(false, |odd, at| odd ^ compared(at))
        };
        if let Some((walk, pool)) = self.pool(leaves) {
            let right = |slot| odd(slot * self.comparisons);
            let leaf = |tree| pool.leaf(&walk, [tree, self.values], right);
            for (at, value) in (0..self.trees).flat_map(leaf).enumerate() {
                let output = at % base.len();
                sums[output] = sums[output].wrapping_add(value);
            }
            return Ok(sums);
        }
        for (tree, leaves) in leaves.chunks_exact(each).enumerate() {
            let leaf = self.paths.leaf(|test| odd(tree * tests + test * self.comparisons));
            for at in 0..self.values {
                let output = (tree * self.values + at) % base.len();
                sums[output] = sums[output].wrapping_add(leaves[leaf * self.values + at]);
            }
        }
        Ok(sums)
    }

    fn output(&self, site: &Site<'_>, _inputs: &[Known]) -> Known {
        let constants = site.weights.and_then(|weights| self.constants(&weights.bias).ok());
        let Some([_, leaves, base]) = constants else { return Range::ZERO.into() };
        let point = |value: &i64| Range::new((*value).into(), (*value).into());
        let mut sums: Vec<Range> = base.iter().map(point).collect();
        if let Some((walk, pool)) = self.pool(leaves) {
            let Ok(ranges) = pool.ranges(&walk, self.values) else { return Range::ZERO.into() };
            for (at, range) in ranges.into_iter().enumerate() {
                let output = at % base.len().max(1);
                sums[output] = sums[output].plus(range);
            }
            return sums.into_iter().reduce(Range::join).unwrap_or(Range::ZERO).into();
        }
        for (tree, leaves) in leaves.chunks_exact(self.leaves_of_tree().max(1)).enumerate() {
            for at in 0..self.values {
                let output = (tree * self.values + at) % base.len().max(1);
                let values = leaves.iter().skip(at).step_by(self.values);
                let Some(sum) = sums.get_mut(output) else { continue };
                *sum = sum.plus(Range::around(values.map(|value| i128::from(*value))));
            }
        }
        sums.into_iter().reduce(Range::join).unwrap_or(Range::ZERO).into()
    }

    fn fits(&self, site: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let keys = Range::new(0, MISSING.into());
        let fits = keys.holds(inputs[0].range);
        fits.then_some(()).ok_or("tests what is no key")?;
        let weights = site.needed_weights()?;
        let [thresholds, ..] = self.constants(&weights.bias)?;
        let within = weights.weight.iter().zip(thresholds).all(|(code, threshold)| {
            let times = Self::selected(*code).0.max(1);
            (times..=times << (KEY_BITS - 2)).contains(threshold)
        });
        within.then_some(()).ok_or("a threshold is no key")?;
        let features = site.input().len();
        let known = weights.weight.iter().all(|code| Self::selected(*code).1 < features);
        known.then_some(()).ok_or_else(|| "a test of a feature that there is not".into())
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        KEY_BITS
    }

    fn fixes_width(&self) -> bool {
        true
    }
}

impl Weighted for Trees {
    fn weight_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.groups(), self.tests_of_tree()])
    }

    fn bias_shape(&self, output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.tests() + self.leaf_values() + output.len()])
    }

    fn check(&self, output: &Tensor, weights: &NodeWeights) -> Check<()> {
        let constants = self.tests() + self.leaf_values() + output.len();
        super::linear::check_counts((self.tests(), constants), weights)?;
        let most = 2 * MAX_FEATURES as i32;
        let known = weights.weight.iter().all(|code| (NO_FEATURE..most).contains(code));
        known.then_some(()).ok_or("a test of no feature")?;
        let [_, words, _] = self.constants(&weights.bias)?;
        self.pool(words).map_or(Ok(()), |(walk, pool)| pool.steps(&walk).map(|_| ()))
    }
}
