//! The float graph as an importer hands it over: JSON plus named arrays.

pub mod shapes;

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A named float model. Weights are referred to by name, see [`Floats`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the model.
    pub name: String,
    /// What the client provides.
    pub input: SourceInput,
    /// Tensor that the client learns.
    pub output: String,
    /// Operators in topological order.
    pub nodes: Vec<SourceNode>,
}

/// The input tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceInput {
    /// Tensor name.
    pub name: String,
    /// `[channels, height, width]` or `[length]`, without the batch axis.
    pub shape: Vec<usize>,
}

/// One operator: its inputs are tensors, its weights are fields of the operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceNode {
    /// Unique name, used in error messages.
    pub name: String,
    /// Tensors read.
    pub inputs: Vec<String>,
    /// Tensor written.
    pub output: String,
    /// What to compute; its fields stand next to the ones above, tagged `op`.
    #[serde(flatten)]
    pub op: SourceOp,
}

/// What an imported operator computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", deny_unknown_fields)]
pub enum SourceOp {
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
        /// Its first parameter, if it has any.
        #[serde(default)]
        alpha: f64,
        /// Its second parameter.
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
    /// To mean 0 and deviation 1 along the first axis, then per channel times `scale` plus
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
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `x * min(max(x / 6 + 1/2, 0), 1)`.
    HardSwish,
    /// `min(max(alpha * x + beta, 0), 1)`.
    HardSigmoid,
    /// `x`, below 0 `alpha * (exp(x) - 1)`.
    Elu,
    /// `ln(1 + exp(x))`.
    Softplus,
    /// `x`, below 0 `alpha * x`.
    LeakyRelu,
}

impl Function {
    /// Its value at `x`.
    pub fn at(self, x: f64, alpha: f64, beta: f64) -> f64 {
        match self {
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Tanh => x.tanh(),
            Self::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Self::HardSigmoid => (alpha * x + beta).clamp(0.0, 1.0),
            Self::Elu => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Self::LeakyRelu => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
        }
    }
}

impl SourceOp {
    /// Whether this becomes a linear node.
    pub(crate) fn is_linear(&self) -> bool {
        matches!(self, Self::Conv { .. } | Self::Gemm { .. })
    }

    /// Whether a sum can be part of what this becomes.
    pub(crate) fn is_product(&self) -> bool {
        self.is_linear() || matches!(self, Self::QuantisedConv { .. })
    }

    /// Names of the weights read.
    pub(crate) fn floats(&self) -> Vec<&str> {
        match self {
            Self::QuantisedConv { weight, scale, bias, .. } => vec![weight, scale, bias],
            Self::Conv { weight, bias, .. } | Self::Gemm { weight, bias } => {
                [Some(weight), bias.as_ref()].into_iter().flatten().map(String::as_str).collect()
            }
            Self::BatchNormalization { scale, bias, mean, variance, .. } => {
                vec![scale, bias, mean, variance]
            }
            Self::AddConstant { constant } => vec![constant],
            Self::Embedding { weight } => vec![weight],
            Self::LayerNorm { scale, bias, .. } => {
                [scale, bias].into_iter().flatten().map(String::as_str).collect()
            }
            _ => vec![],
        }
    }
}

impl<'de> Deserialize<'de> for SourceNode {
    /// `flatten` would switch off the check for unknown fields, so the common
    /// fields are taken out first and the operator gets the rest.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let mut take =
            |key: &'static str| fields.remove(key).ok_or_else(|| D::Error::missing_field(key));
        let (name, inputs, output) = (take("name")?, take("inputs")?, take("output")?);
        let rest = serde_json::Value::Object(fields);
        Ok(Self {
            name: serde_json::from_value(name).map_err(D::Error::custom)?,
            inputs: serde_json::from_value(inputs).map_err(D::Error::custom)?,
            output: serde_json::from_value(output).map_err(D::Error::custom)?,
            op: serde_json::from_value(rest).map_err(D::Error::custom)?,
        })
    }
}

/// A float array in row-major order. `Debug` shows its shape only; the values
/// are erased on drop.
#[derive(Clone, PartialEq, Zeroize, ZeroizeOnDrop)]
pub struct FloatTensor {
    /// Axes, outermost first.
    pub shape: Vec<usize>,
    /// As many values as the product of `shape`.
    pub data: Vec<f32>,
}

impl FloatTensor {
    /// A vector.
    pub fn vector(data: Vec<f32>) -> Self {
        Self { shape: vec![data.len()], data }
    }
}

impl fmt::Debug for FloatTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FloatTensor({:?}, hidden values)", self.shape)
    }
}

/// Named weights.
pub type Floats = BTreeMap<String, FloatTensor>;

/// Smallest and largest value seen in each tensor, by its name in the source.
pub type Ranges = BTreeMap<String, (f64, f64)>;

/// Mean of each channel (first axis) of tensors, by their names in the source.
pub type Means = BTreeMap<String, Vec<f64>>;

/// What example inputs show of a float model, in model units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Of the input, of every ReLU without a maximum, and of every sum or linear
    /// output that no ReLU follows; others are not read.
    pub ranges: Ranges,
    /// Linear layers whose input is among these have their biases corrected.
    pub means: Means,
}

impl From<Ranges> for Calibration {
    fn from(ranges: Ranges) -> Self {
        Self { ranges, means: Means::new() }
    }
}

/// What passes rewrite: a source graph with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The operators.
    pub source: Source,
    /// Their weights.
    pub floats: Floats,
}

impl Source {
    /// Reads strict JSON.
    ///
    /// # Errors
    /// [`Error::Misuse`] for malformed JSON, unknown operators and unknown fields.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::Misuse(format!("source graph: {e}")))
    }

    /// How often `tensor` is read; being the graph's output counts as one.
    pub(crate) fn uses(&self, tensor: &str) -> usize {
        let reads = self.nodes.iter().flat_map(|n| &n.inputs).filter(|i| *i == tensor).count();
        reads + usize::from(self.output == tensor)
    }

    /// Index of the node that writes `tensor`.
    pub(crate) fn producer(&self, tensor: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.output == tensor)
    }

    /// Index of the linear node whose only reader is a reader of `tensor`.
    pub(crate) fn single_use_linear(&self, tensor: &str) -> Option<usize> {
        self.single_use(tensor, SourceOp::is_linear)
    }

    /// The same of a node that a sum can be part of.
    pub(crate) fn single_use_product(&self, tensor: &str) -> Option<usize> {
        self.single_use(tensor, SourceOp::is_product)
    }

    fn single_use(&self, tensor: &str, wanted: fn(&SourceOp) -> bool) -> Option<usize> {
        let index = self.producer(tensor)?;
        (wanted(&self.nodes[index].op) && self.uses(tensor) == 1).then_some(index)
    }

    /// Bits of a tensor whose values are integers of one scale and not negative, if it is one;
    /// a ReLU that does not say has `activation_bits`.
    pub(crate) fn unsigned_bits(&self, tensor: &str, activation_bits: u32) -> Option<u32> {
        let node = &self.nodes[self.producer(tensor)?];
        match &node.op {
            SourceOp::Relu { bits, .. } => Some(bits.unwrap_or(activation_bits)),
            SourceOp::Requantize { bits } => Some(*bits),
            SourceOp::MaxPool { .. }
            | SourceOp::Reshape { .. }
            | SourceOp::View { .. }
            | SourceOp::Pad { .. } => self.unsigned_bits(&node.inputs[0], activation_bits),
            _ => None,
        }
    }

    /// `base`, lengthened until no tensor or node has that name.
    pub(crate) fn fresh(&self, base: &str) -> String {
        let taken: BTreeSet<&str> = self
            .nodes
            .iter()
            .flat_map(|n| [n.name.as_str(), n.output.as_str()])
            .chain([self.input.name.as_str()])
            .collect();
        lengthen(base, |name| taken.contains(name))
    }
}

impl Program {
    /// Stores new weights under a name that starts with `base` and returns the name.
    pub(crate) fn store(&mut self, base: &str, tensor: FloatTensor) -> String {
        let name = lengthen(base, |name| self.floats.contains_key(name));
        self.floats.insert(name.clone(), tensor);
        name
    }
}

/// `base` with as many primes as it takes to be free.
fn lengthen(base: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = base.to_owned();
    while taken(&name) {
        name.push('\'');
    }
    name
}
