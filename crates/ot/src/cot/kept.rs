//! Base OTs for a later session, made of correlations of this one.
//!
//! | | |
//! |---|---|
//! | In | both directions after their setup; 128 SoftSpoken correlations each |
//! | Out | for each direction of the later session: 128 pairs of pads, of which its COT sender has one each |
//! | Reveals | nothing: the choices are the random ones of the correlations |
//! | Security | that of the extension and of its hash (`hash.rs`) |
//! | Cost | the corrections of 128 correlations each way, no round more ([`setup_cost`](super::both::setup_cost)) |
//! | Paper | Beaver, "Correlated pseudorandomness and the complexity of private computations", STOC 1996: OTs out of OTs |
//!
//! The random OTs of a direction have their choices at its receiver, who is the COT sender of the
//! other direction: OT number `i` becomes the base OT of bit `i` of that party's next Delta, which is
//! `not c_i`. Bit 0 of Delta is 1 whatever `c_0` is, and its base OT needs no secret choice: its
//! pair is a string that both know, and the sum of both pads, which the COT sender does not know.
//!
//! Keys of the later session hash its own identifier, so that nothing of two sessions is the same,
//! and [`Kept`] is consumed by the session that uses it: Delta, trees and pads are new each time.

use ring::Seed;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use super::batch::{ReceiverBatch, SenderBatch};
use super::softspoken::Field;
use crate::base::COUNT;
use crate::session::{Domain, SessionId};

/// Base OTs of a session to come, in both directions, as one party holds them. Whoever uses them
/// consumes them. Prints nothing; wiped on drop.
///
/// ```compile_fail,E0382
/// fn twice(kept: tacit_ot::Kept) -> [tacit_ot::Kept; 2] {
///     [kept, kept]
/// }
/// ```
pub struct Kept {
    name: [u8; 32],
    /// What this party's next Delta will be.
    delta: Zeroizing<u128>,
    /// The pad of each choice, by bit of Delta.
    chosen: Zeroizing<Vec<u128>>,
    /// Both pads of each choice of the peer, by bit of its Delta.
    pairs: Zeroizing<Vec<[u128; 2]>>,
}

impl Kept {
    /// Bytes that one takes in memory, about.
    pub const BYTES: usize = 4 * COUNT * 16;

    /// Out of `sent`, of the direction in which this party is the COT sender, and `received`, of
    /// the other.
    pub(super) fn new(
        session: &SessionId,
        mut sent: SenderBatch,
        mut received: ReceiverBatch,
    ) -> Self {
        let hash = Sha256::new().chain_update(b"tacit kept keys v1").chain_update(session.0);
        let mut pairs = Zeroizing::new(Vec::with_capacity(COUNT));
        sent.pads(1, COUNT, |pads| pairs.extend_from_slice(pads.as_chunks().0));
        let mut delta = Zeroizing::new(1);
        let mut chosen = Zeroizing::new(Vec::with_capacity(COUNT));
        received.pads(1, COUNT, |choices, pads| {
            for (choice, pad) in choices.iter().zip(pads) {
                *delta |= u128::from(1 - choice) << chosen.len();
                chosen.push(*pad);
            }
        });
        Self { name: hash.finalize().into(), delta, chosen, pairs }
    }

    /// The public name of these base OTs, the same at both parties and no others'.
    pub fn name(&self) -> [u8; 32] {
        self.name
    }

    /// What this party's next Delta will be.
    pub(super) fn delta(&self) -> Zeroizing<u128> {
        self.delta.clone()
    }

    /// The base OTs that this party offered: a pair for each level of all trees of `field`.
    pub(super) fn offered(&self, domain: &Domain, field: Field) -> Vec<[Seed; 2]> {
        let pair = |bit: usize| {
            let [zero, one] = self.pairs[bit];
            let pair = Zeroizing::new(if bit == 0 { [0, zero ^ one] } else { [zero, one] });
            [0, 1].map(|side| key(domain, bit, pair[side]))
        };
        (0..COUNT).map(|at| pair(bit_of(field, at))).collect()
    }

    /// The keys that this party chose, one for each level of all trees of `field`.
    pub(super) fn accepted(&self, domain: &Domain, field: Field) -> Vec<Seed> {
        let chosen = |bit: usize| if bit == 0 { 0 } else { self.chosen[bit] };
        let bits = (0..COUNT).map(|at| bit_of(field, at));
        bits.map(|bit| key(domain, bit, chosen(bit))).collect()
    }
}

/// The bit of Delta that level number `at`, counted over all trees of `field`, depends on.
const fn bit_of(field: Field, at: usize) -> usize {
    let depth = field.bits();
    at / depth * depth + (depth - 1 - at % depth)
}

/// A key of the base OT of bit `bit` of Delta.
fn key(domain: &Domain, bit: usize, pad: u128) -> Seed {
    let pad = Zeroizing::new(pad.to_le_bytes());
    let mut digest = domain.digest(b"kept key", &[&(bit as u64).to_le_bytes(), &*pad]);
    let mut seed = Seed([0; 16]);
    seed.0.copy_from_slice(&digest[..16]);
    digest.zeroize();
    seed
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::cot::both::{Setup, setup_cost};
    use ring::Random;
    use wire::testing::{Outcome, run_pair};
    use wire::{Channel, Cost, Role};

    const SOURCES: [Source; 3] = [Source::SoftSpoken2, Source::SoftSpoken4, Source::SoftSpoken8];
    const COTS: usize = 300;

    /// Delta, the correlations of both directions, and what was kept.
    type Ends = (u128, (Vec<u128>, Vec<u128>, Vec<u8>), Option<Kept>);

    fn party(
        ch: &mut Channel,
        (number, source): (u8, Source),
        kept: Option<Kept>,
        keeps: bool,
    ) -> Ends {
        let seed = 2 * u64::from(number) + u64::from(ch.role() == Role::Client);
        let session = SessionId([number; 32]);
        let setup = Setup { kept, keeps, ..Setup::new(session, source) };
        let (mut ours, mut theirs, kept) = setup.run(ch, &mut Random::seeded(seed)).unwrap();
        if ch.role() == Role::Client {
            ours.extend(ch, COTS).unwrap();
            theirs.extend(ch, COTS).unwrap();
        } else {
            theirs.extend(ch, COTS).unwrap();
            ours.extend(ch, COTS).unwrap();
        }
        let (sent, received) = (ours.take(COTS).unwrap(), theirs.take(COTS).unwrap());
        let cots = (sent.blocks.to_vec(), received.blocks.to_vec(), received.choices.to_vec());
        (*sent.delta, cots, kept)
    }

    /// A session; what it cost in all, and what its extension cost.
    fn session(
        session: (u8, Source),
        kept: (Option<Kept>, Option<Kept>),
        keeps: bool,
    ) -> ([Ends; 2], Cost) {
        let (ours, theirs) = kept;
        let (client, server): (Outcome<Ends>, Outcome<Ends>) =
            run_pair(|ch| party(ch, session, ours, keeps), |ch| party(ch, session, theirs, keeps));
        for (one, other) in [(&client.value, &server.value), (&server.value, &client.value)] {
            let (delta, sent) = (one.0, &one.1.0);
            let (received, choices) = (&other.1.1, &other.1.2);
            for ((q, t), c) in sent.iter().zip(received).zip(choices) {
                assert_eq!(q ^ t, delta & u128::from(*c).wrapping_neg());
            }
            assert_eq!(delta & 1, 1);
        }
        ([client.value, server.value], client.cost)
    }

    /// What a session costs after its setup.
    fn extension(source: Source) -> Cost {
        let of = |role| crate::Schedule::new(source, role).extend(COTS);
        of(Role::Client).then(of(Role::Server))
    }

    #[test]
    fn kept_base_ots_make_correlations_that_have_nothing_in_common() {
        for (place, source) in SOURCES.into_iter().enumerate() {
            let cost = |kept, keeps| setup_cost(source, kept, keeps).then(extension(source));
            let ([client, server], spent) = session((1, source), (None, None), true);
            assert_eq!(spent, cost(false, true));
            let (ours, theirs) = (client.2.unwrap(), server.2.unwrap());
            assert_eq!(ours.name(), theirs.name());
            // The trees of the later session may be those of another field.
            let other = SOURCES[(place + 1) % 3];
            let (again, spent) = session((2, other), (Some(ours), Some(theirs)), true);
            let later = setup_cost(other, true, true).then(extension(other));
            assert_eq!(spent, later);
            let [second, third] = again;
            assert_ne!(second.2.as_ref().unwrap().name(), [0; 32]);
            let deltas = [client.0, server.0, second.0, third.0];
            assert!((0..4).all(|at| !deltas[..at].contains(&deltas[at])));
            assert!(second.1.0.iter().all(|q| !client.1.0.contains(q)));
            let kept = (second.2, third.2);
            let (last, spent) = session((3, source), kept, false);
            assert_eq!(spent, cost(true, false));
            assert!(last.iter().all(|end| end.2.is_none()));
        }
        let rounds = [(false, false), (false, true), (true, true), (true, false)]
            .map(|(kept, keeps)| setup_cost(Source::SoftSpoken8, kept, keeps).rounds);
        assert_eq!(rounds, [4, 4, 2, 2]);
    }

    #[test]
    fn base_ots_that_two_sessions_share_still_give_them_different_secrets() {
        let once = |number| {
            let ([ours, theirs], _) = session((1, Source::SoftSpoken4), (None, None), true);
            let kept = (ours.2, theirs.2);
            session((number, Source::SoftSpoken4), kept, false).0
        };
        let ([one, _], [other, _]) = (once(2), once(3));
        assert_eq!(one.0, other.0, "the same Delta, as the seeds are the same");
        assert!(one.1.0.iter().all(|q| !other.1.0.contains(q)), "and other correlations");
    }

    #[test]
    fn a_party_with_other_base_ots_gets_no_correlations() {
        let kept = |number| {
            let ([ours, theirs], _) = session((number, Source::SoftSpoken4), (None, None), true);
            (ours.2, theirs.2)
        };
        let ((ours, _), (_, theirs)) = (kept(1), kept(4));
        let run = |ch: &mut Channel, kept| {
            let setup = Setup { kept, ..Setup::new(SessionId([5; 32]), Source::SoftSpoken4) };
            let (mut sender, mut receiver, _) = setup.run(ch, &mut Random::seeded(1))?;
            match ch.role() {
                Role::Client => receiver.extend(ch, COTS),
                Role::Server => sender.extend(ch, COTS),
            }
        };
        let (client, server) = run_pair(|ch| run(ch, ours), |ch| run(ch, theirs));
        assert!(client.value.is_ok(), "it has only sent");
        assert!(matches!(server.value, Err(wire::Error::Peer { .. })), "{:?}", server.value);
    }
}
