//! Nodes and results by garbled circuits, whatever the suite.

use graph::{Graph, Linear, ops};
use mpc::compare::Radix;
use mpc::garbled::{Clip, Function, Garbled, Ring};
use mpc::softmax;
use wire::{Error, Result};

use super::node_context::NodeContext;
use super::registered;
use super::transformer::{self, RowsBy};
use crate::linear::coefficient::CoefficientLayer;
use crate::plan::batch::repeated;
use crate::plan::options::{self, StepOptions};
use crate::plan::settings::Settings;
use crate::step::sliced::Sliced;
use crate::step::{Action, Opening, windows};

/// A tensor as it is shared before a circuit reads it.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) tensor: usize,
    pub(super) count: usize,
    pub(super) ring: Ring,
    /// Signed width of the values.
    pub(super) width: u32,
}

/// A node of the default suite by garbled circuits, if it has anything for them; what else is
/// chosen is `plain`.
pub(super) fn action(cx: &NodeContext<'_>) -> Result<Option<Action>> {
    let (op, bits, count) = (&cx.node.op, cx.bits(), cx.count());
    let to = Ring::Power(cx.out_bits());
    let source = Source { tensor: 0, count, ring: Ring::Power(bits), width: bits };
    let sliced = if let Some(linear) = op.get::<Linear>() {
        let mut action = registered::action(cx)?;
        if let Action::Linear(layer) = &mut action
            && let Some(step) = layer.downcast_mut::<CoefficientLayer>()
            && step.truncate.is_some()
        {
            let width = step.layer.result_bits();
            let drop = linear.shift + he::rlwe::EXACT_BITS;
            let source = Source { ring: Ring::Power(width), width, ..source };
            step.truncate = Some(circuits(source, None, floor(drop), to)?);
        }
        return Ok(Some(action));
    } else if let Some(ops::Sum { shift, .. }) = op.get() {
        let mut action = registered::action(cx)?;
        if let Action::Protocol(step) = &mut action
            && let Some(sum) = &step.sum
        {
            let source = Source { ring: Ring::Power(sum.width), width: sum.width, ..source };
            step.sliced = circuits(source, None, floor(*shift), to)?;
        }
        return Ok(Some(action));
    } else if let Some(ops::Relu { saturate, low: 0 }) = op.get() {
        let clip = Some(Clip { low: 0, saturate: *saturate });
        circuits(source, None, Function { clip, ..Function::default() }, to)?
    } else if let Some(ops::MaxPool(window)) = op.get() {
        let windows = repeated(windows(window), cx.input().len(), cx.batch);
        circuits(source, Some(&windows), Function::default(), to)?
    } else if op.is::<ops::Extend>() {
        circuits(source, None, Function::default(), to)?
    } else {
        return Ok(None);
    };
    Ok(Some(Action::from(sliced)))
}

/// A node whose rows take circuits and whose elements take transfers, where that was chosen
/// for it, with comparisons in `digits`. A graph whose functions are all to be circuits has it
/// by transfers.
///
/// # Errors
/// [`Error::Misuse`] where no rows take any, and for widths that no protocol has.
pub(super) fn of_rows(cx: &NodeContext<'_>, digits: Radix) -> Result<Action> {
    let options = StepOptions { function: Some(options::Function::Digits(digits)), ..cx.options };
    let cx = NodeContext { options, ..*cx };
    if cx.node.op.is::<ops::Softmax>() {
        transformer::softmax(&cx, RowsBy::Circuits)
    } else if cx.node.op.is::<ops::LayerNorm>() {
        transformer::layer_norm(&cx, RowsBy::Circuits)
    } else {
        Err(Error::misuse("it has no garbled circuit"))
    }
}

/// Label and probability of the top class, and what opens them (FALCON, section 5.5).
pub(super) fn probability(
    graph: &Graph,
    settings: Settings,
    ring: Ring,
    width: u32,
) -> Result<(Action, Action)> {
    if settings.batch() > 1 {
        return Err(Error::misuse("a probability is revealed of one input a run; drop --batch"));
    }
    let output = graph.tensors.get(graph.output);
    let (count, scale) = output.map_or((0, 1.0), |t| (t.len(), t.format.scale));
    let plan = softmax::Plan::new(count, ring, width, scale, settings.digits())?;
    let bits = plan.sum_bits();
    let sliced = Sliced::whole(count, plan);
    Ok((Action::from(sliced), Action::Reveal(Opening { count: 2, bits, signed: false })))
}

/// The position of the largest of `classes` values of each of `rows` rows.
pub(super) fn top(rows: usize, classes: usize, ring: Ring, width: u32) -> Result<(Sliced, u32)> {
    let bits = classes.max(2).next_power_of_two().ilog2();
    let top = Garbled::top(rows, classes, ring, width, Ring::Power(bits), None)?;
    Ok((Sliced::whole(rows * classes, top), bits))
}

/// Drops bits of what has the half unit in it.
pub(super) fn floor(drop: u32) -> Function {
    Function { drop, floor: true, clip: None }
}

/// The circuits of all values.
pub(super) fn circuits(
    source: Source,
    windows: Option<&[Vec<usize>]>,
    function: Function,
    to: Ring,
) -> Result<Sliced> {
    let Source { count, ring, width, .. } = source;
    match windows {
        Some(windows) => Sliced::windows(windows, |inputs, windows| {
            Garbled::maximum(inputs, windows, ring, width, function, to)
        }),
        None => Sliced::new(count, |count| Garbled::map(count, ring, width, function, to)),
    }
}
