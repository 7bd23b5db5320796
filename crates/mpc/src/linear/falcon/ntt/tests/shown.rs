//! What the parties see: nothing that depends on weights, nothing that is not masked.

use wire::testing::Tamper;
use wire::{Error, HEADER_LEN, Role};

use super::super::*;
use super::parties::{case, layer, run};
use crate::linear::coefficient::tests::conv;

/// Zero, dense and sparse weights: the same sizes, rounds and operations.
#[test]
fn weights_show_in_no_message_and_in_no_work() {
    let conv = conv([9, 12], [9, 9], 3, 1, 1);
    let count = 12 * 9 * 9;
    let sparse: Vec<i32> = (0..count).map(|i| i32::from(i % 97 == 0)).collect();
    let shown = [vec![0; count as usize], vec![31; count as usize], sparse].map(|w| {
        let mut case = case(layer(&conv), &conv, 0);
        case.weights = ServerWeights::new(&case.layer, &w, &[0; 12], &mut 0).unwrap();
        let (ours, theirs) = run(&case, None);
        assert!(ours.value.is_ok());
        let lengths = theirs.frames.iter().map(Vec::len).collect::<Vec<_>>();
        (ours.frames, lengths, ours.cost, theirs.value.unwrap().1)
    });
    assert!(shown.iter().all(|other| *other == shown[0]));
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

/// Chi-square against the uniform distribution of 16 bins, 15 degrees of freedom.
fn chi_square(values: &[u64], prime: u64) -> f64 {
    let mut bins = [0f64; 16];
    for value in values {
        bins[(u128::from(*value) * 16 / u128::from(prime)) as usize] += 1.0;
    }
    let expected = values.len() as f64 / 16.0;
    bins.iter().map(|n| (n - expected).powi(2) / expected).sum()
}

#[test]
fn the_clients_share_is_uniform() {
    let conv = conv([2, 16], [16, 16], 3, 1, 1);
    let case = case(layer(&conv), &conv, 0);
    let share = run(&case, None).0.value.unwrap();
    let statistic = chi_square(&share, case.layer.prime());
    assert!(statistic < 50.0, "chi-square {statistic} of 15 degrees of freedom");
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    let case = case(layer(&conv), &conv, 1 << 24);
    for sender in [Role::Client, Role::Server] {
        for how in Tamper::ALL {
            let (ours, theirs) = run(&case, Some((sender, 0, how)));
            let victim = match sender {
                Role::Client => theirs.value.map(|(share, _)| share),
                Role::Server => ours.value,
            };
            match how {
                Tamper::Retag | Tamper::Oversize => {
                    assert!(matches!(victim, Err(Error::Peer { .. })), "{how:?}");
                }
                Tamper::Truncate | Tamper::Close => assert!(victim.is_err()),
                Tamper::Flip | Tamper::Repeat | Tamper::Drop | Tamper::Swap => {
                    assert!(matches!(
                        victim,
                        Ok(_) | Err(Error::Peer { .. } | Error::Transport(_))
                    ));
                }
            }
        }
    }
}

#[test]
fn transcripts_are_pinned() {
    let pinned = include_str!("../../../../../../../tests/golden/transcripts.txt");
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    let (ours, theirs) = run(&case(layer(&conv), &conv, 0), None);
    assert!(ours.value.is_ok() && theirs.value.is_ok());
    let line = format!("falcon-ntt: {} {}", ours.transcript, theirs.transcript);
    assert!(pinned.lines().any(|pinned| pinned == line), "not pinned: {line}");
}
