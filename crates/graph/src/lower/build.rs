//! Integer nodes out of source nodes; widths are still to be assigned.

use super::Options;
use super::scale::Scales;
use super::weights::{FloatLinear, quantise};
use crate::ir::{Format, Graph, Linear, Model, Node, NodeWeights, Op, Tensor, VERSION};
use crate::shapes::Shapes;
use crate::source::{Calibration, Means, Program, SourceNode, SourceOp};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Multipliers of a sum have at least this magnitude where possible.
const SUM_FLOOR: f64 = 64.0;
const SUM_CEILING: f64 = 16384.0;
const SUM_SHIFT_LIMIT: u32 = 20;

pub(super) struct Builder<'a> {
    pub(super) scales: Scales<'a>,
    pub(super) shapes: Shapes,
    options: &'a Options,
    means: &'a Means,
    graph: Graph,
    pub(super) weights: BTreeMap<usize, NodeWeights>,
    /// Tensor index by name.
    pub(super) index: BTreeMap<String, usize>,
}

pub(super) fn build(
    program: &Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    let activation_bits = options.activation_bits;
    let scales = Scales::new(program, &calibration.ranges, activation_bits);
    let (scale, input_range) = scales.input()?;
    let source = &program.source;
    let graph = Graph {
        version: VERSION,
        name: source.name.clone(),
        suite: options.suite.clone(),
        nonlinear: options.nonlinear,
        activation_bits,
        input_range,
        tensors: vec![],
        nodes: vec![],
        input: 0,
        output: 0,
        labels: options.labels.clone(),
    };
    let (weights, index) = (BTreeMap::new(), BTreeMap::new());
    let shapes = program.shapes()?;
    let means = &calibration.means;
    let mut builder = Builder { scales, shapes, options, means, graph, weights, index };
    let input = Format { bits: 1, scale, signed: input_range[0] < 0 };
    builder.tensor(&source.input.name, &source.input.shape, input);
    builder.nodes(&fused_sums(program))?;
    builder.graph.output = builder.index[&source.output];
    Ok(Model { graph: builder.graph, weights: builder.weights })
}

/// For each `Add` that a linear node can take over, that node: one whose result
/// nothing else reads, the last such in order.
fn fused_sums(program: &Program) -> BTreeMap<usize, usize> {
    let source = &program.source;
    let adds = source.nodes.iter().enumerate().filter(|(_, n)| matches!(n.op, SourceOp::Add {}));
    let fused = adds.filter_map(|(add, node)| {
        let linear =
            node.inputs.iter().filter_map(|input| source.single_use_linear(input)).max()?;
        Some((add, linear))
    });
    fused.collect()
}

impl<'a> Builder<'a> {
    fn nodes(&mut self, fused: &BTreeMap<usize, usize>) -> Result<()> {
        let source = &self.scales.program().source;
        for (index, node) in source.nodes.iter().enumerate() {
            if fused.values().any(|linear| *linear == index) {
                continue;
            }
            match (&node.op, fused.get(&index)) {
                (SourceOp::Add {}, Some(linear)) => {
                    let linear = &source.nodes[*linear];
                    let skip = node.inputs.iter().find(|input| **input != linear.output);
                    self.linear(linear, skip, &node.output)?;
                }
                (SourceOp::Add {}, None) => self.sum(node)?,
                (op, _) if op.is_linear() => self.linear(node, None, &node.output)?,
                _ => self.other(node)?,
            }
        }
        Ok(())
    }

    /// Adds a tensor; its width is assigned later.
    pub(super) fn tensor(&mut self, name: &str, shape: &[usize], format: Format) -> usize {
        let index = self.graph.tensors.len();
        self.graph.tensors.push(Tensor { name: name.into(), shape: shape.to_vec(), format });
        self.index.insert(name.into(), index);
        index
    }

    /// Adds a node that writes a new tensor of the same or another name.
    pub(super) fn push(&mut self, name: &str, op: Op, inputs: Vec<usize>, output: usize) {
        self.graph.nodes.push(Node { name: name.into(), op, inputs, output });
    }

    /// The index of the node that is added next.
    pub(super) fn next(&self) -> usize {
        self.graph.nodes.len()
    }

    pub(super) fn activation_bits(&self) -> u32 {
        self.options.activation_bits
    }

    pub(super) fn shape_of(&self, tensor: usize) -> Vec<usize> {
        self.graph.tensors[tensor].shape.clone()
    }

    pub(super) fn format(&self, tensor: &str) -> Format {
        self.format_of(self.index[tensor])
    }

    pub(super) fn format_of(&self, tensor: usize) -> Format {
        self.graph.tensors[tensor].format
    }

    fn linear(&mut self, node: &SourceNode, skip: Option<&String>, output: &str) -> Result<()> {
        let program = self.scales.program();
        let input = &node.inputs[0];
        let conv = program
            .conv(&node.op, &self.shapes[input])
            .map_err(|why| Error::invalid("lower", &node.name, why))?;
        let (SourceOp::Conv { weight, bias, .. } | SourceOp::Gemm { weight, bias }) = &node.op
        else {
            return Err(Error::invalid("lower", &node.name, "is not linear"));
        };
        let output_scale = self.scales.of(output)?;
        let float = FloatLinear {
            name: &node.name,
            weight: &program.floats[weight].data,
            bias: bias.as_ref().map(|name| program.floats[name].data.as_slice()),
            channels: conv.out_channels,
            groups: conv.groups,
            means: self.means_of(input, conv.in_channels),
            input_scale: self.format(input).scale,
            output_scale,
        };
        let quantised = quantise(&float, self.options.weight_bits)?;
        let addend = skip
            .map(|skip| {
                multiplier(self.format(skip).scale / quantised.accumulator_scale, &node.name)
            })
            .transpose()?;
        let op = Op::Linear(Linear {
            conv,
            accumulator_bits: 0,
            weight_bits: quantised.weight_bits,
            shift: quantised.shift,
            rounding: self.options.rounding,
            addend,
        });
        let inputs = [input].into_iter().chain(skip).map(|name| self.index[name]).collect();
        let shape = self.shapes[output].clone();
        let format = Format { bits: 1, scale: output_scale, signed: true };
        let output = self.tensor(output, &shape, format);
        self.weights.insert(self.graph.nodes.len(), quantised.weights);
        self.push(&node.name, op, inputs, output);
        Ok(())
    }

    /// The mean of each of a tensor's channels, where all are known.
    fn means_of(&self, tensor: &str, channels: usize) -> Option<&'a [f64]> {
        let means = self.means.get(tensor)?;
        let known = means.len() == channels && means.iter().all(|mean| mean.is_finite());
        known.then_some(means)
    }

    fn sum(&mut self, node: &SourceNode) -> Result<()> {
        let scale = self.scales.of(&node.output)?;
        let inputs = [0, 1].map(|i| self.index[&node.inputs[i]]);
        self.weighted_sum(&node.name, &node.output, inputs, [1.0, 1.0], scale)?;
        Ok(())
    }

    /// Adds a node for `factors[0]*x0 + factors[1]*x1` at `scale`, and its tensor.
    pub(super) fn weighted_sum(
        &mut self,
        name: &str,
        output: &str,
        inputs: [usize; 2],
        factors: [f64; 2],
        scale: f64,
    ) -> Result<usize> {
        let ratio = |i: usize| factors[i] * self.format_of(inputs[i]).scale / scale;
        let ratios = [ratio(0), ratio(1)];
        let shift = sum_shift(ratios);
        let factor = f64::from(shift).exp2();
        let multipliers =
            [multiplier(ratios[0] * factor, name)?, multiplier(ratios[1] * factor, name)?];
        let shape = self.graph.tensors[inputs[0]].shape.clone();
        let output = self.tensor(output, &shape, Format { bits: 1, scale, signed: true });
        let op = Op::Sum { multipliers, accumulator_bits: 0, shift };
        self.push(name, op, inputs.to_vec(), output);
        Ok(output)
    }
}

/// The smallest shift that gives both multipliers their floor, unless one of
/// them reaches its ceiling first. Integers need none.
fn sum_shift(ratios: [f64; 2]) -> u32 {
    if ratios.iter().all(|ratio| ratio.fract() == 0.0 && ratio.abs() < SUM_FLOOR) {
        return 0;
    }
    let enough = |shift: &u32| {
        let scaled = ratios.map(|ratio| ratio.abs() * f64::from(*shift).exp2());
        let used = scaled.into_iter().filter(|factor| *factor > 0.0);
        let (least, most) = used.fold((f64::MAX, 0.0), |(a, b), f| (f.min(a), f.max(b)));
        least >= SUM_FLOOR || most >= SUM_CEILING
    };
    (0..SUM_SHIFT_LIMIT).find(enough).unwrap_or(SUM_SHIFT_LIMIT)
}

/// Nearest integer, below `2^31`.
fn multiplier(value: f64, node: &str) -> Result<i64> {
    let rounded = value.round();
    if rounded.is_finite() && rounded.abs() < f64::from(1u32 << 31) {
        return Ok(rounded as i64);
    }
    let what = "adds tensors of very different calibrated ranges";
    Err(Error::unsupported(node, what, "calibrate with inputs like the real ones"))
}
