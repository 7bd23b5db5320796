//! A session in which frames are changed on the way.

use super::*;

pub(super) type Run = (Outcome<Result<Vec<Column>>>, Outcome<Result<Vec<Column>>>);

/// Setup, extension and OTs, the client choosing.
pub(super) fn session(tamper: Option<(Role, usize, Tamper)>) -> Run {
    let (positions, rows) = inputs(&mut Random::seeded(4));
    let jobs = jobs();
    run_tampered(
        tamper,
        |ch| {
            let (chooser, choices) = choose(receiver_of(ch, &jobs)?, &planes(&positions))?;
            ch.send(&choices)?;
            let masked: Masked = ch.receive(&masked_layout(&jobs))?;
            chooser.finish(masked)
        },
        |ch| {
            let pads = sender_of(ch, &jobs)?;
            let choices: Choices = ch.receive(&choices_layout(&jobs))?;
            let (shares, masked) = respond(pads, tables(&rows), &choices)?;
            ch.send(&masked)?;
            Ok(shares)
        },
    )
}

pub(super) fn session_cost() -> Cost {
    let jobs = jobs();
    setup_cost(Role::Server, SOURCE)
        .then(fill_cost(&mut Schedule::new(SOURCE, Role::Server), &jobs))
        .then(choices_cost(Role::Client, &jobs))
        .then(masked_cost(Role::Server, &jobs))
}

/// Frames: client offer, sums, challenge, corrections, choices; server choices of base OTs, proof,
/// masked.
const FRAMES: [(Role, usize); 2] = [(Role::Client, 5), (Role::Server, 3)];

#[test]
fn tampering_is_an_error_or_a_wrong_result() {
    std::thread::scope(|scope| {
        for (role, frames) in FRAMES {
            for (frame, how) in (0..frames).flat_map(|f| Tamper::ALL.map(|how| (f, how))) {
                scope.spawn(move || tampered(role, frame, how));
            }
        }
    });
}

fn tampered(role: Role, frame: usize, how: Tamper) {
    let (positions, rows) = inputs(&mut Random::seeded(4));
    let (client, server) = session(Some((role, frame, how)));
    // A repeated last frame of a direction is never read; a flipped masked value may be one that
    // the receiver's secret does not open.
    let unread = how == Tamper::Repeat && FRAMES.contains(&(role, frame + 1));
    let maybe = how == Tamper::Flip && (role, frame) == (Role::Server, 2);
    match (client.value, server.value) {
        (Ok(theirs), Ok(ours)) => {
            let right = correct(&ours, &theirs, &positions, &rows);
            assert!(maybe || right == unread, "{frame} {how:?}");
            assert!(matches!(how, Tamper::Flip | Tamper::Repeat), "{frame} {how:?}");
        }
        (client, server) => {
            let blamed = [client.err(), server.err()].into_iter().flatten();
            let fair = |e: &Error| matches!(e, Error::Peer { .. } | Error::Transport(_));
            assert!(blamed.inspect(|e| assert!(fair(e), "{e}")).count() > 0);
        }
    }
}

/// A setup of one direction alone with both halves of base OTs.
fn hybrid(
    tamper: Option<(Role, usize, Tamper)>,
) -> (Outcome<Result<CotReceiver>>, Outcome<Result<CotSender>>) {
    run_tampered(
        tamper,
        |ch| CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, HYBRID),
        |ch| CotSender::setup(ch, &mut Random::seeded(10), &SESSION, HYBRID),
    )
}

/// Frames: client offer, capsules, sums, challenge; server choices, masked keys, proof.
const PARTS: [(Role, usize); 2] = [(Role::Client, 4), (Role::Server, 3)];

#[test]
fn tampering_with_both_halves_ends_the_setup() {
    let (client, server) = hybrid(None);
    assert!(client.value.is_ok() && server.value.is_ok());
    assert_eq!([client.frames.len(), server.frames.len()], PARTS.map(|(_, frames)| frames));
    for (role, frames) in PARTS {
        for (frame, how) in (0..frames).flat_map(|f| Tamper::ALL.map(|how| (f, how))) {
            let (client, server) = hybrid(Some((role, frame, how)));
            let blamed: Vec<Error> =
                [client.value.err(), server.value.err()].into_iter().flatten().collect();
            let fair = |e: &Error| matches!(e, Error::Peer { .. } | Error::Transport(_));
            assert!(blamed.iter().all(fair), "{blamed:?}");
            let unread = how == Tamper::Repeat && frame + 1 == frames;
            // A second copy of a last frame is never read; whether the peer is gone by then is chance.
            let closed = blamed.iter().all(|e| matches!(e, Error::Transport(_)));
            assert!(if unread { closed } else { !blamed.is_empty() }, "{role:?} {frame} {how:?}");
        }
    }
}
