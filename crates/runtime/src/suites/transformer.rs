//! The functions of transformers, by oblivious transfer, or by garbled circuits in part.

use graph::{Linear, Nonlinear, ops};
use mpc::comet::smu::Smu;
use mpc::comet::softmax::ReluSoftmax;
use mpc::compare::Radix;
use mpc::transformer::fold::Fold;
use mpc::transformer::fold::clipped::Clipped;
use mpc::transformer::gelu::Gelu;
use mpc::transformer::layernorm::LayerNorm;
use mpc::transformer::softmax::{Distance, Softmax};
use wire::{Error, Result};

use super::node_context::NodeContext;
use crate::plan::options::Function;
use crate::step::Action;
use crate::step::composed::Composed;
use crate::step::sliced::Sliced;

/// The protocol of what is computed once for each row: factors of layer norms, reciprocals of
/// softmaxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsBy {
    /// Oblivious transfer.
    Ot,
    /// Garbled circuits, which Newton's iterations do not have.
    Circuits,
}

/// Softmax along the last axis.
pub(super) fn softmax(cx: &NodeContext<'_>, rows_by: RowsBy) -> Result<Action> {
    let ops::Softmax { bits, .. } = *cx.operator()?;
    let softmax = cx.graph.softmax(cx.node).map_err(Error::misuse)?;
    let columns = cx.output().shape.last().copied().unwrap_or(1);
    let radix = cx.radix(cx.count(), bits.saturating_sub(1));
    let distance = if cx.options.near { Distance::Near } else { Distance::Far };
    let plan = |rows| match rows_by {
        RowsBy::Ot => Softmax::new(rows, &softmax, radix),
        RowsBy::Circuits => Softmax::with_circuits(rows, &softmax, radix),
    };
    let sliced = Sliced::rows(cx.count() / columns, columns, |rows| {
        let plan = match cx.extended {
            Some(bits) => plan(rows)?.to_width(bits)?,
            None => plan(rows)?,
        };
        match (cx.options.shallow, cx.options.turns) {
            (true, _) => plan.shallow(radix, distance),
            (false, true) => plan.in_turns(),
            (false, false) => Ok(plan),
        }
    })?;
    Ok(Action::from(Composed { narrow: Some([bits; 2]), ..Composed::from(sliced) }))
}

/// Normalisation along the first axis.
pub(super) fn layer_norm(cx: &NodeContext<'_>, rows_by: RowsBy) -> Result<Action> {
    let ops::LayerNorm { bits, .. } = *cx.operator()?;
    let norm = cx.graph.layer_norm(cx.node).map_err(Error::misuse)?;
    let columns = cx.output().shape.first().copied().unwrap_or(1);
    let radix = cx.radix(cx.count(), bits);
    let plan = |rows| match rows_by {
        RowsBy::Ot => LayerNorm::new(rows, &norm, radix),
        RowsBy::Circuits => LayerNorm::with_circuits(rows, &norm, radix),
    };
    let sliced = Sliced::rows(cx.count() / columns, columns, |rows| {
        let plan = match cx.extended {
            Some(bits) => plan(rows)?.to_width(bits)?,
            None => plan(rows)?,
        };
        if cx.options.turns { plan.in_turns() } else { Ok(plan) }
    })?;
    let transpose = Some([columns, cx.output().len() / columns]);
    Ok(Action::from(Composed { narrow: Some([bits; 2]), transpose, ..Composed::from(sliced) }))
}

/// A smooth maximum.
pub(super) fn smu(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::Smu { smooth, .. } = cx.operator()?;
    let smu = cx.graph.smu(cx.node).map_err(Error::misuse)?;
    let radix = cx.radix(cx.count(), smooth.bits);
    let sliced = Sliced::new(cx.count(), |count| Smu::new(count, &smu, radix))?;
    Ok(Action::from(Composed { narrow: Some([smooth.bits + 1; 2]), ..Composed::from(sliced) }))
}

/// Smooth maxima of a row as parts of their sum.
pub(super) fn relu_softmax(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::ReluSoftmax { smooth, .. } = cx.operator()?;
    let softmax = cx.graph.relu_softmax(cx.node).map_err(Error::misuse)?;
    let columns = cx.output().shape.last().copied().unwrap_or(1);
    let (radix, masked) = (cx.radix(cx.count(), smooth.bits), cx.node.inputs.len() > 1);
    let sliced = Sliced::rows(cx.count() / columns, columns, |rows| {
        ReluSoftmax::new(rows, &softmax, masked, radix)
    })?;
    Ok(Action::from(Composed { narrow: Some([smooth.bits + 1, 1]), ..Composed::from(sliced) }))
}

/// A smooth function of a folded argument.
pub(super) fn fold(cx: &NodeContext<'_>) -> Result<Action> {
    folded(cx, cx.radix(cx.count(), cx.bits().saturating_sub(1)), |plan| plan)
}

/// A smooth function of a folded argument with comparisons in digits of `radix`, as `finished`.
fn folded(cx: &NodeContext<'_>, radix: Radix, finished: impl Fn(Fold) -> Fold) -> Result<Action> {
    let (fold, bits) = (cx.graph.fold(cx.node).map_err(Error::misuse)?, cx.bits());
    let sliced = Sliced::new(cx.count(), |count| {
        let plan = Fold::new(count, bits, &fold, cx.out_bits(), radix).map(&finished)?;
        Ok(match (cx.options.shallow, cx.options.turns) {
            (true, _) => plan.shallow(),
            (false, true) => plan.in_turns(),
            (false, false) => plan,
        })
    })?;
    Ok(Action::from(Composed { narrow: Some([bits; 2]), ..Composed::from(sliced) }))
}

/// A smooth function of a folded argument of few bits, by a clip and a table.
pub(super) fn clipped_fold(cx: &NodeContext<'_>) -> Result<Action> {
    let fold = cx.graph.fold(cx.node).map_err(Error::misuse)?;
    let (bits, positions) = (cx.bits(), fold.magnitude + 1);
    let radix = Radix::of_relu(cx.count(), bits, Some(positions), positions);
    let sliced =
        Sliced::new(cx.count(), |count| Clipped::new(count, bits, &fold, cx.out_bits(), radix))?;
    Ok(Action::from(Composed { narrow: Some([bits; 2]), ..Composed::from(sliced) }))
}

/// GELU.
pub(super) fn gelu(cx: &NodeContext<'_>) -> Result<Action> {
    if cx.options.function == Some(Function::OnMask) {
        let (gelu, bits) = (cx.graph.gelu(cx.node).map_err(Error::misuse)?, cx.bits());
        let plan = |count| Gelu::on_mask(count, bits, &gelu, cx.out_bits());
        let sliced = Sliced::new(cx.count(), plan)?;
        return Ok(Action::from(Composed { narrow: Some([bits; 2]), ..Composed::from(sliced) }));
    }
    gelus(cx, cx.radix(cx.count(), cx.bits().saturating_sub(1)), |plan| plan)
}

/// GELU with comparisons in digits of `radix`, as `finished`.
fn gelus(cx: &NodeContext<'_>, radix: Radix, finished: impl Fn(Gelu) -> Gelu) -> Result<Action> {
    let (gelu, bits) = (cx.graph.gelu(cx.node).map_err(Error::misuse)?, cx.bits());
    let sliced = Sliced::new(cx.count(), |count| {
        let plan = Gelu::new(count, bits, &gelu, cx.out_bits(), radix).map(&finished)?;
        Ok(if cx.options.turns { plan.in_turns() } else { plan })
    })?;
    Ok(Action::from(Composed { narrow: Some([bits; 2]), ..Composed::from(sliced) }))
}

/// Whether the function that was chosen for a node can go in turns, or the exact rounding of a linear
/// layer or a sum.
pub(super) fn goes_in_turns(cx: &NodeContext<'_>) -> bool {
    let op = &cx.node.op;
    let (softmax, norm) = (op.is::<ops::Softmax>(), op.is::<ops::LayerNorm>());
    let smooth = op.is::<ops::Gelu>() || op.is::<ops::Fold>();
    let product = op.is::<ops::Product>() && cx.node.inputs.first() != cx.node.inputs.get(1);
    let sum = op.get::<ops::Sum>().is_some_and(|sum| sum.shift > 0);
    match cx.options.function {
        None => (op.is::<ops::Extend>() || product || sum) && cx.graph.nonlinear != Nonlinear::Gc,
        Some(Function::Digits(Radix::Chain)) if op.is::<Linear>() => true,
        Some(Function::Digits(_)) => softmax || norm || product || sum || smooth,
        Some(Function::Rows(_)) => softmax || norm,
        Some(Function::Tables(_)) => smooth,
        _ => false,
    }
}

/// Whether what was chosen for a node can have tables of few levels: softmaxes, and folded functions whose
/// tables are looked up by circuits.
pub(super) fn is_shallow(cx: &NodeContext<'_>) -> bool {
    let folds = cx.node.op.is::<ops::Fold>();
    let circuits = matches!(cx.options.function, Some(Function::Digits(_)));
    cx.options.turns && (cx.node.op.is::<ops::Softmax>() || folds && circuits)
}

/// A smooth function whose narrow tables are looked up by OT, in fewer rounds.
///
/// # Errors
/// [`Error::Misuse`] for another node.
pub(super) fn by_transfers(cx: &NodeContext<'_>, radix: Radix) -> Result<Action> {
    match () {
        () if cx.node.op.is::<ops::Fold>() => folded(cx, radix, Fold::by_transfers),
        () if cx.node.op.is::<ops::Gelu>() => gelus(cx, radix, Gelu::by_transfers),
        () => Err(Error::misuse("it looks nothing up in narrow tables")),
    }
}
