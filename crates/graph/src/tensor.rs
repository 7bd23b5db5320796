//! Tensors between nodes, and the server's numbers beside them.

use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

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
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether there are no elements; false in every verified graph.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One of several inputs or results that lie, flattened, one after another in a tensor; or the only
/// one, in a shape of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name in the imported model; unique among its parts.
    pub name: String,
    /// Shape without the batch axis, of any rank; a single number has none.
    pub shape: Vec<usize>,
    /// What 1 in the tensor's real values is in those of the part.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unit: f64,
    /// Each element has such a unit of its own besides, by which `unit` is multiplied. The list is
    /// empty where all are 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<f64>,
}

fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(unit: &f64) -> bool {
    *unit == 1.0
}

impl Part {
    /// Returns the number of elements; 0 where they are too many to count.
    pub fn len(&self) -> usize {
        self.shape.iter().try_fold(1usize, |all, side| all.checked_mul(*side)).unwrap_or(0)
    }

    /// Returns whether there are no elements; false in every verified graph.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what 1 in the tensor's real values is in those of each element.
    pub fn unit_of_each(&self) -> impl Iterator<Item = f64> {
        let each = self.units.iter().copied().chain(std::iter::repeat(1.0));
        each.take(self.len()).map(|unit| unit * self.unit)
    }
}

/// The server's integers of one node that has weights. `Debug` shows lengths only; the
/// contents are erased on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct NodeWeights {
    /// A linear layer has `[out_channels, in_channels / groups, kernel rows, kernel columns]`,
    /// row-major; in the Winograd domain `[out_channels, in_channels, tile + 2, tile + 2]`. An
    /// embedding has its table `[rows, columns]`, an offset nothing.
    pub weight: Vec<i32>,
    /// A linear layer has `[out_channels]`, at the accumulator's scale, without the rounding
    /// term. An offset has one for each element, an embedding nothing.
    pub bias: Vec<i64>,
}

impl fmt::Debug for NodeWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (weights, biases) = (self.weight.len(), self.bias.len());
        write!(f, "NodeWeights(<{weights} hidden weights, {biases} hidden biases>)")
    }
}
