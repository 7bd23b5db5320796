//! From floats to integers: scales from calibration, weights with per-channel
//! multipliers, widths from the worst case of the real weights.

mod build;
mod exact;
mod few_bits;
mod float_layers;
mod links;
mod local;
mod quantised;
mod rounding;
mod scale;
mod transformer;
mod unfused;
mod weights;
mod widths;

pub use widths::{in_graph, reassigned, variants};

use crate::ir::{Graph, Model, Nonlinear, Packing, Rounding};
use crate::source::{Calibration, Floats, Program, Source};
use crate::{Error, Result, passes, verify_model};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the user chooses when compiling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Choice of protocols, e.g. `auto`.
    pub suite: String,
    /// Protocols of what is not linear, where the suite leaves a choice.
    pub nonlinear: Nonlinear,
    /// Signed width of weights before the per-channel multiplier, in `2..=12`.
    pub weight_bits: u32,
    /// Width of quantised activations, in `2..=12`.
    pub activation_bits: u32,
    /// Rounding of every linear layer but the last one.
    pub rounding: Rounding,
    /// Name of each output, or empty.
    pub labels: Vec<String>,
    /// Whether norms find inverse roots by Newton's iteration; the suite says so.
    #[serde(skip)]
    pub newton: bool,
    /// Nothing is rescaled: for suites that evaluate whole networks under encryption.
    pub exact: bool,
    /// Of these, bits that outputs get beyond the largest one of calibration.
    pub margin_bits: u32,
    /// Of these, how the input is packed; the cheapest way when absent.
    pub packing: Option<Packing>,
    /// Of these and of products by transfers, the width of each linear layer's weights;
    /// when empty `weight_bits` for all, of products by transfers 8 for first and last.
    pub layer_bits: Vec<u32>,
    /// Products by oblivious transfer: weights and activations have few bits; the suite says
    /// so.
    #[serde(skip)]
    pub transfers: bool,
    /// Of these, what is left out, to measure what it is worth.
    pub disabled: BTreeSet<Switch>,
}

/// An optimisation of products by transfers that may be left out (UFO, section IV).
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
            newton: false,
            exact: false,
            margin_bits: 2,
            packing: None,
            layer_bits: vec![],
            transfers: false,
            disabled: BTreeSet::new(),
        }
    }
}

/// Compiles a float graph. Where `calibration` has the means of a linear layer's input,
/// the layer's bias takes back what rounding the weights adds to its mean.
///
/// # Errors
/// [`Error::Misuse`] for options and calibration that do not fit,
/// [`Error::Unsupported`] for what this version cannot run,
/// [`Error::Invalid`] for a graph that is wrong or becomes wrong in a pass.
pub fn lower(
    source: Source,
    floats: Floats,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    check(options)?;
    let program = passes::run(Program { source, floats })?;
    let mut model = if options.exact {
        exact::build(&program, calibration, options)?
    } else if options.transfers {
        few_bits::build(program, calibration, options)?
    } else {
        few_bits::refuse(&program)?;
        build::build(&program, calibration, options)?
    };
    let outputs = model.graph.tensors[model.graph.output].len();
    if !options.labels.is_empty() && options.labels.len() != outputs {
        let have = options.labels.len();
        return Err(Error::Misuse(format!("{have} labels for {outputs} outputs")));
    }
    if !options.exact {
        make_last_exact(&mut model.graph);
        widths::assign(&mut model, options.transfers)?;
        if options.transfers {
            unfused::apply(&mut model, &options.disabled);
        }
    }
    verify_model(&model).map_err(|error| error.in_pass("lower"))?;
    Ok(model)
}

fn check(options: &Options) -> Result<()> {
    let Options { weight_bits, activation_bits, layer_bits, .. } = options;
    let widths = [("weight_bits", weight_bits), ("activation_bits", activation_bits)];
    for (name, bits) in widths.into_iter().chain(layer_bits.iter().map(|bits| ("layer_bits", bits)))
    {
        if !(2..=12).contains(bits) {
            return Err(Error::Misuse(format!("{name} is {bits}, must be in 2..=12")));
        }
    }
    Ok(())
}

/// Linear nodes that reach the output without another product round exactly: what
/// the client learns carries no local rounding.
fn make_last_exact(graph: &mut Graph) {
    let opened = crate::verify::opened(graph);
    for node in &mut graph.nodes {
        if opened[node.output] {
            node.op.change(|operator| operator.round_exactly());
        }
    }
}
