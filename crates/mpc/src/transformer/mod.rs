//! Non-linear functions of transformers, composed of the protocols on shares. Each equals,
//! bit for bit, integer arithmetic that [`graph::functions`] defines, whose distance from
//! the real function is stated and tested there.

mod absolute;
mod circuits;
mod curve;
mod digits;
mod ends;
mod exponent;
pub mod fold;
pub mod gelu;
pub mod inverse;
pub mod layernorm;
mod moments;
mod rounding;
pub mod softmax;
mod squares;
mod steps;
