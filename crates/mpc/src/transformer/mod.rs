//! Non-linear functions of transformers, composed of the protocols on shares. Each is
//! integer arithmetic with a clear function that equals it bit for bit; its distance
//! from the real function is stated and tested.

mod curve;
mod digits;
mod exponent;
pub mod gelu;
pub mod inverse;
pub mod layernorm;
mod real;
mod rows;
pub mod softmax;
mod steps;
