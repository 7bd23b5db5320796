//! The place in the integer graph where a source operator is lowered.

use super::floats::Floats;
use super::values::Values;
use crate::error::{Error, Result};
use crate::ops::{Operator, Rounding};
use crate::tensor::{Format, NodeWeights, Tensor};

/// An integer node that a source operator writes.
#[derive(Debug)]
pub struct IntegerNode {
    /// What the node computes. Its own widths may be chosen later.
    pub operator: Box<dyn Operator>,
    /// The server's integers, if the operator has some.
    pub weights: Option<NodeWeights>,
    /// The places of the tensors that it reads, in order.
    pub reads: Vec<usize>,
    /// The shape of its output, if that is not the source node's.
    pub shape: Option<Vec<usize>>,
    /// Scale and sign of its output. The width is 1 where it is chosen later.
    pub format: Format,
}

impl IntegerNode {
    /// A node without weights that writes a tensor of the source node's shape. Its width is
    /// chosen later.
    pub fn new(operator: impl Operator, reads: &[usize], scale: f64, signed: bool) -> Self {
        let format = Format { bits: 1, scale, signed };
        let (operator, reads) = (Box::new(operator), reads.to_vec());
        Self { operator, weights: None, reads, shape: None, format }
    }
}

/// The place in the integer graph where a source operator is lowered. Tensors that the operator
/// may read have places: first the node's inputs, in order, then what the operator writes in
/// front of its output. Widths of tensors are not chosen yet.
pub trait Lowering {
    /// Returns the node's name.
    fn name(&self) -> &str;

    /// Returns the facts that are known about the real values around the node.
    fn values(&self) -> Box<dyn Values + '_>;

    /// Returns the weights of the network.
    fn floats(&self) -> &Floats;

    /// How linear layers round.
    fn rounding(&self) -> Rounding;

    /// Returns whether norms find inverse roots by Newton's iteration.
    fn newton(&self) -> bool;

    /// Returns whether what is added to a product is added behind it, not in its accumulator.
    fn adds_apart(&self) -> bool;

    /// Returns the tensor at a place.
    ///
    /// # Errors
    /// [`Error::Internal`] for a place that there is not.
    fn input(&self, place: usize) -> Result<&Tensor>;

    /// Returns the shape of the node's output.
    fn shape(&self) -> &[usize];

    /// Returns the place of what is added to a product: of an operator that [is
    /// one](super::SourceOperator::is_product) and that a sum is part of.
    fn addend(&self) -> Option<usize>;

    /// Returns the scale that suits the node's output.
    ///
    /// # Errors
    /// [`Error::Misuse`] where calibration has no range for it.
    fn scale(&self) -> Result<f64>;

    /// Returns the integer that brings the tensor at a place to a finer scale.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for scales that are too different.
    fn multiplier(&self, place: usize, scale: f64) -> Result<i64>;

    /// Clips the tensor at a place to what calibration saw of it, in so many bits. Does nothing
    /// where it is clipped already.
    ///
    /// # Errors
    /// [`Error::Misuse`] where calibration has no range for it, [`Error::Unsupported`] where no
    /// window holds that range.
    fn clip(&mut self, place: usize, bits: u32) -> Result<()>;

    /// Clips the tensor at a place to a range, in so many bits or more, and tells how many. The
    /// node that does it and its tensor are named after `step`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where no window holds that range.
    fn clip_to(&mut self, place: usize, step: &str, range: (f64, f64), bits: u32) -> Result<u32>;

    /// Returns whether the tensor at a place has nothing but results of clips, states and constants, all of at
    /// most so many signed bits (1 to 63).
    fn is_within(&self, place: usize, bits: u32) -> bool;

    /// Brings the tensor at a place to another scale, by a node that is named after `step`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for scales that are too different.
    fn rescale(&mut self, place: usize, step: &str, scale: f64) -> Result<()>;

    /// Reads scores and mask, at two places, where a mask wrote the node's input, the only one.
    fn unmask(&mut self);

    /// Writes a tensor in front of the output, named after `step`, and tells its place.
    ///
    /// # Errors
    /// [`Error::Internal`] for a place that there is not.
    fn before(&mut self, step: &str, node: IntegerNode) -> Result<usize>;

    /// Writes the node's output.
    ///
    /// # Errors
    /// [`Error::Internal`] where it was written before.
    fn finish(&mut self, node: IntegerNode) -> Result<()>;

    /// Writes the node's output by one operator that reads all inputs, in order.
    ///
    /// # Errors
    /// [`Error::Internal`] where it was written before.
    fn write(&mut self, operator: Box<dyn Operator>, scale: f64, signed: bool) -> Result<()>;

    /// Writes the node's output, `factors[0]*x0 + factors[1]*x1` of the tensors at two places.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for scales that are too different.
    fn sum(&mut self, places: [usize; 2], factors: [f64; 2], scale: f64) -> Result<()>;

    /// Writes the node's output as [`super::LinearOperator`] describes the operator: a linear
    /// layer of the tensor at a place, to which the addend is added.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for weights that do not suit the calibrated range of the output,
    /// [`Error::Internal`] for an operator that is not linear.
    fn linear(&mut self, place: usize) -> Result<()>;

    /// Writes the node's output: all inputs one after another, each at its own scale. Only a
    /// linear layer can read it. Where they are to be `balanced`, each is multiplied by a power
    /// of two, so that the weights of all of them are of like sizes.
    ///
    /// # Errors
    /// [`Error::Internal`] where it was written before.
    fn join(&mut self, balanced: bool) -> Result<()>;

    /// Leaves the output out, since no reader reads it.
    fn skip(&mut self);

    /// Returns the refusal of the node: what it asks for, and what the user can do about it.
    fn refuse(&self, what: &str, instead: &str) -> Error;

    /// Returns the error for a node that cannot be here.
    fn defect(&self, why: &str) -> Error;
}

/// The place in a graph of integers that are never rescaled where a source operator is lowered.
pub trait UnscaledLowering {
    /// Returns the tensor that the node reads, the first one.
    fn input(&self) -> &Tensor;

    /// Writes the node's output by one operator that reads the input.
    ///
    /// # Errors
    /// [`Error::Internal`] where it was written before.
    fn write(&mut self, operator: Box<dyn Operator>, scale: f64, signed: bool) -> Result<()>;

    /// Writes the node's output as [`super::LinearOperator`] describes the operator.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for weights that do not fit, [`Error::Internal`] for an operator
    /// that is not linear.
    fn linear(&mut self) -> Result<()>;

    /// Returns the refusal of the node: what it asks for, and what the user can do about it.
    fn refuse(&self, what: &str, instead: &str) -> Error;

    /// Returns the error for a node that cannot be here.
    fn defect(&self, why: &str) -> Error;
}
