//! The protocols of each operator by oblivious transfer, with coefficient-packed encryption for
//! linear layers: what every suite runs for the nodes that it has nothing of its own for.

use graph::ops;
use graph::ops::trees::{KEY_BITS, Trees};
use graph::{Embedding, Graph, Linear, MatMul, Node, Rounding, Window};
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::linear::coefficient::{Layer, MOST_FOLDINGS};
use mpc::lookup::{Lookup, PublicTable};
use mpc::relu::Relu;
use mpc::trees::Way;
use mpc::truncate::Truncate;
use wire::{Error, Result, Role};

use super::matmul;
use super::node_context::{NodeContext, PlanOperator};
use super::ot_layers;
use super::products;
use super::transformer::{self, RowsBy, fold, gelu, relu_softmax, smu};
use crate::linear::bands::BandsLayer;
use crate::linear::coefficient::CoefficientLayer;
use crate::linear::trees::{Sizes, TreesLayer, selection};
use crate::plan::options::{Function, Products, StepOptions};
use crate::step::composed::Composed;
use crate::step::local::{Arrange, Concat, Narrow, Offset, Reshape, SumPool, WeightedSum};
use crate::step::sliced::{Sliced, max_pool, reduction, truncation};
use crate::step::{Action, windows};

/// The protocols of each operator, by the operator's name. A new operator's stand in a function
/// here, or in another crate that registers them.
pub(super) static BUILT_IN: &[(&str, PlanOperator)] = &[
    ("bands", bands),
    ("concat", concat),
    ("embedding", layer),
    ("extend", extend),
    ("fold", fold),
    ("gelu", gelu),
    ("layer-norm", |cx| transformer::layer_norm(cx, RowsBy::Ot)),
    ("linear", layer),
    ("lookup", lookup),
    ("mat-mul", matmul::product),
    ("max-pool", maximum),
    ("offset", |_| Ok(Action::local(Offset))),
    ("pad", arrange),
    ("product", products::product),
    ("relu", relu),
    ("relu-softmax", relu_softmax),
    ("requantize", requantize),
    ("reshape", |_| Ok(Action::local(Reshape))),
    ("smu", smu),
    ("softmax", |cx| transformer::softmax(cx, RowsBy::Ot)),
    ("sum", sum),
    ("sum-pool", sum_pool),
    ("trees", trees),
    ("view", arrange),
    ("winograd", |_| Err(Error::misuse("it is for suite ufo"))),
];

/// The options of a linear layer whose products are by oblivious transfer, in a session that has
/// few of them.
pub(super) const OT_PRODUCTS: StepOptions = StepOptions {
    products: Some(Products::Ot),
    preprocessed: false,
    runs: None,
    function: None,
    turns: false,
    shallow: false,
    near: false,
};

/// The linear layer that a node is, if it is one, and for a lookup in a secret table the rows and
/// columns of its one-hot input.
fn layer_of(graph: &Graph, node: &Node) -> Result<Option<(Linear, Option<[usize; 2]>)>> {
    if let Some(linear) = node.op.get::<Linear>() {
        return Ok(Some((linear.clone(), None)));
    }
    let Some(table) = node.op.get::<Embedding>() else { return Ok(None) };
    let [columns, length] = graph.output_of(node).shape[..] else {
        return Err(Error::misuse("an embedding that makes no matrix"));
    };
    let linear = CoefficientLayer::of_table(table, [columns, length]);
    Ok(Some((linear, Some([table.rows, length]))))
}

/// All packings of a linear node's products in runs of so many inputs, and for so many runs together,
/// first the default, then those that are folded; none of another node, or of trees for several runs.
///
/// # Errors
/// [`Error::Misuse`] where there is no packing.
pub(super) fn packings(
    graph: &Graph,
    node: &Node,
    (batch, runs): (usize, usize),
) -> Result<Vec<(Products, Action)>> {
    let trees = node.op.get::<Trees>();
    let matrices = node.op.is::<MatMul>();
    if trees.is_some() && runs > 1 {
        return Ok(Vec::new());
    }
    if matrices {
        return Ok(matmul::packings(graph, node, batch, runs));
    }
    let (linear, positions, out_bits, inputs) = match (trees, layer_of(graph, node)?) {
        (Some(trees), _) => {
            let (linear, inputs) = selection(trees, graph.input_of(node, 0).len(), batch);
            (linear, None, KEY_BITS, inputs)
        }
        (None, Some((linear, positions))) => {
            (linear, positions, graph.output_of(node).format.bits, batch * runs)
        }
        (None, None) => return Ok(Vec::new()),
    };
    let layers = Layer::packings(&linear, out_bits, inputs)?;
    let bytes = layers.first().map_or(0, |layer| layer.cost().bytes());
    let layers = layers.into_iter();
    let layers = (1..).map(Products::Packing).zip(layers);
    let folded = foldings(&linear, out_bits, inputs, bytes);
    let step = |(products, layer): (Products, Layer)| {
        if trees.is_some() {
            let cx = NodeContext { batch, ..NodeContext::plain(graph, node) };
            return Ok((products, Action::linear(trees_layer(&cx, layer)?)));
        }
        let layer = layer.for_runs(runs);
        let radix = Radix::fastest(layer.run_outputs(), linear.shift);
        let step = CoefficientLayer::of(layer, &linear, out_bits, radix)?;
        Ok((products, Action::linear(CoefficientLayer { positions, ..step })))
    };
    layers.chain(folded).map(step).collect()
}

/// The folded plans of a layer that takes so many bytes otherwise: at the first degree that has
/// any, those that save a tenth over the one before.
fn foldings(linear: &Linear, out_bits: u32, batch: usize, bytes: u64) -> Vec<(Products, Layer)> {
    let (mut least, mut kept) = (bytes, Vec::new());
    for place in 1..=MOST_FOLDINGS {
        let Ok(layer) = Layer::folded(linear, out_bits, batch, place) else { continue };
        let first = kept.first().map(|(_, layer): &(Products, Layer)| layer.params());
        if first.is_some_and(|params| params != layer.params()) {
            break;
        }
        let bytes = layer.cost().bytes();
        if bytes <= least - least / 10 {
            least = bytes;
            kept.push((Products::Folded(place), layer));
        }
    }
    kept
}

/// The products of a linear layer under encryption, as they were chosen.
fn packed(
    linear: &Linear,
    out_bits: u32,
    batch: usize,
    products: Option<Products>,
) -> Result<Layer> {
    match products {
        None => Layer::new(linear, out_bits, batch),
        Some(Products::Packing(place)) => {
            let all = Layer::packings(linear, out_bits, batch)?;
            let nth = place.checked_sub(1).and_then(|at| all.into_iter().nth(at));
            nth.ok_or_else(|| Error::misuse("a packing that the layer does not have"))
        }
        Some(Products::Folded(place)) => Layer::folded(linear, out_bits, batch, place),
        Some(Products::Ot) => {
            Err(Error::misuse("products by transfers are prepared, and of a layer"))
        }
    }
}

/// A linear layer or a lookup in a secret table.
fn layer(cx: &NodeContext<'_>) -> Result<Action> {
    let NodeContext { batch, options, .. } = *cx;
    let out_bits = cx.out_bits();
    let (linear, positions) = layer_of(cx.graph, cx.node)?
        .ok_or_else(|| Error::internal("linear products for what is no linear layer"))?;
    let layer = match options.products {
        Some(Products::Ot) if positions.is_none() && options == OT_PRODUCTS => {
            return ot_layers::layer(&linear, out_bits, batch);
        }
        products => packed(&linear, out_bits, batch * options.runs(), products)?,
    };
    let layer = layer.for_runs(options.runs());
    let radix = match options.function {
        Some(Function::Digits(_)) if linear.rounding == Rounding::Stochastic => {
            return Err(Error::misuse("digits for a layer without comparisons"));
        }
        Some(Function::Digits(radix)) => radix,
        _ => Radix::fastest(layer.run_outputs(), linear.shift),
    };
    let step = CoefficientLayer::of(layer, &linear, out_bits, radix)?;
    let step = if options.turns { step.in_turns(&linear, out_bits)? } else { step };
    Ok(Action::linear(CoefficientLayer { positions, preprocessed: options.preprocessed, ..step }))
}

fn relu(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::Relu { saturate, low } = *cx.operator()?;
    let (count, bits) = (cx.count(), cx.bits());
    let out_bits = cx.extended.unwrap_or_else(|| cx.out_bits());
    let saturate = (saturate + 2 <= bits).then_some(saturate);
    let fastest = || Radix::of_relu(count, bits, saturate, out_bits);
    let radix = cx.digits().unwrap_or_else(fastest);
    let sliced = Sliced::new(count, |count| match cx.options.function {
        Some(Function::OnMask) => Relu::on_mask(count, bits, saturate, out_bits),
        _ => Relu::new(count, bits, saturate, out_bits, radix),
    })?;
    Ok(match low {
        0 => Action::from(sliced),
        low => fitted(None, -low, sliced, low),
    })
}

fn maximum(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::MaxPool(window) = cx.operator()?;
    let radix = cx.radix(cx.count(), cx.bits().saturating_sub(1));
    let channel = Window { channels: 1, ..window.clone() };
    let shape = [window.channels * cx.batch, window.height * window.width];
    Ok(Action::from(max_pool(&windows(&channel), shape, cx.bits(), radix)?))
}

fn sum_pool(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::SumPool(window) = cx.operator()?;
    let (windows, inputs) = (windows(window), cx.input().len());
    Ok(Action::local(SumPool { windows, inputs, modulus: None }))
}

fn sum(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::Sum { multipliers, accumulator_bits, shift } = *cx.operator()?;
    let width = accumulator_bits.max(cx.out_bits() + shift);
    let sum = WeightedSum { multipliers, width, shift };
    if shift == 0 {
        return Ok(Action::local(sum));
    }
    let (count, out_bits, radix) = (cx.count(), cx.out_bits(), cx.radix(cx.count(), shift));
    let truncate = match (cx.options.turns, radix) {
        (false, _) => truncation(count, width, shift, out_bits, radix)?,
        (true, Radix::Chain) => reduction(count, width, shift, out_bits)?,
        (true, _) => Sliced::new(count, |count| {
            Truncate::new(count, width, shift, out_bits, radix)?.begun_by(Role::Server)
        })?,
    };
    Ok(Action::from(Composed { sum: Some(sum), ..Composed::from(truncate) }))
}

/// Rounds low bits away and changes the width.
fn requantize(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::Requantize { drop } = *cx.operator()?;
    let (count, bits, out_bits) = (cx.count(), cx.bits(), cx.out_bits());
    let sign = if cx.input().format.signed { Sign::Unknown } else { Sign::NonNegative };
    if drop == 0 && out_bits <= bits {
        return Ok(Action::local(Narrow(out_bits)));
    }
    if drop == 0 {
        let radix = cx.digits().unwrap_or_else(|| Radix::leanest(count, bits, out_bits));
        let sliced = Sliced::new(count, |count| Extend::new(count, bits, out_bits, sign, radix))?;
        return Ok(Action::from(sliced));
    }
    let radix = cx.radix(count, drop);
    let sliced =
        Sliced::new(count, |count| Truncate::widening(count, bits, drop, out_bits, sign, radix))?;
    Ok(fitted(None, 1 << (drop - 1), sliced, 0))
}

fn extend(cx: &NodeContext<'_>) -> Result<Action> {
    let (count, bits) = (cx.count(), cx.bits());
    let out_bits = cx.extended.unwrap_or_else(|| cx.out_bits());
    // With a bit to spare, half of the positive range makes every value positive.
    let raised = if cx.input().format.signed { 1i64 << bits.saturating_sub(2) } else { 0 };
    let radix = cx.digits().unwrap_or_else(|| Radix::leanest(count, bits, out_bits));
    let first = if cx.options.turns { Role::Server } else { Role::Client };
    let plan = |count| Extend::new(count, bits, out_bits, Sign::NonNegative, radix);
    let sliced = Sliced::new(count, |count| Ok(plan(count)?.begun_by(first)))?;
    Ok(fitted(None, raised, sliced, -raised))
}

fn concat(cx: &NodeContext<'_>) -> Result<Action> {
    let length = |i: usize| cx.graph.input_of(cx.node, i).len();
    Ok(Action::local(Concat { lengths: (0..cx.node.inputs.len()).map(length).collect() }))
}

/// Signs of differences to secret edges, added up.
fn bands(cx: &NodeContext<'_>) -> Result<Action> {
    let widths = [cx.bits(), cx.out_bits()];
    let layer = BandsLayer::new(cx.operator()?, cx.count(), widths, cx.digits())?;
    Ok(Action::linear(layer))
}

/// Keys selected by a product, then comparisons and paths.
fn trees(cx: &NodeContext<'_>) -> Result<Action> {
    if cx.options.runs.is_some() {
        return Err(Error::misuse("trees that are prepared for several runs"));
    }
    let (linear, batch) = selection(cx.operator()?, cx.input().len(), cx.batch);
    let layer = packed(&linear, KEY_BITS, batch, cx.options.products)?;
    let mut step = trees_layer(cx, layer)?;
    step.set_preprocessed(cx.options.preprocessed);
    Ok(Action::linear(step))
}

/// The trees of a node, selected for by `layer`.
fn trees_layer(cx: &NodeContext<'_>, layer: Layer) -> Result<TreesLayer> {
    let (features, outputs) = (cx.input().len(), cx.output().len());
    let sizes = Sizes { batch: cx.batch, features, outputs, out_bits: cx.out_bits() };
    let way = match cx.options.function {
        Some(Function::Digits(radix)) => Some(Way::AtOnce(radix)),
        Some(Function::Stages(radix)) => Some(Way::Stages(radix)),
        _ => None,
    };
    TreesLayer::new(cx.operator()?, layer, sizes, way)
}

/// Elements in another order, and zeros around them.
fn arrange(cx: &NodeContext<'_>) -> Result<Action> {
    let places = cx.graph.arrangement(cx.node);
    Ok(Action::local(Arrange { places, inputs: cx.input().len() }))
}

fn lookup(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::Lookup { low, values } = cx.operator()?;
    let bits = values.len().ilog2();
    let table: Vec<u64> = values.iter().map(|value| *value as u64).collect();
    let sliced = Sliced::new(cx.count(), |count| {
        let plan = Lookup::new(count, bits, cx.out_bits())?;
        Ok(PublicTable::new(plan, table.clone()))
    })?;
    Ok(fitted(Some([bits; 2]), low.wrapping_neg(), sliced, 0))
}

/// A protocol on shares reduced to `narrow` bits, with constants added `before` and `after`.
fn fitted(narrow: Option<[u32; 2]>, before: i64, sliced: Sliced, after: i64) -> Action {
    Action::from(Composed { narrow, before, after, ..Composed::from(sliced) })
}
