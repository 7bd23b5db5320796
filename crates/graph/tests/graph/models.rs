//! Random source graphs.

use crate::numbers::Numbers;
use std::collections::BTreeMap;
use tacit_graph::source::Program;
use tacit_graph::source::ops::{
    Add, AddConstant, AveragePool, BatchNormalization, Clip, Concat, Conv, Gemm, Identity, MaxPool,
    Multiply, Pad, Relu, Reshape, Scale, Table, View,
};
use tacit_graph::{FloatTensor, Floats, Function, Source, SourceInput, SourceNode, SourceOp};

pub(crate) struct Builder {
    pub(crate) numbers: Numbers,
    nodes: Vec<SourceNode>,
    floats: Floats,
    /// Name and shape of every tensor so far.
    pub(crate) tensors: Vec<(String, Vec<usize>)>,
}

impl Builder {
    pub(crate) fn new(seed: u64, shape: &[usize]) -> Self {
        let tensors = vec![("x".to_owned(), shape.to_vec())];
        Self { numbers: Numbers(seed), nodes: vec![], floats: Floats::new(), tensors }
    }

    pub(crate) fn last(&self) -> (String, Vec<usize>) {
        self.tensors.last().unwrap().clone()
    }

    pub(crate) fn push(
        &mut self,
        inputs: &[&str],
        op: impl Into<SourceOp>,
        shape: Vec<usize>,
    ) -> String {
        let output = format!("t{}", self.tensors.len());
        self.nodes.push(SourceNode {
            name: format!("n{}", self.tensors.len()),
            inputs: inputs.iter().map(|i| (*i).to_owned()).collect(),
            output: output.clone(),
            op: op.into(),
        });
        self.tensors.push((output.clone(), shape));
        output
    }

    pub(crate) fn weights(&mut self, shape: &[usize], low: f32, high: f32) -> String {
        let name = format!("w{}", self.floats.len());
        let data = (0..shape.iter().product()).map(|_| self.numbers.real(low, high)).collect();
        self.floats.insert(name.clone(), FloatTensor { shape: shape.to_vec(), data });
        name
    }

    pub(crate) fn store(&mut self, tensor: FloatTensor) -> String {
        let name = format!("w{}", self.floats.len());
        self.floats.insert(name.clone(), tensor);
        name
    }

    pub(crate) fn conv(&mut self) {
        let (name, shape) = self.last();
        let n = &mut self.numbers;
        let kernel = [n.below(3) + 1, n.below(3) + 1];
        let dilation = [n.below(2) + 1, n.below(2) + 1];
        let stride = [n.below(2) + 1, n.below(2) + 1];
        let reach = [0, 1].map(|i| (kernel[i] - 1) * dilation[i]);
        let padding = [0, 1, 0, 1].map(|i| n.below(reach[i] + 1));
        let groups = if n.below(3) == 0 { shape[0] } else { 1 };
        let out = groups * (n.below(3) + 1);
        let side = |i: usize| {
            let padded = shape[i + 1] + padding[i] + padding[i + 2];
            padded.checked_sub(reach[i] + 1).map(|rest| rest / stride[i] + 1)
        };
        let (Some(height), Some(width)) = (side(0), side(1)) else { return };
        let dims = [out, shape[0] / groups, kernel[0], kernel[1]];
        let fan_in = (dims[1] * dims[2] * dims[3]) as f32;
        let weight = self.weights(&dims, -1.5 / fan_in.sqrt(), 1.5 / fan_in.sqrt());
        let bias = (self.numbers.below(2) == 0).then(|| self.weights(&[out], -0.2, 0.2));
        let op = Conv { kernel, stride, padding, dilation, groups, weight, bias };
        self.push(&[&name], op, vec![out, height, width]);
    }

    pub(crate) fn gemm(&mut self, outputs: usize) {
        let (name, shape) = self.last();
        let length: usize = shape.iter().product();
        let flat = if shape.len() == 1 {
            name
        } else {
            self.push(&[&name], Reshape { shape: vec![length] }, vec![length])
        };
        let reach = 1.5 / (length as f32).sqrt();
        let weight = self.weights(&[outputs, length], -reach, reach);
        let bias = Some(self.weights(&[outputs], -0.2, 0.2));
        self.push(&[&flat], Gemm { weight, bias }, vec![outputs]);
    }

    pub(crate) fn same_shape(&mut self, op: impl Into<SourceOp>) {
        let (name, shape) = self.last();
        self.push(&[&name], op, shape);
    }

    pub(crate) fn relu(&mut self) {
        let maximum = (self.numbers.below(4) == 0).then_some(0.5);
        self.same_shape(Relu { maximum, bits: None });
    }

    pub(crate) fn norm(&mut self) {
        let channels = self.last().1[0];
        let op = BatchNormalization {
            scale: self.weights(&[channels], 0.5, 1.5),
            bias: self.weights(&[channels], -0.3, 0.3),
            mean: self.weights(&[channels], -0.3, 0.3),
            variance: self.weights(&[channels], 0.5, 1.5),
            epsilon: 1e-5,
        };
        self.same_shape(op);
    }

    pub(crate) fn constant(&mut self) {
        let channels = self.last().1[0];
        let constant = self.weights(&[channels], -0.3, 0.3);
        self.same_shape(AddConstant { constant });
    }

    pub(crate) fn pool(&mut self, max: bool) {
        let (name, shape) = self.last();
        let kernel = [1, 2].map(|i| shape[i].min(2));
        let stride = [1, 2].map(|_| self.numbers.below(2) + 1);
        let pad = self.numbers.below(2);
        let padding = [0, 1, 0, 1].map(|i| pad.min(kernel[i] - 1));
        let side = |i: usize| (shape[i + 1] + 2 * padding[i] - kernel[i]) / stride[i] + 1;
        let out = vec![shape[0], side(0), side(1)];
        let op = if max {
            SourceOp::from(MaxPool { kernel, stride, padding })
        } else {
            SourceOp::from(AveragePool { kernel, stride, padding, count_include_pad: true })
        };
        self.push(&[&name], op, out);
    }

    /// Adds an earlier tensor of the same shape when there is one.
    pub(crate) fn add(&mut self) {
        let (name, shape) = self.last();
        let earlier: Vec<String> =
            self.tensors.iter().filter(|(_, s)| *s == shape).map(|(n, _)| n.clone()).collect();
        let other = &earlier[self.numbers.below(earlier.len())];
        self.push(&[&name, other], Add {}, shape);
    }

    /// Multiplies by an earlier tensor of the same shape, or itself.
    pub(crate) fn multiply(&mut self) {
        let (name, shape) = self.last();
        let earlier: Vec<String> =
            self.tensors.iter().filter(|(_, s)| *s == shape).map(|(n, _)| n.clone()).collect();
        let other = &earlier[self.numbers.below(earlier.len())];
        self.push(&[&name, other], Multiply {}, shape);
    }

    /// Puts an earlier tensor of the same size behind the last one, or itself.
    pub(crate) fn concat(&mut self) {
        let (name, shape) = self.last();
        let earlier: Vec<(String, Vec<usize>)> =
            self.tensors.iter().filter(|(_, s)| s[1..] == shape[1..]).cloned().collect();
        let (other, also) = &earlier[self.numbers.below(earlier.len())];
        let out = [&[shape[0] + also[0]], &shape[1..]].concat();
        self.push(&[&name, other], Concat {}, out);
    }

    /// Turns rows into columns, and leaves the first row out if there are two.
    pub(crate) fn view(&mut self) {
        let (name, shape) = self.last();
        let [channels, height, width] = shape[..] else { return };
        let start = if height > 1 { width } else { 0 };
        let shape = vec![channels, width, height - usize::from(height > 1)];
        let strides = vec![height * width, 1, width];
        let op = View { shape: shape.clone(), start, strides };
        self.push(&[&name], op, shape);
    }

    pub(crate) fn pad(&mut self) {
        let (name, shape) = self.last();
        let [before, after] = [0, 1].map(|_| vec![0, self.numbers.below(2), self.numbers.below(2)]);
        let sides = shape.iter().zip(&before).zip(&after);
        let out = sides.map(|((side, a), b)| side + a + b).collect();
        self.push(&[&name], Pad { before, after }, out);
    }

    pub(crate) fn table(&mut self) {
        let functions = [
            (Function::Sigmoid, 0.0),
            (Function::Tanh, 0.0),
            (Function::HardSwish, 0.0),
            (Function::Elu, 1.0),
            (Function::Softplus, 0.0),
            (Function::LeakyRelu, 0.1),
            (Function::Exp, 0.0),
            (Function::Sin, 0.0),
            (Function::Cos, 0.0),
            (Function::Softsign, 0.0),
            (Function::Sqrt, 0.0),
            (Function::Erf, 0.0),
            (Function::Round, 0.0),
        ];
        let (function, alpha) = functions[self.numbers.below(functions.len())];
        self.same_shape(Table { function, alpha, beta: 0.0 });
    }

    pub(crate) fn scale(&mut self) {
        let factor = [0.5, -0.75, 1.25][self.numbers.below(3)];
        self.same_shape(Scale { factor });
    }

    pub(crate) fn clip(&mut self) {
        let (minimum, maximum) = [(None, Some(0.5)), (Some(-0.25), None), (Some(-0.25), Some(0.5))]
            [self.numbers.below(3)];
        self.same_shape(Clip { minimum, maximum });
    }

    pub(crate) fn finish(self) -> Program {
        let output = self.tensors.last().unwrap().0.clone();
        let input = SourceInput { name: "x".into(), shape: self.tensors[0].1.clone() };
        let source = Source {
            name: "random".into(),
            input,
            inputs: vec![],
            outputs: vec![],
            states: vec![],
            output,
            nodes: self.nodes,
            extra_bits: BTreeMap::new(),
        };
        Program { source, floats: self.floats }
    }
}

/// Up to eight random operators on a small image, then one or two Gemms.
pub(crate) fn random(seed: u64) -> Program {
    let mut numbers = Numbers(seed);
    let shape = [numbers.below(3) + 1, numbers.below(4) + 3, numbers.below(4) + 3];
    let mut builder = Builder::new(numbers.next(), &shape);
    for _ in 0..numbers.below(8) + 1 {
        match numbers.below(18) {
            0 => builder.conv(),
            1..=3 => {
                builder.conv();
                builder.relu();
            }
            4 => builder.relu(),
            5 => builder.norm(),
            6 => builder.pool(numbers.below(2) == 0),
            7 => builder.add(),
            8 => builder.constant(),
            9 => builder.multiply(),
            10 => builder.concat(),
            11 => builder.view(),
            12 => builder.pad(),
            13 => builder.table(),
            14 => builder.scale(),
            15 => builder.clip(),
            _ => builder.same_shape(Identity {}),
        }
    }
    if numbers.below(2) == 0 {
        builder.gemm(4);
        builder.relu();
    }
    builder.gemm(3);
    builder.finish()
}
