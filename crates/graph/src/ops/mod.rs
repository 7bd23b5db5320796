//! Integer operators, one in each file.
//!
//! A new operator of this crate is a file here and a line of the list in [`registry`]. A program adds
//! an operator of its own by [`register`].

mod accumulator;
pub(crate) mod arrange;
mod checks;
pub mod choice;
mod concat;
mod embedding;
mod extend;
mod gelu;
pub(crate) mod geometry;
mod known;
mod layer_norm;
mod linear;
mod lookup;
pub(crate) mod matmul;
mod max_pool;
mod offset;
mod op;
mod operator;
mod pad;
mod pool;
mod product;
mod range;
mod registry;
pub(crate) mod relu;
mod relu_softmax;
mod requantize;
mod reshape;
mod smu;
mod softmax;
mod sum;
mod sum_pool;
mod view;
pub mod winograd;

pub use accumulator::{Accumulator, Rounding};
pub use checks::{ensure, same_shape, same_width};
pub use choice::WeightBits;
pub use concat::Concat;
pub use embedding::Embedding;
pub use extend::Extend;
pub use gelu::Gelu;
pub use geometry::{Conv, View, Window};
pub use known::{Known, Part};
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use lookup::Lookup;
pub use matmul::MatMul;
pub use max_pool::MaxPool;
pub use offset::Offset;
pub use op::Op;
pub use operator::{Carried, Kernel, Operator, Site, UnscaledOperator, Weighted};
pub use pad::Pad;
pub use product::Product;
pub use range::{ROUNDING_SLACK, Range, rescale};
pub use registry::{Registration, register};
pub use relu::Relu;
pub use relu_softmax::ReluSoftmax;
pub use requantize::Requantize;
pub use reshape::Reshape;
pub use smu::Smu;
pub use softmax::Softmax;
pub use sum::Sum;
pub use sum_pool::SumPool;
pub use winograd::Winograd;
