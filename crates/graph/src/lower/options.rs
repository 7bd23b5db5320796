//! What the user chooses when compiling.

use crate::error::{Error, Result};
use crate::ir::{Graph, Nonlinear, Packing};
use crate::link::Link;
use crate::ops::Rounding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The widest that activations are, but for a single sum.
pub(super) const MOST_BITS: u32 = 12;
/// Widths of weights and activations.
const WIDTHS: RangeInclusive<u32> = 2..=MOST_BITS;
/// Widths of a model that is a single sum, whose results are read as numbers.
const SUM_WIDTHS: RangeInclusive<u32> = 2..=16;

/// What the user chooses when compiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Choice of protocols, e.g. `auto`.
    pub suite: String,
    /// Protocols of what is not linear, where the suite leaves a choice.
    pub nonlinear: Nonlinear,
    /// Signed width of weights before the per-channel multiplier, in `2..=16`.
    pub weight_bits: u32,
    /// Width of quantised activations, in `2..=16`.
    pub activation_bits: u32,
    /// Rounding of every linear layer but the last one.
    pub rounding: Rounding,
    /// Name of each output, or empty.
    pub labels: Vec<String>,
    /// What clients may make of the results.
    pub link: Option<Link>,
    /// Whether norms find inverse roots by Newton's iteration; the suite says so.
    #[serde(skip)]
    pub newton: bool,
    /// Nothing is rescaled: for suites that evaluate whole networks under encryption.
    pub exact: bool,
    /// Where nothing is rescaled, bits that outputs get beyond the largest one of calibration.
    pub margin_bits: u32,
    /// Where nothing is rescaled, how the input is packed; the cheapest way when absent.
    pub packing: Option<Packing>,
    /// Where nothing is rescaled or products are by oblivious transfer, the width of each linear
    /// layer's weights. When empty, all have `weight_bits`, but with products by oblivious
    /// transfer the first and the last have 8.
    pub layer_bits: Vec<u32>,
    /// Products by oblivious transfer: weights and activations have few bits; the suite says
    /// so.
    #[serde(skip)]
    pub ot_products: bool,
    /// Where products are by oblivious transfer, the optimisations that are left out, to measure
    /// what they are worth.
    pub disabled: BTreeSet<Switch>,
}

/// An optimisation of products by oblivious transfer that may be left out (UFO, section IV).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// Dense 3x3 convolutions in the Winograd domain.
    Winograd,
    /// One conversion where several would follow one another (propositions 1 to 3).
    Fusion,
    /// Residuals added inside the accumulator (Fig. 12b).
    Residual,
    /// Signs known behind a ReLU (section IV-B3).
    Sign,
    /// Importances of bits that follow the weights (section V-B).
    Reweighting,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            suite: "auto".into(),
            nonlinear: Nonlinear::Ot,
            weight_bits: 8,
            activation_bits: 8,
            rounding: Rounding::Stochastic,
            labels: vec![],
            link: None,
            newton: false,
            exact: false,
            margin_bits: 2,
            packing: None,
            layer_bits: vec![],
            ot_products: false,
            disabled: BTreeSet::new(),
        }
    }
}

impl Options {
    /// Checks that all widths are possible.
    pub(super) fn check(&self) -> Result<()> {
        let layers = self.layer_bits.iter().map(|bits| ("layer_bits", *bits, WIDTHS));
        let all = self.widths().map(|(name, bits)| (name, bits, SUM_WIDTHS));
        for (name, bits, known) in all.into_iter().chain(layers) {
            if !known.contains(&bits) {
                return Err(Error::Misuse(format!("{name} is {bits}, must be in {known:?}")));
            }
        }
        Ok(())
    }

    /// Checks that only a single sum has the widths that nothing else has.
    pub(super) fn check_widths_of(&self, graph: &Graph) -> Result<()> {
        let is_sum = graph.nodes.iter().filter(|node| !node.op.rearranges()).count() <= 1;
        let wide = self.widths().into_iter().find(|(_, bits)| !is_sum && !WIDTHS.contains(bits));
        wide.map_or(Ok(()), |(name, bits)| {
            let what = format!("{name} is {bits}, which models of a single sum have alone");
            Err(Error::unsupported(&graph.name, what, &format!("use {WIDTHS:?}")))
        })
    }

    fn widths(&self) -> [(&'static str, u32); 2] {
        [("weight_bits", self.weight_bits), ("activation_bits", self.activation_bits)]
    }
}
