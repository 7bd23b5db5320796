//! What can be measured.

use graph::functions::starts::Start;
use graph::{Nonlinear, Rounding};
use ot::Source;
use serde::{Deserialize, Serialize};

/// One operation with its sizes. Widths are in bits; `count` is the number of results
/// where nothing else is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "lowercase", deny_unknown_fields)]
pub enum Operation {
    /// ReLU.
    Relu {
        /// Values.
        count: usize,
        /// Width of the input's shares.
        bits: u32,
        /// Width of the output's; the input's when absent.
        out_bits: Option<u32>,
        /// Bits of the largest result; no saturation when absent.
        saturate: Option<u32>,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        /// What it runs on; oblivious transfer when absent.
        #[serde(default, skip_serializing_if = "is_ot")]
        nonlinear: Nonlinear,
    },
    /// Maxima of disjoint windows.
    MaxPool {
        /// Windows.
        count: usize,
        /// Width of the shares; values use one bit less.
        bits: u32,
        /// Values in each window.
        window: usize,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        /// What it runs on; oblivious transfer when absent.
        #[serde(default, skip_serializing_if = "is_ot")]
        nonlinear: Nonlinear,
    },
    /// Position of the largest value.
    Argmax {
        /// Values in the one row.
        count: usize,
        /// As for maxima.
        bits: u32,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        /// What it runs on; oblivious transfer when absent.
        #[serde(default, skip_serializing_if = "is_ot")]
        nonlinear: Nonlinear,
    },
    /// Exact truncation.
    Truncate {
        /// Values.
        count: usize,
        /// Width of the input's shares.
        bits: u32,
        /// Low bits dropped.
        drop: u32,
        /// Width of the output's shares; what is left when absent.
        out_bits: Option<u32>,
        /// Whether the values are known not to be negative.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        non_negative: bool,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        /// What it runs on; oblivious transfer when absent.
        #[serde(default, skip_serializing_if = "is_ot")]
        nonlinear: Nonlinear,
    },
    /// Extension to a wider ring.
    Extend {
        /// Values.
        count: usize,
        /// Width of the input's shares.
        bits: u32,
        /// Width of the output's.
        out_bits: u32,
        /// Whether the values are known not to be negative.
        non_negative: bool,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        /// What it runs on; oblivious transfer when absent.
        #[serde(default, skip_serializing_if = "is_ot")]
        nonlinear: Nonlinear,
    },
    /// Comparison of two private integers, whether their difference is negative; the
    /// result stays shared by exclusive or.
    Compare {
        /// Comparisons.
        count: usize,
        /// Width of the integers.
        bits: u32,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
    },
    /// A public function of few bits, by table.
    Lookup {
        /// Values.
        count: usize,
        /// Width of the input's shares, at most 8.
        bits: u32,
        /// Width of the output's; the input's when absent.
        out_bits: Option<u32>,
    },
    /// Products of two shared vectors, element by element.
    Multiply {
        /// Products.
        count: usize,
        /// Width of the first factor's shares.
        bits: u32,
        /// Width of the second's; the first's when absent.
        second_bits: Option<u32>,
        /// Width of the products'; that of both factors together, at most 63, when absent.
        out_bits: Option<u32>,
        /// Whether the values are known not to be negative.
        non_negative: bool,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
    },
    /// A garbled circuit on shares mod a prime: maxima of disjoint windows, perhaps a ReLU.
    Circuit {
        /// Values that go in.
        count: usize,
        /// The prime, below 2^62.
        modulus: u64,
        /// Values in each window; 1 for none.
        window: usize,
        /// Whether a ReLU follows.
        relu: bool,
    },
    /// Label and probability of the top class by garbled circuits.
    Probability {
        /// Classes.
        count: usize,
        /// Width of the logits' shares; 2^(bits-4) are worth 1.
        bits: u32,
        /// Decimals of the probability, 1 to 6.
        digits: u32,
    },
    /// GELU of activations.
    Gelu {
        /// Rows of the tensor.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// Width of the input's shares.
        bits: u32,
        /// Width of the results, to which inputs saturate.
        out_bits: u32,
        /// Real absolute value at which they do.
        range: f64,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
    },
    /// Softmax of rows.
    Softmax {
        /// Rows of the tensor.
        rows: usize,
        /// Values in each.
        cols: usize,
        /// Width of the input's shares; values use one bit less.
        bits: u32,
        /// Width of the results.
        out_bits: u32,
        /// Real absolute value of the largest input.
        range: f64,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
    },
    /// Rows normalised to mean 0 and deviation 1.
    LayerNorm {
        /// Rows of the tensor.
        rows: usize,
        /// Values in each.
        cols: usize,
        /// Width of the input's shares; values use one bit less. Deviations below a 32nd of
        /// their range are taken for that.
        bits: u32,
        /// Width of the results.
        out_bits: u32,
        /// Real absolute value of the largest result.
        range: f64,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
    },
    /// A function of transformers by an inverse square root.
    Comet {
        /// Which one.
        function: Function,
        /// Rows of the tensor.
        rows: usize,
        /// Values in each.
        cols: usize,
        /// Width of the input's shares; values use one bit less.
        bits: u32,
        /// Width of the results; of smooth maxima what they need.
        out_bits: u32,
        /// Real absolute value of the largest input, of a norm of the largest result.
        range: f64,
        /// Where the iteration begins.
        #[serde(default)]
        start: Start,
        /// Whether softmax and norm find a root for each element, not for each row, as
        /// published systems do.
        #[serde(default)]
        of_elements: bool,
        /// Bits of a comparison's digits, 1 to 8; as in the default suite when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radix: Option<u32>,
        /// Whether shares may be flooded, which leaks.
        #[serde(default)]
        accept_leakage: bool,
    },
    /// Convolution with rescale, without bias.
    Conv {
        /// Rows of the input.
        height: usize,
        /// Columns of the input.
        width: usize,
        /// Channels of the input.
        input: usize,
        /// Channels of the output.
        output: usize,
        /// Rows and columns of the kernel.
        kernel: usize,
        /// Rows and columns between two positions of the kernel.
        stride: usize,
        /// Zeros on each side.
        padding: usize,
        /// Rows and columns between two taps of the kernel; 1 when absent.
        #[serde(default = "one")]
        dilation: usize,
        /// Groups of channels that do not mix; 1 when absent.
        #[serde(default = "one")]
        groups: usize,
        /// Signed width of the weights.
        weight_bits: u32,
        /// Signed width of the inputs.
        activation_bits: u32,
        /// How the accumulator is rescaled.
        rounding: Rounding,
        /// Protocols to use; the default suite's when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suite: Option<String>,
        /// Place of a folding among those of a layer, from 1 on: several input polynomials come in one
        /// ciphertext. Of the default suite; nothing is folded when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folded: Option<usize>,
        /// Rows and columns of a tile in the Winograd domain, 2 or 4; of suite ufo, which
        /// takes 2 when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tile: Option<usize>,
        /// What suite ufo is compared with, in its place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        baseline: Option<Baseline>,
    },
    /// Product of a private (rows, inner) matrix with weights (inner, cols).
    Matmul {
        /// Rows of the client's matrix.
        rows: usize,
        /// Its columns.
        inner: usize,
        /// Columns of the weights.
        cols: usize,
        /// As in a convolution.
        weight_bits: u32,
        /// As in a convolution.
        activation_bits: u32,
        /// As in a convolution.
        rounding: Rounding,
        /// As in a convolution.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suite: Option<String>,
        /// As in a convolution.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folded: Option<usize>,
    },
    /// Correlated OTs from the server to the client.
    Ot {
        /// How they are made.
        kind: CotSource,
        /// How many.
        count: usize,
    },
}

/// Convolutions by OT without what suite ufo does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Tiles, with an extension of unknown sign before each transform and each product.
    Winograd,
    /// No tiles: every position is a column.
    Uniform,
}

/// Functions that are computed by an inverse square root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Function {
    /// A smooth maximum in GELU's place.
    Gelu,
    /// Smooth maxima of rows as parts of their sums.
    Softmax,
    /// Rows normalised to mean 0 and deviation 1.
    LayerNorm,
}

fn is_ot(nonlinear: &Nonlinear) -> bool {
    *nonlinear == Nonlinear::Ot
}

const fn one() -> usize {
    1
}

/// Sources of correlated OTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CotSource {
    /// Silently, whatever the count.
    Ferret,
    /// SoftSpoken with k = 2.
    SoftSpoken2,
    /// SoftSpoken with k = 4.
    SoftSpoken4,
    /// SoftSpoken with k = 8.
    SoftSpoken8,
}

impl CotSource {
    /// The source of this kind.
    pub(crate) const fn source(self) -> Source {
        match self {
            Self::Ferret => Source::Ferret,
            Self::SoftSpoken2 => Source::SoftSpoken2,
            Self::SoftSpoken4 => Source::SoftSpoken4,
            Self::SoftSpoken8 => Source::SoftSpoken8,
        }
    }
}

impl Operation {
    /// Returns the name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Relu { .. } => "relu",
            Self::MaxPool { .. } => "maxpool",
            Self::Argmax { .. } => "argmax",
            Self::Truncate { .. } => "truncate",
            Self::Extend { .. } => "extend",
            Self::Compare { .. } => "compare",
            Self::Lookup { .. } => "lookup",
            Self::Multiply { .. } => "multiply",
            Self::Circuit { .. } => "circuit",
            Self::Probability { .. } => "probability",
            Self::Gelu { .. } => "gelu",
            Self::Softmax { .. } => "softmax",
            Self::LayerNorm { .. } => "layernorm",
            Self::Comet { function: Function::Gelu, .. } => "gelu",
            Self::Comet { function: Function::Softmax, .. } => "softmax",
            Self::Comet { function: Function::LayerNorm, .. } => "layernorm",
            Self::Conv { .. } => "conv",
            Self::Matmul { .. } => "matmul",
            Self::Ot { .. } => "ot",
        }
    }
}
