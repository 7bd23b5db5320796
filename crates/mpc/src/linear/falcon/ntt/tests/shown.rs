//! What the parties see: nothing that depends on weights, nothing that is not masked.

use wire::HEADER_LEN;

use super::super::*;
use super::parties::{case, layer, run};
use crate::linear::coefficient::tests::conv;
use crate::linear::testing::{
    pinned, tampering_is_noticed_or_harmless, uniform_below, weights_do_not_show,
};

#[test]
fn weights_show_in_no_message_and_in_no_work() {
    let conv = conv([9, 12], [9, 9], 3, 1, 1);
    weights_do_not_show(12 * 9 * 9, |weight| {
        let mut case = case(layer(&conv), &conv, 0);
        case.weights = ServerWeights::new(&case.layer, weight, &[0; 12], &mut 0).unwrap();
        run(&case, None)
    });
}

/// A filter of 3x3 in the middle of 5x5, and one of 5x5: what the client sends is the same
/// to the byte, what it gets has the same lengths.
#[test]
fn the_size_of_a_filter_shows_in_no_message() {
    let conv = conv([4, 6], [14, 14], 5, 1, 2);
    let full: Vec<i32> = (0..6 * 4 * 25).map(|i| i % 31 - 15).collect();
    let inner = |at: usize| (1..4).contains(&(at / 5 % 5)) && (1..4).contains(&(at % 5));
    let small = full.iter().enumerate().map(|(at, w)| if inner(at) { *w } else { 0 });
    let small: Vec<i32> = small.collect();
    let shown = [small, full].map(|w| {
        let mut case = case(layer(&conv), &conv, 1 << 20);
        case.weights = ServerWeights::new(&case.layer, &w, &[0; 6], &mut (1 << 20)).unwrap();
        let (ours, theirs) = run(&case, None);
        assert!(ours.value.is_ok());
        let lengths =
            theirs.frames.iter().map(|frame| (frame.len(), frame[..HEADER_LEN as usize].to_vec()));
        (ours.frames, lengths.collect::<Vec<_>>(), ours.cost, theirs.cost)
    });
    assert!(shown[0] == shown[1]);
}

#[test]
fn the_clients_share_is_uniform() {
    let conv = conv([2, 16], [16, 16], 3, 1, 1);
    let case = case(layer(&conv), &conv, 0);
    uniform_below(&run(&case, None).0.value.unwrap(), case.layer.prime());
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    let case = case(layer(&conv), &conv, 1 << 24);
    tampering_is_noticed_or_harmless(|tamper| run(&case, tamper));
}

#[test]
fn transcripts_are_pinned() {
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    pinned("falcon-ntt", &run(&case(layer(&conv), &conv, 0), None));
}
