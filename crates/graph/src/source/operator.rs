//! What a source operator is: its shape, and the integer operators that it becomes.

use super::floats::Floats;
use super::linear::LinearOperator;
use crate::error::{Check, Error, Result};
use crate::ops::Operator;
use crate::tensor::Tensor;
use std::any::Any;
use std::fmt::Debug;

/// An operator of a float model. Each stands in one file of [`super::ops`], or outside this
/// crate and is registered, see [`super::register`].
pub trait SourceOperator: CarriedSource + Debug + Send + Sync {
    /// The operator's name in the source's JSON, its field `op`.
    fn kind(&self) -> &'static str;

    /// Names of the weights that the operator reads.
    fn floats(&self) -> Vec<&str> {
        vec![]
    }

    /// The output's shape; checks the operator's own numbers and its weights, which exist.
    ///
    /// # Errors
    /// What does not fit, in words.
    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>>;

    /// The operator as a linear layer with float weights, if it is one.
    fn linear(&self) -> Option<&dyn LinearOperator> {
        None
    }

    /// The same to change its weights.
    fn linear_mut(&mut self) -> Option<&mut dyn LinearOperator> {
        None
    }

    /// Whether a sum can be part of what the operator becomes.
    fn is_product(&self) -> bool {
        self.linear().is_some()
    }

    /// The output's scale in that of the inputs, if the operator has no choice; else the scale
    /// follows from the output's calibrated range.
    fn ratio(&self) -> Option<f64> {
        None
    }

    /// Writes the integer operators that compute the node.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what integers cannot compute.
    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        Err(step.refuse("is not lowered", "report it"))
    }
}

/// The place in the integer graph where a source operator is lowered.
pub trait Lowering {
    /// The tensor that the node reads at a place. Its width is not chosen yet.
    ///
    /// # Errors
    /// [`Error::Internal`] for a place that the node does not have.
    fn input(&self, place: usize) -> Result<&Tensor>;

    /// The scale that suits the node's output.
    ///
    /// # Errors
    /// [`Error::Misuse`] where calibration has no range for it.
    fn scale(&self) -> Result<f64>;

    /// Clips the tensor at a place to what calibration saw of it, in so many bits. Does nothing
    /// where it is clipped already.
    ///
    /// # Errors
    /// [`Error::Misuse`] where calibration has no range for it, [`Error::Unsupported`] where no
    /// window holds that range.
    fn clip(&mut self, place: usize, bits: u32) -> Result<()>;

    /// Writes the node's output by one operator that reads all inputs, in order.
    ///
    /// # Errors
    /// [`Error::Internal`] where it was written before.
    fn write(&mut self, operator: Box<dyn Operator>, scale: f64, signed: bool) -> Result<()>;

    /// The refusal of the node: what it asks for, and what the user can do about it.
    fn refuse(&self, what: &str, instead: &str) -> Error;
}

/// What a source operator needs to be a value in a source graph. Everything that can be copied,
/// compared and written as JSON has it.
pub trait CarriedSource: Any {
    /// A copy.
    fn boxed(&self) -> Box<dyn SourceOperator>;

    /// Whether another operator is of this type and equal.
    fn equals(&self, other: &dyn SourceOperator) -> bool;

    /// The operator's fields.
    ///
    /// # Errors
    /// For fields that have no form in JSON.
    fn to_json(&self) -> serde_json::Result<serde_json::Value>;

    /// The operator as a value of any type, to find out its own.
    fn as_any(&self) -> &dyn Any;

    /// The same to change it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: SourceOperator + Clone + PartialEq + serde::Serialize> CarriedSource for T {
    fn boxed(&self) -> Box<dyn SourceOperator> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn SourceOperator) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn to_json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
