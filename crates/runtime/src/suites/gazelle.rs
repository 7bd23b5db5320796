//! Suite `gazelle`: packed slots with rotations of inputs.

use mpc::linear::slots::Protocol;

use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

const PACKING: Packing = Packing::Rotated(Protocol::Gazelle);

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "gazelle",
    summary: "packed slots, rotations of inputs (GAZELLE)",
    steps: |graph, settings, _| packed::steps(graph, settings, PACKING),
    packing: Some(|| PACKING),
    rounds_exactly: true,
    ..Suite::PLAIN
};
