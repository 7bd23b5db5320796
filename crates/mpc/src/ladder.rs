//! Rungs that every non-linear protocol climbs alike: the ideal functionality with
//! either source of correlations, costs, pinned transcripts, uniform shares, and
//! frames that are flipped, cut, repeated, retagged or oversized on the way.

use ring::Random;
use ring::word::mask;
use wire::testing::{Outcome, Tamper};
use wire::{Error, Result, Role};

use crate::functionality::{COUNT, Protocol, protocols};
use crate::share::Share;
use crate::testing::{both, both_real, both_tampered, split};

type Outcomes = (Outcome<Result<Share>>, Outcome<Result<Share>>);

fn play(protocol: &Protocol, tamper: Option<(Role, usize, Tamper)>) -> Outcomes {
    let mut rng = Random::seeded(42);
    let values: Vec<i64> = (0..COUNT as i64).map(|i| 17 * i - 200).collect();
    let (client, server) = split(&mut rng, &values, protocol.bits);
    both_tampered(
        &mut rng,
        tamper,
        &protocol.demand,
        |ch, ots| (protocol.run)(ch, &client, ots),
        |ch, ots| (protocol.run)(ch, &server, ots),
    )
}

/// Values that no protocol's precondition excludes at `bits`, extremes first.
fn values(rng: &mut Random, bits: u32) -> Vec<i64> {
    let quarter = 1i64 << (bits - 2);
    let mut values = vec![0, 1, -1, quarter - 1, -quarter];
    let random = rng.uniform(COUNT - values.len(), bits - 1);
    values.extend(random.iter().map(|word| *word as i64 - quarter));
    values
}

/// The one conformance test: outputs of `protocol` share what its ideal functionality
/// says, under correlations from a dealer or from the parties themselves.
fn conforms(protocol: &Protocol, real: Option<u64>, rng: &mut Random) {
    let name = protocol.name;
    let values = values(rng, protocol.bits);
    let (client, server) = split(rng, &values, protocol.bits);
    let ours = |ch: &mut wire::Channel, ots| (protocol.run)(ch, &client, ots);
    let theirs = |ch: &mut wire::Channel, ots| (protocol.run)(ch, &server, ots);
    let (c, s) = match real {
        Some(seed) => both_real(seed, &protocol.demand, ours, theirs),
        None => {
            let outcomes = both(rng, &protocol.demand, ours, theirs);
            assert_eq!(outcomes.0.cost, protocol.cost, "{name}");
            assert_eq!(outcomes.1.cost, protocol.cost, "{name}");
            outcomes
        }
    };
    let (Ok(ours), Ok(theirs)) = (&c.value, &s.value) else {
        unreachable!("{name}: {:?} {:?}", c.value, s.value)
    };
    let low = mask(ours.bits());
    let sums = ours.words().iter().zip(theirs.words()).map(|(a, b)| a.wrapping_add(*b) & low);
    let ideal = (protocol.ideal)(&client, &server);
    let ideal: Vec<u64> = ideal.iter().map(|word| word & low).collect();
    assert_eq!(sums.collect::<Vec<_>>(), ideal, "{name}");
}

#[test]
fn every_protocol_conforms_with_ideal_correlations() {
    let mut rng = Random::seeded(50);
    for protocol in protocols() {
        (0..40).for_each(|_| conforms(&protocol, None, &mut rng));
    }
}

#[test]
fn every_protocol_conforms_with_correlations_of_its_own() {
    let mut rng = Random::seeded(51);
    for protocol in protocols() {
        (1..4).for_each(|seed| conforms(&protocol, Some(seed), &mut rng));
    }
}

/// Each party's output is uniform on its own, though inputs and result are fixed.
#[test]
fn output_shares_are_uniform() {
    for protocol in protocols().iter().filter(|protocol| protocol.name != "open") {
        let mut rng = Random::seeded(52);
        let (client, server) = split(&mut rng, &[1; COUNT], protocol.bits);
        let (mut ones, mut bits) = ([0u64; 2], 0u64);
        for _ in 0..60 {
            let (c, s) = both(
                &mut rng,
                &protocol.demand,
                |ch, ots| (protocol.run)(ch, &client, ots),
                |ch, ots| (protocol.run)(ch, &server, ots),
            );
            let (Ok(c), Ok(s)) = (c.value, s.value) else { unreachable!("{}", protocol.name) };
            bits += c.len() as u64 * u64::from(c.bits());
            for (ones, share) in ones.iter_mut().zip([c, s]) {
                *ones += share.words().iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
            }
        }
        let deviation = (bits as f64).sqrt() / 2.0;
        for ones in ones {
            let away = (ones as f64 - bits as f64 / 2.0).abs() / deviation;
            assert!(away < 6.0, "{}: {ones} ones in {bits} bits", protocol.name);
        }
    }
}

#[test]
fn a_tampered_frame_is_noticed_or_harmless_and_never_hangs() {
    for protocol in protocols() {
        let (ours, theirs) = play(&protocol, None);
        for (sender, frames) in [Role::Client, Role::Server].into_iter().zip(protocol.frames) {
            let sent = if sender == Role::Client { ours.frames.len() } else { theirs.frames.len() };
            for (frame, how) in (0..frames).flat_map(|f| Tamper::ALL.map(|how| (f, how))) {
                let (client, server) = play(&protocol, Some((sender, frame, how)));
                let victim = if sender == Role::Client { server.value } else { client.value };
                let name = protocol.name;
                match how {
                    Tamper::Retag | Tamper::Oversize => assert!(
                        matches!(victim, Err(Error::Peer { .. })),
                        "{name}: {sender:?} {frame} {how:?}: {victim:?}"
                    ),
                    Tamper::Truncate | Tamper::Close => {
                        assert!(victim.is_err(), "{name}: {frame}")
                    }
                    // The last frame's repetition is never read.
                    Tamper::Repeat => assert!(
                        frame + 1 == sent || matches!(victim, Err(Error::Peer { .. })),
                        "{name}: {sender:?} {frame}: {victim:?}"
                    ),
                    Tamper::Flip | Tamper::Drop | Tamper::Swap => {}
                }
            }
        }
    }
}

#[test]
fn transcripts_are_pinned() {
    let pinned = include_str!("../../../tests/golden/transcripts.txt");
    let mut missing = Vec::new();
    for protocol in protocols() {
        let (client, server) = play(&protocol, None);
        assert!(client.value.is_ok() && server.value.is_ok());
        let line = format!("{}: {} {}", protocol.name, client.transcript, server.transcript);
        if !pinned.lines().any(|pinned| pinned == line) {
            missing.push(line);
        }
    }
    assert!(missing.is_empty(), "not pinned:\n{}", missing.join("\n"));
}
