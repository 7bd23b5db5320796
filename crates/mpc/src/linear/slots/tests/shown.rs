//! What the parties see: nothing that depends on weights, nothing that is not masked.

use super::super::*;
use super::parties::{case, layer, run};
use crate::linear::coefficient::tests::conv;
use crate::linear::testing::{
    pinned, tampering_is_noticed_or_harmless, uniform_below, weights_do_not_show,
};

const BOTH: [Protocol; 2] = [Protocol::Gazelle, Protocol::Gala];

#[test]
fn weights_show_in_no_message_and_in_no_work() {
    let conv = conv([9, 12], [9, 9], 3, 1, 1);
    for protocol in BOTH {
        weights_do_not_show(12 * 9 * 9, |weight| {
            let mut case = case(layer(&conv, protocol, None), &conv, 0);
            case.weights = ServerWeights::new(&case.layer, weight, &[0; 12], &mut 0).unwrap();
            run(&case, None)
        });
    }
}

#[test]
fn the_clients_share_is_uniform() {
    let conv = conv([2, 16], [16, 16], 3, 1, 1);
    for protocol in BOTH {
        let case = case(layer(&conv, protocol, None), &conv, 0);
        let share = run(&case, None).0.value.unwrap();
        uniform_below(&share, case.layer.prime());
    }
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    let case = case(layer(&conv, Protocol::Gala, None), &conv, 1 << 24);
    tampering_is_noticed_or_harmless(|tamper| run(&case, tamper));
}

#[test]
fn transcripts_are_pinned() {
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    for protocol in BOTH {
        let case = case(layer(&conv, protocol, None), &conv, 0);
        pinned(protocol.name(), &run(&case, None));
    }
}
