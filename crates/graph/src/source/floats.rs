//! Weights of float models, and what example inputs show of their tensors.

use std::collections::BTreeMap;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A float array in row-major order. `Debug` shows its shape only; the values
/// are erased on drop.
#[derive(Clone, PartialEq, Zeroize, ZeroizeOnDrop)]
pub struct FloatTensor {
    /// Lengths of the axes, outermost first.
    pub shape: Vec<usize>,
    /// As many values as the product of `shape`.
    pub data: Vec<f32>,
}

impl FloatTensor {
    /// Makes a vector of these values.
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
    /// Ranges of the input, of every ReLU without a maximum, and of every sum or linear output
    /// that no ReLU follows; others are not read.
    pub ranges: Ranges,
    /// Linear layers whose input is among these have their biases corrected.
    pub means: Means,
}

impl From<Ranges> for Calibration {
    fn from(ranges: Ranges) -> Self {
        Self { ranges, means: Means::new() }
    }
}
