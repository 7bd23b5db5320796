//! The handshake: what crosses, and who is refused.

use graph::Rounding;
use ring::Random;
use wire::Message;
use wire::testing::run_pair;

use super::network;
use crate::plan::{Plan, Settings};
use crate::session::encoded::EncodedModel;
use crate::session::handshake;
use crate::session::opening::{Asking, Hello, SessionRequest};
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
            channel.send(&SessionRequest::of(&Asking::default(), None)?)?;
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
