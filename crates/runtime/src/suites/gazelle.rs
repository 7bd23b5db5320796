//! Suite `gazelle`: packed slots with rotations of inputs.

use mpc::linear::slots::Protocol;

use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "gazelle",
    summary: "packed slots, rotations of inputs (GAZELLE)",
    steps: packed::steps,
    packing: Some(|| Packing::Rotated(Protocol::Gazelle)),
    rounds_exactly: true,
    ..Suite::PLAIN
};
