//! Rungs that every non-linear protocol climbs alike: pinned transcripts, and
//! frames that are flipped, cut, repeated, retagged or oversized on the way.

use ring::Random;
use wire::testing::{Outcome, Tamper};
use wire::{Channel, Error, Result, Role};

use crate::argmax::{self, Argmax};
use crate::compare::Radix;
use crate::cots::{Cots, Need};
use crate::extend::{self, Extend, Sign};
use crate::maximum::{self, Maximum, Tournament};
use crate::relu::{self, Relu};
use crate::share::Share;
use crate::testing::{both_tampered, split};
use crate::truncate::{self, Truncate};

type Run = Box<dyn Fn(&mut Channel, &Share, Cots) -> Result<Share> + Sync>;

struct Protocol {
    name: &'static str,
    bits: u32,
    need: Need,
    /// Frames that either party sends, or the first few.
    frames: usize,
    run: Run,
}

const COUNT: usize = 24;

#[allow(clippy::unwrap_used)]
fn protocols() -> Vec<Protocol> {
    let relu = Relu::new(COUNT, 12, Some(8), 20, Radix::Four).unwrap();
    let plain = Relu::new(COUNT, 12, None, 12, Radix::Sixteen).unwrap();
    let truncate = Truncate::new(COUNT, 26, 12, 12, Radix::Four).unwrap();
    let signed = Extend::new(COUNT, 10, 18, Sign::Unknown, Radix::Four).unwrap();
    let known = Extend::new(COUNT, 10, 18, Sign::NonNegative, Radix::Four).unwrap();
    let windows: Vec<Vec<usize>> = (0..COUNT / 4).map(|w| (4 * w..4 * w + 4).collect()).collect();
    let tournament = Tournament::new(COUNT, &windows).unwrap();
    let pool = Maximum::new(tournament, 10, Vec::new(), Radix::Four).unwrap();
    let argmax = Argmax::new(COUNT, 10, Radix::Two).unwrap();
    let of = |name, bits, need, run| Protocol { name, bits, need, frames: 4, run };
    vec![
        of(
            "relu saturating",
            12,
            relu.need(),
            Box::new(move |ch, x, c| relu::run(ch, &relu, x, c)),
        ),
        of("relu", 12, plain.need(), Box::new(move |ch, x, c| relu::run(ch, &plain, x, c))),
        of(
            "truncate",
            26,
            truncate.need(),
            Box::new(move |ch, x, c| truncate::run(ch, &truncate, x, c)),
        ),
        of("extend", 10, signed.need(), Box::new(move |ch, x, c| extend::run(ch, &signed, x, c))),
        Protocol {
            name: "extend non-negative",
            bits: 10,
            need: known.need(),
            frames: 1,
            run: Box::new(move |ch, x, c| extend::run(ch, &known, x, c)),
        },
        of(
            "max pool",
            10,
            pool.need(),
            Box::new(move |ch, x, c| Ok(maximum::run(ch, &pool, x, &[], c)?.remove(0))),
        ),
        of("argmax", 10, argmax.need(), Box::new(move |ch, x, c| argmax::run(ch, &argmax, x, c))),
    ]
}

fn play(
    protocol: &Protocol,
    tamper: Option<(Role, usize, Tamper)>,
) -> (Outcome<Result<Share>>, Outcome<Result<Share>>) {
    let mut rng = Random::seeded(42);
    let values: Vec<i64> = (0..COUNT as i64).map(|i| 17 * i - 200).collect();
    let (client, server) = split(&mut rng, &values, protocol.bits);
    both_tampered(
        &mut rng,
        tamper,
        protocol.need,
        |ch, cots| (protocol.run)(ch, &client, cots),
        |ch, cots| (protocol.run)(ch, &server, cots),
    )
}

#[test]
fn a_tampered_frame_is_noticed_or_harmless_and_never_hangs() {
    for protocol in protocols() {
        for sender in [Role::Client, Role::Server] {
            for frame in 0..protocol.frames {
                for how in Tamper::ALL {
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
                        Tamper::Flip | Tamper::Repeat => {}
                    }
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
