//! Preprocessing: correlations, and linear layers on masks, before inputs exist.

pub(crate) mod ahead;
pub(crate) mod costs;
pub(crate) mod layers;
pub(crate) mod schedule;
pub(crate) mod segments;
pub(crate) mod together;
