//! Layers that the server's weights or two shared tensors are multiplied in, as values: one
//! file per protocol, each an implementation of [`LinearProtocol`].

pub mod coefficient;
pub mod context;
pub mod keys;
pub mod lola;
pub mod ot_matmul;
pub mod preprocessed;
pub mod protocol;
pub mod shared_matmul;
pub mod slots;
pub mod small;
pub mod weights;

pub use context::{Context, Endpoint, Party, Preprocessing};
pub use keys::{ClientKeys, KeyDemand, ServerKeys, SlotKeyDemand};
pub use preprocessed::{Asked, Preprocessed};
pub use protocol::{Exchange, LinearProtocol, Preprocess};
pub use weights::{Encoded, WeightSource, Weights};
