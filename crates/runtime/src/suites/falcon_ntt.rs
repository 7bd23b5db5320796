//! Suite `falcon-ntt`: FALCON's convolutions in the transform domain mod a prime, which leak
//! nothing and hide the sizes of filters.

use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "falcon-ntt",
    summary: "convolutions in the transform domain mod a prime, circuits between them (FALCON)",
    steps: packed::steps,
    packing: Some(|| Packing::Transformed),
    rounds_exactly: true,
    hides_filters: true,
    ..Suite::PLAIN
};
