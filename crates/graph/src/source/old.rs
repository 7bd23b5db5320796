//! The operators of this crate as one type to match on, while some code still does.

use super::function::Function;
use super::op::SourceOp;
use serde::Deserialize;

/// What an imported operator computes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", deny_unknown_fields)]
pub(crate) enum Old {
    /// Grouped 2-D convolution on `[channels, height, width]`.
    Conv {
        /// Rows and columns.
        kernel: [usize; 2],
        /// Rows and columns.
        stride: [usize; 2],
        /// Top, left, bottom, right.
        padding: [usize; 4],
        /// Rows and columns.
        dilation: [usize; 2],
        /// Number of groups.
        groups: usize,
        /// `[out, in / groups, rows, columns]`.
        weight: String,
        /// `[out]`.
        bias: Option<String>,
    },
    /// Matrix times vector.
    Gemm {
        /// `[out, in]`.
        weight: String,
        /// `[out]`.
        bias: Option<String>,
    },
    /// `scale * (x - mean) / sqrt(variance + epsilon) + bias`, per channel.
    BatchNormalization {
        /// `[channels]`.
        scale: String,
        /// `[channels]`.
        bias: String,
        /// `[channels]`.
        mean: String,
        /// `[channels]`.
        variance: String,
        /// Added to the variance.
        epsilon: f64,
    },
    /// Convolution of weights that are integers already, of few bits each:
    /// `scale * (W*x) + bias`, per output channel.
    QuantisedConv {
        /// Rows and columns.
        kernel: [usize; 2],
        /// Rows and columns.
        stride: [usize; 2],
        /// Top, left, bottom, right.
        padding: [usize; 4],
        /// Rows and columns.
        dilation: [usize; 2],
        /// Number of groups.
        groups: usize,
        /// Whether the weights stand in the Winograd domain, for tiles of two.
        winograd: bool,
        /// Integers `[out, in / groups, rows, columns]`, or `[out, in, 4, 4]`.
        weight: String,
        /// What each bit of a weight adds to it, see [`crate::WeightBits`].
        importance: Vec<i64>,
        /// What a weight without bits is.
        offset: i64,
        /// `[out]`, none of them zero.
        scale: String,
        /// `[out]`.
        bias: String,
    },
    /// Values that are not negative, of more bits, rounded to the steps of `bits` bits,
    /// halves up.
    Requantize {
        /// The bits that are kept.
        bits: u32,
    },
    /// `max(x, 0)`, at most `maximum` when there is one.
    Relu {
        /// Upper clip, e.g. 6.
        maximum: Option<f64>,
        /// Bits of the result, over its range; those of activations when absent.
        #[serde(default)]
        bits: Option<u32>,
    },
    /// Largest value of each window.
    MaxPool {
        /// Rows and columns.
        kernel: [usize; 2],
        /// Rows and columns.
        stride: [usize; 2],
        /// Top, left, bottom, right.
        padding: [usize; 4],
    },
    /// Mean of each window.
    AveragePool {
        /// Rows and columns.
        kernel: [usize; 2],
        /// Rows and columns.
        stride: [usize; 2],
        /// Top, left, bottom, right.
        padding: [usize; 4],
        /// Whether padded positions count in the divisor.
        count_include_pad: bool,
    },
    /// Sum of two tensors of one shape.
    Add {},
    /// Sum of a tensor and a constant.
    AddConstant {
        /// One value, one per channel, or one per element.
        constant: String,
    },
    /// Nothing (also dropout).
    Identity {},
    /// Values below `minimum` and above `maximum` become these; at least what
    /// calibration saw remains.
    Clip {
        /// Lower bound.
        minimum: Option<f64>,
        /// Upper bound.
        maximum: Option<f64>,
    },
    /// Inputs one after another along the outermost axis.
    Concat {},
    /// Some elements in an order of their own, see [`crate::View`].
    View {
        /// The new shape.
        shape: Vec<usize>,
        /// The first element.
        start: usize,
        /// Elements of the input between two positions of the output, by axis.
        strides: Vec<usize>,
    },
    /// Zeros around the input.
    Pad {
        /// How many before it, by axis.
        before: Vec<usize>,
        /// How many after it, by axis.
        after: Vec<usize>,
    },
    /// Elementwise product of two tensors of one shape.
    Multiply {},
    /// `factor * x`. The factor becomes public.
    Scale {
        /// Not zero.
        factor: f64,
    },
    /// A smooth function, by a table.
    Table {
        /// Which one.
        function: Function,
        /// The function's first parameter, if it has any.
        #[serde(default)]
        alpha: f64,
        /// The function's second parameter.
        #[serde(default)]
        beta: f64,
    },
    /// Rows of a table at positions that the input, `[length]`, names; the input is the
    /// graph's, or shows it in another order.
    Embedding {
        /// `[rows, columns]`.
        weight: String,
    },
    /// Product of two tensors as matrices, `[.., rows, inner]` and `[.., inner, columns]`.
    MatMul {},
    /// Softmax along the last axis.
    Softmax {},
    /// `x * Phi(x)`.
    Gelu {},
    /// `((1 + slope)*x + sqrt(((1 - slope)*x)^2 + smoothness^2)) / 2`: a smooth maximum of `x`
    /// and `slope*x` (Biswas et al., SMU, CVPR 2022).
    Smu {
        /// At least 0, below 1. Becomes public.
        slope: f64,
        /// Positive. Becomes public.
        smoothness: f64,
    },
    /// `s / (sum(s) + epsilon)` along the last axis for `s` a [`SourceOp::Smu`] of slope 0. A
    /// [`SourceOp::Mask`] in front of it, which nothing else reads, makes `s` 0.
    ReluSoftmax {
        /// Positive. Becomes public.
        smoothness: f64,
        /// Positive. Becomes public.
        epsilon: f64,
    },
    /// Brings values to mean 0 and deviation 1 along the first axis, then per channel times `scale` plus
    /// `bias` where there are such.
    LayerNorm {
        /// Added to the variance.
        epsilon: f64,
        /// `[channels]`.
        #[serde(default)]
        scale: Option<String>,
        /// `[channels]`.
        #[serde(default)]
        bias: Option<String>,
    },
    /// The first input where the second, of the same shape, is 1; so low where it is 0 that
    /// a softmax makes it 0. The second is the graph's input, or shows it in another order.
    Mask {},
    /// Inputs one after another along the outermost axis, for the one linear node that reads
    /// them; unlike after [`SourceOp::Concat`] each keeps its own scale.
    Join {},
    /// Same elements, same order, another shape (also flatten).
    Reshape {
        /// The new shape, without the batch axis.
        shape: Vec<usize>,
    },
    /// An operator that was registered, see [`crate::source::register`].
    #[serde(skip)]
    Registered(SourceOp),
}

impl SourceOp {
    /// The operator as a value to match on.
    pub(crate) fn old(&self) -> Old {
        let read = serde_json::to_value(self).and_then(serde_json::from_value);
        read.unwrap_or_else(|_| Old::Registered(self.clone()))
    }
}
