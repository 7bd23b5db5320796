//! What an operator is told of the tensors around its node when scales are chosen.

use crate::error::Result;

/// The facts that are known about the real values around one node. Inputs are named by their
/// places, from 0. A place that the node does not have is shared, not saturated, and of unknown
/// width.
pub trait Values {
    /// Returns the bits of activations.
    fn activation_bits(&self) -> u32;

    /// Returns how many tensors the node reads.
    fn inputs(&self) -> usize;

    /// Returns the shape of an input.
    fn shape(&self, place: usize) -> &[usize];

    /// Returns the smallest and the largest value of an input: those that calibration saw, or what
    /// follows from the ranges that it saw.
    ///
    /// # Errors
    /// [`crate::Error::Misuse`] where calibration has no range that it follows from,
    /// [`crate::Error::Internal`] for a place that the node does not have.
    fn range(&self, place: usize) -> Result<(f64, f64)>;

    /// Returns the range of an input without the mask, if a mask wrote it.
    ///
    /// # Errors
    /// The errors of [`Values::range`].
    fn unmasked_range(&self, place: usize) -> Result<(f64, f64)>;

    /// Returns the smallest and the largest value of the output, as of an input.
    ///
    /// # Errors
    /// The errors of [`Values::range`].
    fn output_range(&self) -> Result<(f64, f64)>;

    /// Returns the bits of an input whose values are integers of one scale and not negative, if it
    /// is one.
    fn unsigned_bits(&self, place: usize) -> Option<u32>;

    /// Returns whether the values of an input are clipped to what calibration saw.
    fn is_saturated(&self, place: usize) -> bool;

    /// Returns whether a mask wrote an input.
    fn is_masked(&self, place: usize) -> bool;

    /// Returns whether the client knows the values of an input.
    fn is_known(&self, place: usize) -> bool;

    /// Returns whether an input is a factor whose scale a product may choose.
    fn is_shared(&self, place: usize) -> bool;

    /// Returns whether an input is never far beyond what calibration saw, because a dense layer of
    /// a norm's result wrote it.
    fn is_bounded(&self, place: usize) -> bool;

    /// Returns whether an input shows rows of a table, or sums with constants.
    fn is_looked_up(&self, place: usize) -> bool;

    /// Returns whether all that reads the output clips it before anything else.
    fn is_clipped_by_readers(&self) -> bool;

    /// Returns whether all that reads the output, a mask's, reads scores and mask apart.
    fn is_read_apart(&self) -> bool;

    /// Returns whether nothing but sums reads the output.
    fn is_only_summed(&self) -> bool;

    /// Returns whether all that reads the output, times a positive number or not, is sums that
    /// rescale it themselves: no product takes them over.
    fn is_rescaled_by_sums(&self) -> bool;
}

/// Whether all inputs are clipped to what calibration saw.
pub(crate) fn all_saturated(values: &dyn Values) -> bool {
    (0..values.inputs()).all(|place| values.is_saturated(place))
}
