//! Ensembles of decision trees as importers give them, and how they become models.
//!
//! Every tree is padded to one public shape, so that clients learn the number of trees, that shape
//! and nothing of single trees.

mod grown;
mod layout;
mod padded;
mod pooled;
mod tree;

use crate::error::{Error, Result};
use crate::ir::{Format, Graph, Model, Node, NodeWeights, Nonlinear, Tensor, VERSION};
use crate::link::Link;
use crate::model::verify_model;
use crate::ops::trees::{KEY_BITS, MAX_TESTS, MISSING, Paths, Trees};
use grown::Grown;
pub use layout::Layouts;
use padded::Padded;
use pooled::Pooled;
use serde::Deserialize;
use std::collections::BTreeMap;
pub use tree::Tree;

/// Longest JSON of an ensemble, in bytes.
const MAX_JSON: usize = 1 << 30;
/// Widths of the results' shares. The lesser one is for leaves and results that it holds exactly.
const RESULT_BITS: [u32; 2] = [16, 32];
/// Most bits of a fraction; a value of a leaf is off by at most half of the last one.
const MAX_FRACTION: i32 = 24;
/// Width of the input's shares, which hold [`MISSING`] as a positive number.
const INPUT_BITS: u32 = KEY_BITS + 1;
/// What graphs have to say of activations that are rounded, of which there are none here.
const ACTIVATION_BITS: u32 = 8;
/// Decision trees whose leaves are added up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ensemble {
    /// Name of the model.
    pub name: String,
    /// Number of features.
    pub features: usize,
    /// Number of results.
    pub outputs: usize,
    /// A name for each result, or nothing.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What clients may make of the results.
    #[serde(default)]
    pub link: Option<Link>,
    /// Values of a leaf: one of each result, or a single one. That of tree t counts for result
    /// `t mod outputs` then.
    pub values: usize,
    /// The number that is added to each result.
    pub base: Vec<f64>,
    /// By what the sums, with what is added, are divided.
    pub divisor: f64,
    /// Whether a number goes left where it equals the threshold.
    pub ties_left: bool,
    /// The trees.
    pub trees: Vec<Tree>,
}

impl Ensemble {
    /// Reads an ensemble.
    ///
    /// # Errors
    /// [`Error::Misuse`] for text that is none.
    pub fn from_json(text: &str) -> Result<Self> {
        if text.len() > MAX_JSON {
            return Err(misuse(format!("an ensemble of more than {MAX_JSON} bytes")));
        }
        serde_json::from_str(text).map_err(|error| misuse(format!("no ensemble: {error}")))
    }

    /// Makes the model of `suite` that computes the ensemble: exact leaves, whose values are
    /// rounded to a fraction that the result's scale tells.
    ///
    /// # Errors
    /// [`Error::Misuse`] for trees that are none and numbers that are not finite,
    /// [`Error::Unsupported`] for trees that are too deep.
    pub fn lower(&self, suite: &str) -> Result<Model> {
        self.lower_with(suite, Layouts::All)
    }

    /// [`Ensemble::lower`] into one of these `layouts`.
    ///
    /// # Errors
    /// As [`Ensemble::lower`].
    pub fn lower_with(&self, suite: &str, layouts: Layouts) -> Result<Model> {
        self.check()?;
        let grown = self.trees.iter().enumerate().map(|(index, tree)| {
            Grown::new(tree, [self.features, self.values])
                .map_err(|why| misuse(format!("tree {index} {why}")))
        });
        let grown = grown.collect::<Result<Vec<_>>>()?;
        let paths = layout::cheapest(&self.name, self.value_bits(&grown), &grown, layouts)?;
        self.padded(suite, &grown, paths)
    }

    /// Makes the model with trees padded to one layout.
    fn padded(&self, suite: &str, grown: &[Grown<'_>], paths: Paths) -> Result<Model> {
        let comparisons = grown.iter().map(Grown::comparisons).max().unwrap_or(1);
        let op = Trees { trees: grown.len(), paths, values: self.values, comparisons };
        if op.tests() > MAX_TESTS {
            let padded = format!("{} trees, {comparisons} comparisons a test", grown.len());
            let why = format!("makes {} comparisons ({padded}), at most {MAX_TESTS}", op.tests());
            let advice = "train fewer or smaller trees, and merge rare categories";
            return Err(Error::unsupported(&self.name, why, advice));
        }
        let (bits, fraction) = self.precision(grown);
        let weights = self.weights(&op, grown, fraction)?;
        let model = Model {
            graph: self.graph(suite, op, (bits, fraction)),
            weights: BTreeMap::from([(0, weights)]),
        };
        verify_model(&model).map_err(|error| error.in_pass("trees"))?;
        Ok(model)
    }

    fn check(&self) -> Result<()> {
        let finite = self.divisor.is_finite() && self.divisor > 0.0;
        if self.trees.is_empty() || self.features == 0 || self.outputs == 0 || !finite {
            return Err(misuse("an ensemble without trees, features, results or divisor"));
        }
        if self.base.len() != self.outputs || !self.base.iter().all(|value| value.is_finite()) {
            return Err(misuse("what is added to results is not finite, or not one for each"));
        }
        let single = self.values == 1 && self.trees.len().is_multiple_of(self.outputs);
        if !single && self.values != self.outputs {
            return Err(misuse("leaves with other values than the results have"));
        }
        Ok(())
    }

    /// Bits of all values of a leaf.
    fn value_bits(&self, grown: &[Grown<'_>]) -> usize {
        self.precision(grown).0 as usize * self.values
    }

    /// Width of the results, and bits of the fraction of all values: the fewest that leave nothing
    /// to round, or as many as sums of all leaves have room for.
    fn precision(&self, grown: &[Grown<'_>]) -> (u32, i32) {
        let mut largest: Vec<f64> = self.base.iter().map(|value| value.abs()).collect();
        for (index, tree) in grown.iter().enumerate() {
            for at in 0..self.values {
                let output = (index * self.values + at) % self.outputs;
                largest[output] += tree.largest(at);
            }
        }
        let largest = largest.into_iter().fold(f64::MIN_POSITIVE, f64::max);
        let values = || grown.iter().flat_map(Grown::values).chain(&self.base);
        let exact = |fraction: &i32| {
            let unit = f64::from(*fraction).exp2();
            values().all(|value| (value * unit).fract() == 0.0)
        };
        // Two values differ by one bit more.
        let room = |bits: u32| (1u64 << (bits - 2)) as f64;
        let [narrow, wide] = RESULT_BITS;
        let fits = |fraction: &i32| largest * f64::from(*fraction).exp2() < room(narrow);
        if let Some(fraction) = (0..=MAX_FRACTION).take_while(fits).find(exact) {
            return (narrow, fraction);
        }
        // Each leaf and the base are rounded by at most a half.
        let room = room(wide) - grown.len() as f64 - 2.0;
        (wide, ((room.max(1.0) / largest).log2().floor() as i32).min(MAX_FRACTION))
    }

    fn weights(&self, op: &Trees, grown: &[Grown<'_>], fraction: i32) -> Result<NodeWeights> {
        let unit = f64::from(fraction).exp2();
        let rounded = |value: &f64| (value * unit).round() as i64;
        if let Paths::Walk(walk) = op.paths {
            let mut pool = Pooled::new(walk, op);
            for tree in grown {
                pool.add(tree, self.ties_left, rounded).map_err(misuse)?;
            }
            let mut weights = pool.finish();
            weights.bias.extend(self.base.iter().map(rounded));
            return Ok(weights);
        }
        let mut weights = NodeWeights { weight: Vec::new(), bias: Vec::new() };
        let mut leaves = Vec::with_capacity(op.leaf_values());
        for tree in grown {
            let padded = Padded::new(tree, op, self.ties_left).map_err(misuse)?;
            weights.weight.extend(padded.codes);
            weights.bias.extend(padded.thresholds);
            leaves.extend(padded.leaves.iter().flat_map(|leaf| tree.value(*leaf)).map(rounded));
        }
        weights.bias.append(&mut leaves);
        weights.bias.extend(self.base.iter().map(rounded));
        Ok(weights)
    }

    fn graph(&self, suite: &str, op: Trees, (bits, fraction): (u32, i32)) -> Graph {
        let format = |bits, scale, signed| Format { bits, scale, signed };
        let tensor =
            |name: &str, length, format| Tensor { name: name.into(), shape: vec![length], format };
        let scale = f64::from(-fraction).exp2() / self.divisor;
        let input = tensor("features", self.features, format(INPUT_BITS, 1.0, false));
        let output = tensor("scores", self.outputs, format(bits, scale, true));
        Graph {
            version: VERSION,
            name: self.name.clone(),
            suite: suite.into(),
            nonlinear: Nonlinear::Ot,
            activation_bits: ACTIVATION_BITS,
            input_range: [0, MISSING],
            input_rows: Vec::new(),
            exact: None,
            states: Vec::new(),
            tensors: vec![input, output],
            nodes: vec![Node { name: "trees".into(), op: op.into(), inputs: vec![0], output: 1 }],
            input: 0,
            inputs: Vec::new(),
            output: 1,
            outputs: Vec::new(),
            labels: self.labels.clone(),
            link: self.link,
        }
    }
}

fn misuse(why: impl Into<String>) -> Error {
    Error::Misuse(why.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod walk_tests;
