//! Non-linear functions of transformers, composed of the protocols on shares. Each is
//! integer arithmetic with a clear function that equals it bit for bit; its distance
//! from the real function is stated and tested.

mod curve;
pub mod gelu;
mod real;
