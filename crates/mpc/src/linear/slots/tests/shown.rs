//! What the parties see: nothing that depends on weights, nothing that is not masked.

use wire::testing::Tamper;
use wire::{Error, Role};

use super::super::*;
use super::parties::{case, layer, run};
use crate::linear::coefficient::tests::conv;

const BOTH: [Protocol; 2] = [Protocol::Gazelle, Protocol::Gala];

/// Zero, dense and sparse weights: the same sizes, rounds and operations.
#[test]
fn weights_show_in_no_message_and_in_no_work() {
    let conv = conv([9, 12], [9, 9], 3, 1, 1);
    let count = 12 * 9 * 9;
    let sparse: Vec<i32> = (0..count).map(|i| i32::from(i % 97 == 0)).collect();
    for protocol in BOTH {
        let shown = [vec![0; count as usize], vec![31; count as usize], sparse.clone()].map(|w| {
            let mut case = case(layer(&conv, protocol, None), &conv, 0);
            case.weights = ServerWeights::new(&case.layer, &w, &[0; 12], &mut 0).unwrap();
            let (ours, theirs) = run(&case, None);
            assert!(ours.value.is_ok());
            let lengths = theirs.frames.iter().map(Vec::len).collect::<Vec<_>>();
            (ours.frames, lengths, ours.cost, theirs.value.unwrap().1)
        });
        assert!(shown.iter().all(|other| *other == shown[0]));
    }
}

#[test]
fn the_clients_share_is_uniform() {
    let conv = conv([2, 16], [16, 16], 3, 1, 1);
    for protocol in BOTH {
        let case = case(layer(&conv, protocol, None), &conv, 0);
        let share = run(&case, None).0.value.unwrap();
        let mut bins = [0f64; 16];
        for word in share.iter() {
            bins[(word * 16 / case.layer.prime()) as usize] += 1.0;
        }
        let expected = share.len() as f64 / 16.0;
        let statistic: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(statistic < 50.0, "chi-square {statistic} of 15 degrees of freedom");
    }
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    let case = case(layer(&conv, Protocol::Gala, None), &conv, 1 << 24);
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
    let pinned = include_str!("../../../../../../tests/golden/transcripts.txt");
    let conv = conv([2, 2], [6, 6], 3, 1, 0);
    let lines = BOTH.map(|protocol| {
        let (ours, theirs) = run(&case(layer(&conv, protocol, None), &conv, 0), None);
        assert!(ours.value.is_ok() && theirs.value.is_ok());
        format!("{}: {} {}", protocol.name(), ours.transcript, theirs.transcript)
    });
    let missing = lines.iter().filter(|line| !pinned.lines().any(|pinned| pinned == *line));
    let missing: Vec<&String> = missing.collect();
    assert!(missing.is_empty(), "not pinned: {missing:?}");
}
