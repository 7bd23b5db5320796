//! Integers without rescaling: scales multiply from layer to layer.

use super::Options;
use super::scale::Scales;
use crate::ir::{
    Exact, Format, Graph, Linear, Model, Node, NodeWeights, Op, Rounding, Tensor, VERSION,
};
use crate::shapes::{Shapes, window};
use crate::source::{Calibration, Program, SourceNode, SourceOp};
use crate::{Error, Result, exact};
use std::collections::BTreeMap;

/// Widest output: the results are 64-bit integers.
const WIDEST: u32 = 62;
/// Largest bias.
const BIAS_LIMIT: f64 = (1u64 << 62) as f64;

struct Builder<'a> {
    program: &'a Program,
    options: &'a Options,
    shapes: Shapes,
    graph: Graph,
    weights: BTreeMap<usize, NodeWeights>,
    index: BTreeMap<String, usize>,
    /// Linear layers so far.
    layers: usize,
}

pub(super) fn build(
    program: &Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    let scales = Scales::new(program, &calibration.ranges, options.activation_bits);
    let (scale, input_range) = scales.input()?;
    let source = &program.source;
    let exact = Exact { output_bits: WIDEST, packing: options.packing };
    let graph = Graph {
        version: VERSION,
        name: source.name.clone(),
        suite: options.suite.clone(),
        nonlinear: options.nonlinear,
        activation_bits: options.activation_bits,
        input_range,
        input_rows: vec![],
        exact: Some(exact),
        tensors: vec![],
        nodes: vec![],
        input: 0,
        output: 0,
        labels: options.labels.clone(),
    };
    let (weights, index, shapes) = (BTreeMap::new(), BTreeMap::new(), program.shapes()?);
    let mut builder = Builder { program, options, shapes, graph, weights, index, layers: 0 };
    builder.tensor(&source.input.name, scale, input_range[0] < 0);
    for node in &source.nodes {
        builder.node(node)?;
    }
    builder.graph.output = builder.index[&source.output];
    let mut model = Model { graph: builder.graph, weights: builder.weights };
    let bits = output_bits(&model, calibration.ranges.get(&source.output), options.margin_bits)?;
    model.graph.exact = Some(Exact { output_bits: bits, ..exact });
    Ok(model)
}

/// By the worst case, or by what calibration saw and a margin, whichever is less.
fn output_bits(model: &Model, seen: Option<&(f64, f64)>, margin: u32) -> Result<u32> {
    crate::model::verify_shapes(model)?;
    let worst = exact::check(model)?.width();
    let output = &model.graph.tensors[model.graph.output];
    let calibrated = seen.map_or(u32::MAX, |(low, high)| {
        let most = low.abs().max(high.abs()) / output.format.scale;
        // A bit for the sign.
        (most.max(1.0).log2().ceil() as u32).saturating_add(1 + margin)
    });
    let bits = worst.min(calibrated).max(2);
    if bits <= WIDEST {
        return Ok(bits);
    }
    let what = format!("needs outputs of {bits} bits, at most {WIDEST} are possible");
    let instead = "use fewer --activation-bits, --weight-bits or --layer-bits, or fewer layers";
    Err(Error::unsupported(&output.name, what, instead))
}

impl Builder<'_> {
    fn node(&mut self, node: &SourceNode) -> Result<()> {
        let input = self.index[&node.inputs[0]];
        let Format { scale, signed, .. } = self.graph.tensors[input].format;
        let (op, scale, signed) = match &node.op {
            op if op.is_linear() => {
                let (linear, weights, scale) = self.linear(node, scale)?;
                self.weights.insert(self.graph.nodes.len(), weights);
                (Op::Linear(linear), scale, true)
            }
            SourceOp::Multiply {} if node.inputs[0] == node.inputs[1] => {
                (Op::Product { factor_bits: [Exact::WIDTH; 2] }, scale * scale, false)
            }
            SourceOp::AveragePool { kernel, stride, padding, count_include_pad } => {
                if !count_include_pad && padding.iter().any(|pad| *pad != 0) {
                    let what = "averages over fewer elements at the border";
                    let instead = "set count_include_pad=1 or remove the padding";
                    return Err(Error::unsupported(&node.name, what, instead));
                }
                let window = window(&self.shapes[&node.inputs[0]], *kernel, *stride, *padding)
                    .map_err(|why| Error::invalid("lower", &node.name, why))?;
                let size = window.size() as f64;
                (Op::SumPool(window), scale / size, signed)
            }
            SourceOp::Reshape { .. } => (Op::Reshape, scale, signed),
            SourceOp::Scale { factor } if *factor > 0.0 => (Op::Reshape, scale * factor, signed),
            op => return Err(refused(node, op)),
        };
        let inputs = node.inputs.iter().map(|name| self.index[name]).collect();
        let output = self.tensor(&node.output, scale, signed);
        self.graph.nodes.push(Node { name: node.name.clone(), op, inputs, output });
        Ok(())
    }

    fn tensor(&mut self, name: &str, scale: f64, signed: bool) -> usize {
        let index = self.graph.tensors.len();
        let format = Format { bits: Exact::WIDTH, scale, signed };
        let shape = self.shapes[name].clone();
        self.graph.tensors.push(Tensor { name: name.into(), shape, format });
        self.index.insert(name.into(), index);
        index
    }

    /// Integer weights, one scale for all, and the scale of the result.
    fn linear(&mut self, node: &SourceNode, input: f64) -> Result<(Linear, NodeWeights, f64)> {
        let conv = self.program.conv(&node.op, &self.shapes[&node.inputs[0]]);
        let conv = conv.map_err(|why| Error::invalid("lower", &node.name, why))?;
        let (SourceOp::Conv { weight, bias, .. } | SourceOp::Gemm { weight, bias }) = &node.op
        else {
            return Err(Error::invalid("lower", &node.name, "is not linear"));
        };
        let bits = self.options.layer_bits.get(self.layers).copied();
        let bits = bits.unwrap_or(self.options.weight_bits);
        self.layers += 1;
        let floats = &self.program.floats[weight].data;
        let peak = floats.iter().map(|w| f64::from(w.abs())).fold(0.0, f64::max);
        let largest = f64::from((1u32 << (bits - 1)) - 1);
        let unit = if peak > 0.0 { peak / largest } else { 1.0 };
        let scale = input * unit;
        let weight = floats.iter().map(|w| (f64::from(*w) / unit).round() as i32).collect();
        let rounded = |b: f64| {
            let integer = (b / scale).round();
            let fits = integer.is_finite() && integer.abs() < BIAS_LIMIT;
            let what = "has a bias beyond 62 bits";
            let instead = "use fewer activation or weight bits";
            fits.then_some(integer as i64)
                .ok_or_else(|| Error::unsupported(&node.name, what, instead))
        };
        let bias = match bias {
            Some(name) => {
                let data = &self.program.floats[name].data;
                data.iter().map(|b| rounded(f64::from(*b))).collect::<Result<_>>()?
            }
            None => vec![0; conv.out_channels],
        };
        let linear = Linear {
            conv,
            accumulator_bits: Exact::WIDTH,
            weight_bits: bits,
            shift: 0,
            rounding: Rounding::Exact,
            addend: None,
        };
        Ok((linear, NodeWeights { weight, bias }, scale))
    }
}

/// What to do without an operator.
fn refused(node: &SourceNode, op: &SourceOp) -> Error {
    let (what, instead) = match op {
        SourceOp::Relu { .. } | SourceOp::Clip { .. } => (
            "is a comparison, which ciphertexts cannot be put to",
            "train the network with squares, Mul(x, x), in its place, or use suite auto",
        ),
        SourceOp::MaxPool { .. } => (
            "is a comparison, which ciphertexts cannot be put to",
            "use average pooling, or suite auto",
        ),
        SourceOp::Scale { .. } => {
            ("has a negative factor", "fold it into the weights of a neighbour")
        }
        _ => (
            "is not an operator of exact integers",
            "use convolutions, matrix products, squares and average pools only, or suite auto",
        ),
    };
    Error::unsupported(&node.name, what, instead)
}
