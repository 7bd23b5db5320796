//! What passes and lowering ask of a linear layer with float weights.

use super::floats::Floats;
use crate::error::Check;
use crate::ops::Conv;

/// A source operator that is a linear layer: `W*x + b`.
pub trait LinearOperator {
    /// Returns the name of the weights W. The first axis of their shape is the output channels, and
    /// each output channel has equally many of them, one after another.
    fn weight(&self) -> &str;

    /// Returns the name of the constants b, one for each output channel, if there are any.
    fn bias(&self) -> Option<&str>;

    /// Makes the layer read other weights of the same shapes.
    fn set_weights(&mut self, weight: String, bias: String);

    /// Returns the layer on an input of that shape, as a convolution.
    ///
    /// # Errors
    /// What does not fit, in words.
    fn geometry(&self, input: &[usize], floats: &Floats) -> Check<Conv>;
}
