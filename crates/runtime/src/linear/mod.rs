//! Layers that the server's weights or two shared tensors are multiplied in, as values: one
//! file per protocol, each an implementation of [`LinearProtocol`].

pub mod coefficient;
pub mod context;
pub mod keys;
pub mod lola;
pub mod ot_matmul;
pub mod protocol;
pub mod shared_matmul;
pub mod slots;
pub mod small;
pub mod weights;

pub use context::{Context, Party, Preprocessing};
pub use keys::{ClientKeys, KeyDemand, ServerKeys, SlotKeyDemand};
pub use protocol::{Asked, Exchange, LinearProtocol, Preprocess, Preprocessed};
pub use weights::{Encoded, WeightSource, Weights};
