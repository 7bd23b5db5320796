//! Nodes other than linear ones and sums: what they compute in integers, and the nodes
//! that bring their inputs into range first.

use super::build::Builder;
use super::scale::Clipped;
use crate::ir::{Format, NodeWeights, Op, View, Window};
use crate::source::ops::{AveragePool, MaxPool};
use crate::source::{FloatTensor, Old, SourceNode};
use crate::{Error, Result};

/// Relative difference up to which two scales are one.
const SAME: f64 = 1e-9;

impl Builder<'_> {
    pub(super) fn other(&mut self, node: &SourceNode) -> Result<()> {
        match &node.op.old() {
            Old::Relu { .. } | Old::Clip { .. } => self.clip(node),
            Old::Concat {} => self.concat(node),
            Old::Multiply {} => self.product(node),
            Old::QuantisedConv { .. } => self.quantised(node, None, &node.output),
            Old::Table { .. } => self.table(node),
            Old::Scale { factor } if *factor < 0.0 => {
                let input = self.index[&node.inputs[0]];
                let scale = self.format_of(input).scale;
                let output = (node.output.as_str(), scale * factor.abs());
                self.negated(&node.name, output, input, scale)
            }
            Old::AddConstant { constant } => {
                let constant = &self.scales.program().floats[constant];
                self.offset(node, constant)
            }
            Old::Embedding { weight } => self.embedding(node, weight),
            Old::MatMul {} => self.matmul(node),
            Old::Mask {} => self.mask(node),
            Old::Softmax {} => self.softmax(node),
            Old::Gelu {} => self.gelu(node),
            Old::Smu { slope, smoothness } => self.smu(node, *slope, *smoothness),
            Old::ReluSoftmax { smoothness, epsilon } => {
                self.relu_softmax(node, *smoothness, *epsilon)
            }
            Old::LayerNorm { .. } => self.layer_norm(node),
            Old::Requantize { .. } => self.requantize(node),
            Old::Join {} => self.join(node),
            Old::Registered(op) => self.registered(node, &**op),
            _ => self.local(node),
        }
    }

    /// Nodes that keep or merely reinterpret their input's scale.
    fn local(&mut self, node: &SourceNode) -> Result<()> {
        let Format { scale, signed, .. } = self.format(&node.inputs[0]);
        let (op, scale) = match &node.op.old() {
            Old::MaxPool { .. } => (Op::MaxPool(self.window(node)?), scale),
            Old::AveragePool { padding, count_include_pad, .. } => {
                if !count_include_pad && padding.iter().any(|pad| *pad != 0) {
                    let what = "averages over fewer elements at the border";
                    let instead = "set count_include_pad=1 or remove the padding";
                    return Err(Error::unsupported(&node.name, what, instead));
                }
                let window = self.window(node)?;
                let size = window.size() as f64;
                (Op::SumPool(window), scale / size)
            }
            Old::Reshape { .. } => (Op::Reshape, scale),
            Old::Scale { factor } => (Op::Reshape, scale * factor),
            Old::View { start, strides, .. } => {
                (Op::View(View { start: *start, strides: strides.clone() }), scale)
            }
            Old::Pad { before, .. } => (Op::Pad { before: before.clone() }, scale),
            _ => return Err(Error::internal(&node.name, "a pass should have removed it")),
        };
        let inputs = vec![self.index[&node.inputs[0]]];
        self.write(node, op, inputs, Format { bits: 1, scale, signed });
        Ok(())
    }

    /// Adds the node under its own name, with its output.
    pub(super) fn write(&mut self, node: &SourceNode, op: Op, inputs: Vec<usize>, format: Format) {
        let shape = self.shapes[&node.output].clone();
        let output = self.tensor(&node.output, &shape, format);
        self.push(&node.name, op, inputs, output);
    }

    fn window(&self, node: &SourceNode) -> Result<Window> {
        let shape = &self.shapes[&node.inputs[0]];
        match (node.op.get::<MaxPool>(), node.op.get::<AveragePool>()) {
            (Some(pool), _) => pool.window(shape),
            (_, Some(pool)) => pool.window(shape),
            _ => Err("is not a pool".into()),
        }
        .map_err(|why| Error::internal(&node.name, why))
    }

    /// A ReLU or clip; where its bounds are no integers, of a tensor rescaled for it.
    fn clip(&mut self, node: &SourceNode) -> Result<()> {
        let mut input = self.index[&node.inputs[0]];
        let mut scale = self.format_of(input).scale;
        let mut clipped = self.scales.clip(node, scale)?;
        if clipped.is_none() {
            let (low, high) = self.scales.clip_range(node)?;
            scale = (high - low) / f64::from((1u32 << self.scales.bits_of(node)) - 1);
            input = self.rescaled(node, "rescaled", input, scale)?;
            clipped = self.scales.clip(node, scale)?;
        }
        let Some(Clipped { low, bits }) = clipped else {
            let what = "clips far from zero";
            return Err(Error::unsupported(&node.name, what, "subtract a constant before it"));
        };
        let op = Op::Relu { saturate: bits, low };
        self.write(node, op, vec![input], Format { bits: 1, scale, signed: low < 0 });
        Ok(())
    }

    /// `x` at `scale`, by a node of its own in front of `node`.
    fn rescaled(&mut self, node: &SourceNode, step: &str, x: usize, scale: f64) -> Result<usize> {
        let (name, output) = self.before(node, step);
        self.weighted_sum(&name, &output, [x, x], [1.0, 0.0], scale)
    }

    /// Names of a node in front of `node` and its tensor.
    pub(super) fn before(&self, node: &SourceNode, step: &str) -> (String, String) {
        let output = self.scales.program().source.fresh(&format!("{}.{step}", node.output));
        (format!("{}.{step}", node.name), output)
    }

    fn negated(
        &mut self,
        name: &str,
        (output, scale): (&str, f64),
        input: usize,
        from: f64,
    ) -> Result<()> {
        self.weighted_sum(name, output, [input, input], [-scale / from, 0.0], scale)?;
        Ok(())
    }

    fn concat(&mut self, node: &SourceNode) -> Result<()> {
        let scale = self.scales.of(&node.output)?;
        let mut inputs = Vec::new();
        for (place, name) in node.inputs.iter().enumerate() {
            let input = self.index[name];
            let same = (self.format_of(input).scale / scale - 1.0).abs() < SAME;
            let step = format!("rescaled{place}");
            inputs.push(if same { input } else { self.rescaled(node, &step, input, scale)? });
        }
        let signed = inputs.iter().any(|input| self.format_of(*input).signed);
        self.write(node, Op::Concat, inputs, Format { bits: 1, scale, signed });
        Ok(())
    }

    /// A product of saturated factors, rescaled unless only sums read it.
    fn product(&mut self, node: &SourceNode) -> Result<()> {
        let mut inputs = Vec::new();
        for (place, name) in node.inputs.iter().enumerate() {
            let earlier = node.inputs.iter().position(|other| other == name);
            let input = match earlier.and_then(|earlier| inputs.get(earlier)) {
                Some(input) => *input,
                None => self.saturated(node, place, name)?,
            };
            inputs.push(input);
        }
        let [a, b] = [0, 1].map(|i| self.format_of(inputs[i]));
        let square = inputs[0] == inputs[1];
        let signed = !square && (a.signed || b.signed);
        let op = Op::Product { factor_bits: [1, 1] };
        let format = Format { bits: 1, scale: a.scale * b.scale, signed };
        if self.feeds_sums(&node.output) {
            self.write(node, op, inputs, format);
            return Ok(());
        }
        let (name, output) = self.before(node, "product");
        let shape = self.shapes[&node.output].clone();
        let product = self.tensor(&output, &shape, format);
        self.push(&name, op, inputs, product);
        let scale = self.scales.of(&node.output)?;
        self.weighted_sum(&node.name, &node.output, [product; 2], [1.0, 0.0], scale)?;
        Ok(())
    }

    /// Whether all that reads `tensor`, rescaled or not, is sums.
    fn feeds_sums(&self, tensor: &str) -> bool {
        let source = &self.scales.program().source;
        let mut readers = source.nodes.iter().filter(|n| n.inputs.iter().any(|i| i == tensor));
        source.output != tensor
            && readers.all(|reader| match reader.op.old() {
                Old::Add {} => {
                    let linear = |input: &String| source.single_use_product(input).is_some();
                    !reader.inputs.iter().any(linear)
                }
                Old::Scale { factor } => factor > 0.0 && self.feeds_sums(&reader.output),
                _ => false,
            })
    }

    /// Factor `place` of `node`, clipped to its calibrated range if it was not yet.
    fn saturated(&mut self, node: &SourceNode, place: usize, name: &str) -> Result<usize> {
        let input = self.index[name];
        if self.scales.is_saturated(name) {
            return Ok(input);
        }
        let range = self.scales.around_zero(name)?;
        self.clipped(node, &format!("clip{place}"), input, (range, self.activation_bits()))
    }

    /// `x` clipped to the window of at least `bits` around a range, in front of `node`.
    pub(super) fn clipped(
        &mut self,
        node: &SourceNode,
        step: &str,
        x: usize,
        (range, bits): ((f64, f64), u32),
    ) -> Result<usize> {
        let scale = self.format_of(x).scale;
        let Some(Clipped { low, bits }) = self.scales.window(range, bits, scale) else {
            let what = "reads a tensor whose scale another operator makes too fine";
            return Err(Error::unsupported(&node.name, what, "give it a tensor of its own"));
        };
        let (name, output) = self.before(node, step);
        let shape = self.shape_of(x);
        let output = self.tensor(&output, &shape, Format { bits: 1, scale, signed: low < 0 });
        self.push(&name, Op::Relu { saturate: bits, low }, vec![x], output);
        Ok(output)
    }

    /// A function of a tensor clipped to as many bits as tables have.
    fn table(&mut self, node: &SourceNode) -> Result<()> {
        let Old::Table { function, alpha, beta } = node.op.old() else {
            return Err(Error::internal(&node.name, "is not a table"));
        };
        let bits = self.scales.table_bits();
        let range = self.scales.around_zero(&node.inputs[0])?;
        let mut input = self.index[&node.inputs[0]];
        let mut scale = self.format_of(input).scale;
        let fits = |window: Option<Clipped>| window.filter(|window| window.bits == bits);
        let mut window = fits(self.scales.window(range, bits, scale));
        if window.is_none() {
            scale = (range.1 - range.0) / f64::from((1u32 << bits) - 1);
            input = self.rescaled(node, "rescaled", input, scale)?;
            window = fits(self.scales.window(range, bits, scale));
        }
        let Some(Clipped { low, .. }) = window else {
            let what = "is a function of values far from zero";
            return Err(Error::unsupported(&node.name, what, "subtract a constant before it"));
        };
        let input = self.clipped(node, "clip", input, (range, bits))?;
        let to = self.scales.of(&node.output)?;
        let value = |i: i64| (function.at((low + i) as f64 * scale, alpha, beta) / to).round();
        let values: Vec<i64> = (0..1i64 << bits).map(|i| value(i) as i64).collect();
        let signed = values.iter().any(|value| *value < 0);
        self.write(
            node,
            Op::Lookup { low, values },
            vec![input],
            Format { bits: 1, scale: to, signed },
        );
        Ok(())
    }

    fn offset(&mut self, node: &SourceNode, constant: &FloatTensor) -> Result<()> {
        let input = self.index[&node.inputs[0]];
        let scale = self.format_of(input).scale;
        let shape = self.shapes[&node.output].clone();
        let elements: usize = shape.iter().product();
        let each = elements / constant.data.len();
        let units = constant.data.iter().map(|c| (f64::from(*c) / scale).round());
        if units.clone().any(|c| c.abs() >= f64::from(1u32 << 31)) {
            let what = "adds a constant that is far too large for the calibrated range";
            return Err(Error::unsupported(&node.name, what, "calibrate with real inputs"));
        }
        let bias = units.flat_map(|c| std::iter::repeat_n(c as i64, each)).collect();
        self.weights.insert(self.next(), NodeWeights { weight: vec![], bias });
        self.write(node, Op::Offset, vec![input], Format { bits: 1, scale, signed: true });
        Ok(())
    }
}
