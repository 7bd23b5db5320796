//! Integers without rescaling: scales multiply from layer to layer.

use super::options::Options;
use super::scale::Scales;
use crate::error::{Error, Result};
use crate::interpret::unscaled;
use crate::ir::{
    Format, Graph, Linear, Model, Node, NodeWeights, Op, Rounding, Tensor, Unscaled, VERSION,
};
use crate::ops::{Offset, Operator, Product, Reshape, Sum};
use crate::source::shapes::Shapes;
use crate::source::{Calibration, Program, SourceNode, UnscaledLowering};
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
    /// Polynomials of other tensors that are no nodes yet, by name.
    polynomials: BTreeMap<String, Polynomial>,
}

/// `c[0] + c[1]*x + c[2]*x^2`, element by element.
#[derive(Clone)]
struct Polynomial {
    /// The tensor x.
    of: String,
    coefficients: [f64; 3],
    /// The source node that makes it.
    node: String,
}

pub(super) fn build(
    program: &Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    let scales = Scales::new(program, &calibration.ranges, options.activation_bits)?;
    let (scale, input_range) = scales.input()?;
    let source = &program.source;
    let exact = Unscaled { output_bits: WIDEST, packing: options.packing };
    let graph = Graph {
        version: VERSION,
        name: source.name.clone(),
        suite: options.suite.clone(),
        nonlinear: options.nonlinear,
        activation_bits: options.activation_bits,
        input_range,
        input_rows: vec![],
        exact: Some(exact),
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
    let (weights, index, shapes) = (BTreeMap::new(), BTreeMap::new(), program.shapes()?);
    let polynomials = BTreeMap::new();
    let mut builder =
        Builder { program, options, shapes, graph, weights, index, layers: 0, polynomials };
    builder.tensor(&source.input.name, scale, input_range[0] < 0);
    for node in &source.nodes {
        builder.node(node)?;
    }
    builder.graph.output = builder.made(&source.output)?;
    let mut model = Model { graph: builder.graph, weights: builder.weights };
    let bits = output_bits(&model, calibration.ranges.get(&source.output), options.margin_bits)?;
    model.graph.exact = Some(Unscaled { output_bits: bits, ..exact });
    Ok(model)
}

/// Width of the outputs by the worst case, or by what calibration saw and a margin, whichever
/// is less.
fn output_bits(model: &Model, seen: Option<&(f64, f64)>, margin: u32) -> Result<u32> {
    crate::model::verify_shapes(model)?;
    let worst = unscaled::check(model)?.width();
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
        if let Some(polynomial) = self.polynomial(node) {
            self.polynomials.insert(node.output.clone(), polynomial);
            return Ok(());
        }
        let input = match node.inputs.first() {
            Some(input) => self.made(input)?,
            None => return Err(Error::internal(&node.name, "reads nothing")),
        };
        node.op.lower_unscaled(&mut Step { builder: self, node, input })?;
        let missing = || Error::internal(&node.name, "its operator wrote no output");
        self.index.contains_key(&node.output).then_some(()).ok_or_else(missing)
    }

    /// What a node computes, where that is a polynomial of degree 2 or less of one tensor.
    fn polynomial(&self, node: &SourceNode) -> Option<Polynomial> {
        let itself = |name: &String| Polynomial {
            of: name.clone(),
            coefficients: [0.0, 1.0, 0.0],
            node: node.name.clone(),
        };
        let of = |name| self.polynomials.get(name).cloned().unwrap_or_else(|| itself(name));
        let inputs: Vec<Polynomial> = node.inputs.iter().map(of).collect();
        let of = inputs.first()?.of.clone();
        if inputs.iter().any(|input| input.of != of) {
            return None;
        }
        let inputs: Vec<[f64; 3]> = inputs.iter().map(|input| input.coefficients).collect();
        let coefficients = node.op.polynomial(&inputs, &self.program.floats)?;
        Some(Polynomial { of, coefficients, node: node.name.clone() })
    }

    /// The index of a tensor, whose polynomial becomes nodes if it has not yet.
    ///
    /// In integers n of unit s it is `m[2]*n^2 + m[1]*n + m[0]` of the unit `|c[2]|*s^2`, with
    /// m[2] 1 or -1.
    fn made(&mut self, name: &str) -> Result<usize> {
        if let Some(index) = self.index.get(name) {
            return Ok(*index);
        }
        let Some(Polynomial { of, coefficients: [c0, c1, c2], node }) =
            self.polynomials.remove(name)
        else {
            return Err(Error::internal(name, "is read before it is written"));
        };
        let x = self.index[&of];
        let scale = self.graph.tensors[x].format.scale;
        let steps = [c2 != 0.0, c2 != 0.0 && (c1 != 0.0 || c2 < 0.0), c0 != 0.0];
        let last = steps.iter().rposition(|step| *step);
        let names = |step: usize, what: &str| match last == Some(step) {
            true => [node.clone(), name.to_owned()],
            false => [what; 2].map(|what| format!("{name}.{what}")),
        };
        let unit = if steps[0] { c2.abs() * scale * scale } else { c1 * scale };
        if unit.is_nan() || unit <= 0.0 {
            let instead = "fold it into the weights of a neighbour";
            return Err(Error::unsupported(&node, "has a negative factor", instead));
        }
        let integer = |value: f64, limit: f64| {
            let rounded = (value / unit).round();
            let what = "has coefficients of very different sizes";
            let instead = "use fewer activation or weight bits";
            let fits = rounded.abs() < limit;
            fits.then_some(rounded as i64).ok_or_else(|| Error::unsupported(&node, what, instead))
        };
        let mut at = x;
        if steps[0] {
            let op = Op::from(Product { factor_bits: [Unscaled::WIDTH; 2] });
            at = self.step(names(0, "square"), op, vec![x, x], (unit, false), &of);
        } else {
            // Another unit for the same integers.
            let names =
                if last.is_some() { names(0, "scaled") } else { [node.clone(), name.into()] };
            let signed = self.graph.tensors[x].format.signed;
            at = self.step(names, Op::from(Reshape), vec![at], (unit, signed), &of);
        }
        if steps[1] {
            let multipliers = [c2.signum() as i64, integer(c1 * scale, f64::from(1 << 30))?];
            let op = Op::from(Sum { multipliers, accumulator_bits: Unscaled::WIDTH, shift: 0 });
            at = self.step(names(1, "sum"), op, vec![at, x], (unit, true), &of);
        }
        if steps[2] {
            let count = self.graph.tensors[x].len();
            let bias = vec![integer(c0, BIAS_LIMIT)?; count];
            self.weights.insert(self.graph.nodes.len(), NodeWeights { weight: vec![], bias });
            at = self.step(names(2, "offset"), Op::from(Offset), vec![at], (unit, true), &of);
        }
        Ok(at)
    }

    /// Adds a node and its tensor, of the shape of another.
    fn step(
        &mut self,
        [node, tensor]: [String; 2],
        op: Op,
        inputs: Vec<usize>,
        (scale, signed): (f64, bool),
        like: &str,
    ) -> usize {
        let shape = self.shapes[like].clone();
        self.shapes.insert(tensor.clone(), shape);
        let output = self.tensor(&tensor, scale, signed);
        self.graph.nodes.push(Node { name: node, op, inputs, output });
        output
    }

    fn tensor(&mut self, name: &str, scale: f64, signed: bool) -> usize {
        let index = self.graph.tensors.len();
        let format = Format { bits: Unscaled::WIDTH, scale, signed };
        let shape = self.shapes[name].clone();
        self.graph.tensors.push(Tensor { name: name.into(), shape, format });
        self.index.insert(name.into(), index);
        index
    }

    /// Integer weights, one scale for all, and the scale of the result.
    fn linear(&mut self, node: &SourceNode, input: f64) -> Result<(Linear, NodeWeights, f64)> {
        let missing = || Error::internal(&node.name, "is not linear");
        let float = node.op.linear().ok_or_else(missing)?;
        let conv = float.geometry(&self.shapes[&node.inputs[0]], &self.program.floats);
        let conv = conv.map_err(|why| Error::internal(&node.name, why))?;
        let bits = self.options.layer_bits.get(self.layers).copied();
        let bits = bits.unwrap_or(self.options.weight_bits);
        self.layers += 1;
        let floats = &self.program.floats[float.weight()].data;
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
        let bias = match float.bias() {
            Some(name) => {
                let data = &self.program.floats[name].data;
                data.iter().map(|b| rounded(f64::from(*b))).collect::<Result<_>>()?
            }
            None => vec![0; conv.out_channels],
        };
        let linear = Linear {
            conv,
            accumulator_bits: Unscaled::WIDTH,
            weight_bits: bits,
            shift: 0,
            rounding: Rounding::Exact,
            addend: None,
            choice: None,
            square_bits: None,
        };
        Ok((linear, NodeWeights { weight, bias }, scale))
    }
}

/// One node that is being lowered.
struct Step<'a, 'b> {
    builder: &'a mut Builder<'b>,
    node: &'a SourceNode,
    /// The tensor that it reads first.
    input: usize,
}

impl Step<'_, '_> {
    fn add(&mut self, op: Op, scale: f64, signed: bool) -> Result<()> {
        let (node, builder) = (self.node, &mut *self.builder);
        if builder.index.contains_key(&node.output) {
            return Err(Error::internal(&node.name, "its operator wrote two outputs"));
        }
        let output = builder.tensor(&node.output, scale, signed);
        let inputs = vec![self.input];
        builder.graph.nodes.push(Node { name: node.name.clone(), op, inputs, output });
        Ok(())
    }
}

impl UnscaledLowering for Step<'_, '_> {
    fn input(&self) -> &Tensor {
        &self.builder.graph.tensors[self.input]
    }

    fn write(&mut self, operator: Box<dyn Operator>, scale: f64, signed: bool) -> Result<()> {
        self.add(Op::from(operator), scale, signed)
    }

    fn linear(&mut self) -> Result<()> {
        let scale = self.input().format.scale;
        let (linear, weights, scale) = self.builder.linear(self.node, scale)?;
        self.builder.weights.insert(self.builder.graph.nodes.len(), weights);
        self.add(Op::from(Box::new(linear) as Box<dyn Operator>), scale, true)
    }

    fn refuse(&self, what: &str, instead: &str) -> Error {
        Error::unsupported(&self.node.name, what, instead)
    }

    fn defect(&self, why: &str) -> Error {
        Error::internal(&self.node.name, why)
    }
}
