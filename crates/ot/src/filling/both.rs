//! Pads of both directions, made at the same time.

use std::sync::Arc;

use wire::{Channel, Result};

use super::{Filling, FillingSender};
use crate::cot::{CotReceiver, CotSender, Line};
use crate::job::Job;
use crate::rot::{Filler, ReceiverPads};

/// Correlations that a party says before it hears as many, where both say some: enough to fill a link while the
/// first of them are on the way.
const AHEAD: usize = 1 << 20;

/// Bytes of messages that a party holds whose pads are made later, at most.
const HELD: usize = 16 << 20;

/// Makes the pads of jobs that this party sends, and of jobs that it receives, for which the party that holds the
/// choices says all ([`is_soft`](crate::rot::is_soft)); the peer does the same. A party does what it can: neither waits
/// for the other as long as there is something to say.
///
/// Who has said all may still have pads to make of what it heard. The last of those that it sends are made later if
/// `later` says so, of [`HELD`] bytes of messages at most, so that the peer does not wait for them.
///
/// # Errors
/// As [`fill_sender`](crate::rot::fill_sender).
pub fn fill_both(
    channel: &mut Channel,
    (sender, sent): (&mut CotSender, &[Job]),
    (receiver, received): (&mut CotReceiver, &[Job]),
    later: bool,
) -> Result<(Arc<FillingSender>, Vec<ReceiverPads>)> {
    let held = if later { 8 * HELD / sender.schedule().soft_bits() } else { 0 };
    let mut sending = Filler::new(sender, sent)?;
    let mut receiving = Filler::new(receiver, received)?;
    channel.crossing(|channel| {
        while sending.is_left() && receiving.is_left() {
            let is_ahead = receiving.taken() >= sending.taken() + AHEAD;
            if is_ahead && channel.is_ready() {
                sending.step(channel)?;
            } else {
                receiving.step(channel)?;
            }
        }
        let receiving = receiving.all(channel)?;
        while sending.left() > held || !later && sending.is_left() {
            sending.step(channel)?;
        }
        let sending = sending.later(&mut Line::Open(channel), usize::MAX)?;
        Ok((Filling::of(sending), receiving))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::{Bits, Random};
    use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
    use wire::{Error, Role};

    use super::*;
    use crate::Source;
    use crate::cot::schedule::{Schedule, Sourcing};
    use crate::cot::{SessionId, setup_both, setup_both_cost};
    use crate::filling::Filled;
    use crate::job::Entry;
    use crate::rot::{Column, SenderPads, fill_cost, fill_receiver, fill_sender, is_soft};

    /// More than [`AHEAD`] one way, a few pieces and odd ends the other.
    fn jobs(sender: Role) -> Vec<Job> {
        let job = |count, choice_bits, entry| Job { count, choice_bits, entry };
        match sender {
            Role::Client => vec![
                job(40_001, 4, Entry::Bits(2)),
                job(0, 1, Entry::Word(9)),
                job(3, 8, Entry::Pair(7, 64)),
                job(190_000, 5, Entry::Spared { bits: 9, spare: 1 }),
            ],
            Role::Server => vec![job(20_000, 3, Entry::Bits(17)), job(70, 1, Entry::Word(33))],
        }
    }

    type Made = (Vec<Vec<Column>>, Vec<(Vec<Bits>, Column)>);

    fn run(source: Source, both: [bool; 2]) -> [Outcome<Made>; 2] {
        let party = |ch: &mut Channel, both: bool, seed| {
            let (role, mut rng) = (ch.role(), Random::seeded(seed));
            let (mut ours, mut theirs) =
                setup_both(ch, &mut rng, &SessionId([5; 32]), source).unwrap();
            let (send, receive) = (jobs(role), jobs(!role));
            let (sent, received) = if both {
                let later = role == Role::Client;
                let both =
                    fill_both(ch, (&mut ours, &send), (&mut theirs, &receive), later).unwrap();
                (both.0.next(&send).unwrap(), both.1)
            } else if role == Role::Client {
                let sent = fill_sender(ch, &mut ours, &send).unwrap();
                (sent, fill_receiver(ch, &mut theirs, &receive).unwrap())
            } else {
                let received = fill_receiver(ch, &mut theirs, &receive).unwrap();
                (fill_sender(ch, &mut ours, &send).unwrap(), received)
            };
            let sent = sent.into_iter().map(SenderPads::into_columns).collect();
            (sent, received.into_iter().map(ReceiverPads::into_parts).collect())
        };
        let [client, server] = both;
        let (client, server) = run_pair(|ch| party(ch, client, 1), |ch| party(ch, server, 2));
        [client, server]
    }

    #[test]
    fn both_directions_at_once_say_and_make_what_one_after_the_other_does() {
        let source = Source::SoftSpoken4;
        let apart = run(source, [false; 2]);
        let schedule = |role| Schedule::new(Sourcing::from(source), role);
        let cost = [Role::Client, Role::Server].map(|role| {
            assert!(is_soft(&schedule(role), &jobs(role)));
            fill_cost(&mut schedule(role), &jobs(role))
        });
        let want = setup_both_cost(source).then(cost[0]).then(cost[1]);
        for both in [[true, true], [true, false], [false, true]] {
            let together = run(source, both);
            for (now, before) in together.iter().zip(&apart) {
                assert!(now.value == before.value);
                assert_eq!(now.transcript, before.transcript);
                assert_eq!((now.cost, before.cost), (want, want));
            }
        }
        let silent = Schedule::new(Sourcing::from(Source::Ferret), Role::Client);
        assert!(!is_soft(&silent, &jobs(Role::Client)));
    }

    #[test]
    fn corrections_of_other_choices_are_found_when_pads_are_made_of_them() {
        let party = |ch: &mut Channel| {
            let (role, mut rng) = (ch.role(), Random::seeded(1));
            let (mut ours, mut theirs) =
                setup_both(ch, &mut rng, &SessionId([5; 32]), Source::SoftSpoken4).unwrap();
            let (send, receive) = (jobs(role), jobs(!role));
            let later = role == Role::Client;
            let both = fill_both(ch, (&mut ours, &send), (&mut theirs, &receive), later)?;
            let made = both.0.next(&send).map(drop);
            assert!(made.is_ok() || both.0.next(&send).err() == made.clone().err(), "it stays");
            made
        };
        let honest = run_pair(|ch| party(ch).is_err(), party);
        let last = honest.1.frames.len() - 1;
        let flip = Some((Role::Server, last, Tamper::Flip));
        let (client, _) = run_tampered(flip, party, |ch| party(ch).is_ok());
        let error = client.value.unwrap_err();
        assert!(matches!(error, Error::Peer { .. }), "{error}");
    }
}
