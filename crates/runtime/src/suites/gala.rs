//! Suite `gala`: packed slots with rotations of sums, which are fewer.

use mpc::linear::slots::Protocol;

use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

const PACKING: Packing = Packing::Rotated(Protocol::Gala);

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "gala",
    summary: "packed slots, rotations of sums (GALA)",
    steps: |graph, settings, _| packed::steps(graph, settings, PACKING),
    packing: Some(|| PACKING),
    rounds_exactly: true,
    ..Suite::PLAIN
};
