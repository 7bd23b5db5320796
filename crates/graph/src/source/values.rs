//! What an operator is told of the tensors around its node when scales are chosen.

use crate::error::Result;

/// What is known of the real values around one node. Inputs are named by their places, from 0.
/// A place that the node does not have is shared, not saturated, and of unknown width.
pub trait Values {
    /// Bits of activations.
    fn activation_bits(&self) -> u32;

    /// How many tensors the node reads.
    fn inputs(&self) -> usize;

    /// The shape of an input.
    fn shape(&self, place: usize) -> &[usize];

    /// The smallest and the largest value of an input: those that calibration saw, or what
    /// follows from the ranges that it saw.
    ///
    /// # Errors
    /// [`crate::Error::Misuse`] where calibration has no range that it follows from,
    /// [`crate::Error::Internal`] for a place that the node does not have.
    fn range(&self, place: usize) -> Result<(f64, f64)>;

    /// The range of an input without the mask, if a mask wrote it.
    ///
    /// # Errors
    /// Those of [`Values::range`].
    fn unmasked_range(&self, place: usize) -> Result<(f64, f64)>;

    /// The smallest and the largest value of the output, as of an input.
    ///
    /// # Errors
    /// Those of [`Values::range`].
    fn output_range(&self) -> Result<(f64, f64)>;

    /// Bits of an input whose values are integers of one scale and not negative, if it is one.
    fn unsigned_bits(&self, place: usize) -> Option<u32>;

    /// Whether the values of an input are clipped to what calibration saw.
    fn is_saturated(&self, place: usize) -> bool;

    /// Whether a mask wrote an input.
    fn is_masked(&self, place: usize) -> bool;

    /// Whether the client knows the values of an input.
    fn is_known(&self, place: usize) -> bool;

    /// Whether an input is a factor whose scale a product may choose.
    fn is_shared(&self, place: usize) -> bool;

    /// Whether an input is never far beyond what calibration saw, because a dense layer of a
    /// norm's result wrote it.
    fn is_bounded(&self, place: usize) -> bool;

    /// Whether an input shows rows of a table, or sums with constants.
    fn is_looked_up(&self, place: usize) -> bool;

    /// Whether all that reads the output clips it before anything else.
    fn is_clipped_by_readers(&self) -> bool;

    /// Whether all that reads the output, a mask's, reads scores and mask apart.
    fn is_read_apart(&self) -> bool;

    /// Whether nothing but sums reads the output.
    fn is_only_summed(&self) -> bool;

    /// Whether all that reads the output, times a positive number or not, is sums that rescale
    /// it themselves: no product takes them over.
    fn is_rescaled_by_sums(&self) -> bool;
}

/// Whether all inputs are clipped to what calibration saw.
pub(crate) fn all_saturated(values: &dyn Values) -> bool {
    (0..values.inputs()).all(|place| values.is_saturated(place))
}
