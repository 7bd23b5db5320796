//! The handshake: what crosses, and who is refused.

use graph::Rounding;
use ring::Random;
use wire::testing::run_pair;
use wire::{Error, Message};

use super::network;
use crate::plan::{Plan, Settings};
use crate::provenance::Provenance;
use crate::session::encoded::EncodedModel;
use crate::session::handshake;
use crate::session::opening::{Asking, Hello, SessionRequest, Visitor};
use crate::session::server::session;

#[test]
fn the_handshakes_transcript_is_pinned() {
    let offer = include_str!("../../../../fuzz/corpus/runtime_offer/exact");
    let plan = Plan::from_offer(offer).unwrap();
    let (ours, theirs) = run_pair(
        |channel| {
            handshake::client(channel, &mut Random::seeded(1), Asking::default(), |_| Ok(3))
                .map(|_| ())
        },
        |channel| {
            let choose = |_| Ok(&plan);
            handshake::server(channel, &mut Random::seeded(2), false, choose).map(|_| ())
        },
    );
    assert!(ours.value.is_ok() && theirs.value.is_ok());
    assert_eq!(ours.cost, handshake::cost(&plan));
    let line = format!("hello: {} {}", ours.transcript, theirs.transcript);
    let pinned = include_str!("../../../../tests/golden/transcripts.txt");
    assert!(pinned.lines().any(|pinned| pinned == line), "not pinned: {line}");
}

#[test]
fn what_a_server_says_of_its_model_is_offered_and_may_be_refused() {
    let offer = include_str!("../../../../fuzz/corpus/runtime_offer/exact");
    let plan = Plan::from_offer(offer).unwrap();
    let said = Provenance { commitment: Some([7; 32]), card: Some("a \"card\"".into()) };
    let meet = |trusted: bool| {
        run_pair(
            |channel| {
                let trust = |got: &Plan, provenance: &Provenance| {
                    assert_eq!((got.digest(), provenance), (plan.digest(), &said));
                    if trusted { Ok(()) } else { Err(Error::misuse("another model")) }
                };
                let asking = Asking { trust: Some(&trust), ..Asking::default() };
                handshake::client(channel, &mut Random::seeded(1), asking, |_| Ok(3)).map(drop)
            },
            |channel| {
                let met = &mut Visitor::met(channel, &mut Random::seeded(2))?;
                let admitted = wire::Admitted::default();
                handshake::admit(channel, met, admitted, &said, |_| Ok((&plan, ()))).map(drop)
            },
        )
    };
    let (ours, theirs) = meet(true);
    assert!(ours.value.is_ok() && theirs.value.is_ok());
    let (planned, card) = (handshake::cost(&plan), r#""card":"a \"card\"","#);
    assert_eq!(ours.cost.client_to_server, planned.client_to_server);
    assert_eq!(ours.cost.server_to_client, planned.server_to_client + card.len() as u64);
    assert_eq!(ours.cost.rounds, planned.rounds);
    let (ours, theirs) = meet(false);
    assert_eq!(ours.value, Err(Error::misuse("another model")));
    assert!(theirs.value.is_err(), "the client accepted");
    let opening = crate::session::opening::OPENING as u64;
    assert_eq!(ours.cost.client_to_server, opening, "the client went on");
}

#[test]
fn other_versions_and_plans_are_refused_by_name() {
    let mut rng = Random::seeded(8);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let mut hello = Vec::new();
    Hello::ours(&mut rng).encode(&mut hello);
    hello[0] ^= 7;
    let stranger = Hello::decode(&hello, &()).unwrap();
    let (_, theirs) = run_pair(
        |channel| {
            channel.send(&stranger)?;
            channel.receive::<Hello>(&()).map(|_| ())
        },
        |channel| session(&plan, &prepared, 1, channel).map(|_| ()),
    );
    let error = theirs.value.unwrap_err().to_string();
    assert!(error.contains("same release on both sides"), "{error}");

    let (_, theirs) = run_pair(
        |channel| {
            channel.send(&Hello::ours(&mut Random::seeded(9)))?;
            channel.send(&SessionRequest::of(&Asking::default(), None, None)?)?;
            channel.receive::<Hello>(&())?;
            channel.receive::<wire::Admission>(&())?;
            channel.receive::<handshake::Offer>(&())?;
            channel.send(&handshake::Accept { inputs: 1, digest: [1; 32] })
        },
        |channel| session(&plan, &prepared, 1, channel).map(|_| ()),
    );
    let error = theirs.value.unwrap_err().to_string();
    assert!(error.contains("digest of the offered plan"), "{error}");
}
