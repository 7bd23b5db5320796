//! A neural network as a typed integer graph: import, passes that fold and
//! reorder, lowering to integers of proven width, verification after each
//! step, the interpreter that the protocols are compared with, and the
//! `.tacit` file.

mod arrange;
mod canonical;
pub mod choice;
mod defined;
pub mod error;
mod exact;
pub mod file;
pub mod functions;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod geometry;
pub mod interpret;
pub mod ir;
pub mod lower;
pub mod model;
pub mod passes;
pub mod shapes;
pub mod source;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::indexing_slicing)]
pub mod testing;
pub mod verify;
mod width;
pub mod winograd;

pub use arrange::arrangement;
pub use canonical::canonical_filters;
pub use choice::WeightBits;
pub use error::Error;
pub use file::{load, save};
pub use interpret::{argmax, interpret, interpret_batch, trace};
pub use ir::{
    Conv, Embedding, Exact, Format, Graph, Linear, MatMul, Model, Node, NodeWeights, Nonlinear, Op,
    Packing, Rounding, Tensor, VERSION, View, Window,
};
pub use lower::{Options, Switch, in_graph, lower, reassigned, variants};
pub use model::{digest, verify_model};
pub use source::{
    Calibration, FloatTensor, Floats, Function, Means, Ranges, Source, SourceInput, SourceNode,
    SourceOp,
};
pub use verify::verify;
pub use width::winograd::worst_case_bits;
pub use winograd::Winograd;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
