//! Ensembles of decision trees: keys are selected under encryption, compared with thresholds, and
//! lead to leaves whose values are added up.
//!
//! The selection is a product with a hidden matrix that has one number, 1 or 2, in the row of each
//! comparison; thresholds are its constants. Its exact results have low bits of noise beneath y, which
//! never reach the sign of y, so that nothing is truncated before signs are compared.

use graph::ops::Trees;
use graph::ops::trees::KEY_BITS;
use graph::{Conv, Linear, NodeWeights, Rounding};
use mpc::Share;
use mpc::linear::coefficient::{Layer, ServerWeights};
use mpc::trees::{self, Shape, Way};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::coefficient::CoefficientLayer;
use crate::step::context::{Context, Party};
use crate::step::keys::KeyDemand;
use crate::step::linear::{LinearProtocol, Preprocess};
use crate::step::sliced::Sliced;
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource};

/// Signed width of the numbers in the selection matrix, which are 0, 1 or 2.
const SELECTION_BITS: u32 = 2;

/// The values of a server's leaves, tree by tree, then what is added to each result.
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

/// The product that subtracts thresholds from selected keys.
pub(crate) fn selection(trees: &Trees, features: usize) -> Linear {
    Linear {
        conv: Conv::fully_connected(features, trees.tests()),
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
        let count = batch.saturating_mul(trees.trees);
        let rows = shape.inputs();
        let paths = match way.map_or_else(|| Way::fastest(count, shape), Ok)? {
            Way::AtOnce(radix) => {
                Sliced::rows(count, rows, |count| trees::Trees::new(count, shape, radix))?
            }
            Way::Stages(radix) => {
                Sliced::sparse_rows(count, rows, |count| trees::Staged::new(count, shape, radix))?
            }
        };
        let selection =
            CoefficientLayer { preprocessed: false, positions: None, layer, truncate: None };
        Ok(Self { trees: trees.clone(), features, outputs, selection, shape, paths })
    }

    /// Says whether every session selects on a mask, before its inputs exist.
    pub(crate) fn set_preprocessed(&mut self, preprocessed: bool) {
        self.selection.preprocessed = preprocessed;
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
        let NodeWeights { weight, bias } = &source.take()?;
        let mut matrix = Zeroizing::new(vec![0i32; weight.len() * self.features]);
        for (row, code) in matrix.chunks_exact_mut(self.features.max(1)).zip(weight) {
            let (times, feature) = Trees::selected(*code);
            // Every place is written, so that none tells which feature is tested.
            for (at, place) in row.iter_mut().enumerate() {
                *place = times as i32 * i32::from(at == feature);
            }
        }
        let [thresholds, leaves, base] = self.trees.constants(bias).map_err(Error::misuse)?;
        let negative = thresholds.iter().map(|threshold| -threshold);
        let negative = Zeroizing::new(negative.collect::<Vec<i64>>());
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
        self.selection.preprocess()
    }

    fn protocols(&self) -> Vec<&Sliced> {
        vec![&self.paths]
    }

    fn spent(&self) -> Spent {
        self.selection.spent()
    }

    fn spent_preprocessed(&self) -> Spent {
        self.selection.spent_preprocessed()
    }

    fn memory(&self) -> u64 {
        let rows = self.selection.layer.outputs() / self.shape.tests().max(1);
        self.selection.memory() + 8 * (rows * self.shape.inputs()) as u64
    }

    fn ciphertexts(&self) -> usize {
        self.selection.ciphertexts()
    }

    fn failure(&self) -> f64 {
        self.selection.failure()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let y = self.selection.run(cx, inputs)?;
        let leaves = match cx.party {
            Party::Client { .. } => None,
            Party::Server { weights, .. } => Some(weights.of::<Leaves>(cx.node)?),
        };
        let rows = self.rows(&y, leaves.map(|leaves| leaves.values.as_slice()));
        let values = Sliced::run_after(Some(&self.paths), cx.channel, rows, cx.feed)?;
        Ok(self.summed(&values, leaves.map(|leaves| leaves.base.as_slice())))
    }
}
