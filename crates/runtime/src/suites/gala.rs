//! Suite `gala`: packed slots with rotations of sums, which are fewer.

use mpc::linear::slots::Protocol;

use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "gala",
    summary: "packed slots, rotations of sums (GALA)",
    steps: packed::steps,
    packing: Some(|| Packing::Rotated(Protocol::Gala)),
    rounds_exactly: true,
    ..Suite::PLAIN
};
