//! Suite `comet`: every function by one inverse square root, in networks that were trained so; the
//! protocols are those of the default suite.

use super::auto;
use super::suite::Suite;

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "comet",
    summary: "GELU, softmax and norms by one inverse square root",
    steps: auto::steps,
    nodes: Some(auto::NODES),
    unifies: true,
    plans_widths: true,
    ..Suite::PLAIN
};
