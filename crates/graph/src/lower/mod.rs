//! From floats to integers: scales from calibration, weights with per-channel
//! multipliers, widths from the worst case of the real weights.

mod build;
mod clipped;
mod few_bits;
mod float_layers;
mod inputs;
mod links;
mod options;
mod pools;
mod results;
mod rounding;
mod scale;
mod split;
mod states;
mod step;
mod sums;
mod unfused;
mod unscaled;
mod values;
mod weights;
mod widths;

pub use options::{Options, Switch};
pub(crate) use widths::without_widths;
pub use widths::{in_graph, reassigned, variants};

use crate::error::{Error, Result};
use crate::ir::{Graph, Model};
use crate::model::verify_model;
use crate::passes;
use crate::source::{Calibration, Floats, Program, Source};

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
    options.check()?;
    let program = passes::run(Program { source, floats })?;
    states::check(&program, options)?;
    let mut model = if options.exact {
        unscaled::build(&program, calibration, options)?
    } else if options.ot_products {
        few_bits::build(program, calibration, options)?
    } else {
        few_bits::refuse(&program)?;
        let program = passes::apply(program, &passes::RESCALED)?;
        let program = results::apart(program, calibration, options.activation_bits)?;
        let program = pools::apart(program, calibration, options.activation_bits)?;
        build::build(&program, calibration, options)?
    };
    options.check_widths_of(&model.graph)?;
    let outputs = model.graph.tensors[model.graph.output].len();
    if !options.labels.is_empty() && options.labels.len() != outputs {
        let have = options.labels.len();
        return Err(Error::Misuse(format!("{have} labels for {outputs} outputs")));
    }
    if !options.exact {
        make_last_exact(&mut model.graph);
        widths::assign(&mut model, options.ot_products)?;
        if options.ot_products {
            unfused::apply(&mut model, &options.disabled);
        }
    }
    states::first(&mut model);
    verify_model(&model).map_err(|error| error.in_pass("lower"))?;
    Ok(model)
}

/// Linear nodes that reach the output without another product round exactly: what
/// the client learns carries no local rounding.
fn make_last_exact(graph: &mut Graph) {
    let opened = crate::verify::opened(graph);
    for node in &mut graph.nodes {
        if opened[node.output] {
            node.op.round_exactly();
        }
    }
}
