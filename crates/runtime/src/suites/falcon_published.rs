//! Suite `falcon`: FALCON as published, whose masks leak.

use mpc::linear::falcon::AcceptLeakage;

use super::falcon::MOST_HIDDEN;
use super::packed;
use super::suite::Suite;
use crate::linear::slots::Packing;

/// Masks as wide as any layer lets them be; the plan narrows them.
fn packing() -> Packing {
    Packing::Published(AcceptLeakage::hiding_bits(MOST_HIDDEN))
}

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "falcon",
    summary: "FALCON as published: complex transforms under masks of a few bits, which leak",
    steps: |graph, settings, _| packed::steps(graph, settings, packing()),
    packing: Some(packing),
    hides_filters: true,
    leaks: Some(
        "masks are a few bits wider than what they mask, so the server learns about inputs and \
         activations, the client about weights; use falcon-ntt, which does not, or \
         --accept-leakage on both sides with data that nobody minds",
    ),
    ..Suite::PLAIN
};
