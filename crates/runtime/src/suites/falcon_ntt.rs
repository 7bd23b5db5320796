//! Suite `falcon-ntt`: FALCON's convolutions in the transform domain mod a prime, which leak
//! nothing and hide the sizes of filters.

use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

const PACKING: Packing = Packing::Transformed;

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "falcon-ntt",
    summary: "convolutions in the transform domain mod a prime, circuits between them (FALCON)",
    steps: |graph, settings, _| packed::steps(graph, settings, PACKING),
    packing: Some(|| PACKING),
    rounds_exactly: true,
    hides_filters: true,
    ..Suite::PLAIN
};
