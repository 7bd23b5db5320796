//! Layers that the server's weights or two shared tensors are multiplied in, as values: one
//! file per protocol, each an implementation of [`LinearProtocol`](crate::step::LinearProtocol).

pub mod appended_matmul;
pub mod bands;
pub mod checked;
pub mod coefficient;
pub mod lola;
pub mod ot_matmul;
pub mod passed_matmul;
mod pools;
pub mod shared_matmul;
pub mod slots;
pub mod small;
pub mod trees;
