//! The integer graph that the protocols run and the interpreter defines.
//!
//! [`Graph`] is public: operators, shapes, widths, shifts. [`NodeWeights`] is
//! the server's secret. Images are channel-major: `[channels, height, width]`;
//! no tensor has a batch axis.

use crate::choice::WeightBits;
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
pub use crate::geometry::{Conv, View, Window};
use crate::winograd::Winograd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Version of the graph's JSON that this crate writes and reads.
pub const VERSION: u32 = 1;

/// How a tensor's integers are shared and what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Format {
    /// Width of the additive share: the two summands live mod `2^bits`. In `1..=63`.
    pub bits: u32,
    /// Real value of one unit: `real = integer * scale`. In the public part of
    /// a graph it is 1 for every tensor but the input and the output.
    pub scale: f64,
    /// False when every value is known not to be negative.
    pub signed: bool,
}

/// A value that exists between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// Name in the imported model where it had one; unique in the graph.
    pub name: String,
    /// `[channels, height, width]` or `[length]`, without a batch axis.
    pub shape: Vec<usize>,
    /// Width, scale and sign.
    pub format: Format,
}

impl Tensor {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements; false in every verified graph.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a linear layer drops its `shift` low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// `(acc + 2^(shift-1)) >> shift`, bit for bit.
    Exact,
    /// Unbiased, within one or two units of the exact result.
    Stochastic,
}

/// What comparisons, rescales and pools run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nonlinear {
    /// Oblivious transfer.
    #[default]
    Ot,
    /// Garbled circuits.
    Gc,
}

impl Nonlinear {
    fn is_ot(&self) -> bool {
        *self == Self::Ot
    }
}

/// A linear layer with its rescale:
/// `y = (W*x + bias + addend*skip + 2^(shift-1)) >> shift` (`shift` 0: no rounding).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// The geometry.
    pub conv: Conv,
    /// Signed width that holds every accumulator, the rounding term included,
    /// whatever the input. Every input's share is at least this wide and the
    /// output's share plus `shift` is at most this wide, so that the inputs are
    /// reduced and the output is shifted locally. Noise that carries an extreme
    /// accumulator across the wrap moves the output by a multiple of its modulus.
    pub accumulator_bits: u32,
    /// Signed width that holds every weight, e.g. 12.
    pub weight_bits: u32,
    /// Low bits dropped from the accumulator.
    pub shift: u32,
    /// How they are dropped.
    pub rounding: Rounding,
    /// Multiplier of `inputs[1]`, which has the output's shape.
    pub addend: Option<i64>,
    /// The bits of a weight, for protocols that choose by them; two's complement of
    /// `weight_bits` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<WeightBits>,
}

/// Rows of the server's table, at positions that the client knows:
/// `y[i] = (table[x[i]] + 2^(shift-1)) >> shift`, for an input of shape `[length]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Rows of the table, e.g. the size of a vocabulary.
    pub rows: usize,
    /// Signed width that holds every entry, the rounding term included.
    pub weight_bits: u32,
    /// Low bits dropped.
    pub shift: u32,
    /// How they are dropped.
    pub rounding: Rounding,
}

/// A product of two shared matrices, `[.., rows, inner]` and `[.., inner, columns]`, for
/// each place on the leading axes: `y = (a*b + 2^(shift-1)) >> shift`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// As in [`Linear`].
    pub accumulator_bits: u32,
    /// Low bits dropped from the accumulator.
    pub shift: u32,
    /// How they are dropped.
    pub rounding: Rounding,
}

impl MatMul {
    /// Places on the leading axes, rows, inner length and columns of a product of these
    /// shapes, where they fit.
    pub fn sides(a: &[usize], b: &[usize]) -> Option<[usize; 4]> {
        let ([leading @ .., rows, inner], [others @ .., same, columns]) = (a, b) else {
            return None;
        };
        let count = leading.iter().try_fold(1usize, |all, side| all.checked_mul(*side))?;
        (leading == others && inner == same).then_some([count, *rows, *inner, *columns])
    }
}

/// What a node computes, on exact integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Op {
    /// Convolution or matrix product with rescale; one input, two with an addend.
    Linear(Linear),
    /// 3x3 convolution in the Winograd domain with rescale; inputs as of [`Op::Linear`].
    Winograd(Winograd),
    /// `y = (x + 2^(drop-1)) >> drop`, exactly, in shares of any width (`drop` 0: only that
    /// is changed). If the output's share is wider than what is left of the input's and the
    /// sign is not known, the wrap is found by a comparison; no bit needs to be spare.
    Requantize {
        /// Low bits dropped.
        drop: u32,
    },
    /// `y = clamp(x, low, low + 2^saturate - 1)`.
    Relu {
        /// Bits of the distance from the smallest to the largest result.
        saturate: u32,
        /// The smallest result, at most `2^(saturate+4)` away from 0; a ReLU's is 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        low: i64,
    },
    /// Largest value of the window; padded positions never win.
    MaxPool(Window),
    /// Sum of the window; padded positions add 0. The output's scale is the
    /// input's divided by the window's size, which makes it an average.
    SumPool(Window),
    /// `y = (multipliers[0]*x0 + multipliers[1]*x1 + 2^(shift-1)) >> shift`.
    Sum {
        /// Factors that bring both operands to one scale.
        multipliers: [i64; 2],
        /// As in [`Linear`].
        accumulator_bits: u32,
        /// Low bits dropped.
        shift: u32,
    },
    /// Sum with constants of the server, one for each element.
    Offset,
    /// The same elements in the same order under another shape.
    Reshape,
    /// The same values in wider shares. A signed input has a bit to spare.
    Extend,
    /// The inputs one after another along the outermost axis.
    Concat,
    /// Some elements, in an order of their own.
    View(View),
    /// The input with zeros around it.
    Pad {
        /// Zeros before it along each axis; the output's shape tells those behind.
        before: Vec<usize>,
    },
    /// `y = x0 * x1`, element by element.
    Product {
        /// Signed widths that hold the factors' values; shares are reduced to them.
        factor_bits: [u32; 2],
    },
    /// `y = values[x - low]`: a function by its public table.
    Lookup {
        /// The smallest input.
        low: i64,
        /// The results from there on; 2 to 256 of them, a power of two.
        values: Vec<i64>,
    },
    /// Rows of a secret table.
    Embedding(Embedding),
    /// Product of two tensors as matrices, with rescale.
    MatMul(MatMul),
    /// Softmax along the last axis, [`crate::functions::Softmax`].
    Softmax {
        /// Differences of two values of a row are below `2^(bits-1)`.
        bits: u32,
        /// Real value of one unit of the input.
        scale: f64,
    },
    /// GELU, [`crate::functions::Gelu`].
    Gelu {
        /// Bits of absolute values at which it differs from a ReLU.
        magnitude: u32,
        /// Real value of one unit of input and output.
        scale: f64,
    },
    /// To mean 0 and deviation 1 along the first axis, [`crate::functions::LayerNorm`].
    LayerNorm {
        /// Values lie in `-2^(bits-2)..2^(bits-2)`.
        bits: u32,
        /// Deviations below about `2^least` units count as that.
        least: u32,
        /// Units of a result of 1.
        unit: f64,
        /// How inverse roots are found, if not by a table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newton: Option<Newton>,
    },
    /// A smooth maximum, [`crate::functions::Smu`].
    Smu {
        /// What it is.
        smooth: Smooth,
        /// How it is found.
        newton: Newton,
    },
    /// Smooth maxima of a row as parts of their sum, [`crate::functions::ReluSoftmax`]; where
    /// there is a second input, the client's, of zeros and ones, only those where it is 1.
    ReluSoftmax {
        /// What is summed up; its slope is 0.
        smooth: Smooth,
        /// Added to the sum.
        epsilon: f64,
        /// How it is found.
        newton: Newton,
        /// How the sum's reciprocal is found.
        division: Newton,
    },
}

pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// One step. Indices point into [`Graph::tensors`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name in the imported model; unique in the graph.
    pub name: String,
    /// What to compute.
    pub op: Op,
    /// Tensors read.
    pub inputs: Vec<usize>,
    /// Tensor written.
    pub output: usize,
}

/// How a client packs its input for a graph that is evaluated under encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// In one message.
    Dense,
    /// One message for each tap of the first kernel.
    Convolution,
    /// One message for each element.
    Sparse,
}

/// Marks a graph of integers that are never rescaled. Tensors and accumulators have the width
/// [`Exact::WIDTH`], which says nothing: values between input and output may be of any size,
/// since they are known modulo more than twice the largest output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// Signed width of the outputs, 2 to 62: by the worst case of the real weights, or by
    /// calibration with a margin.
    pub output_bits: u32,
    /// How the input is packed; the cheapest way when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
}

impl Exact {
    /// Of all tensors and accumulators.
    pub const WIDTH: u32 = 60;
}

/// The public part of a model, in topological order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Always [`VERSION`].
    pub version: u32,
    /// Name of the model.
    pub name: String,
    /// Choice of protocols it was compiled for, e.g. `auto`.
    pub suite: String,
    /// Protocols of what is not linear, where the suite leaves a choice.
    #[serde(default, skip_serializing_if = "Nonlinear::is_ot")]
    pub nonlinear: Nonlinear,
    /// Width of quantised activations, e.g. 8.
    pub activation_bits: u32,
    /// Smallest and largest integer of the input; values outside are clipped to it.
    pub input_range: [i64; 2],
    /// The same for each place on the input's outermost axis where they differ, else nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_rows: Vec<[i64; 2]>,
    /// Of a graph of integers that are never rescaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Exact>,
    /// All tensors.
    pub tensors: Vec<Tensor>,
    /// All steps.
    pub nodes: Vec<Node>,
    /// Tensor that the client provides.
    pub input: usize,
    /// Tensor that the client learns.
    pub output: usize,
    /// Name of each output element, or empty.
    pub labels: Vec<String>,
}

impl Graph {
    /// The tensor that a node writes.
    pub fn output_of(&self, node: &Node) -> &Tensor {
        &self.tensors[node.output]
    }

    /// For each tensor whether the client knows its values: the input, and what it shows
    /// in another order.
    pub fn known(&self) -> Vec<bool> {
        let mut known = vec![false; self.tensors.len()];
        if let Some(input) = known.get_mut(self.input) {
            *input = true;
        }
        for node in &self.nodes {
            let local = matches!(node.op, Op::Reshape | Op::View(_) | Op::Pad { .. });
            let of = |input: &usize| known.get(*input).copied() == Some(true);
            let all = local && node.inputs.iter().all(of);
            if let Some(output) = known.get_mut(node.output) {
                *output = all;
            }
        }
        known
    }

    /// The `index`-th tensor that a node reads.
    pub fn input_of(&self, node: &Node, index: usize) -> &Tensor {
        &self.tensors[node.inputs[index]]
    }
}

/// The server's integers of one linear node, an [`Op::Offset`] or an [`Op::Embedding`]. `Debug` shows
/// lengths only; the contents are erased on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct NodeWeights {
    /// `[out_channels, in_channels / groups, kernel rows, kernel columns]`, row-major;
    /// in the Winograd domain `[out_channels, in_channels, tile + 2, tile + 2]`; nothing for
    /// an offset; an embedding's table `[rows, columns]`.
    pub weight: Vec<i32>,
    /// `[out_channels]`, at the accumulator's scale, without the rounding term; for an
    /// offset one per element, for an embedding nothing.
    pub bias: Vec<i64>,
}

impl fmt::Debug for NodeWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (weights, biases) = (self.weight.len(), self.bias.len());
        write!(f, "NodeWeights(<{weights} hidden weights, {biases} hidden biases>)")
    }
}

/// A graph with its weights: what the server holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The public part.
    pub graph: Graph,
    /// The private part, by index of the linear node.
    pub weights: BTreeMap<usize, NodeWeights>,
}
