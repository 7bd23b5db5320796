//! Whole-protocol tests of the silent source, and of the choice among the sources.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashSet;

use ring::Random;
use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
use wire::{Channel, Cost, Error, Result, Role};

use crate::cot::ferret::params::{SETS, Set};
use crate::{
    CotReceiver, CotSender, ReceiverBatch, Schedule, SenderBatch, SessionId, Source, setup_cost,
};

const SESSION: SessionId = SessionId([0x5b; 32]);

/// What a caller does: announce, then extend and take chunk by chunk.
#[derive(Clone, Copy, Debug)]
struct Calls {
    source: Source,
    total: usize,
    chunk: usize,
    threads: usize,
}

impl Calls {
    const fn of(source: Source, total: usize, chunk: usize) -> Self {
        Self { source, total, chunk, threads: 1 }
    }

    fn chunks(self) -> impl Iterator<Item = usize> {
        (0..self.total).step_by(self.chunk).map(move |done| self.chunk.min(self.total - done))
    }

    fn cost(self, sender: Role) -> Cost {
        let mut schedule = Schedule::new(self.source, sender);
        schedule.reserve(self.total);
        let extend = |count| {
            let cost = schedule.extend(count);
            schedule.take(count);
            cost
        };
        self.chunks().map(extend).collect()
    }
}

fn sender(ch: &mut Channel, calls: Calls) -> Result<Vec<SenderBatch>> {
    let mut cots = CotSender::setup(ch, &mut Random::seeded(10), &SESSION, calls.source)?;
    cots.set_threads(calls.threads);
    cots.reserve(calls.total);
    calls.chunks().map(|count| cots.extend(ch, count).and_then(|()| cots.take(count))).collect()
}

fn receiver(ch: &mut Channel, calls: Calls) -> Result<Vec<ReceiverBatch>> {
    let mut cots = CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, calls.source)?;
    cots.set_threads(calls.threads);
    cots.reserve(calls.total);
    calls.chunks().map(|count| cots.extend(ch, count).and_then(|()| cots.take(count))).collect()
}

type Run = (Outcome<Result<Vec<ReceiverBatch>>>, Outcome<Result<Vec<SenderBatch>>>);

fn run(calls: Calls) -> Run {
    run_pair(|ch| receiver(ch, calls), |ch| sender(ch, calls))
}

/// Runs, checks everything, and gives the cost without the setup.
fn checked(calls: Calls) -> Cost {
    let (client, server) = run(calls);
    let (received, sent) = (client.value.unwrap(), server.value.unwrap());
    let (mut ones, mut weight, mut last) = (0.0, 0, 0);
    let mut seen = HashSet::new();
    for (sender, receiver) in sent.iter().zip(&received) {
        assert_eq!((sender.len(), sender.first_index()), (receiver.len(), receiver.first_index()));
        assert!(sender.first_index() >= last, "a position came twice");
        last = sender.first_index() + sender.len() as u64;
        let pairs = sender.blocks.iter().zip(receiver.blocks.iter());
        for ((q, t), c) in pairs.zip(receiver.choices.iter()) {
            assert_eq!(q ^ t, *sender.delta & u128::from(*c).wrapping_neg());
            assert!(seen.insert(*q), "a block came twice");
            ones += f64::from(*c);
            weight += (q >> 1).count_ones();
        }
    }
    let total = calls.total as f64;
    assert_eq!(seen.len(), calls.total);
    assert!((ones - total / 2.0).abs() < 3.0 * total.sqrt(), "{ones} ones");
    let mean = 63.5 * total;
    assert!((f64::from(weight) - mean).abs() < 36.0 * total.sqrt() + 1.0 * total, "{weight}");
    let cost = setup_cost(Role::Server, calls.source).then(calls.cost(Role::Server));
    let numbers = |c: &Cost| [c.client_to_server, c.server_to_client, c.rounds];
    assert_eq!(numbers(&client.cost), numbers(&cost), "seen by the client");
    assert_eq!(numbers(&server.cost), numbers(&cost), "seen by the server");
    calls.cost(Role::Server)
}

#[test]
fn the_smallest_set_serves_a_small_need() {
    let cost = checked(Calls::of(Source::Ferret, 300_000, 65_536));
    assert!(cost.bytes() < 500_000, "{cost:?}");
}

#[test]
fn several_threads_make_the_same() {
    let calls = Calls::of(Source::Ferret, 200_000, 150_000);
    let (one, two) = (run(calls), run(Calls { threads: 2, ..calls }));
    for (a, b) in one.0.value.unwrap().iter().zip(&two.0.value.unwrap()) {
        assert!(a.blocks[..] == b.blocks[..] && a.choices[..] == b.choices[..]);
    }
    for (a, b) in one.1.value.unwrap().iter().zip(&two.1.value.unwrap()) {
        assert!(a.blocks[..] == b.blocks[..]);
    }
    assert_eq!(one.0.transcript, two.0.transcript);
    assert_eq!(one.1.transcript, two.1.transcript);
}

#[test]
fn a_second_refill_starts_from_the_first() {
    let cost = checked(Calls::of(Source::Ferret, 2_000_000, 200_000));
    let soft = Calls::of(Source::SoftSpoken8, 118_044, 118_044).cost(Role::Server);
    assert!(cost.client_to_server <= soft.client_to_server, "{cost:?}");
}

#[test]
fn every_source_is_right_at_its_cost() {
    for source in [Source::Auto, Source::SoftSpoken2, Source::SoftSpoken4, Source::SoftSpoken8] {
        checked(Calls::of(source, 20_000, 7001));
    }
    checked(Calls::of(Source::Auto, 250_000, 65_536));
}

#[test]
fn transcripts_are_pinned() {
    let calls = Calls::of(Source::Ferret, 1000, 1000);
    let (client, server) = run_pair(|ch| receiver(ch, calls), |ch| sender(ch, calls));
    let held = format!("ferret, server holds delta: {} {}", client.transcript, server.transcript);
    let (client, server) = run_pair(|ch| sender(ch, calls), |ch| receiver(ch, calls));
    let given = format!("ferret, client holds delta: {} {}", client.transcript, server.transcript);
    let pinned = include_str!("../../../../tests/golden/transcripts.txt");
    for line in [held, given] {
        assert!(pinned.lines().any(|known| known == line), "not pinned: {line}");
    }
}

/// A set on its own, from dealt correlations.
fn refill(set: Set, trees: usize) {
    use crate::cot::ferret::{Received, Receiver, Sender};
    use crate::session::Domain;
    let mut rng = Random::seeded(set.trees as u64);
    let domain = Domain::new(SESSION, Role::Server);
    let delta = rng.block() | 1;
    let q: Vec<u128> = (0..set.base()).map(|_| rng.block()).collect();
    let c: Vec<u8> = q.iter().map(|_| rng.word() as u8 & 1).collect();
    let open = |(q, c): (&u128, &u8)| q ^ (delta & u128::from(*c).wrapping_neg());
    let t: Vec<u128> = q.iter().zip(&c).map(open).collect();
    let mut sender = Sender::new(&domain, 3, set, delta, &q);
    let mut receiver = Receiver::new(&domain, 3, set, &t, &c);
    let mut ones = 0;
    let (mut q, mut t) = (vec![0; trees << set.depth], vec![0; trees << set.depth]);
    for _ in 0..set.trees / trees {
        let mut received = Received::default();
        let (ours, theirs) = (sender.next(trees), receiver.next(trees));
        ours.grow(1, &mut q).messages(&[trees]).for_each(|message| received.add(trees, message));
        ours.finish(1, &mut q);
        theirs.make(1, &received, &mut t).unwrap();
        let mut again = vec![0; q.len()];
        ours.remake(2, &mut again);
        assert!(again == q);
        for (q, t) in q.iter().zip(&t) {
            assert_eq!(q ^ t, delta & (t & 1).wrapping_neg());
            ones += (t & 1) as i64;
        }
    }
    assert!(sender.is_empty() && receiver.is_empty());
    let total = set.outputs() as i64;
    assert!((2 * ones - total).pow(2) < 36 * total, "{ones} ones of {total}");
}

#[test]
fn small_sets_are_right_from_the_first_tree_to_the_last() {
    refill(SETS[0], 56);
    refill(SETS[1], 50);
    refill(SETS[2], 44);
}

#[test]
fn large_sets_are_right_from_the_first_tree_to_the_last() {
    refill(SETS[3], 20);
    refill(SETS[4], 10);
}

/// Frames: client offer, sums, challenge, corrections; server choices, proof, trees. A changed tree is
/// always refused.
#[test]
fn tampering_is_an_error_or_a_wrong_result() {
    let calls = Calls::of(Source::Ferret, 1000, 1000);

    let (client, server) = run(calls);
    let counts = [(Role::Client, client.frames.len()), (Role::Server, server.frames.len())];
    std::thread::scope(|scope| {
        for (role, count) in counts {
            for (frame, how) in (1..count).flat_map(|f| Tamper::ALL.map(|how| (f, how))) {
                scope.spawn(move || tampered(calls, role, frame, how));
            }
        }
    });
}

fn tampered(calls: Calls, role: Role, frame: usize, how: Tamper) {
    let (client, server) =
        run_tampered(Some((role, frame, how)), |ch| receiver(ch, calls), |ch| sender(ch, calls));
    match (client.value, server.value) {
        (Ok(_), Ok(_)) => assert!(how == Tamper::Repeat, "{frame} {how:?}"),
        (client, server) => {
            let blamed = [client.err(), server.err()].into_iter().flatten();
            let fair = |e: &Error| matches!(e, Error::Peer { .. } | Error::Transport(_));
            assert!(blamed.inspect(|e| assert!(fair(e), "{e}")).count() > 0);
        }
    }
}
