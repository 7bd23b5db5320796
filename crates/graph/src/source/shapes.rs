//! Shape inference for source graphs, which is also their verification.

use super::{FloatTensor, Program, SourceNode, SourceOp};
use crate::error::{Check, Error, Result};
use crate::ops::arrange::last_viewed;
use crate::ops::choice::WeightBits;
use crate::ops::geometry::{Conv, View, Window, check_conv, check_window, elements};
use crate::ops::matmul::MatMul;
use std::collections::{BTreeMap, BTreeSet};

/// Shape of every tensor by name.
pub type Shapes = BTreeMap<String, Vec<usize>>;

impl Program {
    /// Shapes of all tensors; checks everything a pass could break.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the node, with `import` as the pass.
    pub fn shapes(&self) -> Result<Shapes> {
        let source = &self.source;
        let mut names = BTreeSet::new();
        let mut shapes = Shapes::new();
        let input = &source.input;
        elements(&input.shape).map_err(|why| invalid(&input.name, why))?;
        shapes.insert(input.name.clone(), input.shape.clone());
        for node in &source.nodes {
            let shape = self.infer(node, &shapes).map_err(|why| invalid(&node.name, why))?;
            if !names.insert(&node.name) {
                return Err(invalid(&node.name, "two nodes have this name"));
            }
            if shapes.insert(node.output.clone(), shape).is_some() {
                return Err(invalid(&node.name, format!("tensor `{}` exists", node.output)));
            }
        }
        match source.producer(&source.output) {
            Some(_) => Ok(shapes),
            None => Err(invalid(&source.output, "no node writes the graph's output")),
        }
    }

    fn infer(&self, node: &SourceNode, shapes: &Shapes) -> Check<Vec<usize>> {
        let inputs: Vec<&[usize]> = node
            .inputs
            .iter()
            .map(|name| {
                let known = shapes.get(name).map(Vec::as_slice);
                known.ok_or_else(|| format!("reads `{name}`, which nothing before it writes"))
            })
            .collect::<Check<_>>()?;
        for name in node.op.floats() {
            self.check_float(name)?;
        }
        let shape = match (&node.op, inputs.as_slice()) {
            (SourceOp::Registered(op), inputs) => op.operator().shape(inputs, &self.floats)?,
            (SourceOp::Add {} | SourceOp::Multiply {}, [a, b]) if a == b => a.to_vec(),
            (SourceOp::Add {} | SourceOp::Multiply {}, [a, b]) => {
                return Err(format!("combines {a:?} and {b:?}"));
            }
            (SourceOp::Add {} | SourceOp::Multiply {}, _) => return Err(arity(2, inputs.len())),
            (SourceOp::Concat {} | SourceOp::Join {}, [first, ..]) => concatenated(first, &inputs)?,
            (SourceOp::MatMul {}, [a, b]) => multiplied(a, b)?,
            (SourceOp::MatMul {} | SourceOp::Mask {}, inputs) if inputs.len() != 2 => {
                return Err(arity(2, inputs.len()));
            }
            (SourceOp::Mask {}, [a, b]) if a == b => a.to_vec(),
            (SourceOp::Mask {}, [a, b]) => return Err(format!("masks {a:?} by {b:?}")),
            (op, [input]) => self.infer_unary(op, input)?,
            _ => return Err(arity(1, inputs.len())),
        };
        elements(&shape)?;
        Ok(shape)
    }

    fn infer_unary(&self, op: &SourceOp, input: &[usize]) -> Check<Vec<usize>> {
        match op {
            SourceOp::Conv { weight, bias, .. } => {
                let conv = self.conv(op, input)?;
                let expected =
                    [&[conv.out_channels, conv.group_channels()][..], &conv.kernel].concat();
                self.expect(weight, &expected)?;
                self.expect_bias(bias.as_deref(), conv.out_channels)?;
                Ok(vec![conv.out_channels, conv.out_height(), conv.out_width()])
            }
            SourceOp::QuantisedConv {
                weight, winograd, scale, bias, importance, offset, ..
            } => {
                let conv = self.conv(op, input)?;
                let side = if *winograd { [4, 4] } else { conv.kernel };
                let expected = [&[conv.out_channels, conv.group_channels()][..], &side].concat();
                self.expect(weight, &expected)?;
                for name in [scale, bias] {
                    self.expect(name, &[conv.out_channels])?;
                }
                WeightBits { importance: importance.clone(), offset: *offset }.check()?;
                check_quantised(&conv, *winograd)?;
                Ok(match input {
                    [_] => vec![conv.out_channels],
                    _ => vec![conv.out_channels, conv.out_height(), conv.out_width()],
                })
            }
            SourceOp::Gemm { weight, bias } => {
                let out = self.conv(op, input)?.out_channels;
                self.expect(weight, &[out, input[0]])?;
                self.expect_bias(bias.as_deref(), out)?;
                Ok(vec![out])
            }
            SourceOp::BatchNormalization { scale, bias, mean, variance, epsilon } => {
                for name in [scale, bias, mean, variance] {
                    self.expect(name, &input[..1])?;
                }
                let smallest = self.floats[variance].data.iter().copied().fold(f32::MAX, f32::min);
                let positive = f64::from(smallest) + epsilon > 0.0;
                positive.then(|| input.to_vec()).ok_or("variance + epsilon is not positive".into())
            }
            SourceOp::Relu { bits: Some(bits), .. } | SourceOp::Requantize { bits }
                if !(1..=12).contains(bits) =>
            {
                Err(format!("results of {bits} bits"))
            }
            SourceOp::Relu { maximum: Some(m), .. } if !(m.is_finite() && *m > 0.0) => {
                Err(format!("maximum is {m}, which is not positive"))
            }
            SourceOp::MaxPool { kernel, stride, padding }
            | SourceOp::AveragePool { kernel, stride, padding, .. } => {
                let window = window(input, *kernel, *stride, *padding)?;
                Ok(vec![window.channels, window.out_height(), window.out_width()])
            }
            SourceOp::AddConstant { constant } => {
                let (have, all) = (self.floats[constant].data.len(), input.iter().product());
                let fits = [1, input[0], all].contains(&have);
                fits.then(|| input.to_vec())
                    .ok_or(format!("constant has {have} values for shape {input:?}"))
            }
            SourceOp::Reshape { shape } => {
                let (have, want) = (input.iter().product::<usize>(), elements(shape)?);
                let same = have == want;
                same.then(|| shape.clone()).ok_or(format!("reshapes {input:?} to {shape:?}"))
            }
            SourceOp::View { shape, start, strides } => {
                elements(shape)?;
                let view = View { start: *start, strides: strides.clone() };
                let have = input.iter().product();
                let inside = strides.len() == shape.len()
                    && last_viewed(&view, shape).is_some_and(|last| last < have);
                inside.then(|| shape.clone()).ok_or(format!("shows more than {input:?}"))
            }
            SourceOp::Pad { before, after } => padded(input, before, after),
            SourceOp::Scale { factor } => {
                let fits = factor.is_finite() && *factor != 0.0;
                fits.then(|| input.to_vec()).ok_or(format!("multiplies by {factor}"))
            }
            SourceOp::Clip { minimum, maximum } => {
                let low = minimum.unwrap_or(f64::MIN);
                let high = maximum.unwrap_or(f64::MAX);
                let fits = low.is_finite() && high.is_finite() && low < high;
                fits.then(|| input.to_vec()).ok_or(format!("clips to {low}..{high}"))
            }
            SourceOp::Table { alpha, beta, .. } => {
                let fits = alpha.is_finite() && beta.is_finite();
                fits.then(|| input.to_vec()).ok_or("has a parameter that is not finite".into())
            }
            SourceOp::Embedding { weight } => {
                let [length] = *input else {
                    return Err(format!("looks rows up for a tensor of shape {input:?}"));
                };
                match self.floats[weight].shape[..] {
                    [_, columns] => Ok(vec![length, columns]),
                    _ => Err("its table is no matrix".into()),
                }
            }
            SourceOp::LayerNorm { epsilon, scale, bias } => {
                for name in [scale, bias].into_iter().flatten() {
                    self.expect(name, &input[..1])?;
                }
                let fits = epsilon.is_finite() && *epsilon >= 0.0 && input[0] > 1;
                fits.then(|| input.to_vec()).ok_or("normalises too few values".into())
            }
            SourceOp::Smu { slope, smoothness } => {
                let fits = (0.0..1.0).contains(slope) && is_positive(*smoothness);
                fits.then(|| input.to_vec())
                    .ok_or(format!("a smooth maximum of slope {slope}, smoothness {smoothness}"))
            }
            SourceOp::ReluSoftmax { smoothness, epsilon } => {
                let fits = is_positive(*smoothness) && is_positive(*epsilon);
                fits.then(|| input.to_vec())
                    .ok_or(format!("smoothness {smoothness} or epsilon {epsilon} is not positive"))
            }
            SourceOp::Softmax {} if input.last() == Some(&1) => {
                Err("a softmax of single values".into())
            }
            SourceOp::Registered(op) => op.operator().shape(&[input], &self.floats),
            SourceOp::Softmax {}
            | SourceOp::Gelu {}
            | SourceOp::MatMul {}
            | SourceOp::Mask {}
            | SourceOp::Join {}
            | SourceOp::Relu { .. }
            | SourceOp::Requantize { .. }
            | SourceOp::Identity {}
            | SourceOp::Add {}
            | SourceOp::Multiply {}
            | SourceOp::Concat {} => Ok(input.to_vec()),
        }
    }

    /// Geometry of a `Conv` or `Gemm` on `input`.
    pub(crate) fn conv(&self, op: &SourceOp, input: &[usize]) -> Check<Conv> {
        let conv = match (op, input) {
            (SourceOp::Gemm { weight, .. }, [length]) => {
                Conv::fully_connected(*length, *self.floats[weight].shape.first().unwrap_or(&0))
            }
            (SourceOp::Gemm { .. }, _) => {
                return Err(format!("Gemm needs a flat input, got {input:?}"));
            }
            (
                SourceOp::QuantisedConv {
                    kernel: [1, 1], stride, padding, groups: 1, weight, ..
                },
                [length],
            ) if (*stride, *padding) == ([1, 1], [0; 4]) => {
                Conv::fully_connected(*length, *self.floats[weight].shape.first().unwrap_or(&0))
            }
            (
                SourceOp::Conv { kernel, stride, padding, dilation, groups, weight, .. }
                | SourceOp::QuantisedConv {
                    kernel, stride, padding, dilation, groups, weight, ..
                },
                [channels, height, width],
            ) => Conv {
                in_channels: *channels,
                in_height: *height,
                in_width: *width,
                out_channels: *self.floats[weight].shape.first().unwrap_or(&0),
                kernel: *kernel,
                stride: *stride,
                padding: *padding,
                dilation: *dilation,
                groups: *groups,
            },
            _ => return Err(format!("Conv needs [channels, height, width], got {input:?}")),
        };
        check_conv(&conv)?;
        Ok(conv)
    }

    fn check_float(&self, name: &str) -> Check<()> {
        let tensor = self.floats.get(name).ok_or_else(|| format!("no weights named `{name}`"))?;
        let length = tensor.shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b));
        if length != Some(tensor.data.len()) {
            return Err(format!("`{name}` has {} values, shape says otherwise", tensor.data.len()));
        }
        let finite = tensor.data.iter().all(|v| v.is_finite());
        finite.then_some(()).ok_or(format!("`{name}` has a value that is not finite"))
    }

    fn expect(&self, name: &str, shape: &[usize]) -> Check<&FloatTensor> {
        let tensor = &self.floats[name];
        let fits = tensor.shape == shape;
        fits.then_some(tensor).ok_or(format!("`{name}` is {:?}, not {shape:?}", tensor.shape))
    }

    fn expect_bias(&self, name: Option<&str>, channels: usize) -> Check<()> {
        name.map_or(Ok(()), |name| self.expect(name, &[channels]).map(drop))
    }
}

/// Shape of tensors one after another, the first of which is `first`.
fn concatenated(first: &[usize], inputs: &[&[usize]]) -> Check<Vec<usize>> {
    let mut shape = first.to_vec();
    shape[0] = 0;
    for input in inputs {
        if input.get(1..) != first.get(1..) {
            return Err(format!("puts {first:?} and {input:?} together"));
        }
        shape[0] = shape[0].saturating_add(input[0]);
    }
    Ok(shape)
}

fn multiplied(a: &[usize], b: &[usize]) -> Check<Vec<usize>> {
    let [_, rows, _, columns] =
        MatMul::sides(a, b).ok_or_else(|| format!("multiplies {a:?} by {b:?}"))?;
    let leading = a.iter().take(a.len().saturating_sub(2));
    Ok(leading.copied().chain([rows, columns]).collect())
}

/// Winograd's algorithm is for one kind of convolution.
fn check_quantised(conv: &Conv, winograd: bool) -> Check<()> {
    let dense =
        (conv.kernel, conv.stride, conv.dilation, conv.groups) == ([3, 3], [1, 1], [1, 1], 1);
    (dense || !winograd)
        .then_some(())
        .ok_or("has weights in the Winograd domain, but is no dense 3x3 kernel of stride 1".into())
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn padded(input: &[usize], before: &[usize], after: &[usize]) -> Check<Vec<usize>> {
    if before.len() != input.len() || after.len() != input.len() {
        return Err(format!("pads {} axes of {input:?}", before.len()));
    }
    let axes = input.iter().zip(before).zip(after);
    Ok(axes.map(|((side, a), b)| side.saturating_add(*a).saturating_add(*b)).collect())
}

fn invalid(node: &str, why: impl Into<String>) -> Error {
    Error::invalid("import", node, why)
}

fn arity(want: usize, have: usize) -> String {
    format!("has {have} inputs, needs {want}")
}

/// Geometry of a pool on `input`.
pub(crate) fn window(
    input: &[usize],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 4],
) -> Check<Window> {
    let [channels, height, width] = *input else {
        return Err(format!("pooling needs [channels, height, width], got {input:?}"));
    };
    let window = Window { channels, height, width, kernel, stride, padding };
    check_window(&window)?;
    Ok(window)
}
