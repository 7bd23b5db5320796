//! An operation as a plan, with its random input and its result in the clear.

use graph::{Conv, Format, Graph, Model, Op, Tensor};
use mpc::Share;
use mpc::argmax::Argmax;
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::maximum::{Maximum, Tournament};
use mpc::relu::Relu;
use mpc::truncate::Truncate;
use ot::Source;
use ring::word::signed;
use ring::{Prg, Seed};
use sha2::{Digest, Sha256};
use wire::{Error, Result, Role};

use super::linear::{self, Shape};
use super::operation::{Operation, Transfers};
use crate::plan::Plan;
use crate::steps::{Action, LinearStep, Step};

/// Most values of one bench.
const MOST_VALUES: usize = 1 << 30;

/// Random signed values: `width` bits, not below `low`, shared mod 2^bits.
struct Input {
    count: usize,
    bits: u32,
    width: u32,
    low: i64,
}

/// What the result's words mean.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub(super) bits: u32,
    signed: bool,
}

impl Output {
    pub(super) fn read(self, word: u64) -> i64 {
        if self.signed { signed(word, self.bits) } else { word as i64 }
    }
}

pub(super) struct Task {
    pub(super) operation: Operation,
    pub(super) plan: Plan,
    pub(super) model: Option<Model>,
    pub(super) output: Output,
    pub(super) digest: [u8; 32],
    input: Input,
}

impl Task {
    pub(super) fn new(operation: Operation) -> Result<Self> {
        let name = operation.name();
        let json = serde_json::to_string(&operation).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(json).into();
        let signed = |bits| Output { bits, signed: true };
        let plain = |count, bits| Input { count, bits, width: bits, low: i64::MIN };
        let of = |input: Input, output, action: Option<Action>| {
            let step = |action| Step { name: name.into(), node: None, action };
            let steps = action.map(step).into_iter().collect();
            let plan = Plan::of_steps(empty(name, &input), steps, source(&operation));
            Self { operation: operation.clone(), plan, model: None, output, digest, input }
        };
        check_sizes(&operation)?;
        Ok(match operation {
            Operation::Relu { count, bits, out_bits, saturate } => {
                let out_bits = out_bits.unwrap_or(bits);
                let relu = Relu::new(
                    count,
                    bits,
                    saturate,
                    out_bits,
                    Radix::fastest(count, bits.saturating_sub(1)),
                )?;
                let low = saturate.map_or(i64::MIN, |a| (1i64 << a) - (1i64 << (bits - 1)));
                let input = Input { low, ..plain(count, bits) };
                of(input, signed(out_bits), Some(Action::Relu(Box::new(relu))))
            }
            Operation::MaxPool { count, bits, window } => {
                let windows: Vec<Vec<usize>> =
                    (0..count).map(|i| (i * window..(i + 1) * window).collect()).collect();
                let tournament = Tournament::new(count * window, &windows)?;
                let maximum = Maximum::new(
                    tournament,
                    bits,
                    None,
                    Radix::fastest(count, bits.saturating_sub(1)),
                )?;
                let input = Input { width: bits - 1, ..plain(count * window, bits) };
                of(input, signed(bits), Some(Action::MaxPool(Box::new(maximum))))
            }
            Operation::Argmax { count, bits } => {
                let argmax = Argmax::new(count, bits, Radix::fastest(1, bits.saturating_sub(1)))?;
                let output = Output { bits: argmax.index_bits(), signed: false };
                let input = Input { width: bits - 1, ..plain(count, bits) };
                of(input, output, Some(Action::Argmax(Box::new(argmax))))
            }
            Operation::Truncate { count, bits, drop, out_bits } => {
                let out_bits = out_bits.unwrap_or(bits.saturating_sub(drop));
                let truncate =
                    Truncate::new(count, bits, drop, out_bits, Radix::fastest(count, drop))?;
                let action = Action::Truncate(Box::new(truncate));
                of(plain(count, bits), signed(out_bits), Some(action))
            }
            Operation::Extend { count, bits, out_bits, non_negative } => {
                let (sign, low) =
                    if non_negative { (Sign::NonNegative, 0) } else { (Sign::Unknown, i64::MIN) };
                let extend = Extend::new(count, bits, out_bits, sign, Radix::fastest(count, bits))?;
                let input = Input { low, ..plain(count, bits) };
                of(input, signed(out_bits), Some(Action::Extend(Box::new(extend))))
            }
            Operation::Ot { .. } => of(plain(0, 1), signed(1), None),
            Operation::Conv { .. } | Operation::Matmul { .. } => {
                return Self::linear(operation, digest);
            }
        })
    }

    fn linear(operation: Operation, digest: [u8; 32]) -> Result<Self> {
        let name = operation.name();
        let mut seed = Seed([0; 16]);
        seed.0.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        let model = linear::model(name, shape(&operation)?, &seed)?;
        let graph = model.graph.clone();
        let [input, output] = [graph.input, graph.output].map(|i| graph.tensors.get(i));
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::misuse("a layer without tensors"));
        };
        let (bits, count) = (input.format.bits, input.len());
        let input = Input { count, bits, width: graph.activation_bits, low: i64::MIN };
        let output = Output { bits: output.format.bits, signed: true };
        let Some(Op::Linear(layer)) = graph.nodes.first().map(|node| &node.op) else {
            return Err(Error::misuse("a layer that is not linear"));
        };
        let action = Action::Linear(Box::new(LinearStep::new(
            layer,
            output.bits,
            Radix::fastest(count, layer.shift),
        )?));
        let steps = vec![Step { name: name.into(), node: Some(0), action }];
        let plan = Plan::of_steps(graph, steps, Source::Auto);
        Ok(Self { operation, plan, model: Some(model), output, digest, input })
    }

    /// Transfers that are made for their own sake.
    pub(super) fn transfers(&self) -> usize {
        match self.operation {
            Operation::Ot { count, .. } => count,
            _ => 0,
        }
    }

    /// The values of a session and one party's share of them.
    pub(super) fn draw(&self, seed: &Seed, role: Role) -> (Vec<i64>, Share) {
        let Input { count, bits, width, low } = self.input;
        let mut prg = Prg::new(seed, 0);
        let values: Vec<i64> =
            prg.uniform(count, width).iter().map(|word| signed(*word, width).max(low)).collect();
        let client = prg.uniform(count, bits);
        let words = match role {
            Role::Client => client,
            Role::Server => {
                values.iter().zip(client).map(|(v, c)| (*v as u64).wrapping_sub(c)).collect()
            }
        };
        (values, Share::new(words, bits))
    }

    /// The result in the clear.
    pub(super) fn clear(&self, values: &[i64]) -> Result<Vec<i64>> {
        let each = |f: &dyn Fn(i64) -> i64| values.iter().map(|v| f(*v)).collect();
        Ok(match &self.operation {
            Operation::Relu { saturate, .. } => {
                let cap = saturate.map_or(i64::MAX, |a| (1i64 << a) - 1);
                each(&|v| v.clamp(0, cap))
            }
            Operation::MaxPool { window, .. } => {
                values.chunks_exact(*window).filter_map(|w| w.iter().max().copied()).collect()
            }
            Operation::Argmax { .. } => vec![graph::argmax(values) as i64],
            Operation::Truncate { drop, .. } => {
                each(&|v| self.output.read((v >> drop) as u64 & ring::word::mask(self.output.bits)))
            }
            Operation::Extend { .. } => each(&|v| v),
            Operation::Ot { .. } => Vec::new(),
            Operation::Conv { .. } | Operation::Matmul { .. } => {
                let model = self.model.as_ref();
                let model = model.ok_or_else(|| Error::misuse("a layer without its model"))?;
                let model = linear::exact(model);
                graph::interpret(&model, values).map_err(|e| Error::misuse(e.to_string()))?
            }
        })
    }
}

fn source(operation: &Operation) -> Source {
    match operation {
        Operation::Ot { kind: Transfers::SoftSpoken4, .. } => Source::SoftSpoken4,
        _ => Source::Auto,
    }
}

fn check_sizes(operation: &Operation) -> Result<()> {
    let (values, bits) = match *operation {
        Operation::Relu { count, bits, .. }
        | Operation::Argmax { count, bits }
        | Operation::Truncate { count, bits, .. }
        | Operation::Extend { count, bits, .. } => (Some(count), bits),
        Operation::MaxPool { count, bits, window } => (count.checked_mul(window), bits),
        Operation::Ot { count, .. } => (Some(count), 2),
        Operation::Conv { .. } | Operation::Matmul { .. } => return Ok(()),
    };
    if !values.is_some_and(|n| (1..=MOST_VALUES).contains(&n)) || !(2..=63).contains(&bits) {
        return Err(Error::misuse("a bench takes 1 to 2^30 values of 2 to 63 bits"));
    }
    Ok(())
}

fn shape(operation: &Operation) -> Result<Shape> {
    match *operation {
        Operation::Conv {
            height,
            width,
            input,
            output,
            kernel,
            stride,
            padding,
            weight_bits,
            activation_bits,
            rounding,
        } => {
            let conv = Conv {
                in_channels: input,
                in_height: height,
                in_width: width,
                out_channels: output,
                kernel: [kernel; 2],
                stride: [stride; 2],
                padding: [padding; 4],
                dilation: [1, 1],
                groups: 1,
            };
            Ok(Shape { conv, weight_bits, activation_bits, rounding })
        }
        Operation::Matmul { rows, inner, cols, weight_bits, activation_bits, rounding } => {
            let conv = Conv { in_height: rows, ..Conv::fully_connected(inner, cols) };
            Ok(Shape { conv, weight_bits, activation_bits, rounding })
        }
        _ => Err(Error::misuse("an operation that is not linear")),
    }
}

/// A graph that only names the input.
fn empty(name: &str, input: &Input) -> Graph {
    let tensor = Tensor {
        name: "input".into(),
        shape: vec![input.count],
        format: Format { bits: input.bits, scale: 1.0, signed: true },
    };
    Graph {
        version: graph::VERSION,
        name: name.into(),
        suite: "auto".into(),
        activation_bits: input.width,
        input_range: [0, 1],
        tensors: vec![tensor],
        nodes: Vec::new(),
        input: 0,
        output: 0,
        labels: Vec::new(),
    }
}
