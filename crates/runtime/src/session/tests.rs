//! Sessions that stay open between inputs.

use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

use graph::{Model, Rounding};
use ot::Kept;
use ring::Random;
use wire::testing::{Tamper, run_pair, run_tampered};
use wire::{Admitted, Channel, Error, Result, Role, memory_pair};

use crate::plan::{Plan, Settings};
use crate::provenance::Provenance;
use crate::report::Report;
use crate::session::encoded::EncodedModel;
use crate::session::handshake;
use crate::session::kept::KeptKeys;
use crate::session::open::Session;
use crate::session::opening::{Asking, Visitor};
use crate::session::server;
use crate::tests::{SIDE, clear, inputs, network, run_with};

mod added;
mod kept;
mod passes;
mod remembered;

const SHAPE: [usize; 3] = [2, SIDE, SIDE];
const ONE: usize = 2 * SIDE * SIDE;

fn offering(offline: u32) -> Settings {
    Settings { offline: NonZeroU32::new(offline), ..Settings::default() }
}

/// What `client` makes of a session of `count` inputs, and how the server's ended.
fn with_session<T>(
    model: &Model,
    settings: Settings,
    count: usize,
    client: impl FnOnce(Session) -> T,
) -> (T, Result<Report>) {
    with_plan(model, &Plan::new(model.graph.clone(), settings).unwrap(), count, client)
}

/// The same under a plan that was chosen.
fn with_plan<T>(
    model: &Model,
    plan: &Plan,
    count: usize,
    client: impl FnOnce(Session) -> T,
) -> (T, Result<Report>) {
    let (ours, mut theirs) = memory_pair();
    let prepared = EncodedModel::new(plan, model.clone()).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let ended = server::session(plan, &prepared, usize::MAX, &mut theirs);
            drop(theirs);
            ended
        });
        let value = client(Session::open(ours, count, 1, false, None, Asking::default()).unwrap());
        (value, server.join().unwrap())
    })
}

fn wait_for(ready: usize, session: &Session) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while session.ready() != ready {
        assert!(Instant::now() < deadline, "{} ready, not {ready}", session.ready());
        thread::sleep(Duration::from_millis(5));
    }
}

fn online(report: &Report) -> u64 {
    let bytes = report.phases.online.bytes;
    bytes.client_to_server + bytes.server_to_client
}

#[test]
fn an_open_session_gives_what_a_batch_gives_at_the_same_cost() {
    let mut rng = Random::seeded(21);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 4);
    for offline in [0, 1, 2, 9] {
        let (batch, _) = run_with(&model, offering(offline), &values);
        let ((results, report), server) = with_session(&model, offering(offline), 4, |mut open| {
            let each = values.chunks(ONE).flat_map(|one| open.predict(one, &SHAPE).unwrap());
            let results: Vec<_> = each.collect();
            let more = open.predict(&values[..ONE], &SHAPE).unwrap_err();
            assert!(matches!(&more, Error::Misuse(why) if why.contains("4 inputs")), "{more}");
            (results, open.finish().unwrap().clone())
        });
        assert_eq!(results, batch.results);
        assert_eq!(results, clear(&model, &values));
        let facts = |report: &Report| {
            let layers = report.layers.iter().map(|row| (row.usage.bytes, row.usage.rounds));
            (report.inputs, report.total.bytes, report.total.rounds, layers.collect::<Vec<_>>())
        };
        assert_eq!(facts(&report), facts(&batch.report));
        assert_eq!(report.total.bytes, server.unwrap().total.bytes);
    }
}

#[test]
fn the_store_fills_up_in_idle_time_and_pauses_take_none() {
    let mut rng = Random::seeded(22);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 3);
    let (_, server) = with_session(&model, offering(2), 4, |mut open| {
        wait_for(2, &open);
        assert_eq!(open.watch()(), 2);
        let usual = run_with(&model, Settings::default(), &values[..ONE]).0.report;
        let mut before = 0;
        for one in values.chunks(ONE).take(2) {
            open.predict(one, &SHAPE).unwrap();
            let after = online(open.report());
            assert!(2 * (after - before) < online(&usual), "{before} to {after}");
            before = after;
            wait_for(2, &open);
        }
        let seconds = |open: &Session| open.report().total.seconds.unwrap();
        let (began, before) = (Instant::now(), seconds(&open));
        thread::sleep(Duration::from_secs(3));
        open.predict(&values[2 * ONE..], &SHAPE).unwrap();
        let took = seconds(&open) - before;
        assert!(took < began.elapsed().as_secs_f64() - 2.0, "{took} s");
        wait_for(1, &open);
        open.predict(&values[..ONE], &SHAPE).unwrap();
        assert_eq!((open.ready(), open.finish().unwrap().inputs), (0, 4));
    });
    assert_eq!(server.unwrap().inputs, 4);
}

#[test]
fn an_input_that_does_not_fit_costs_nothing() {
    let mut rng = Random::seeded(23);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 2);
    let (result, server) = with_session(&model, offering(1), 1, |mut open| {
        let two = [&[2], &SHAPE[..]].concat();
        for (values, shape) in [(&values[..], &two[..]), (&values[..20], &[1, 20]), (&[], &[])] {
            let refused = open.predict(values, shape).unwrap_err();
            assert!(matches!(refused, Error::Misuse(_)), "{refused}");
        }
        let result = open.predict(&values[..ONE], &SHAPE).unwrap();
        open.finish().unwrap();
        let over = open.predict(&values[..ONE], &SHAPE).unwrap_err();
        assert!(over.to_string().contains("finished"), "{over}");
        assert_eq!(open.finish().unwrap().inputs, 1);
        result
    });
    server.unwrap();
    assert_eq!(result, clear(&model, &values[..ONE]));
    let (ours, _theirs) = memory_pair();
    assert!(matches!(
        Session::open(ours, 0, 1, false, None, Asking::default()),
        Err(Error::Misuse(_))
    ));
}

/// Each call is a run, with as many inputs as there are.
#[test]
fn an_open_session_takes_up_to_a_batch_at_a_time() {
    let mut rng = Random::seeded(26);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 6);
    for offline in [0, 2] {
        let settings = Settings { batch: NonZeroU32::new(3), ..offering(offline) };
        let ((results, report), server) = with_session(&model, settings, 3, |mut open| {
            let four = [&[4], &SHAPE[..]].concat();
            let refused = open.predict(&values[..4 * ONE], &four).unwrap_err();
            assert!(refused.to_string().contains("3 input(s) at a time"), "{refused}");
            let some = [0..3, 3..4, 4..6].map(|range| {
                let shape = [&[range.len()], &SHAPE[..]].concat();
                open.predict(&values[range.start * ONE..range.end * ONE], &shape).unwrap()
            });
            (some.concat(), open.finish().unwrap().clone())
        });
        assert_eq!(results, clear(&model, &values));
        let server = server.unwrap();
        assert_eq!((report.inputs, server.inputs), (6, 9));
        assert_eq!(report.total.bytes, server.total.bytes);
    }
}

#[test]
fn a_session_may_end_early() {
    let mut rng = Random::seeded(24);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 1);
    for (offline, finish) in [(0, true), (2, true), (2, false)] {
        let (report, server) = with_session(&model, offering(offline), 3, |mut open| {
            open.predict(&values, &SHAPE).unwrap();
            if finish { open.finish().unwrap().clone() } else { open.report().clone() }
        });
        assert_eq!(report.inputs, 1);
        let why = server.unwrap_err();
        assert!(
            matches!(&why, Error::Transport(error) if error.what.contains("after 1 of 3")),
            "{why}"
        );
    }
}

/// The channel itself, for a session to own.
fn owned(channel: &mut Channel) -> Channel {
    std::mem::replace(channel, memory_pair().0)
}

/// Every frame of a preparation in the background in turn: the server closes instead of
/// sending it, or sends it under another tag or too long. The next call tells.
#[test]
fn garbage_while_preparing_is_named_by_the_next_call() {
    let mut rng = Random::seeded(25);
    let model = network(&mut rng, Rounding::Stochastic);
    let values = inputs(&mut rng, 1);
    let frames = |offline: u32, tamper| {
        let plan = Plan::new(model.graph.clone(), offering(offline)).unwrap();
        let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
        run_tampered(
            tamper,
            |channel| {
                let mut open = Session::open(owned(channel), 2, 1, false, None, Asking::default())?;
                if tamper.is_none() {
                    wait_for(offline as usize, &open);
                    return Ok(());
                }
                let error = open.predict(&values, &SHAPE).unwrap_err();
                assert_eq!(open.predict(&values, &SHAPE), Err(error.clone()));
                assert_eq!((open.ready(), open.finish().unwrap().inputs), (0, 0));
                Err(error)
            },
            |channel| server::session(&plan, &prepared, 2, channel).map(|_| ()),
        )
    };
    // The preparation follows the server's last frame of the setup without a turn between them.
    let all = frames(1, None).1.frames;
    let proof = all.iter().position(|frame| frame.first() == Some(&wire::tags::TREE_PROOF));
    let (setup, until) = (proof.unwrap() + 1, all.len());
    assert!(setup >= 5 && until > setup + 2, "{setup} to {until}");
    for how in [Tamper::Close, Tamper::Retag, Tamper::Oversize] {
        for frame in setup..until {
            let client = frames(1, Some((Role::Server, frame, how))).0.value;
            let named = match how {
                Tamper::Close => matches!(client, Err(Error::Transport(_))),
                _ => matches!(client, Err(Error::Peer { .. })),
            };
            assert!(named, "{how:?} of frame {frame}: {client:?}");
        }
    }
}
