use std::sync::atomic::{AtomicBool, Ordering};

use ring::{Bits, Random};
use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
use wire::{Role, Segment};

use super::*;
use crate::job::Entry;
use crate::rot::{Column, fill_cost, fill_receiver, fill_sender, is_one_way};
use crate::{Schedule, SessionId, Source};

const SESSION: SessionId = SessionId([0x3c; 32]);
const PING: Segment = Segment { count: 1 << 16, bits: 1 };

/// Any message.
type Ping = Corrections;

fn jobs() -> [Job; 4] {
    [
        Job { count: 30_001, choice_bits: 4, entry: Entry::Bits(9) },
        Job { count: 9_000, choice_bits: 1, entry: Entry::Pair(7, 40) },
        Job { count: 0, choice_bits: 1, entry: Entry::Word(7) },
        Job { count: 70, choice_bits: 8, entry: Entry::Bits(1) },
    ]
}

/// Whether the client and the server have done what there was to do.
type Done = [Arc<AtomicBool>; 2];

/// When the pads are made, and where the client's messages wait.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Now,
    Later,
    Unsent,
}

/// Work that says when it is done.
struct Watched<S: Fills>(Arc<Filling<S>>, Arc<AtomicBool>);

impl<S: Fills> Meanwhile for Watched<S> {
    fn work(&self) -> bool {
        let more = self.0.work();
        self.1.fetch_or(!more, Ordering::SeqCst);
        more
    }
}

/// Lets each party wait for the other until its own work is done.
fn wait(ch: &mut Channel, [ours, theirs]: [&AtomicBool; 2]) {
    let first = ch.role() == Role::Client;
    for turn in [first, !first] {
        if turn {
            while !theirs.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            ch.send(&Ping::one(vec![1; PING.count], 1)).unwrap();
        } else {
            let _: Ping = ch.receive(&vec![PING]).unwrap();
            assert!(ours.load(Ordering::SeqCst));
        }
    }
}

/// Takes a job, waits, and takes the last job before those between.
fn taken<S: Fills>(
    ch: &mut Channel,
    filling: &Arc<Filling<S>>,
    [ours, theirs]: &Done,
) -> Vec<Pads<S>> {
    let jobs = jobs();
    let mut all = filling.take(&jobs[..1]).unwrap();
    assert!(filling.take(&jobs[..1]).is_err(), "another job comes next");
    let work: Arc<dyn Meanwhile> = Arc::new(Watched(Arc::clone(filling), Arc::clone(ours)));
    let last = filling.take_last(1).unwrap();
    ch.meanwhile([Arc::downgrade(&work)].into());
    wait(ch, [ours, theirs]);
    assert_eq!(filling.state().heard.waiting.len(), 0, "all was made while the party waited");
    all.extend(filling.take(&jobs[1..3]).unwrap());
    all.extend(last);
    assert!(filling.take(&jobs[..1]).is_err(), "none is left");
    all
}

fn sender(ch: &mut Channel, how: How, [theirs, ours]: &Done) -> Vec<Vec<Column>> {
    let mut cots = CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
    let pads = match how {
        How::Now => {
            let pads = fill_sender(ch, &mut cots, &jobs()).unwrap();
            ours.store(true, Ordering::SeqCst);
            wait(ch, [ours, theirs]);
            pads
        }
        How::Later => {
            let filling = fill_sender_later(ch, &mut cots, &jobs()).unwrap();
            taken(ch, &filling, &[Arc::clone(ours), Arc::clone(theirs)])
        }
        How::Unsent => {
            // The base takes messages of both parties.
            assert!(!is_one_way(cots.schedule(), &jobs()));
            assert!(fill_sender_unsent(&mut cots, &jobs()).is_err());
            Vec::new()
        }
    };
    pads.into_iter().map(SenderPads::into_columns).collect()
}

fn receiver(ch: &mut Channel, how: How, [ours, theirs]: &Done) -> Vec<(Vec<Bits>, Column)> {
    let mut cots =
        CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
    let pads = match how {
        How::Now => {
            let pads = fill_receiver(ch, &mut cots, &jobs()).unwrap();
            ours.store(true, Ordering::SeqCst);
            wait(ch, [ours, theirs]);
            pads
        }
        How::Later => {
            let filling = fill_receiver_later(ch, &mut cots, &jobs()).unwrap();
            taken(ch, &filling, &[Arc::clone(ours), Arc::clone(theirs)])
        }
        How::Unsent => Vec::new(),
    };
    pads.into_iter().map(ReceiverPads::into_parts).collect()
}

type Run = (Outcome<Vec<(Vec<Bits>, Column)>>, Outcome<Vec<Vec<Column>>>);

fn run(client: How, server: How) -> Run {
    let done = Done::default();
    run_pair(|ch| receiver(ch, client, &done), |ch| sender(ch, server, &done))
}

#[test]
fn pads_made_later_are_those_made_at_once() {
    let (client, server) = run(How::Now, How::Now);
    for (ours, theirs) in [(How::Later, How::Now), (How::Now, How::Later), (How::Later, How::Later)]
    {
        let (a, b) = run(ours, theirs);
        assert!(a.value == client.value && b.value == server.value);
        assert_eq!(
            (a.transcript, b.transcript),
            (client.transcript.clone(), server.transcript.clone())
        );
        assert_eq!((a.cost, b.cost), (client.cost, server.cost));
    }
}

#[test]
fn a_party_that_has_to_hear_something_first_cannot_hold_its_messages() {
    run(How::Unsent, How::Unsent);
}

#[test]
fn the_last_jobs_can_be_taken_when_all_are_made() {
    let client = |ch: &mut Channel| {
        let mut cots =
            CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
        let filling = fill_receiver_later(ch, &mut cots, &jobs()).unwrap();
        while filling.work() {}
        let mut last = filling.take_last(2).unwrap();
        assert_eq!(filling.take_last(3).err().map(|_| ()), Some(()));
        let mut all = filling.take(&jobs()[..2]).unwrap();
        all.append(&mut last);
        all.into_iter().map(ReceiverPads::into_parts).collect::<Vec<_>>()
    };
    let (made, _) = run_pair(client, |ch| {
        let mut cots =
            CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
        fill_sender(ch, &mut cots, &jobs()).map(drop)
    });
    assert!(made.value == run(How::Now, How::Now).0.value);
}

#[test]
fn a_lie_about_correlations_is_found_when_they_are_made() {
    let client = |ch: &mut Channel| {
        let mut cots =
            CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
        let filling = fill_receiver_later(ch, &mut cots, &jobs()).unwrap();
        filling.work();
        let all = filling.take(&jobs());
        if let Err(error) = &all {
            assert_eq!(filling.take(&jobs()).err().as_ref(), Some(error), "it stays");
        }
        all.map(drop)
    };
    let server = |ch: &mut Channel| {
        let mut cots =
            CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
        fill_sender(ch, &mut cots, &jobs()).map(drop)
    };
    let honest = run_pair(client, server);
    assert_eq!(honest.0.value, Ok(()));
    // The choices of the base OTs and their proof come first.
    let last = honest.1.frames.len() - 1;
    for frame in [2, last] {
        let (client, _) = run_tampered(Some((Role::Server, frame, Tamper::Flip)), client, server);
        assert!(matches!(client.value, Err(Error::Peer { .. })), "{:?}", client.value);
    }
}

/// Work of a party that waits needs what came before the message that it waits for.
#[test]
fn pads_of_softspoken_are_made_while_its_next_message_is_awaited() {
    let made = Arc::new(AtomicBool::new(false));
    let sender = |ch: &mut Channel| {
        let rng = &mut Random::seeded(10);
        let mut cots = CotSender::setup(ch, rng, &SESSION, Source::SoftSpoken4).unwrap();
        let first = fill_sender_later(ch, &mut cots, &jobs()).unwrap();
        let work: Arc<dyn Meanwhile> = Arc::new(Watched(Arc::clone(&first), Arc::clone(&made)));
        ch.meanwhile([Arc::downgrade(&work)].into());
        let second = fill_sender_later(ch, &mut cots, &jobs()).unwrap();
        assert_eq!(first.state().heard.waiting.len(), 0);
        let both = [first, second].map(|filling| filling.take(&jobs()).unwrap());
        both.into_iter().flatten().map(SenderPads::into_columns).collect::<Vec<_>>()
    };
    let receiver = |ch: &mut Channel| {
        let rng = &mut Random::seeded(20);
        let mut cots = CotReceiver::setup(ch, rng, &SESSION, Source::SoftSpoken4).unwrap();
        let mut both = fill_receiver(ch, &mut cots, &jobs()).unwrap();
        while !made.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        both.extend(fill_receiver(ch, &mut cots, &jobs()).unwrap());
        both.into_iter().map(ReceiverPads::into_parts).collect::<Vec<_>>()
    };
    let (received, sent) = run_pair(receiver, sender);
    for job in [0, 4] {
        let ((choices, opened), pads) = (&received.value[job], &sent.value[job]);
        for i in 0..jobs()[0].count {
            let chosen = choices.iter().rev().fold(0, |word, bits| 2 * word + bits.get(i) as usize);
            let [ours, theirs] = [opened, &pads[chosen]].map(|pad| pad.planes[0].get(i));
            assert_eq!(ours, theirs);
        }
    }
}

/// Correlations are asked for in pieces, some of which may need the peer where all of them at once
/// would not.
#[test]
fn messages_are_held_only_where_no_piece_needs_the_peer() {
    let (mut piecewise, mut held) = (0, 0);
    for count in (50_000..2_000_000).step_by(150_000) {
        let jobs = [Job { count, choice_bits: 1, entry: Entry::Bits(1) }; 5];
        let mut schedule = Schedule::new(Source::Ferret, Role::Server);
        for _ in 0..60 {
            let mut at_once = schedule.clone();
            at_once.reserve(5 * count);
            at_once.extend(5 * count);
            let soft = |after: &Schedule| -> usize {
                after.made().since(schedule.made()).soft.iter().sum()
            };
            let one_way = is_one_way(&schedule, &jobs);
            let mut after = schedule.clone();
            fill_cost(&mut after, &jobs);
            assert_eq!(one_way, soft(&after) == 0);
            piecewise += usize::from(!one_way && soft(&at_once) == 0);
            held += usize::from(one_way);
            schedule = after;
        }
    }
    assert!(piecewise > 0 && held > 0, "{piecewise} {held}");
}

/// Correlations after a first window follow from what the sender says, whether it holds that or not.
#[test]
fn messages_that_are_held_say_the_same() {
    let window = [Job { count: 300_000, choice_bits: 1, entry: Entry::Bits(1) }];
    let sender = |ch: &mut Channel, held: bool| {
        let mut cots =
            CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
        let mut pads = Vec::new();
        for turn in 0..4 {
            let filling = if held && is_one_way(cots.schedule(), &window) {
                let (filling, unsent) = fill_sender_unsent(&mut cots, &window).unwrap();
                unsent.send(ch).unwrap();
                filling
            } else {
                assert!(!held || turn == 0, "only the first window begins with SoftSpoken");
                fill_sender_later(ch, &mut cots, &window).unwrap()
            };
            pads.extend(filling.take(&window).unwrap());
        }
        pads.into_iter().map(SenderPads::into_columns).collect::<Vec<_>>()
    };
    let receiver = |ch: &mut Channel| {
        let mut cots =
            CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
        let mut fill = || fill_receiver(ch, &mut cots, &window).unwrap().remove(0).into_parts();
        (0..4).map(|_| fill()).collect::<Vec<_>>()
    };
    let open = run_pair(receiver, |ch| sender(ch, false));
    let held = run_pair(receiver, |ch| sender(ch, true));
    assert!(open.0.value == held.0.value && open.1.value == held.1.value);
    assert_eq!(open.1.transcript, held.1.transcript);
    for ((choices, opened), pads) in held.0.value.iter().zip(&held.1.value) {
        for i in (0..window[0].count).step_by(97) {
            let chosen = usize::from(choices[0].get(i) == 1);
            assert_eq!(pads[chosen].planes[0].get(i), opened.planes[0].get(i));
        }
    }
}
