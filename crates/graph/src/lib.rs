//! A neural network as a typed integer graph: import, passes that fold and
//! reorder, lowering to integers of proven width, verification after each
//! step, the interpreter that the protocols are compared with, and the
//! `.tacit` file.

mod banded;
mod canonical;
mod defined;
mod digest;
pub mod error;
pub mod file;
pub mod functions;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod interpret;
pub mod ir;
pub mod keys;
mod link;
pub mod lower;
pub mod model;
pub mod ops;
pub mod passes;
pub mod source;
mod tensor;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::indexing_slicing)]
pub mod testing;
pub mod trees;
pub mod verify;

pub use canonical::canonical_filters;
pub use digest::digest;
pub use error::{Check, Error, Result};
pub use file::{Inspection, inspect, load, load_committed, save, save_with};
pub use interpret::{argmax, interpret, interpret_batch, interpret_stochastic, trace};
pub use ir::{
    Conv, Embedding, Format, Graph, Linear, MatMul, Model, Node, NodeWeights, Nonlinear, Op,
    Packing, Part, Rounding, State, Tensor, Unscaled, VERSION, View, Window,
};
pub use link::{Link, LinkFunction};
pub use lower::{Options, Switch, in_graph, lower, reassigned, variants};
pub use model::verify_model;
pub use ops::winograd::worst_case_bits;
pub use ops::{Encoding, WeightBits, Winograd, choice, winograd};
pub use source::shapes;
pub use source::{
    Calibration, FloatTensor, Floats, Function, Means, Ranges, Source, SourceInput, SourceNode,
    SourceOp, SourceState,
};
pub use trees::Ensemble;
pub use verify::verify;

/// For each element of the output of an operator that only rearranges, the element of the
/// input that it shows; `None` for a zero. Empty for every other operator.
pub fn arrangement(graph: &Graph, node: &Node) -> Vec<Option<usize>> {
    graph.arrangement(node)
}
