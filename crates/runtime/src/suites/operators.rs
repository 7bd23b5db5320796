//! The protocols of a node by oblivious transfer, with coefficient-packed encryption for linear
//! layers: what every suite does with the nodes that it has nothing of its own for.

use graph::{Graph, Linear, MatMul, Node, Op, Rounding};
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::linear::coefficient::Layer;
use mpc::linear::shared_matmul::Left;
use mpc::lookup::{Lookup, PublicTable};
use mpc::multiply::{Factor, Multiply};
use mpc::relu::Relu;
use mpc::square::Square;
use mpc::truncate::Truncate;
use wire::{Error, Result};

use super::functions_by::digits_of;
use super::transformer::{self, RowsBy};
use super::{ot_layers, registered};
use crate::linear::coefficient::CoefficientLayer;
use crate::linear::shared_matmul::SharedProduct;
use crate::plan::batch::repeated;
use crate::plan::composed::Composed;
use crate::plan::local::{Arrange, Concat, Narrow, Offset, Reshape, SumPool, WeightedSum};
use crate::plan::options::{Function, Products, StepOptions};
use crate::plan::sliced::{Sliced, max_pool, truncation};
use crate::plan::step::{Action, windows};

/// Products by transfers, of a linear layer in a session of few of them.
pub(super) const TRANSFERS: StepOptions =
    StepOptions { products: Some(Products::Transfers), ahead: false, function: None };

/// A linear layer and the width of its results, if the node is one, and what is special about
/// the input of a table's.
fn layer_of(graph: &Graph, node: &Node) -> Result<Option<(Linear, Option<[usize; 2]>)>> {
    match &node.op {
        Op::Linear(linear) => Ok(Some((linear.clone(), None))),
        Op::Embedding(table) => {
            let [columns, length] = graph.output_of(node).shape[..] else {
                return Err(Error::misuse("an embedding that makes no matrix"));
            };
            let linear = CoefficientLayer::of_table(table, [columns, length]);
            Ok(Some((linear, Some([table.rows, length]))))
        }
        _ => Ok(None),
    }
}

/// All packings of a linear node's products, first the default; none of
/// another node.
///
/// # Errors
/// [`Error::Misuse`] where there is no packing.
pub(super) fn packings(graph: &Graph, node: &Node, batch: usize) -> Result<Vec<Action>> {
    let Some((linear, positions)) = layer_of(graph, node)? else { return Ok(Vec::new()) };
    let out_bits = graph.output_of(node).format.bits;
    let layers = Layer::packings(&linear, out_bits, batch)?.into_iter();
    let step = |layer: Layer| {
        let radix = Radix::fastest(layer.outputs(), linear.shift);
        let step = CoefficientLayer::of(layer, &linear, out_bits, radix)?;
        Ok(Action::linear(CoefficientLayer { positions, ..step }))
    };
    layers.map(step).collect()
}

/// A linear layer.
fn linear(
    (linear, positions): (Linear, Option<[usize; 2]>),
    out_bits: u32,
    batch: usize,
    choice: StepOptions,
) -> Result<Action> {
    let layer = match choice.products {
        None => Layer::new(&linear, out_bits, batch)?,
        Some(Products::Packing(place)) => {
            let all = Layer::packings(&linear, out_bits, batch)?;
            let nth = place.checked_sub(1).and_then(|at| all.into_iter().nth(at));
            nth.ok_or_else(|| Error::misuse("a packing that the layer does not have"))?
        }
        Some(Products::Transfers) if positions.is_some() || choice != TRANSFERS => {
            return Err(Error::misuse("products by transfers are prepared, and of a layer"));
        }
        Some(Products::Transfers) => return ot_layers::layer(&linear, out_bits, batch),
    };
    let radix = match choice.function {
        Some(Function::Digits(_)) if linear.rounding == Rounding::Stochastic => {
            return Err(Error::misuse("digits for a layer without comparisons"));
        }
        Some(Function::Digits(radix)) => radix,
        _ => Radix::fastest(layer.outputs(), linear.shift),
    };
    let step = CoefficientLayer::of(layer, &linear, out_bits, radix)?;
    Ok(Action::linear(CoefficientLayer { positions, preprocessed: choice.ahead, ..step }))
}

/// By transfers, with comparisons in digits where they are chosen.
pub(super) fn action(
    graph: &Graph,
    node: &Node,
    batch: usize,
    choice: StepOptions,
) -> Result<Action> {
    let digits = digits_of(choice);
    let fastest = |count, bits| digits.unwrap_or_else(|| Radix::fastest(count, bits));
    let (input, output) = (graph.input_of(node, 0), graph.output_of(node));
    let (bits, out_bits, count) = (input.format.bits, output.format.bits, output.len() * batch);
    if let Some(layer) = layer_of(graph, node)? {
        return linear(layer, out_bits, batch, choice);
    }
    Ok(match &node.op {
        Op::Linear(_) | Op::Embedding(_) => return Err(Error::misuse("a layer without sides")),
        Op::Relu { saturate, low } => {
            let saturate = (saturate + 2 <= bits).then_some(*saturate);
            let fastest = || Radix::of_relu(count, bits, saturate, out_bits);
            let radix = digits.unwrap_or_else(fastest);
            let sliced =
                Sliced::new(count, |count| Relu::new(count, bits, saturate, out_bits, radix))?;
            match *low {
                0 => Action::from(sliced),
                low => fitted(None, -low, sliced, low),
            }
        }
        Op::MaxPool(window) => {
            let radix = fastest(count, bits.saturating_sub(1));
            let windows = repeated(windows(window), input.len(), batch);
            Action::from(max_pool(&windows, bits, radix)?)
        }
        Op::SumPool(window) => {
            Action::local(SumPool { windows: windows(window), inputs: input.len(), modulus: None })
        }
        Op::Sum { multipliers, accumulator_bits, shift } => {
            let width = (*accumulator_bits).max(out_bits + shift);
            let sum = WeightedSum { multipliers: *multipliers, width, shift: *shift };
            match shift {
                0 => Action::local(sum),
                drop => {
                    let radix = fastest(count, *drop);
                    let truncate = truncation(count, width, *drop, out_bits, radix)?;
                    Action::from(Composed { sum: Some(sum), ..Composed::from(truncate) })
                }
            }
        }
        Op::Winograd(_) => return Err(Error::misuse("it is for suite ufo")),
        Op::Registered(_) => registered::action(graph, node, batch, choice)?,
        Op::Requantize { drop } => {
            let sign = if input.format.signed { Sign::Unknown } else { Sign::NonNegative };
            requantize(count, [bits, *drop, out_bits], sign, digits)?
        }
        Op::Reshape => Action::local(Reshape),
        Op::Extend => {
            // With a bit to spare, half of the positive range makes every value positive.
            let raised = if input.format.signed { 1i64 << bits.saturating_sub(2) } else { 0 };
            let radix = digits.unwrap_or_else(|| Radix::leanest(count, bits, out_bits));
            let sliced = Sliced::new(count, |count| {
                Extend::new(count, bits, out_bits, Sign::NonNegative, radix)
            })?;
            fitted(None, raised, sliced, -raised)
        }
        Op::Concat => {
            let length = |i: usize| graph.input_of(node, i).len();
            Action::local(Concat { lengths: (0..node.inputs.len()).map(length).collect() })
        }
        Op::View(_) | Op::Pad { .. } => {
            Action::local(Arrange { places: graph::arrangement(graph, node), inputs: input.len() })
        }
        Op::Offset => Action::local(Offset),
        Op::Product { factor_bits } => {
            let signs = [0, 1].map(|i| match graph.input_of(node, i).format.signed {
                true => Sign::Unknown,
                false => Sign::NonNegative,
            });
            let factors = [0, 1].map(|i| Factor { bits: factor_bits[i], sign: signs[i] });
            let radix = fastest(count, factor_bits[0]);
            let square = node.inputs.first() == node.inputs.get(1);
            let sliced = match square {
                true => {
                    Sliced::new(count, |count| Square::new(count, factors[0], out_bits, radix))?
                }
                false => {
                    Sliced::new(count, |count| Multiply::new(count, factors, out_bits, radix))?
                }
            };
            fitted(Some(*factor_bits), 0, sliced, 0)
        }
        Op::Lookup { low, values } => {
            let bits = values.len().ilog2();
            let table: Vec<u64> = values.iter().map(|value| *value as u64).collect();
            let sliced = Sliced::new(count, |count| {
                let plan = Lookup::new(count, bits, out_bits)?;
                Ok(PublicTable::new(plan, table.clone()))
            })?;
            fitted(Some([bits; 2]), low.wrapping_neg(), sliced, 0)
        }
        Op::MatMul(matmul) => product(graph, node, matmul, batch, digits)?,
        Op::Softmax { .. }
        | Op::Gelu { .. }
        | Op::LayerNorm { .. }
        | Op::Smu { .. }
        | Op::ReluSoftmax { .. } => {
            transformer::action(graph, node, batch, digits, RowsBy::Transfers)?
        }
    })
}

fn product(
    graph: &Graph,
    node: &Node,
    matmul: &MatMul,
    batch: usize,
    digits: Option<Radix>,
) -> Result<Action> {
    let [a, b] = [0, 1].map(|i| graph.input_of(node, i).shape.as_slice());
    let sides = MatMul::sides(a, b).ok_or_else(|| Error::misuse("matrices that do not fit"))?;
    let known = node.inputs.first().is_some_and(|a| graph.known().get(*a) == Some(&true));
    let left = if known { Left::Client } else { Left::Shared };
    let out_bits = graph.output_of(node).format.bits;
    let products = graph.nodes.iter().filter(|node| matches!(node.op, Op::MatMul(_))).count();
    let step = SharedProduct::new(matmul, sides, left, out_bits, [batch, products], digits)?;
    Ok(Action::linear(step))
}

/// Rounds `drop` bits away and changes the width.
fn requantize(
    count: usize,
    [bits, drop, out_bits]: [u32; 3],
    sign: Sign,
    digits: Option<Radix>,
) -> Result<Action> {
    if drop == 0 && out_bits <= bits {
        return Ok(Action::local(Narrow(out_bits)));
    }
    if drop == 0 {
        let radix = digits.unwrap_or_else(|| Radix::leanest(count, bits, out_bits));
        let sliced = Sliced::new(count, |count| Extend::new(count, bits, out_bits, sign, radix))?;
        return Ok(Action::from(sliced));
    }
    let radix = digits.unwrap_or_else(|| Radix::fastest(count, drop));
    let sliced =
        Sliced::new(count, |count| Truncate::widening(count, bits, drop, out_bits, sign, radix))?;
    Ok(fitted(None, 1 << (drop - 1), sliced, 0))
}

fn fitted(narrow: Option<[u32; 2]>, before: i64, sliced: Sliced, after: i64) -> Action {
    Action::from(Composed { narrow, before, after, ..Composed::from(sliced) })
}
