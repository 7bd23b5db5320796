use super::*;
use crate::fuzzing::fed;
use crate::message::{Packed, Segment};
use crate::tags;
use crate::testing::run_pair;

type Test = Packed<{ tags::TESTS }>;
const FRAMES: usize = 40;

fn layout() -> Vec<Segment> {
    vec![Segment { count: 3, bits: 8 }]
}

fn talk(channel: &mut Channel) -> Result<()> {
    for i in 0..FRAMES as u64 {
        channel.send(&Test::one(vec![i, 1, 2], 8))?;
    }
    Ok(())
}

/// Frames of one shape, as the parallel messages of a layer are.
fn listen(channel: &mut Channel) -> Result<()> {
    for i in 0..FRAMES as u64 {
        let got: Test = channel.receive(&layout())?;
        assert_eq!(got.concat(), [i, 1, 2], "a frame out of turn was taken");
    }
    Ok(())
}

#[test]
fn frames_are_skipped_up_to_where_they_end() {
    let (ours, _) = run_pair(talk, listen);
    let frames = ours.frames.concat();
    let channel = &mut fed(Role::Server, &frames, 5);
    channel.skip(3 * (HEADER_LEN + 3)).unwrap();
    assert_eq!(channel.meter().cost().client_to_server, 3 * (HEADER_LEN + 3));
    assert_eq!(channel.receive::<Test>(&layout()).unwrap().concat(), [3, 1, 2]);
    for bytes in [1, HEADER_LEN, HEADER_LEN + 4] {
        let error = fed(Role::Server, &frames, 5).skip(bytes).unwrap_err();
        assert!(matches!(error, Error::Peer { .. }), "{bytes}: {error}");
    }
}

#[test]
fn numbers_run_modulo_sixteen_and_cost_nothing() {
    let (ours, theirs) = run_pair(talk, listen);
    ours.value.unwrap();
    theirs.value.unwrap();
    assert_eq!(ours.cost.client_to_server, FRAMES as u64 * (HEADER_LEN + 3));
    for (i, frame) in ours.frames.iter().enumerate() {
        assert_eq!(frame[..5], [tags::TESTS, 3, 0, 0, (i % 16) as u8 * 16]);
    }
}

#[test]
fn equal_looking_frames_cannot_be_repeated_dropped_or_swapped() {
    let (ours, _) = run_pair(talk, listen);
    type Spoil = fn(&mut Vec<Vec<u8>>, usize);
    let spoils: [(&str, Spoil); 3] = [
        ("repeat", |frames, at| frames.insert(at, frames[at].clone())),
        ("drop", |frames, at| drop(frames.remove(at))),
        ("swap", |frames, at| frames.swap(at, at + 1)),
    ];
    for (name, spoil) in spoils {
        for at in 0..FRAMES - 1 {
            let mut frames = ours.frames.clone();
            spoil(&mut frames, at);
            let error = listen(&mut fed(Role::Server, &frames.concat(), 5)).unwrap_err();
            let tag = Some(tags::TESTS);
            assert!(matches!(error, Error::Peer { tag: t, .. } if t == tag), "{name} {at}");
            assert!(error.to_string().contains("lost, repeated or reordered"), "{error}");
        }
    }
}

#[test]
fn messages_that_cross_are_a_run_of_each_party_in_any_order() {
    let party = |channel: &mut Channel, first: bool| {
        channel.crossing(|channel| {
            for turn in [first, !first, first, !first] {
                if turn { talk(channel)? } else { listen(channel)? }
            }
            Ok(())
        })?;
        // What follows is counted as ever: this run belongs to the client's before it.
        if channel.role() == Role::Client { talk(channel) } else { listen(channel) }
    };
    let (ours, theirs) = run_pair(|ch| party(ch, true), |ch| party(ch, false));
    ours.value.unwrap();
    theirs.value.unwrap();
    let bytes = FRAMES as u64 * (HEADER_LEN + 3);
    for cost in [ours.cost, theirs.cost] {
        assert_eq!((cost.client_to_server, cost.server_to_client), (3 * bytes, 2 * bytes));
        assert_eq!((cost.rounds, cost.first), (2, Some(Role::Server)));
    }
}
