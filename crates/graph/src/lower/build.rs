//! Integer nodes out of source nodes; widths are still to be assigned.

use super::Options;
use super::scale::Scales;
use super::weights::{FloatLinear, quantise};
use crate::ir::{Format, Graph, Linear, Model, Node, NodeWeights, Op, Tensor, VERSION};
use crate::shapes::{Shapes, window};
use crate::source::{Calibration, Program, SourceNode, SourceOp};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Multipliers of a sum have at least this magnitude where possible.
const SUM_FLOOR: f64 = 64.0;
const SUM_CEILING: f64 = 16384.0;
const SUM_SHIFT_LIMIT: u32 = 20;

struct Builder<'a> {
    scales: Scales<'a>,
    shapes: Shapes,
    options: &'a Options,
    graph: Graph,
    weights: BTreeMap<usize, NodeWeights>,
    /// Tensor index by name.
    index: BTreeMap<String, usize>,
}

pub(super) fn build(
    program: &Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    let activation_bits = options.activation_bits;
    let scales = Scales { program, calibration, activation_bits };
    let (scale, input_range) = scales.input()?;
    let source = &program.source;
    let graph = Graph {
        version: VERSION,
        name: source.name.clone(),
        suite: options.suite.clone(),
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
    let mut builder = Builder { scales, shapes, options, graph, weights, index };
    builder.tensor(&source.input.name, scale, input_range[0] < 0);
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
        let source = &self.scales.program.source;
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
                _ => self.local(node)?,
            }
        }
        Ok(())
    }

    fn tensor(&mut self, name: &str, scale: f64, signed: bool) -> usize {
        let index = self.graph.tensors.len();
        let format = Format { bits: 1, scale, signed };
        let shape = self.shapes[name].clone();
        self.graph.tensors.push(Tensor { name: name.into(), shape, format });
        self.index.insert(name.into(), index);
        index
    }

    fn push(&mut self, name: &str, op: Op, inputs: Vec<usize>, output: usize) {
        self.graph.nodes.push(Node { name: name.into(), op, inputs, output });
    }

    fn format(&self, tensor: &str) -> Format {
        self.graph.tensors[self.index[tensor]].format
    }

    fn linear(&mut self, node: &SourceNode, skip: Option<&String>, output: &str) -> Result<()> {
        let program = self.scales.program;
        let input = &node.inputs[0];
        let conv = program
            .conv(&node.op, &self.shapes[input])
            .map_err(|why| Error::invalid("lower", &node.name, why))?;
        let (SourceOp::Conv { weight, bias, .. } | SourceOp::Gemm { weight, bias }) = &node.op
        else {
            return Err(Error::invalid("lower", &node.name, "is not linear"));
        };
        let output_scale = self.scales.rescaled(output)?;
        let float = FloatLinear {
            name: &node.name,
            weight: &program.floats[weight].data,
            bias: bias.as_ref().map(|name| program.floats[name].data.as_slice()),
            channels: conv.out_channels,
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
        let output = self.tensor(output, output_scale, true);
        self.weights.insert(self.graph.nodes.len(), quantised.weights);
        self.push(&node.name, op, inputs, output);
        Ok(())
    }

    fn sum(&mut self, node: &SourceNode) -> Result<()> {
        let scale = self.scales.rescaled(&node.output)?;
        let ratios = [0, 1].map(|i| self.format(&node.inputs[i]).scale / scale);
        let shift = sum_shift(ratios);
        let factor = f64::from(shift).exp2();
        let multipliers = [
            multiplier(ratios[0] * factor, &node.name)?,
            multiplier(ratios[1] * factor, &node.name)?,
        ];
        let inputs = node.inputs.iter().map(|name| self.index[name]).collect();
        let output = self.tensor(&node.output, scale, true);
        let op = Op::Sum { multipliers, accumulator_bits: 0, shift };
        self.push(&node.name, op, inputs, output);
        Ok(())
    }

    /// Nodes that keep or merely reinterpret their input's scale.
    fn local(&mut self, node: &SourceNode) -> Result<()> {
        let input = &node.inputs[0];
        let Format { scale, signed, .. } = self.format(input);
        let (op, scale, signed) = match &node.op {
            SourceOp::Relu { .. } => {
                (Op::Relu { saturate: self.scales.saturate(node, scale)? }, scale, false)
            }
            SourceOp::MaxPool { .. } => (Op::MaxPool(self.window(node)?), scale, signed),
            SourceOp::AveragePool { padding, count_include_pad, .. } => {
                if !count_include_pad && padding.iter().any(|pad| *pad != 0) {
                    let what = "averages over fewer elements at the border";
                    let instead = "set count_include_pad=1 or remove the padding";
                    return Err(Error::unsupported(&node.name, what, instead));
                }
                let window = self.window(node)?;
                let size = window.size() as f64;
                (Op::SumPool(window), scale / size, signed)
            }
            SourceOp::Reshape { .. } => (Op::Reshape, scale, signed),
            _ => return Err(Error::invalid("lower", &node.name, "a pass should have removed it")),
        };
        let input = self.index[input];
        let output = self.tensor(&node.output, scale, signed);
        self.push(&node.name, op, vec![input], output);
        Ok(())
    }

    fn window(&self, node: &SourceNode) -> Result<crate::Window> {
        let shape = &self.shapes[&node.inputs[0]];
        match &node.op {
            SourceOp::MaxPool { kernel, stride, padding }
            | SourceOp::AveragePool { kernel, stride, padding, .. } => {
                window(shape, *kernel, *stride, *padding)
            }
            _ => Err("is not a pool".into()),
        }
        .map_err(|why| Error::invalid("lower", &node.name, why))
    }
}

/// The smallest shift that gives both multipliers their floor, unless one of
/// them reaches its ceiling first.
fn sum_shift(ratios: [f64; 2]) -> u32 {
    let enough = |shift: &u32| {
        let [a, b] = ratios.map(|ratio| ratio * f64::from(*shift).exp2());
        a.min(b) >= SUM_FLOOR || a.max(b) >= SUM_CEILING
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
