//! What ends every plan: the result, its band, its label, or its label and probability, for the
//! client.

use graph::Graph;
use graph::ops::Bands;
use mpc::argmax::Argmax;
use mpc::compare::Radix;
use mpc::garbled::Ring;
use mpc::sign::{Signs, Told};
use wire::{Error, Result};

use super::circuits;
use super::functions_by::{Circuits, digits_of, garbled};
use crate::plan::options::{Function, StepOptions};
use crate::plan::settings::{Reveal, Settings};
use crate::step::composed::Composed;
use crate::step::sliced::Sliced;
use crate::step::{Action, Opening, Step};

/// What ends every plan: the result, its band or its label, for the client. The label of a single
/// result says whether it is above zero.
pub(super) fn last(graph: &Graph, settings: Settings, options: StepOptions) -> Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(2);
    let output = graph.tensors.get(graph.output);
    let output = output.ok_or_else(|| Error::misuse("a graph without output"))?;
    let functions = [None, Some(Function::Circuits), digits_of(options).map(Function::Digits)];
    let chooses = settings.reveal == Reveal::Label && functions.contains(&options.function);
    if !options.is_none() && (!chooses || options.products.is_some() || options.preprocessed) {
        return Err(Error::misuse("an option that the end of a plan does not have"));
    }
    let (rows, classes, bits) = (settings.batch(), output.len(), output.format.bits);
    let count = rows * classes;
    let (mut shown, label) = (graph.output, graph.tensors.len());
    let opened = match settings.reveal {
        Reveal::Output => Action::Reveal(Opening { count, bits, signed: true }),
        Reveal::Bucket => {
            ends_with_bands(graph)?;
            Action::Reveal(Opening { count, bits, signed: false })
        }
        Reveal::Label if classes == 1 => {
            let Ok(digits) = garbled(graph, options) else {
                return Err(Error::misuse("the label of a single result is found by OT only"));
            };
            let name = "sign".into();
            let action = Action::from(positive(rows, bits, digits)?);
            steps.push(Step { name, node: None, reads: vec![shown], writes: label, action });
            shown = label;
            Action::Reveal(Opening { count: rows, bits: 1, signed: false })
        }
        Reveal::Label => {
            let (sliced, bits) = match garbled(graph, options) {
                Ok(digits) => argmax(rows, classes, bits, digits)?,
                Err(Circuits) => circuits::top(rows, classes, Ring::Power(bits), bits)?,
            };
            let (name, action) = ("argmax".into(), Action::from(sliced));
            steps.push(Step { name, node: None, reads: vec![shown], writes: label, action });
            shown = label;
            Action::Reveal(Opening { count: rows, bits, signed: false })
        }
        Reveal::Probability => {
            let (action, opened) = circuits::probability(graph, settings, Ring::Power(bits), bits)?;
            let name = "softmax".into();
            steps.push(Step { name, node: None, reads: vec![shown], writes: label, action });
            shown = label;
            opened
        }
    };
    let name = "result".into();
    steps.push(Step { name, node: None, reads: vec![shown], writes: label + 1, action: opened });
    Ok(steps)
}

/// Refuses a graph whose result is no band.
///
/// # Errors
/// [`Error::Misuse`] for another graph.
pub(super) fn ends_with_bands(graph: &Graph) -> Result<()> {
    let ends = graph.nodes.iter().any(|node| node.output == graph.output && node.op.is::<Bands>());
    ends.then_some(())
        .ok_or_else(|| Error::misuse("buckets of a graph that does not end with them"))
}

/// Whether results are above zero, which is the label of a single one.
fn positive(rows: usize, bits: u32, digits: Option<Radix>) -> Result<Composed> {
    let radix = digits.unwrap_or_else(|| Radix::fastest(rows, bits.saturating_sub(1)));
    let signs = Signs::new(rows, bits, Told::NonNegative, 1, radix)?;
    Ok(Composed { before: -1, ..Composed::from(Sliced::whole(rows, signs)) })
}

/// Positions of the largest by transfers, and their width.
fn argmax(rows: usize, classes: usize, bits: u32, digits: Option<Radix>) -> Result<(Sliced, u32)> {
    let radix = digits.unwrap_or_else(|| Radix::fastest(rows, bits.saturating_sub(1)));
    let argmax = Argmax::new(rows, classes, bits, radix)?;
    let width = argmax.index_bits();
    Ok((Sliced::whole(rows * classes, argmax), width))
}
