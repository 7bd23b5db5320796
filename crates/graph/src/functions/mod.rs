//! Non-linear functions of transformers on integers: what the interpreter computes and
//! the protocols on shares equal bit for bit.
//!
//! Tables and lines come from [`real`], which is made of exactly rounded operations
//! alone, so that both parties derive the same ones on every machine. Constructors see
//! numbers of graphs from outside: they refuse what no protocol has, at once.

pub mod branches;
pub mod curve;
pub mod exponent;
pub mod flooding;
pub mod fold;
pub mod gelu;
pub mod inverse;
pub mod layernorm;
pub mod newton;
pub mod real;
mod refusal;
pub mod relu_softmax;
pub mod root;
pub mod smu;
pub mod softmax;
pub mod starts;
pub mod straight_line;

pub use fold::Fold;
pub use gelu::Gelu;
pub use layernorm::{Calibration, LayerNorm};
pub use refusal::Result;
pub use relu_softmax::ReluSoftmax;
pub use smu::Smu;
pub use softmax::Softmax;
