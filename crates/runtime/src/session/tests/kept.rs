//! Sessions with base OTs of earlier ones, and with a plan that the client expects.

use ot::Source;

use super::*;
use crate::session::client::{Answer, Request, predict};
use crate::session::expected::Expected;

/// A session of one input; the client's answer and the server's report.
fn keeping(
    (model, plan, encoded): (&Model, &Plan, &EncodedModel),
    keys: Option<&KeptKeys>,
    store: &mut Option<Kept>,
    values: &[f32],
) -> (Answer, Report) {
    let (mut client, mut theirs) = memory_pair();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            server::session_keeping(plan, encoded, usize::MAX, &mut theirs, store).unwrap()
        });
        let asking = Asking { keys, ..Asking::default() };
        let request = Request {
            values,
            shape: &SHAPE,
            threads: 1,
            accept_leakage: false,
            keys: None,
            asking,
            progress: &mut |_, _| {},
        };
        let answer = predict(&mut client, request).unwrap();
        assert_eq!(answer.results, clear(model, values));
        (answer, server.join().unwrap())
    })
}

#[test]
fn kept_keys_shorten_the_next_setup_by_what_is_said() {
    for post_quantum in [false, true] {
        shortened(Settings { post_quantum, ..Settings::default() });
    }
}

fn shortened(settings: Settings) {
    let mut rng = Random::seeded(31);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), settings).unwrap();
    let encoded = EncodedModel::new(&plan, model.clone()).unwrap();
    let (served, values) = ((&model, &plan, &encoded), inputs(&mut rng, 1));
    let (keys, mut store) = (KeptKeys::default(), None);
    let sent_ahead = u64::from(plan.sends_ahead(true).unwrap());
    // Fresh, with what the first left, forgotten by the server, by the client, and kept by neither;
    // at last with a plan that the client does not expect.
    let rounds = [(false, true), (true, true), (false, true), (false, true), (false, false)];
    for (round, (kept, keeps)) in rounds.into_iter().enumerate() {
        match round {
            2 => store = None,
            3 => drop(keys.take()),
            _ => {}
        }
        let (answer, theirs) = keeping(served, keeps.then_some(&keys), &mut store, &values);
        let wanted = match kept {
            true => plan.expected_setup_cost(true),
            false => plan.kept_setup_cost(false, keeps),
        };
        // What the client sent ahead for nothing is counted where each party met it.
        let lost = if round == 2 { sent_ahead } else { 0 };
        let predicted = Report::predicted(&plan, 1);
        for report in [&answer.report, &theirs] {
            let (setup, offline) = (report.phases.setup, report.phases.offline);
            assert_eq!((setup.rounds, report.resumed), (wanted.rounds, kept), "{round}");
            assert_eq!(setup.bytes.server_to_client, wanted.server_to_client, "{round}");
            let planned = predicted.phases.offline.bytes;
            assert_eq!(offline.bytes.server_to_client, planned.server_to_client, "{round}");
            let before = setup.bytes.client_to_server + offline.bytes.client_to_server;
            let planned = wanted.client_to_server + planned.client_to_server;
            assert_eq!(before, planned + lost, "{round}");
            if lost == 0 {
                assert_eq!(setup.bytes.client_to_server, wanted.client_to_server, "{round}");
            }
            assert_eq!(report.phases.online.bytes, predicted.phases.online.bytes, "{round}");
            // The input goes between the last flight of the setup and the server's corrections, which end
            // with its answer.
            assert_eq!((offline.rounds, predicted.phases.offline.rounds), (1, 1), "{round}");
            let online = predicted.phases.online.rounds;
            assert_eq!(report.total.rounds, wanted.rounds + 1 + online, "{round}");
        }
        assert_eq!(keys.len(), 1);
    }
    assert_eq!(plan.setup_cost().rounds, 6);
    assert_eq!(plan.kept_setup_cost(true, true).rounds, 4);
    assert_eq!(plan.expected_setup_cost(true).rounds, 2);
}

#[test]
fn a_client_that_expects_another_plan_begins_anew() {
    let mut rng = Random::seeded(33);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 1);
    let (keys, mut store) = (KeptKeys::default(), None);
    let sources =
        [Source::SoftSpoken8, Source::SoftSpoken8, Source::SoftSpoken4, Source::SoftSpoken4];
    for (round, ot) in sources.into_iter().enumerate() {
        let settings = Settings { ot, ..Settings::default() };
        let plan = Plan::new(model.graph.clone(), settings).unwrap();
        let encoded = EncodedModel::new(&plan, model.clone()).unwrap();
        let (answer, _) = keeping((&model, &plan, &encoded), Some(&keys), &mut store, &values);
        assert_eq!(answer.report.resumed, round % 2 == 1, "{round}");
        assert_eq!(answer.plan.settings(), plan.settings(), "{round}");
    }
}

/// A session with kept base OTs that ends at each of its frames in turn, of both parties: the client
/// has the base OTs no more, nor has a server that has read of them, and the next session is right.
#[test]
fn base_ots_are_used_up_wherever_a_session_breaks_off() {
    let mut rng = Random::seeded(34);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let encoded = EncodedModel::new(&plan, model.clone()).unwrap();
    let (served, values) = ((&model, &plan, &encoded), inputs(&mut rng, 1));
    let (keys, mut store) = (KeptKeys::default(), None);
    let mut broken = |tamper| {
        keeping(served, Some(&keys), &mut store, &values);
        let used = keys.next().unwrap();
        assert_eq!(store.as_ref().map(Kept::name), Some(used));
        let (ours, theirs) = run_tampered(
            tamper,
            |channel| {
                let asking = Asking { keys: Some(&keys), ..Asking::default() };
                let mut open = Session::open(owned(channel), 1, 1, false, None, asking)?;
                open.predict(&values, &SHAPE).map(drop)
            },
            |channel| {
                server::session_keeping(&plan, &encoded, 1, channel, &mut store)
                    .map(|report| assert!(report.resumed))
            },
        );
        assert_ne!(keys.next(), Some(used), "{tamper:?}");
        // A server that has not read the request still has what nobody will name again.
        let unread = matches!(tamper, Some((Role::Client, 0 | 1, _)));
        assert_eq!(store.as_ref().map(Kept::name) == Some(used), unread, "{tamper:?}");
        if tamper.is_some() {
            assert!(ours.value.is_err() || theirs.value.is_err(), "{tamper:?}");
        }
        [ours.frames.len(), theirs.frames.len()]
    };
    let [ours, theirs] = broken(None);
    assert!(ours > 8 && theirs > 4, "{ours} and {theirs}");
    for (role, frames) in [(Role::Client, ours), (Role::Server, theirs)] {
        for frame in 0..frames {
            broken(Some((role, frame, Tamper::Close)));
        }
    }
}

/// Bytes of a client that expects something, and lies about what it has sent ahead.
#[test]
fn what_is_sent_ahead_ends_where_the_request_says() {
    let mut rng = Random::seeded(35);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let encoded = EncodedModel::new(&plan, model.clone()).unwrap();
    let digest = Provenance::default().digest(&plan.offer());
    let fits = plan.sends_ahead(true).unwrap();
    let (values, keys) = (inputs(&mut rng, 1), KeptKeys::default());
    for ahead in [1, 100, 200, fits] {
        let mut store = None;
        keeping((&model, &plan, &encoded), Some(&keys), &mut store, &values);
        let kept = keys.take();
        let (_, server) = run_pair(
            |channel| {
                let asking = Asking { keys: Some(&keys), ..Asking::default() };
                let expected = Some(Expected { digest, inputs: 1, ahead });
                let rng = &mut Random::seeded(36);
                handshake::ask(channel, rng, asking, kept.as_ref(), expected)?;
                // No plan has messages of this length in this place.
                let wrong = handshake::Accept { inputs: 1, digest };
                (0..5).try_for_each(|_| channel.send(&wrong))?;
                handshake::answer(channel, asking).map(drop)
            },
            |channel| server::session_keeping(&plan, &encoded, 1, channel, &mut store).map(drop),
        );
        let error = server.value.unwrap_err();
        assert!(matches!(error, Error::Peer { .. } | Error::Transport(_)), "{ahead}: {error}");
        assert!(store.is_none(), "{ahead}: neither gives them back nor makes others");
    }
}

#[test]
fn a_server_that_claims_keys_the_client_has_not_is_found_out() {
    let mut rng = Random::seeded(32);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let (client, _) = run_pair(
        |channel| {
            let asking = Asking::default();
            handshake::client(channel, &mut Random::seeded(1), asking, |_| Ok(1)).map(drop)
        },
        |channel| {
            let met = &mut Visitor::met(channel, &mut Random::seeded(2))?;
            let admitted = Admitted { resumes: true, ..Admitted::default() };
            handshake::admit(channel, met, admitted, &Provenance::default(), |_| Ok((&plan, ())))
                .map(drop)
        },
    );
    let error = client.value.unwrap_err().to_string();
    assert!(error.contains("without kept keys"), "{error}");
}
