//! The default suite: coefficient-packed RLWE for linear layers, oblivious
//! transfer for the rest (ENGINE sections 2 and 4).

use graph::{Graph, Linear, MatMul, Node, Op, Rounding};
use mpc::argmax::Argmax;
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::garbled::Ring;
use mpc::linear::coefficient::Layer;
use mpc::linear::shared_matmul::Left;
use mpc::lookup::{Lookup, PublicTable};
use mpc::multiply::{Factor, Multiply};
use mpc::relu::Relu;
use mpc::square::Square;
use mpc::truncate::Truncate;
use wire::{Error, Result};

use super::transformer::{self, RowsBy};
use super::{circuits, tables, ufo};
use crate::linear::coefficient::CoefficientLayer;
use crate::linear::shared_matmul::SharedProduct;
use crate::plan::batch::repeated;
use crate::plan::composed::Composed;
use crate::plan::local::{Arrange, Concat, Narrow, Offset, Reshape, SumPool, WeightedSum};
use crate::plan::options::{Function, OptionsByStep, Products, StepOptions};
use crate::plan::settings::{Reveal, Settings};
use crate::plan::sliced::{Sliced, max_pool, truncation};
use crate::plan::step::{Action, Opening, Step, windows};

/// Most ciphertexts of a plan, both ways: pricing a plan takes time for each, and a
/// client prices the plan of a server it does not trust.
const MOST_CIPHERTEXTS: usize = 1 << 20;

pub(crate) fn steps(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(graph.nodes.len() + 2);
    let mut ciphertexts = 0usize;
    for (index, node) in graph.nodes.iter().enumerate() {
        let action = chosen(graph, node, settings.batch(), choices.of(index));
        let action = action.map_err(|e| at(&node.name, e))?;
        if let Action::Linear(layer) = &action {
            ciphertexts = ciphertexts.saturating_add(layer.ciphertexts());
        }
        if ciphertexts > MOST_CIPHERTEXTS {
            let why = format!("up to it the plan takes more than {MOST_CIPHERTEXTS} ciphertexts");
            return Err(at(&node.name, Error::misuse(why)));
        }
        steps.push(Step::of_node(graph, index, action));
    }
    steps.extend(last(graph, settings, choices.of(graph.nodes.len()))?);
    Ok(steps)
}

/// What ends every plan: the result, or its label, for the client.
pub(super) fn last(graph: &Graph, settings: Settings, choice: StepOptions) -> Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(2);
    let output = graph.tensors.get(graph.output);
    let output = output.ok_or_else(|| Error::misuse("a graph without output"))?;
    let functions = [None, Some(Function::Circuits), digits_of(choice).map(Function::Digits)];
    let chooses = settings.reveal == Reveal::Label && functions.contains(&choice.function);
    if !choice.is_none() && (!chooses || choice.products.is_some() || choice.ahead) {
        return Err(Error::misuse("a choice that the end of a plan does not have"));
    }
    let (rows, classes, bits) = (settings.batch(), output.len(), output.format.bits);
    let count = rows * classes;
    let (mut shown, label) = (graph.output, graph.tensors.len());
    let opened = match settings.reveal {
        Reveal::Output => Action::Reveal(Opening { count, bits, signed: true }),
        Reveal::Label => {
            let (sliced, bits) = match garbled(graph, choice) {
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

/// Positions of the largest by transfers, and their width.
fn argmax(rows: usize, classes: usize, bits: u32, digits: Option<Radix>) -> Result<(Sliced, u32)> {
    let radix = digits.unwrap_or_else(|| Radix::fastest(rows, bits.saturating_sub(1)));
    let argmax = Argmax::new(rows, classes, bits, radix)?;
    let width = argmax.index_bits();
    Ok((Sliced::whole(rows * classes, argmax), width))
}

/// Products by transfers, of a linear layer in a session of few of them.
pub(super) const TRANSFERS: StepOptions =
    StepOptions { products: Some(Products::Transfers), ahead: false, function: None };

/// Digits of the comparisons beside circuits of rows where none are chosen: at the widths of
/// encoders six bits take the fewest rounds, and of those the fewest bytes.
const BESIDE: Radix = Radix::R64;

/// Garbled circuits.
struct Circuits;

/// Digits of comparisons, where they are chosen.
fn digits_of(choice: StepOptions) -> Option<Radix> {
    match choice.function {
        Some(Function::Digits(radix)) => Some(radix),
        _ => None,
    }
}

/// Circuits, or digits of comparisons by transfers, where those are chosen.
fn garbled(graph: &Graph, choice: StepOptions) -> std::result::Result<Option<Radix>, Circuits> {
    match (choice.function, graph.nonlinear) {
        (Some(Function::Circuits), _) | (None, graph::Nonlinear::Gc) => Err(Circuits),
        _ => Ok(digits_of(choice)),
    }
}

/// What runs a node, as was chosen.
///
/// # Errors
/// [`Error::Misuse`] for a choice that it does not have.
pub(super) fn chosen(
    graph: &Graph,
    node: &Node,
    batch: usize,
    choice: StepOptions,
) -> Result<Action> {
    let linear = matches!(node.op, Op::Linear(_) | Op::Embedding(_));
    if !linear && (choice.products.is_some() || choice.ahead) {
        return Err(Error::misuse("a choice for linear layers"));
    }
    match choice.function {
        Some(Function::Table) => return tables::action(graph, node, batch),
        Some(Function::Rows(radix)) => return circuits::of_rows(graph, node, batch, radix),
        _ => {}
    }
    match garbled(graph, choice) {
        Ok(_) => action(graph, node, batch, choice),
        Err(Circuits) => {
            let plain = StepOptions { function: None, ..choice };
            match (circuits::action(graph, node, batch, plain)?, choice.function) {
                (Some(action), _) => Ok(action),
                (None, None) => action(graph, node, batch, plain),
                (None, Some(_)) => circuits::of_rows(graph, node, batch, BESIDE),
            }
        }
    }
}

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

/// All packings of a linear node's products, first the one that everybody takes; none of
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
        Some(Products::Transfers) => return ufo::layer(&linear, out_bits, batch),
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
        Op::Registered(_) => return Err(Error::misuse("no protocol is known for it")),
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
                let plan = Extend::new(count, bits, out_bits, Sign::NonNegative, radix);
                plan
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
    let sliced = Sliced::new(count, |count| {
        let plan = Truncate::widening(count, bits, drop, out_bits, sign, radix);
        plan
    })?;
    Ok(fitted(None, 1 << (drop - 1), sliced, 0))
}

fn fitted(narrow: Option<[u32; 2]>, before: i64, sliced: Sliced, after: i64) -> Action {
    Action::from(Composed { narrow, before, after, ..Composed::from(sliced) })
}

/// A refusal, with the node that it is about.
pub(super) fn at(node: &str, error: Error) -> Error {
    match error {
        Error::Misuse(why) => Error::Unsupported { node: node.into(), instead: why },
        other => other,
    }
}
