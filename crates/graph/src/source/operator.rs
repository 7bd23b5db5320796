//! What a source operator is: its shape, and the integer operators that it becomes.

use super::floats::Floats;
use super::linear::LinearOperator;
use super::lowering::{Lowering, UnscaledLowering};
use super::values::Values;
use crate::error::{Check, Result};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;

/// A tensor that a node reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The input at a place, from 0.
    Input(usize),
    /// The output.
    Output,
}

/// An operator of a float model. Each stands in one file of [`super::ops`], or outside this
/// crate and is registered, see [`super::register`].
///
/// The first group of methods says what the operator is. The second is how scales, the real
/// values of one integer unit, are chosen: an operator ties the scales of its tensors together
/// ([`SourceOperator::ratio`]), asks for scales ([`SourceOperator::demands`]) or takes that of
/// its output's range, and tells what is known of its results. The third writes integer operators.
pub trait SourceOperator: CarriedSource + Debug + Send + Sync {
    /// Returns the operator's name in the source's JSON, its field `op`.
    fn kind(&self) -> &'static str;

    /// Returns names of the weights that the operator reads.
    fn floats(&self) -> Vec<&str> {
        vec![]
    }

    /// Returns the output's shape; checks the operator's own numbers and its weights, which exist.
    ///
    /// # Errors
    /// What does not fit, in words.
    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>>;

    /// Returns the operator as a linear layer with float weights, if it is one.
    fn linear(&self) -> Option<&dyn LinearOperator> {
        None
    }

    /// Returns the linear layer, if it is one, so that its weights can be changed.
    fn linear_mut(&mut self) -> Option<&mut dyn LinearOperator> {
        None
    }

    /// Returns whether a sum can be part of what the operator becomes.
    fn is_product(&self) -> bool {
        self.linear().is_some()
    }

    /// Returns whether only networks that were trained with few bits have the operator, for
    /// products by oblivious transfer.
    fn has_few_bits(&self) -> bool {
        false
    }

    /// Returns the name of the table whose rows the input's integers choose, if that is what the
    /// operator does.
    fn table(&self) -> Option<&str> {
        None
    }

    /// Returns the place of an input of zeros and ones that says which values of another one count.
    fn mask_place(&self, _values: &dyn Values) -> Option<usize> {
        None
    }

    /// Returns the elements of the input from the first to the last that the output shows, of an
    /// operator that shows some of them.
    fn shown(&self) -> Option<Range<usize>> {
        None
    }

    /// Returns whether the output shows the input's values in some order, up to a positive factor.
    fn shows_input(&self) -> bool {
        false
    }

    /// Returns whether each result is one of the input's values, or zero.
    fn keeps_integers(&self) -> bool {
        false
    }

    /// Returns whether the results are parts of 1, along the last axis.
    fn is_distribution(&self) -> bool {
        false
    }

    /// Returns whether the norm of the results along the first axis is bounded.
    fn is_norm(&self) -> bool {
        false
    }

    /// Returns the output's scale in that of the inputs, if the operator has no choice; else the
    /// scale follows from the output's calibrated range.
    fn ratio(&self) -> Option<f64> {
        None
    }

    /// Returns how many inputs, from the first on, [`SourceOperator::ratio`] holds for.
    fn tied_inputs(&self) -> usize {
        usize::MAX
    }

    /// Returns the bits that are left of an input of integers that are not negative, if the
    /// operator drops all others. Then its scale is tied to the input's.
    fn kept_bits(&self) -> Option<u32> {
        None
    }

    /// Returns whether the output's range chooses its scale, where no operator asks for one.
    fn chooses_scale(&self) -> bool {
        self.ratio().is_none()
    }

    /// Returns the scales that the operator asks of tensors that it reads or writes. The coarsest
    /// of all that are asked of tied tensors is taken.
    ///
    /// # Errors
    /// [`crate::Error::Misuse`] where calibration has no range for a tensor.
    fn demands(&self, _values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        Ok(vec![])
    }

    /// Returns the range of the output where calibration has none and none of a reader's, as far as
    /// it follows from the inputs.
    ///
    /// # Errors
    /// [`crate::Error::Misuse`] where calibration has no range for a tensor.
    fn derived_range(&self, _values: &dyn Values) -> Result<Option<(f64, f64)>> {
        Ok(None)
    }

    /// Returns whether the output's calibrated range serves for an input that calibration did not
    /// see and that nothing else reads.
    fn lends_range(&self) -> bool {
        false
    }

    /// Returns whether the results are clipped to what calibration saw.
    fn is_saturated(&self, _values: &dyn Values) -> bool {
        false
    }

    /// Returns the bits of results that are integers of one scale and not negative, where the
    /// operator itself says so.
    fn unsigned_bits(&self, _activation_bits: u32) -> Option<u32> {
        None
    }

    /// Returns whether the operator clips what it reads before anything else, so that a product may
    /// hand it results in narrow shares.
    fn clips_input(&self) -> bool {
        false
    }

    /// Returns whether the operator reads scores and mask apart where a mask wrote its input.
    fn reads_mask_apart(&self) -> bool {
        false
    }

    /// Writes the integer operators that compute the node.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for what integers cannot compute.
    fn lower(&self, step: &mut dyn Lowering) -> Result<()>;

    /// Returns the output as a polynomial `c[0] + c[1]*x + c[2]*x^2` of one tensor x, element by
    /// element, where all inputs are such polynomials of x. Integers that are never rescaled gather
    /// them and compute each with one product.
    fn polynomial(&self, _inputs: &[[f64; 3]], _floats: &Floats) -> Option<[f64; 3]> {
        None
    }

    /// Writes the integer operator that computes the node without rescaling, if it is no
    /// polynomial. Linear layers are written as they describe themselves.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for what integers cannot compute without rescaling.
    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        if self.linear().is_some() {
            return step.linear();
        }
        let instead = "use convolutions, matrix products, squares and average pools only, or \
                       suite auto";
        Err(step.refuse("is not an operator of exact integers", instead))
    }
}

/// What a source operator needs to be a value in a source graph. Everything that can be copied,
/// compared and written as JSON has it.
pub trait CarriedSource: Any {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn SourceOperator>;

    /// Returns whether another operator is of this type and equal.
    fn equals(&self, other: &dyn SourceOperator) -> bool;

    /// Returns the operator's fields.
    ///
    /// # Errors
    /// For fields that have no form in JSON.
    fn to_json(&self) -> serde_json::Result<serde_json::Value>;

    /// Returns the operator as a value of any type, to find out its own.
    fn as_any(&self) -> &dyn Any;

    /// Returns the operator as a value of any type that can be changed.
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
