//! Comet: GELU's and softmax's places taken by smooth maxima, and these, norms and divisions
//! by one inverse square root (`docs/protocols/comet.md`).

pub mod flooding;
pub mod smu;
pub mod softmax;
pub mod straight_line;
