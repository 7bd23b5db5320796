//! Ensembles of decision trees: keys are selected under encryption, compared with thresholds, and
//! lead to leaves whose values are added up.
//!
//! The selection is a product with a hidden matrix that has one number, 1 or 2, in the row of each
//! comparison; thresholds are its constants. Its exact results have low bits of noise beneath y, which
//! never reach the sign of y, so that nothing is truncated before signs are compared.

use graph::ops::trees::KEY_BITS;
use graph::ops::{Paths, Trees, Walk};
use graph::{Conv, Linear, NodeWeights, Rounding};
use mpc::Share;
use mpc::linear::coefficient::{Layer, ServerWeights};
use mpc::trees::{self, Shape, Way};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::coefficient::CoefficientLayer;
use super::pools::{ServerPool, Shuffled};
use crate::step::context::{Context, Party, input};
use crate::step::keys::KeyDemand;
use crate::step::linear::{LinearProtocol, Preprocess};
use crate::step::sliced::Sliced;
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource};

/// Signed width of the numbers in the selection matrix, which are 0, 1 or 2.
const SELECTION_BITS: u32 = 2;
/// Most slots of pools that are compared and walked through together.
const MOST_SLOTS: usize = 1 << 18;

/// The values of a server's leaves, tree by tree (none of pools), then what is added to each result.
struct Leaves {
    values: Zeroizing<Vec<i64>>,
    base: Zeroizing<Vec<i64>>,
}

/// An ensemble in runs of some inputs.
#[derive(Debug)]
pub struct TreesLayer {
    /// The ensemble.
    trees: Trees,
    /// Numbers of features and of results of one input.
    features: usize,
    outputs: usize,
    /// The product of the selection.
    selection: CoefficientLayer,
    /// The shape of trees that were selected for.
    shape: Shape,
    /// The comparisons and paths.
    paths: Sliced,
}

/// Sizes of an ensemble in a run.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Inputs of one run.
    pub batch: usize,
    /// Features of one input.
    pub features: usize,
    /// Results of one input.
    pub outputs: usize,
    /// Width of the results.
    pub out_bits: u32,
}

/// The product that subtracts thresholds from selected keys, and how many inputs it has at a time.
/// Inputs of pools have a matrix each, and are channels of one input.
pub(crate) fn selection(trees: &Trees, features: usize, batch: usize) -> (Linear, usize) {
    let matrices = if matches!(trees.paths, Paths::Walk(_)) { batch } else { 1 };
    let [inputs, outputs] = [features, trees.tests()].map(|one| one.saturating_mul(matrices));
    let conv = Conv { groups: matrices, ..Conv::fully_connected(inputs, outputs) };
    (product(conv), batch / matrices)
}

/// The numbers of the selection's matrix, row by row.
type Matrix = Zeroizing<Vec<i32>>;

/// The selection's matrix and its constants.
pub(crate) fn selected(
    trees: &Trees,
    features: usize,
    weights: &NodeWeights,
) -> Result<(Matrix, Zeroizing<Vec<i64>>)> {
    let NodeWeights { weight, bias } = weights;
    let mut matrix = Zeroizing::new(vec![0i32; weight.len() * features]);
    for (row, code) in matrix.chunks_exact_mut(features.max(1)).zip(weight) {
        let (times, feature) = Trees::selected(*code);
        // Every place is written, so that none tells which feature is tested.
        for (at, place) in row.iter_mut().enumerate() {
            *place = times as i32 * i32::from(at == feature);
        }
    }
    let [thresholds, ..] = trees.constants(bias).map_err(Error::misuse)?;
    let negative = thresholds.iter().map(|threshold| -threshold);
    Ok((matrix, Zeroizing::new(negative.collect())))
}

/// An exact product with numbers of the selection matrix.
fn product(conv: Conv) -> Linear {
    Linear {
        conv,
        accumulator_bits: KEY_BITS,
        weight_bits: SELECTION_BITS,
        shift: 0,
        rounding: Rounding::Exact,
        addend: None,
        choice: None,
        square_bits: Some(SELECTION_BITS),
    }
}

impl TreesLayer {
    /// Plans `trees` of these sizes, selected for by `layer`, whose tests are compared as `way` says,
    /// or in the fastest way.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes that no protocol has.
    pub fn new(trees: &Trees, layer: Layer, sizes: Sizes, way: Option<Way>) -> Result<Self> {
        let Sizes { batch, features, outputs, out_bits } = sizes;
        let bits = layer.result_bits();
        let Trees { paths, values, comparisons, .. } = *trees;
        let shape = Shape { paths, values, comparisons, bits, out_bits };
        let count = batch.saturating_mul(trees.groups());
        let rows = shape.inputs();
        let paths = match (way.map_or_else(|| Way::fastest(count, shape), Ok)?, paths) {
            (Way::AtOnce(radix), Paths::Walk(walk)) => {
                let plan = |count| trees::Trees::new(count, shape, radix);
                Sliced::few_rows([count, rows], MOST_SLOTS / walk.slots.max(1), plan)?
            }
            (Way::AtOnce(radix), _) => {
                Sliced::rows(count, rows, |count| trees::Trees::new(count, shape, radix))?
            }
            (Way::Stages(radix), _) => {
                Sliced::sparse_rows(count, rows, |count| trees::Staged::new(count, shape, radix))?
            }
        };
        let selection =
            CoefficientLayer { preprocessed: false, positions: None, layer, truncate: None };
        Ok(Self { trees: trees.clone(), features, outputs, selection, shape, paths })
    }

    /// Says whether every session selects on a mask, before its inputs exist. Pools are always
    /// selected for online.
    pub(crate) fn set_preprocessed(&mut self, preprocessed: bool) {
        self.selection.preprocessed = preprocessed && self.pool().is_none();
    }

    /// The sizes of the pool, of trees that share one.
    fn pool(&self) -> Option<Walk> {
        if let Paths::Walk(walk) = self.trees.paths { Some(walk) } else { None }
    }

    /// Runs walks through pools, each in an order of its own.
    fn walk(&self, cx: &mut Context<'_, '_>, inputs: &[Share]) -> Result<Share> {
        let tests = self.shape.tests().max(1);
        let (count, x) = (self.selection.layer.outputs() / tests, input(inputs, 0)?);
        let (each, fresh) = (self.trees.leaves_of_tree(), self.shape.fresh());
        let (ready, pools) = match cx.party {
            Party::Client { .. } => (None, vec![vec![0; each + fresh]; count]),
            Party::Server { weights, .. } => {
                let pool: &ServerPool = weights.of(cx.node)?;
                let mut shuffled = pool.shuffled([count, self.features, fresh], cx.rng)?;
                let (layer, pools) = (&self.selection.layer, std::mem::take(&mut shuffled.words));
                // A matrix that is used once is transformed as it is used.
                let Shuffled { matrix, bias, .. } = &shuffled;
                (Some(ServerWeights::new(layer, matrix, bias, &mut 0)?), pools)
            }
        };
        let pools = Zeroizing::new(pools);
        let y = self.selection.multiply_by(cx, ready.as_ref(), x, None)?;
        let mut words = Vec::with_capacity(count * self.shape.inputs());
        for (tests, pool) in y.words().chunks(tests).zip(pools.iter()) {
            words.extend_from_slice(tests);
            words.extend_from_slice(pool);
        }
        let rows = Share::new(words, y.bits());
        Sliced::run_after(Some(&self.paths), cx.channel, rows, cx.feed)
    }

    /// For each tree of each input the values of its comparisons, then those of its leaves, which the
    /// server knows.
    fn rows(&self, y: &Share, leaves: Option<&[i64]>) -> Share {
        let (tests, each) = (self.shape.tests(), self.trees.leaves_of_tree());
        let count = y.len() / tests.max(1);
        let none = Zeroizing::new(vec![0i64; if leaves.is_none() { each } else { 0 }]);
        let of_tree = |tree: usize| match leaves {
            Some(leaves) => leaves.chunks(each).nth(tree % self.trees.trees).unwrap_or(&none),
            None => &none,
        };
        let mut words = Vec::with_capacity(count * (tests + each));
        for (tree, tests) in y.words().chunks(tests.max(1)).enumerate() {
            words.extend_from_slice(tests);
            words.extend(of_tree(tree).iter().map(|value| *value as u64));
        }
        Share::new(words, y.bits())
    }

    /// Adds the trees' values up for each output of each input, and what the server adds to each.
    fn summed(&self, values: &Share, base: Option<&[i64]>) -> Share {
        let each = (self.trees.trees * self.trees.values).max(1);
        let mut words = Vec::with_capacity(values.len() / each * self.outputs);
        for values in values.words().chunks(each) {
            words.extend((0..self.outputs).map(|output| {
                let own = values.iter().skip(output).step_by(self.outputs);
                let base = base.and_then(|base| base.get(output)).map_or(0, |base| *base as u64);
                own.fold(base, |sum, value| sum.wrapping_add(*value))
            }));
        }
        Share::new(words, values.bits())
    }
}

impl LinearProtocol for TreesLayer {
    fn operator(&self) -> &'static str {
        "trees"
    }

    fn describe(&self) -> String {
        let paths = self.paths.describe();
        format!("{} trees: selection by {}, {paths}", self.trees.trees, self.selection.describe())
    }

    fn keys(&self) -> KeyDemand {
        self.selection.keys()
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let keep = self.selection.preprocessed || source.preprocesses;
        let weights = source.take()?;
        if let Some(walk) = self.pool() {
            let (pool, base) = ServerPool::new(&self.trees, walk, &weights)?;
            let values = Zeroizing::default();
            return Ok(Some(Encoded::new(pool).with(Leaves { values, base })));
        }
        let (matrix, negative) = selected(&self.trees, self.features, &weights)?;
        let [_, leaves, base] = self.trees.constants(&weights.bias).map_err(Error::misuse)?;
        let layer = &self.selection.layer;
        let ready = ServerWeights::new(layer, &matrix, &negative, source.memory)?;
        let [values, base] = [leaves, base].map(|values| Zeroizing::new(values.to_vec()));
        let ready = if keep { ready.keeping(&matrix) } else { ready };
        Ok(Some(Encoded::new(ready).with(Leaves { values, base })))
    }

    fn is_preprocessed(&self) -> bool {
        self.selection.preprocessed
    }

    fn preprocess(&self) -> Option<&dyn Preprocess> {
        self.selection.preprocess().filter(|_| self.pool().is_none())
    }

    fn protocols(&self) -> Vec<&Sliced> {
        vec![&self.paths]
    }

    fn spent(&self) -> Spent {
        let spent = self.selection.spent();
        match self.pool() {
            Some(_) => Spent { work: spent.work + self.selection.layer.encoding(), ..spent },
            None => spent,
        }
    }

    fn spent_preprocessed(&self) -> Spent {
        match self.pool() {
            Some(_) => self.spent(),
            None => self.selection.spent_preprocessed(),
        }
    }

    fn memory(&self) -> u64 {
        let rows = self.selection.layer.outputs() / self.shape.tests().max(1);
        // The matrix of a pool's input is as large as its polynomials are.
        let matrix =
            self.pool().map_or(0, |_| 8 * (rows * self.shape.tests() * self.features) as u64);
        self.selection.memory() + 8 * (rows * self.shape.inputs()) as u64 + matrix
    }

    fn ciphertexts(&self) -> usize {
        self.selection.ciphertexts()
    }

    fn failure(&self) -> f64 {
        self.selection.failure()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let leaves = match cx.party {
            Party::Client { .. } => None,
            Party::Server { weights, .. } => Some(weights.of::<Leaves>(cx.node)?),
        };
        if self.pool().is_some() {
            let values = self.walk(cx, &inputs)?;
            return Ok(self.summed(&values, leaves.map(|leaves| leaves.base.as_slice())));
        }
        let y = self.selection.run(cx, inputs)?;
        let rows = self.rows(&y, leaves.map(|leaves| leaves.values.as_slice()));
        let values = Sliced::run_after(Some(&self.paths), cx.channel, rows, cx.feed)?;
        Ok(self.summed(&values, leaves.map(|leaves| leaves.base.as_slice())))
    }
}
