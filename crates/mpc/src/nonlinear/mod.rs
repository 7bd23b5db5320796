//! Non-linear functions on additive shares.

pub mod argmax;
pub(crate) mod clamp;
pub mod clip;
pub mod comet;
pub mod leaky_relu;
pub(crate) mod lift;
pub mod lookup;
pub mod maximum;
pub mod relu;
pub(crate) mod row_maximum;
pub mod sign;
pub mod softmax;
