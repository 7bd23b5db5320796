//! Integer nodes out of source nodes; widths are still to be assigned.

use super::options::Options;
use super::scale::Scales;
use super::sums::sum_shift;
use super::weights::{FloatLinear, Quantised, own_shift, quantise};
use crate::ir::{Conv, Format, Graph, Linear, Model, Node, NodeWeights, Op, Tensor, VERSION, View};
use crate::ops::Sum;
use crate::source::ops::{Add, Join, QuantisedConv};
use crate::source::{Calibration, Means, Program, SourceNode};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Builder<'a> {
    pub(super) scales: Scales<'a>,
    pub(super) options: &'a Options,
    means: &'a Means,
    pub(super) graph: Graph,
    pub(super) weights: BTreeMap<usize, NodeWeights>,
    /// Tensor index by name.
    pub(super) index: BTreeMap<String, usize>,
    /// Lengths and scales of the parts along the first axis, by the index of the tensor, where
    /// each part has a scale of its own.
    pub(super) parts: BTreeMap<usize, Vec<(usize, f64)>>,
}

pub(super) fn build(
    program: &Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    let activation_bits = options.activation_bits;
    let scales = Scales::new(program, &calibration.ranges, activation_bits)?;
    let (scale, input_range) = scales.input()?;
    let source = &program.source;
    let graph = Graph {
        version: VERSION,
        name: source.name.clone(),
        suite: options.suite.clone(),
        nonlinear: options.nonlinear,
        activation_bits,
        input_range,
        input_rows: scales.input_rows()?,
        exact: None,
        states: vec![],
        tensors: vec![],
        nodes: vec![],
        input: 0,
        inputs: source.inputs.clone(),
        output: 0,
        outputs: source.outputs.clone(),
        labels: options.labels.clone(),
        link: options.link,
    };
    let (weights, index) = (BTreeMap::new(), BTreeMap::new());
    let means = &calibration.means;
    let mut builder =
        Builder { scales, options, means, graph, weights, index, parts: BTreeMap::new() };
    let input = Format { bits: 1, scale, signed: input_range[0] < 0 };
    builder.tensor(&source.input.name, &source.input.shape, input);
    builder.states_before()?;
    builder.nodes(&fused_sums(program))?;
    builder.graph.output = builder.index[&source.output];
    builder.states_after()?;
    Ok(Model { graph: builder.graph, weights: builder.weights })
}

/// For each `Add` that a linear node can take over, that node: one whose result
/// nothing else reads, the last such in order, but no projection of a residual if there is
/// another.
fn fused_sums(program: &Program) -> BTreeMap<usize, usize> {
    let source = &program.source;
    let adds = source.nodes.iter().enumerate().filter(|(_, n)| n.op.is::<Add>());
    let fused = adds.filter_map(|(add, node)| {
        let projects =
            |linear: &usize| source.nodes[*linear].op.get().is_some_and(QuantisedConv::is_1x1);
        let linears = node.inputs.iter().filter_map(|input| source.single_use_product(input));
        let linear = linears.max_by_key(|linear| (!projects(linear), *linear))?;
        Some((add, linear))
    });
    fused.collect()
}

impl<'a> Builder<'a> {
    fn nodes(&mut self, fused: &BTreeMap<usize, usize>) -> Result<()> {
        let source = &self.scales.program().source;
        let mut done: BTreeSet<usize> = fused.values().copied().collect();
        for (index, node) in source.nodes.iter().enumerate() {
            if !done.insert(index) {
                continue;
            }
            if let Some(product) = fused.get(&index) {
                let product = &source.nodes[*product];
                let addend = node.inputs.iter().find(|input| **input != product.output);
                self.lower(product, addend, &node.output)?;
                continue;
            }
            let others = source.nodes.iter().enumerate().skip(index + 1);
            let beside = others.filter(|(other, _)| !done.contains(other));
            let beside = beside.filter(|(_, other)| self.beside_each_other(node, other));
            let (places, mut nodes): (Vec<usize>, Vec<&SourceNode>) = beside.unzip();
            done.extend(places);
            nodes.insert(0, node);
            match nodes[..] {
                [node] => self.lower(node, None, &node.output)?,
                _ => self.side_by_side(&nodes)?,
            }
        }
        Ok(())
    }

    /// Whether both multiply the same vector, or each position of the same image, by a matrix.
    fn beside_each_other(&self, a: &SourceNode, b: &SourceNode) -> bool {
        a.inputs == b.inputs && self.is_dense(a) && self.is_dense(b)
    }

    fn is_dense(&self, node: &SourceNode) -> bool {
        let shape = node.inputs.first().map(|name| &self.scales.shapes[name]);
        let Some(shape) = shape.filter(|shape| [1, 3].contains(&shape.len())) else { return false };
        self.conv(node, shape).is_ok_and(|conv| {
            let Conv { kernel, stride, padding, groups, .. } = conv;
            (kernel, stride, padding, groups) == ([1, 1], [1, 1], [0; 4], 1)
        })
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

    pub(super) fn format_of(&self, tensor: usize) -> Format {
        self.graph.tensors[tensor].format
    }

    /// Adds the linear layer of a node, on a tensor, which `addend` is added to.
    pub(super) fn linear(
        &mut self,
        node: &SourceNode,
        (input, addend): (usize, Option<usize>),
        output: &str,
    ) -> Result<()> {
        let conv = self.conv(node, &self.graph.tensors[input].shape)?;
        let output_scale = self.scales.of(output)?;
        let quantised = self.integers(node, input, output_scale, None)?;
        let fine = quantised.accumulator_scale;
        let factor =
            addend.map(|tensor| multiplier(self.format_of(tensor).scale / fine, &node.name));
        let factor = factor.transpose()?;
        let inputs = [input].into_iter().chain(addend).collect();
        let shape = self.scales.shapes[output].clone();
        let format = Format { bits: 1, scale: output_scale, signed: true };
        let output = self.tensor(output, &shape, format);
        self.push_linear(&node.name, (conv, factor), quantised, inputs, output);
        Ok(())
    }

    /// The geometry of a linear node on an input of that shape.
    fn conv(&self, node: &SourceNode, input: &[usize]) -> Result<Conv> {
        let linear = node.op.linear().ok_or_else(|| not_linear(node))?;
        let conv = linear.geometry(input, &self.scales.program().floats);
        conv.map_err(|why| Error::internal(&node.name, why))
    }

    /// The integers of a linear node on a tensor, at a shift of `least` or more.
    fn integers(
        &self,
        node: &SourceNode,
        input: usize,
        scale: f64,
        least: Option<u32>,
    ) -> Result<Quantised> {
        let program = self.scales.program();
        let conv = self.conv(node, &self.graph.tensors[input].shape)?;
        let linear = node.op.linear().ok_or_else(|| not_linear(node))?;
        let weight = self.in_one_scale(&program.floats[linear.weight()].data, input);
        let means = self.means_of(&node.inputs[0], conv.in_channels);
        let float = FloatLinear {
            name: &node.name,
            weight: &weight,
            bias: linear.bias().map(|name| program.floats[name].data.as_slice()),
            channels: conv.out_channels,
            groups: conv.groups,
            means: means.as_deref(),
            input_scale: self.format_of(input).scale,
            output_scale: scale,
        };
        let bits = self.options.weight_bits;
        quantise(&float, bits, own_shift(&float, bits).max(least.unwrap_or(0)))
    }

    fn push_linear(
        &mut self,
        name: &str,
        (conv, addend): (Conv, Option<i64>),
        quantised: Quantised,
        inputs: Vec<usize>,
        output: usize,
    ) {
        let Quantised { weights, weight_bits, shift, .. } = quantised;
        let rounding = self.options.rounding;
        let (accumulator_bits, choice) = (0, None);
        let square_bits = Some(Linear::bits_of_squares(&weights.weight, conv.out_channels));
        let op = Op::from(Linear {
            conv,
            accumulator_bits,
            weight_bits,
            shift,
            rounding,
            addend,
            choice,
            square_bits,
        });
        self.weights.insert(self.next(), weights);
        self.push(name, op, inputs, output);
    }

    /// Layers that multiply a vector, or each position of one input, by a matrix, as one: the input is
    /// encrypted once. Each result keeps a scale of its own.
    fn side_by_side(&mut self, nodes: &[&SourceNode]) -> Result<()> {
        let [first, ..] = nodes else { return Ok(()) };
        let input = self.index[&first.inputs[0]];
        let scales = nodes.iter().map(|node| self.scales.of(&node.output));
        let scales = scales.collect::<Result<Vec<f64>>>()?;
        let mut shift = None;
        for _ in 0..2 {
            // The largest shift of all, then all at that.
            for (node, scale) in nodes.iter().zip(&scales) {
                shift = shift.max(Some(self.integers(node, input, *scale, shift)?.shift));
            }
        }
        let mut conv = self.conv(first, &self.graph.tensors[input].shape)?;
        conv.out_channels = 0;
        let mut all: Option<Quantised> = None;
        for (node, scale) in nodes.iter().zip(&scales) {
            let mut one = self.integers(node, input, *scale, shift)?;
            conv.out_channels += one.weights.bias.len();
            match &mut all {
                Some(all) => {
                    all.weights.weight.append(&mut one.weights.weight);
                    all.weights.bias.append(&mut one.weights.bias);
                    all.weight_bits = all.weight_bits.max(one.weight_bits);
                }
                None => all = Some(one),
            }
        }
        let Some(all) = all else { return Ok(()) };
        let (name, output) = self.before(first, "all");
        let form = self.scales.shapes[&first.output].get(1..).unwrap_or_default();
        let each = form.iter().product::<usize>();
        // Vectors have one axis, images two more.
        let strides: Vec<usize> = match form {
            [] => vec![1],
            _ => vec![each, conv.out_width(), 1],
        };
        let shape: Vec<usize> = [conv.out_channels].iter().chain(form).copied().collect();
        let format = Format { bits: 1, scale: 1.0, signed: true };
        let output = self.tensor(&output, &shape, format);
        self.push_linear(&name, (conv, None), all, vec![input], output);
        let mut start = 0;
        for (node, scale) in nodes.iter().zip(scales) {
            let view = View { start, strides: strides.clone() };
            start += self.scales.shapes[&node.output].iter().product::<usize>();
            self.write(node, Op::from(view), vec![output], Format { scale, ..format });
        }
        Ok(())
    }

    /// Weights of one 1x1 kernel, each times the scale of what it multiplies in that of the
    /// whole input.
    fn in_one_scale(&self, weight: &'a [f32], input: usize) -> Cow<'a, [f32]> {
        let Some(parts) = self.parts.get(&input) else { return weight.into() };
        let whole = self.format_of(input).scale;
        let factors = parts.iter().flat_map(|(n, scale)| std::iter::repeat_n(scale / whole, *n));
        let products = weight.iter().zip(factors.cycle());
        products.map(|(w, factor)| (f64::from(*w) * factor) as f32).collect()
    }

    /// The mean of each of a tensor's channels, where all are known.
    fn means_of(&self, tensor: &str, channels: usize) -> Option<Cow<'a, [f64]>> {
        let writer = self.scales.writer(tensor);
        let means = match writer.filter(|node| node.op.is::<Join>()) {
            Some(join) => {
                let parts = join.inputs.iter().map(|part| self.means.get(part));
                Cow::Owned(
                    parts.collect::<Option<Vec<_>>>()?.into_iter().flatten().copied().collect(),
                )
            }
            None => Cow::Borrowed(self.means.get(tensor)?.as_slice()),
        };
        let known = means.len() == channels && means.iter().all(|mean| mean.is_finite());
        known.then_some(means)
    }

    /// The largest weight of each part that `join` puts together, of the layer that reads it.
    pub(super) fn peaks_of_parts(&self, join: &SourceNode) -> Vec<f64> {
        let reader = self.scales.readers(&join.output).next();
        let floats = &self.scales.program().floats;
        let lengths = join.inputs.iter().map(|part| self.scales.shapes[part][0]);
        let Some(linear) = reader.and_then(|reader| reader.op.linear()) else { return vec![] };
        let weight = &floats[linear.weight()].data;
        let row: usize = lengths.clone().sum();
        let starts = lengths.clone().scan(0, |end, length| {
            *end += length;
            Some(*end - length)
        });
        let peak = |(start, length): (usize, usize)| {
            let columns =
                weight.chunks_exact(row.max(1)).flat_map(|row| &row[start..start + length]);
            columns.fold(0.0f64, |most, w| most.max(f64::from(w.abs())))
        };
        starts.zip(lengths).map(peak).collect()
    }

    /// Adds a node under its own name, with its output.
    fn write(&mut self, node: &SourceNode, op: Op, inputs: Vec<usize>, format: Format) {
        let shape = self.scales.shapes[&node.output].clone();
        let output = self.tensor(&node.output, &shape, format);
        self.push(&node.name, op, inputs, output);
    }

    /// Names of a node in front of `node` and its tensor.
    pub(super) fn before(&self, node: &SourceNode, step: &str) -> (String, String) {
        let output = self.scales.program().source.fresh(&format!("{}.{step}", node.output));
        (format!("{}.{step}", node.name), output)
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
        let shift = sum_shift(ratios, self.options.activation_bits);
        let factor = f64::from(shift).exp2();
        let multipliers =
            [multiplier(ratios[0] * factor, name)?, multiplier(ratios[1] * factor, name)?];
        if multipliers == [0, 0] {
            let what = "rounds all of its values to zero";
            return Err(Error::unsupported(name, what, "calibrate with inputs like the real ones"));
        }
        let shape = self.graph.tensors[inputs[0]].shape.clone();
        let output = self.tensor(output, &shape, Format { bits: 1, scale, signed: true });
        let op = Op::from(Sum { multipliers, accumulator_bits: 0, shift });
        self.push(name, op, inputs.to_vec(), output);
        Ok(output)
    }
}

fn not_linear(node: &SourceNode) -> Error {
    Error::internal(&node.name, "is not linear")
}

/// Nearest integer, below `2^31`.
pub(super) fn multiplier(value: f64, node: &str) -> Result<i64> {
    let rounded = value.round();
    if rounded.is_finite() && rounded.abs() < f64::from(1u32 << 31) {
        return Ok(rounded as i64);
    }
    let what = "adds tensors of very different calibrated ranges";
    Err(Error::unsupported(node, what, "calibrate with inputs like the real ones"))
}
