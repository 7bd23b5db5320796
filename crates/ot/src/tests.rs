//! Whole-protocol tests: one conformance test for every source of correlations,
//! costs, tampering, pinned transcripts.
#![allow(clippy::unwrap_used, clippy::panic)]

mod tampering;

use ring::word::mask;
use ring::{Bits, Random};
use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
use wire::{Channel, Cost, Error, Message, Result, Role};

use crate::base::{self, Offer};
use crate::one_of_n::{
    Choices, Masked, Table, choices_cost, choices_layout, choose, masked_cost, masked_layout,
    respond,
};
use crate::rot::{Column, fill_cost, fill_receiver, fill_sender, receiver_pads, sender_pads};
use crate::{
    BaseOts, CotReceiver, CotSender, Entry, Job, ReceiverBatch, ReceiverPads, Schedule,
    SenderBatch, SenderPads, SessionId, Source, Sourcing, ideal, setup_both, setup_both_cost,
    setup_cost,
};

use tampering::{session, session_cost};

const SESSION: SessionId = SessionId([0x5a; 32]);
const SOURCE: Source = Source::SoftSpoken4;
const HYBRID: Sourcing = Sourcing { source: SOURCE, bandwidth: None, base: BaseOts::Hybrid };
/// Not a multiple of the grain, and more than one message.
const LONG: usize = 70_001;

type Halves = (SenderBatch, ReceiverBatch);

fn sender(ch: &mut Channel, count: usize) -> Result<SenderBatch> {
    let mut cots = CotSender::setup(ch, &mut Random::seeded(10), &SESSION, SOURCE)?;
    cots.extend(ch, count)?;
    cots.take(count)
}

fn receiver(ch: &mut Channel, count: usize) -> Result<ReceiverBatch> {
    let mut cots = CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, SOURCE)?;
    cots.extend(ch, count)?;
    cots.take(count)
}

fn to_server(count: usize) -> (Outcome<Result<ReceiverBatch>>, Outcome<Result<SenderBatch>>) {
    run_pair(|ch| receiver(ch, count), |ch| sender(ch, count))
}

fn to_client(count: usize) -> (Outcome<Result<SenderBatch>>, Outcome<Result<ReceiverBatch>>) {
    run_pair(|ch| sender(ch, count), |ch| receiver(ch, count))
}

/// Both directions of `setup_both`, the client's Delta first.
fn both(count: usize) -> [Halves; 2] {
    let party = |ch: &mut Channel, seed| {
        let (mut ours, mut theirs) =
            setup_both(ch, &mut Random::seeded(seed), &SESSION, SOURCE).unwrap();
        if ch.role() == Role::Client {
            ours.extend(ch, count).unwrap();
            theirs.extend(ch, count).unwrap();
        } else {
            theirs.extend(ch, count).unwrap();
            ours.extend(ch, count).unwrap();
        }
        (ours.take(count).unwrap(), theirs.take(count).unwrap())
    };
    let (client, server) = run_pair(|ch| party(ch, 1), |ch| party(ch, 2));
    [(client.value.0, server.value.1), (server.value.0, client.value.1)]
}

fn sources(count: usize) -> Vec<Halves> {
    let (b, a) = to_server(count);
    let (c, d) = to_client(count);
    let [first, second] = both(count);
    let dealt = ideal::deal(&mut Random::seeded(1), count);
    let unwrap = |a: Result<_>, b: Result<_>| (a.unwrap(), b.unwrap());
    vec![unwrap(a.value, b.value), unwrap(c.value, d.value), first, second, dealt]
}

#[test]
fn every_source_deals_correlations() {
    for (sender, receiver) in sources(LONG) {
        assert_eq!((sender.len(), receiver.len()), (LONG, LONG));
        let pairs = sender.blocks.iter().zip(receiver.blocks.iter());
        for ((q, t), c) in pairs.zip(receiver.choices.iter()) {
            assert_eq!(q ^ t, *sender.delta & u128::from(*c).wrapping_neg());
        }
        let ones = receiver.choices.iter().filter(|c| **c == 1).count();
        let deviation = (LONG as f64).sqrt() / 2.0;
        assert!((ones as f64 - LONG as f64 / 2.0).abs() < 6.0 * deviation, "{ones} ones");
        let weight: u32 = sender.blocks.iter().map(|q| q.count_ones()).sum();
        let (mean, deviation) = (64.0 * LONG as f64, (32.0 * LONG as f64).sqrt());
        assert!((f64::from(weight) - mean).abs() < 6.0 * deviation, "weight {weight}");
    }
}

#[test]
fn every_source_serves_random_ots() {
    for (mut sender, mut receiver) in sources(3000) {
        let (head, tail) = (sender.split_off(1001), sender);
        let (head_choice, tail_choice) = (receiver.split_off(1001), receiver);
        assert_eq!((head.len(), tail.first_index()), (1001, head.first_index() + 1001));
        let mut seen = std::collections::HashSet::new();
        for (sender, receiver) in [(head, head_choice), (tail, tail_choice)] {
            let pairs = sender.random_pairs(64);
            let (choices, chosen) = receiver.random(64);
            assert_eq!(pairs.len(), chosen.len());
            for ((pair, c), pad) in pairs.iter().zip(&choices).zip(&chosen) {
                assert_eq!(pair[*c as usize], *pad);
                assert!(seen.insert(pair[0]) && seen.insert(pair[1]), "a pad came twice");
            }
        }
    }
}

#[test]
fn every_source_serves_table_ots() {
    let jobs = jobs();
    let (positions, rows) = inputs(&mut Random::seeded(3));
    for (mut sender, mut receiver) in sources(cots(&jobs)) {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for job in jobs {
            ours.push(sender_pads(job, sender.split_off(job.cots())).unwrap());
            theirs.push(receiver_pads(job, receiver.split_off(job.cots())).unwrap());
        }
        let (chooser, choices) = choose(theirs, &planes(&positions)).unwrap();
        let (ours, masked) = respond(ours, tables(&rows), &choices).unwrap();
        check(&ours, &chooser.finish(masked).unwrap(), &positions, &rows);
    }
}

/// With equal tables and positions, the sender's shares are uniform still.
#[test]
fn shares_are_uniform() {
    let job = Job { count: 16_000, choice_bits: 2, entry: Entry::Word(4) };
    let (sender, receiver) = ideal::deal(&mut Random::seeded(5), 32_000);
    let (sender, receiver) = (sender_pads(job, sender), receiver_pads(job, receiver));
    let three = vec![Bits::zeros(16_000).not(); 2];
    let (chooser, choices) = choose(vec![receiver.unwrap()], &[three]).unwrap();
    let table = Table::words([9, 1, 1, 9].map(|entry| vec![entry; 16_000]).to_vec());
    let (ours, masked) = respond(vec![sender.unwrap()], vec![table], &choices).unwrap();
    let (_, wire::Values::Words(sent)) = &masked.0[0] else { panic!("planes of integers") };
    let sent = sent.clone();
    let theirs = chooser.finish(masked).unwrap();
    for list in [&ours[0].words[0], &theirs[0].words[0], &sent] {
        let expected = list.len() as f64 / 16.0;
        let term = |v| {
            let seen = list.iter().filter(|x| **x == v).count() as f64;
            (seen - expected).powi(2) / expected
        };
        let chi_squared: f64 = (0..16).map(term).sum();
        // 15 degrees of freedom; above 50 with probability below 2^-16.
        assert!(chi_squared < 50.0, "{chi_squared}");
    }
}

fn jobs() -> [Job; 3] {
    [
        Job { count: 82, choice_bits: 1, entry: Entry::Word(20) },
        Job { count: 9, choice_bits: 4, entry: Entry::Bits(1) },
        Job { count: 5, choice_bits: 2, entry: Entry::Word(64) },
    ]
}

fn cots(jobs: &[Job]) -> usize {
    jobs.iter().map(Job::cots).sum()
}

/// Width of the values of a job.
fn width(job: &Job) -> u32 {
    job.entry.words().next().unwrap_or(job.entry.planes() as u32)
}

/// Positions and, for each job and entry, a list of values.
fn inputs(rng: &mut Random) -> (Vec<Vec<u64>>, Vec<Vec<Vec<u64>>>) {
    let positions = jobs().map(|job| rng.uniform(job.count, job.choice_bits));
    let rows =
        jobs().map(|job| (0..job.entries()).map(|_| rng.uniform(job.count, width(&job))).collect());
    (positions.to_vec(), rows.to_vec())
}

fn planes(positions: &[Vec<u64>]) -> Vec<Vec<Bits>> {
    let of = |(at, job): (&Vec<u64>, Job)| {
        (0..job.choice_bits).map(|bit| Bits::of_words(at, bit)).collect()
    };
    positions.iter().zip(jobs()).map(of).collect()
}

fn tables(rows: &[Vec<Vec<u64>>]) -> Vec<Table> {
    let of = |(rows, job): (&Vec<Vec<u64>>, Job)| match job.entry {
        Entry::Bits(_) => {
            Table::bits(rows.iter().map(|row| vec![Bits::of_words(row, 0)]).collect())
        }
        _ => Table::words(rows.clone()),
    };
    rows.iter().zip(jobs()).map(of).collect()
}

fn correct(ours: &[Column], theirs: &[Column], at: &[Vec<u64>], rows: &[Vec<Vec<u64>>]) -> bool {
    jobs().iter().enumerate().all(|(k, job)| {
        (0..job.count).all(|i| {
            let sum = match job.entry {
                Entry::Bits(_) => ours[k].planes[0].get(i) ^ theirs[k].planes[0].get(i),
                _ => ours[k].words[0][i].wrapping_add(theirs[k].words[0][i]) & mask(width(job)),
            };
            sum == rows[k][at[k][i] as usize][i]
        })
    })
}

fn check(ours: &[Column], theirs: &[Column], at: &[Vec<u64>], rows: &[Vec<Vec<u64>>]) {
    assert!(correct(ours, theirs, at, rows));
}

fn sender_of(ch: &mut Channel, jobs: &[Job]) -> Result<Vec<SenderPads>> {
    let mut cots = CotSender::setup(ch, &mut Random::seeded(10), &SESSION, SOURCE)?;
    fill_sender(ch, &mut cots, jobs)
}

fn receiver_of(ch: &mut Channel, jobs: &[Job]) -> Result<Vec<ReceiverPads>> {
    let mut cots = CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, SOURCE)?;
    fill_receiver(ch, &mut cots, jobs)
}

/// More correlations than are made at a time, and jobs that straddle messages.
#[test]
fn pads_agree_and_cost_what_is_said() {
    let jobs = [
        Job { count: 1, choice_bits: 3, entry: Entry::Bits(2) },
        Job { count: 30_001, choice_bits: 4, entry: Entry::Bits(9) },
        Job { count: 9_000, choice_bits: 1, entry: Entry::Pair(7, 40) },
        Job { count: 0, choice_bits: 1, entry: Entry::Word(7) },
    ];
    let (client, server) = run_pair(|ch| receiver_of(ch, &jobs), |ch| sender_of(ch, &jobs));
    let wanted = setup_cost(Role::Server, SOURCE)
        .then(fill_cost(&mut Schedule::new(SOURCE, Role::Server), &jobs));
    assert_eq!(client.cost, wanted);
    assert_eq!(server.cost, wanted);
    let pairs = server.value.unwrap().into_iter().zip(client.value.unwrap());
    for (sent, received) in pairs {
        let job = sent.job();
        let (pads, (choices, opened)) = (sent.into_columns(), received.into_parts());
        for i in 0..job.count {
            let choice = choices.iter().rev().fold(0, |c, plane| 2 * c + plane.get(i) as usize);
            let pad = &pads[choice];
            assert!(pad.planes.iter().zip(&opened.planes).all(|(a, b)| a.get(i) == b.get(i)));
            assert!(pad.words.iter().zip(&opened.words).all(|(a, b)| a[i] == b[i]));
        }
    }
}

fn assert_cost<A, B>((client, server): &(Outcome<A>, Outcome<B>), wanted: Cost) {
    let numbers = |c: &Cost| [c.client_to_server, c.server_to_client, c.rounds];
    assert_eq!(numbers(&client.cost), numbers(&wanted), "seen by the client");
    assert_eq!(numbers(&server.cost), numbers(&wanted), "seen by the server");
}

fn extended(sender: Role, count: usize) -> Cost {
    Schedule::new(SOURCE, sender).extend(count)
}

#[test]
fn measured_costs_equal_the_predicted_ones() {
    for count in [0, 1, 128, 129, LONG] {
        let cost = |role| setup_cost(role, SOURCE).then(extended(role, count));
        assert_cost(&to_server(count), cost(Role::Server));
        assert_cost(&to_client(count), cost(Role::Client));
    }
    let setup =
        |ch: &mut Channel| setup_both(ch, &mut Random::seeded(1), &SESSION, SOURCE).map(drop);
    assert_cost(&run_pair(setup, setup), setup_both_cost(SOURCE));
    assert_eq!(setup_both_cost(SOURCE).rounds, 4);
    assert_cost(&run_pair(setup_with_both, setup_with_both), setup_both_cost(HYBRID));
    assert_eq!(setup_both_cost(HYBRID).rounds, 4);
    assert_cost(&session(None), session_cost());
}

#[test]
fn a_correlation_costs_31_bits_and_a_message_a_check() {
    let cost = extended(Role::Server, 1 << 16);
    assert_eq!(cost, Cost::message(Role::Client, (31 << 13) + 31 * 16 + 48));
}

#[test]
fn transcripts_are_pinned() {
    let (client, server) = session(None);
    let (positions, rows) = inputs(&mut Random::seeded(4));
    check(&server.value.unwrap(), &client.value.unwrap(), &positions, &rows);
    let setup =
        |ch: &mut Channel| setup_both(ch, &mut Random::seeded(1), &SESSION, SOURCE).map(drop);
    let (ours, theirs) = run_pair(setup, setup);
    let (hybrid, theirs_hybrid) = run_pair(setup_with_both, setup_with_both);
    let transcripts = [
        ("base transfers with ML-KEM both ways", hybrid.transcript, theirs_hybrid.transcript),
        ("base transfers both ways", ours.transcript, theirs.transcript),
        ("base transfers, client holds delta", sent(to_client(0)).0, sent(to_client(0)).1),
        ("base transfers, server holds delta", sent(to_server(0)).0, sent(to_server(0)).1),
        ("softspoken, client holds delta", sent(to_client(LONG)).0, sent(to_client(LONG)).1),
        ("softspoken, server holds delta", sent(to_server(LONG)).0, sent(to_server(LONG)).1),
        ("table transfers", client.transcript, server.transcript),
    ];
    let pinned = include_str!("../../../tests/golden/transcripts.txt");
    let lines = transcripts.map(|(name, client, server)| format!("{name}: {client} {server}"));
    let missing: Vec<_> =
        lines.iter().filter(|line| !pinned.lines().any(|known| known == *line)).collect();
    assert!(missing.is_empty(), "not pinned: {missing:#?}");
}

fn setup_with_both(ch: &mut Channel) {
    setup_both(ch, &mut Random::seeded(1), &SESSION, HYBRID).map(drop).unwrap();
}

/// What each party sent.
fn sent<A, B>((client, server): (Outcome<Result<A>>, Outcome<Result<B>>)) -> (String, String) {
    assert!(client.value.is_ok() && server.value.is_ok());
    (client.transcript, server.transcript)
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let mut rng = Random::seeded(6);
    for len in 0..200 {
        let mut body = vec![0; len];
        rng.fill(&mut body);
        for count in [0, 1, 3, 128] {
            let fits = len == 32 * count;
            assert!(fits || Offer::decode(&body, &count).is_err());
            assert!(fits || base::Choices::decode(&body, &count).is_err());
            let _ =
                (Offer::decode(&body, &count), Choices::decode(&body, &choices_layout(&jobs())));
        }
    }
}

#[test]
fn too_few_correlations_are_a_defect() {
    let party = |ch: &mut Channel| {
        let (mut ours, mut theirs) =
            setup_both(ch, &mut Random::seeded(1), &SESSION, SOURCE).unwrap();
        assert!(matches!(ours.take(1), Err(Error::Internal(_))));
        assert!(matches!(theirs.take(1), Err(Error::Internal(_))));
        assert!(matches!(ours.extend(ch, usize::MAX), Err(Error::Internal(_))));
        assert!(matches!(theirs.extend(ch, usize::MAX), Err(Error::Internal(_))));
        assert!(ours.take(0).unwrap().is_empty() && theirs.take(0).unwrap().is_empty());
    };
    run_pair(party, party);
}

/// What is taken after a later extension continues the stream.
#[test]
fn the_pool_keeps_its_order_over_extensions() {
    let counts = [100, 300, 7];
    let run = |ch: &mut Channel| {
        let mut cots = CotSender::setup(ch, &mut Random::seeded(1), &SESSION, SOURCE).unwrap();
        counts.map(|count| {
            cots.extend(ch, count).unwrap();
            let batch = cots.take(count).unwrap();
            (batch.first_index(), batch.random_pairs(64))
        })
    };
    let peer = |ch: &mut Channel| {
        let mut cots = CotReceiver::setup(ch, &mut Random::seeded(2), &SESSION, SOURCE).unwrap();
        counts.map(|count| {
            cots.extend(ch, count).unwrap();
            cots.take(count).unwrap().random(64)
        })
    };
    let (sender, receiver) = run_pair(run, peer);
    assert_eq!(sender.value.each_ref().map(|(first, _)| *first), [0, 100, 400]);
    for ((_, pairs), (choices, chosen)) in sender.value.iter().zip(&receiver.value) {
        let opened = pairs.iter().zip(choices).map(|(pair, c)| pair[*c as usize]);
        assert!(opened.eq(chosen.iter().copied()));
    }
}

#[test]
fn nothing_secret_prints() {
    let (sender, receiver) = ideal::deal(&mut Random::seeded(1), 2);
    assert_eq!(format!("{sender:?}"), "SenderBatch(<2 correlations>)");
    assert_eq!(format!("{receiver:?}"), "ReceiverBatch(<2 correlations>)");
    let job = Job { count: 2, choice_bits: 1, entry: Entry::Bits(8) };
    let pads = [format!("{:?}", sender_pads(job, sender)), format!("{:?}", receiver)];
    assert!(pads[0].starts_with("Ok(SenderPads(<Job"), "{}", pads[0]);
    let receiver = receiver_pads(job, receiver).unwrap();
    assert!(format!("{receiver:?}").starts_with("ReceiverPads(<Job"));
    let (chooser, choices) = choose(vec![receiver], &[vec![Bits::zeros(2)]]).unwrap();
    assert_eq!(format!("{chooser:?}"), "Chooser(<1 jobs>)");
    assert_eq!(format!("{choices:?}"), "[Planes { planes: 1, count: 2 }]");
    let (client, server) = run_pair(
        |ch| CotSender::setup(ch, &mut Random::seeded(1), &SESSION, SOURCE).unwrap(),
        |ch| CotReceiver::setup(ch, &mut Random::seeded(1), &SESSION, SOURCE).unwrap(),
    );
    assert_eq!(format!("{:?}", client.value), "CotSender(<0 correlations>)");
    assert_eq!(format!("{:?}", server.value), "CotReceiver(<0 correlations>)");
}
