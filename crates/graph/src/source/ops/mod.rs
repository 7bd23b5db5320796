//! The source operators of this crate, one in each file.
//!
//! A new operator is a file here and a line of the list below. A program adds an operator of
//! its own by [`super::register`].

mod add;
mod add_constant;
mod average_pool;
mod batch_normalization;
mod checks;
mod clip;
mod clipping;
mod combinations;
mod concat;
mod conv;
mod embedding;
mod folded;
mod gate;
mod gelu;
mod gemm;
mod identity;
mod join;
mod layer_norm;
mod mask;
mod mat_mul;
mod max_pool;
mod multiply;
mod narrow;
mod pad;
mod quantised_conv;
mod relu;
mod relu_softmax;
mod requantize;
mod rescale;
mod reshape;
mod scale;
mod smu;
mod softmax;
mod table;
mod view;

pub use add::Add;
pub use add_constant::AddConstant;
pub use average_pool::AveragePool;
pub use batch_normalization::BatchNormalization;
pub use clip::Clip;
pub use combinations::Combinations;
pub use concat::Concat;
pub use conv::Conv;
pub use embedding::Embedding;
pub use gate::Gate;
pub use gelu::Gelu;
pub use gemm::Gemm;
pub use identity::Identity;
pub use join::Join;
pub use layer_norm::LayerNorm;
pub use mask::Mask;
pub use mat_mul::MatMul;
pub use max_pool::MaxPool;
pub use multiply::Multiply;
pub use pad::Pad;
pub use quantised_conv::QuantisedConv;
pub use relu::Relu;
pub use relu_softmax::ReluSoftmax;
pub use requantize::Requantize;
pub use rescale::Rescale;
pub use reshape::Reshape;
pub use scale::Scale;
pub use smu::Smu;
pub use softmax::Softmax;
pub use table::Table;
pub use view::View;

use super::registration::SourceRegistration;

/// Makes the list of this crate's operators, each named in JSON as its type is.
macro_rules! operators {
    ($($Operator:ident,)*) => {
        /// The names of this crate's operators.
        pub(super) const NAMES: &[&str] = &[$(stringify!($Operator),)*];

        /// How this crate's operators come out of JSON.
        pub(super) static BUILT_IN: &[SourceRegistration] =
            &[$(SourceRegistration::of::<$Operator>(stringify!($Operator)),)*];
    };
}

operators! {
    Conv,
    Gemm,
    BatchNormalization,
    QuantisedConv,
    Requantize,
    Rescale,
    Relu,
    MaxPool,
    AveragePool,
    Add,
    AddConstant,
    Identity,
    Clip,
    Combinations,
    Concat,
    View,
    Pad,
    Multiply,
    Gate,
    Scale,
    Table,
    Embedding,
    MatMul,
    Softmax,
    Gelu,
    Smu,
    ReluSoftmax,
    LayerNorm,
    Mask,
    Join,
    Reshape,
}
