//! A linear layer of suite `ufo` on its own: shares of activations that are not negative, low
//! bits of weights from a seed, shares of the exact accumulators. Between the widths that the
//! worst case of these weights allows the bytes decide.

use std::collections::BTreeMap;

use graph::{
    Conv, Format, Graph, Linear, Model, Node, NodeWeights, Op, Rounding, Tensor, WeightBits,
    Winograd,
};
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::linear;
use mpc::linear::winograd::Tiles;
use ring::{Prg, Seed};
use runtime::linear::ot_matmul::{OtLayer, Rescale};
use runtime::plan::{Plan, Settings};
use runtime::step::local::{Features, Gather};
use runtime::step::sliced::Sliced;
use runtime::step::{Action, Step};
use wire::{Error, Result};

use crate::linear::{Shape, shape};
use crate::operation::{Baseline, Operation};
use crate::values::{Input, Output};

/// Most weights.
const MOST_WEIGHTS: usize = 1 << 26;

/// A layer, how it is computed and what goes in and comes out.
type Planned = (Model, Plan, Input, Output);

/// Plans a linear `operation`; its weights follow from `seed`.
///
/// # Errors
/// [`Error::Misuse`] for sizes and widths that no protocol has.
pub(crate) fn plan(operation: &Operation, seed: &Seed, settings: Settings) -> Result<Planned> {
    let layer = Layer::new(operation, seed)?;
    if layer.apart {
        return layer.planned_apart(settings);
    }
    let mut best: Option<(u64, Model, Plan)> = None;
    for model in layer.models()? {
        let graph = model.graph.clone();
        graph::verify(&graph).map_err(|e| Error::misuse(e.to_string()))?;
        let steps = runtime::parts::ot_nodes(&graph, settings)?;
        let plan = Plan::of_steps(graph, steps, settings);
        let bytes = plan.cost(1).bytes();
        if best.as_ref().is_none_or(|(least, ..)| bytes < *least) {
            best = Some((bytes, model, plan));
        }
    }
    let (_, model, plan) = best.ok_or_else(|| Error::misuse("a layer of this kind"))?;
    let (input, output) = layer.ends(&model)?;
    Ok((model, plan, input, output))
}

/// What does not depend on how it is computed.
struct Layer {
    name: &'static str,
    shape: Shape,
    /// Tiles of the Winograd domain, if it is computed there.
    tile: Option<usize>,
    /// Every change of width is a protocol of its own.
    apart: bool,
    choice: WeightBits,
    weights: NodeWeights,
}

impl Layer {
    fn new(operation: &Operation, seed: &Seed) -> Result<Self> {
        let (name, shape) = (operation.name(), shape(operation)?);
        let (asked, baseline) = match operation {
            Operation::Conv { tile, baseline, .. } => (*tile, *baseline),
            _ => (None, None),
        };
        let in_range =
            (1..=12).contains(&shape.weight_bits) && (1..=12).contains(&shape.activation_bits);
        if !in_range {
            return Err(Error::misuse("weights and activations have 1 to 12 bits"));
        }
        let conv = &shape.conv;
        let dense = conv.kernel == [3, 3] && conv.stride == [1, 1] && conv.dilation == [1, 1];
        let tiled = dense && conv.groups == 1 && baseline != Some(Baseline::Uniform);
        if asked.is_some() && !tiled {
            return Err(Error::misuse("tiles are for dense 3x3 kernels of stride 1"));
        }
        let tile = tiled.then(|| asked.unwrap_or(2));
        let choice = WeightBits::twos_complement(shape.weight_bits);
        let weights = weights(conv, tile, &choice, seed)?;
        let apart = baseline == Some(Baseline::Winograd);
        if apart && !tiled {
            return Err(Error::misuse("baseline winograd is for dense 3x3 kernels of stride 1"));
        }
        Ok(Self { name, shape, tile, apart, choice, weights })
    }

    /// The activations.
    fn range(&self) -> [i64; 2] {
        [0, (1 << self.shape.activation_bits) - 1]
    }

    /// The same layer in every way it may be computed.
    fn models(&self) -> Result<Vec<Model>> {
        let Some(tile) = self.tile else {
            let bits = self.accumulator_bits();
            return Ok(vec![self.model(self.positions(bits), bits, bits)]);
        };
        let wide = 60;
        let [product, accumulator] = match graph::winograd::TILES.contains(&tile) {
            true => graph::worst_case_bits(
                &self.tiles(tile, [wide, wide], false),
                &self.weights,
                self.range(),
            ),
            false => return Err(Error::misuse("tiles of 2 or 4 rows and columns")),
        };
        let mut ways = vec![(accumulator, false)];
        if product < accumulator {
            ways.push((product, false));
        }
        if product + 1 < accumulator {
            ways.push((product + 1, true));
        }
        let model = |(bits, headroom)| {
            let layer = self.tiles(tile, [bits, accumulator], headroom);
            self.model(Op::from(layer), bits, accumulator)
        };
        Ok(ways.into_iter().map(model).collect())
    }

    /// Signed widths of products and of results over the worst case of the weights.
    fn worst_case(&self, tile: usize) -> Result<[u32; 2]> {
        if !graph::winograd::TILES.contains(&tile) {
            return Err(Error::misuse("tiles of 2 or 4 rows and columns"));
        }
        let layer = self.tiles(tile, [60; 2], false);
        Ok(graph::worst_case_bits(&layer, &self.weights, self.range()))
    }

    /// The published protocol before its optimisations (UFO, Fig. 10 a-c): extensions before
    /// the features' transform, the products and the results' transform, of unknown sign,
    /// each by what a transform can grow by (lemma 1).
    fn planned_apart(&self, settings: Settings) -> Result<Planned> {
        let tile = self.tile.unwrap_or(2);
        let [product, accumulator] = self.worst_case(tile)?;
        let own = self.shape.activation_bits + 1;
        let feature = own + growth(graph::winograd::feature_rows(tile));
        let product = product.max(feature + 1);
        let wide = accumulator.max(product + growth(graph::winograd::output_rows(tile)));
        let tiles = self.tiles(tile, [wide; 2], false);
        // The interpreter computes it in one ring.
        let model = self.model(Op::from(tiles), wide, wide);
        let node = model.graph.nodes.len() - 1;
        let steps = self.steps_apart(tile, node, [own, feature, product, wide])?;
        let plan = Plan::of_steps(model.graph.clone(), steps, settings);
        let (input, output) = self.ends(&model)?;
        Ok((model, plan, input, output))
    }

    /// The steps at these widths: before and after the features' transform, of the products
    /// and of the results; `node` has the weights.
    fn steps_apart(
        &self,
        tile: usize,
        node: usize,
        [own, feature, product, wide]: [u32; 4],
    ) -> Result<Vec<Step>> {
        let tiles = Tiles::new(&self.shape.conv, tile);
        let tiles = tiles.ok_or_else(|| Error::misuse("tiles of this kernel"))?;
        let conv = &self.shape.conv;
        let [features, _] = tiles.counts();
        let layer = linear::ot_matmul::Layer::features(&tiles, product, &self.choice)?;
        let (products, choice) = (layer.outputs(), self.choice.clone());
        let (rounding, addend) = (Rounding::Exact, None);
        let rescale = Rescale { shift: 0, rounding, addend, out_bits: product };
        let layer = OtLayer::new(layer, choice, rescale, (false, None))?;
        let pixels = conv.in_channels * conv.in_height * conv.in_width;
        let actions = [
            ("extend", extend(pixels, own, feature)?),
            ("features", Action::local(Features(tiles.clone()))),
            ("extend features", extend(features, feature, product)?),
            (self.name, Action::linear(layer)),
            ("extend products", extend(products, product, wide)?),
            ("results", Action::local(Gather(tiles))),
        ];
        let step = |(tensor, (name, action)): (usize, (&str, Action))| {
            let node = matches!(action, Action::Linear(_)).then_some(node);
            Step { name: name.into(), node, reads: vec![tensor], writes: tensor + 1, action }
        };
        Ok(actions.into_iter().enumerate().map(step).collect())
    }

    fn tiles(&self, tile: usize, [product, accumulator]: [u32; 2], headroom: bool) -> Winograd {
        Winograd {
            conv: self.shape.conv.clone(),
            tile,
            product_bits: product,
            headroom,
            stage_bits: None,
            accumulator_bits: accumulator,
            choice: self.choice.clone(),
            shift: 0,
            rounding: Rounding::Exact,
            addend: None,
        }
    }

    fn positions(&self, accumulator_bits: u32) -> Op {
        Op::from(Linear {
            conv: self.shape.conv.clone(),
            accumulator_bits,
            weight_bits: self.shape.weight_bits + 1,
            shift: 0,
            rounding: Rounding::Exact,
            addend: None,
            choice: Some(self.choice.clone()),
            square_bits: None,
        })
    }

    /// Signed width of the worst case over the weights, without tiles.
    fn accumulator_bits(&self) -> u32 {
        let outputs = self.shape.conv.out_channels.max(1);
        let rows = self.weights.weight.chunks_exact((self.weights.weight.len() / outputs).max(1));
        let part =
            |row: &[i32], sign: i64| row.iter().map(|w| (sign * i64::from(*w)).max(0)).sum::<i64>();
        let heaviest = rows.map(|row| part(row, 1).max(part(row, -1))).max().unwrap_or(0);
        let largest = (heaviest * self.range()[1]).unsigned_abs();
        largest.checked_ilog2().map_or(2, |top| top + 2)
    }

    /// Activations extended to `bits`, then `op`.
    fn model(&self, op: Op, bits: u32, accumulator_bits: u32) -> Model {
        let conv = &self.shape.conv;
        let own = self.shape.activation_bits + 1;
        let sides = [conv.in_channels, conv.in_height, conv.in_width];
        let results = [conv.out_channels, conv.out_height(), conv.out_width()];
        let tensor = |name: &str, shape: [usize; 3], bits, signed| Tensor {
            name: name.into(),
            shape: shape.into(),
            format: Format { bits, scale: 1.0, signed },
        };
        let node = |name: &str, op, input| Node {
            name: name.into(),
            op,
            inputs: vec![input],
            output: input + 1,
        };
        let mut tensors = vec![tensor("input", sides, own.max(2), false)];
        let mut nodes = Vec::new();
        if bits > own.max(2) {
            nodes.push(node("extend", graph::ops::Extend.into(), 0));
            tensors.push(tensor("extended", sides, bits, false));
        }
        let last = tensors.len();
        nodes.push(node(self.name, op, last - 1));
        tensors.push(tensor("output", results, accumulator_bits, true));
        let graph = Graph {
            version: graph::VERSION,
            name: self.name.into(),
            suite: self.shape.suite.clone(),
            nonlinear: graph::Nonlinear::Ot,
            activation_bits: self.shape.activation_bits,
            input_range: self.range(),
            input_rows: vec![],
            exact: None,
            states: vec![],
            inputs: vec![],
            outputs: vec![],
            tensors,
            input: 0,
            output: last,
            labels: Vec::new(),
            link: None,
            nodes,
        };
        let weights = BTreeMap::from([(graph.nodes.len() - 1, self.weights.clone())]);
        Model { graph, weights }
    }

    fn ends(&self, model: &Model) -> Result<(Input, Output)> {
        let graph = &model.graph;
        let [input, output] = [graph.input, graph.output].map(|i| graph.tensors.get(i));
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::misuse("a layer without tensors"));
        };
        let bits = input.format.bits;
        let width = self.shape.activation_bits + 1;
        let input = Input { width, low: 0, ..Input::plain(input.len(), bits) };
        Ok((input, Output::signed(output.format.bits)))
    }
}

/// Bits by which a transform of rows and columns makes values longer (UFO, lemma 1).
fn growth(rows: &[&[i64]]) -> u32 {
    let norms = rows.iter().map(|row| row.iter().map(|factor| factor.unsigned_abs()).sum::<u64>());
    2 * norms.max().unwrap_or(1).next_power_of_two().ilog2()
}

/// An extension that knows nothing of the sign.
fn extend(count: usize, bits: u32, out_bits: u32) -> Result<Action> {
    let radix = Radix::leanest(count, bits, out_bits);
    let sliced =
        Sliced::new(count, |count| Extend::new(count, bits, out_bits, Sign::Unknown, radix))?;
    Ok(Action::from(sliced))
}

/// Uniform weights of these bits, in the domain of the tiles if there are any.
fn weights(
    conv: &Conv,
    tile: Option<usize>,
    choice: &WeightBits,
    seed: &Seed,
) -> Result<NodeWeights> {
    let taps = tile.map_or(conv.kernel, |tile| [tile + 2; 2]);
    let sides = [conv.out_channels, conv.group_channels(), taps[0], taps[1]];
    let count = sides.iter().try_fold(1usize, |n, side| n.checked_mul(*side));
    let count = count.filter(|n| (1..=MOST_WEIGHTS).contains(n));
    let count = count.ok_or_else(|| Error::misuse("a layer of this size"))?;
    let bits = choice.importance.len() as u32;
    let chosen = Prg::new(seed, 0).uniform(count, bits);
    let weight = chosen.iter().map(|chosen| choice.weight(*chosen as u32) as i32).collect();
    Ok(NodeWeights { weight, bias: vec![0; conv.out_channels] })
}
