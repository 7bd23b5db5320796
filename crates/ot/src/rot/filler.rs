//! Pads of several jobs, made with their messages, of one direction or of both at once.

use std::collections::VecDeque;

use wire::{Channel, Result};

use super::making::Making;
use super::{CHUNK, PIECE, ReceiverPads, SenderPads, ask};
use crate::cot::{CotReceiver, CotSender, End};
use crate::filling::{Fills, Pads};
use crate::job::Job;

/// Correlations that a party says before it hears as many, where both say some: enough to fill a link while the
/// first of them are on the way.
const AHEAD: usize = 1 << 20;

/// Makes the pads of jobs in order, some elements at a time.
pub(super) struct Filler<'a, S: Fills> {
    source: &'a mut End<S>,
    /// Jobs that are not done.
    jobs: VecDeque<Job>,
    /// Pads of the first of them, and the elements that are missing.
    making: Option<(S::Making, usize)>,
    made: Vec<Pads<S>>,
    /// Correlations still to be taken, and those taken.
    left: usize,
    taken: usize,
}

impl<'a, S: Fills> Filler<'a, S> {
    /// Announces the correlations of `jobs`.
    pub(super) fn new(source: &'a mut End<S>, jobs: &[Job]) -> Result<Self> {
        jobs.iter().try_for_each(Job::check)?;
        let left = jobs.iter().map(Job::cots).sum();
        source.reserve(left);
        let (made, jobs) = (Vec::with_capacity(jobs.len()), jobs.iter().copied().collect());
        Ok(Self { source, jobs, making: None, made, left, taken: 0 })
    }

    /// The pads of all jobs.
    pub(super) fn all(mut self, channel: &mut Channel) -> Result<Vec<Pads<S>>> {
        while self.step(channel)? {}
        Ok(self.made)
    }

    /// Whether there is more to do.
    fn is_left(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Makes the pads of the next elements, and extends the source as needed; returns whether there were any.
    fn step(&mut self, channel: &mut Channel) -> Result<bool> {
        let Some(job) = self.jobs.front() else { return Ok(false) };
        let begun = self.making.take();
        let (mut making, missing) = begun.unwrap_or_else(|| (S::Making::begin(*job), job.count));
        let width = job.choice_bits as usize;
        let mut now = missing.min(PIECE);
        if now > 0 {
            if self.source.available() < now * width {
                self.source.extend(channel, ask(self.left))?;
            }
            // Several pieces may be all that a message made, which are taken without a copy.
            let there = self.source.available().min(CHUNK) / width;
            now = missing.min(there / PIECE * PIECE).max(now);
            self.left -= now * width;
            self.taken += now * width;
            making.add(self.source.split_off(now * width)?, now);
        }
        if now == missing {
            self.made.push(making.finish());
            self.jobs.pop_front();
        } else {
            self.making = Some((making, missing - now));
        }
        Ok(true)
    }
}

/// Makes the pads of jobs that this party sends, and of jobs that it receives, for which the party that holds the
/// choices says all ([`is_soft`](super::is_soft)); the peer does the same. A party does what it can: neither waits
/// for the other as long as there is something to say.
///
/// # Errors
/// As [`fill_sender`](super::fill_sender).
pub fn fill_both(
    channel: &mut Channel,
    (sender, sent): (&mut CotSender, &[Job]),
    (receiver, received): (&mut CotReceiver, &[Job]),
) -> Result<(Vec<SenderPads>, Vec<ReceiverPads>)> {
    let mut sending = Filler::new(sender, sent)?;
    let mut receiving = Filler::new(receiver, received)?;
    channel.crossing(|channel| {
        while sending.is_left() && receiving.is_left() {
            let is_ahead = receiving.taken >= sending.taken + AHEAD;
            if is_ahead && channel.is_ready() {
                sending.step(channel)?;
            } else {
                receiving.step(channel)?;
            }
        }
        Ok((sending.all(channel)?, receiving.all(channel)?))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::{Bits, Random};
    use wire::Role;
    use wire::testing::{Outcome, run_pair};

    use super::*;
    use crate::Source;
    use crate::cot::schedule::{Schedule, Sourcing};
    use crate::cot::{SessionId, setup_both, setup_both_cost};
    use crate::job::Entry;
    use crate::rot::{Column, fill_cost, fill_receiver, fill_sender, is_soft};

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
                fill_both(ch, (&mut ours, &send), (&mut theirs, &receive)).unwrap()
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
}
