//! Base OTs: 128 random 1-of-2 oblivious transfers from public-key cryptography.
//!
//! | | |
//! |---|---|
//! | In | acceptor: 128 choice bits |
//! | Out | offerer: 128 pairs of keys; acceptor: the chosen key of each |
//! | Reveals | nothing: each reply is a uniform point whatever the choice |
//! | Security | semi-honest, CDH over Ristretto, SHA-256 as random oracle |
//! | Cost | one point, then 128 points |
//! | Paper | Chou, Orlandi, "The simplest protocol for oblivious transfer", 2015 |
//!
//! The hash covers session, direction, position and both points. Points are encoded many at a
//! time, which takes one inversion for all and doubles each: scalars are halved beforehand.

use std::fmt;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use ring::{Prg, Seed};
use subtle::{Choice, ConditionallySelectable};
use wire::{Cost, Error, Message, Result, Role, tags};
use zeroize::{Zeroize, Zeroizing};

use crate::session::Domain;

/// Base OTs per setup: one for each bit of Delta.
pub(crate) const COUNT: usize = 128;
const POINT: usize = 32;

/// Ristretto points in canonical encoding, none of them the identity.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Points<const TAG: u8>(Vec<(RistrettoPoint, CompressedRistretto)>);

/// The offerer's point A, alone.
pub(crate) type Offer = Points<{ tags::BASE_OFFER }>;
/// The acceptor's points B_i.
pub(crate) type Replies = Points<{ tags::BASE_REPLIES }>;

/// The offerer, waiting for [`Replies`].
pub(crate) struct Offerer {
    secret: Zeroizing<Scalar>,
    point: (RistrettoPoint, CompressedRistretto),
}

/// Draws `a` and offers `A = a*G`.
pub(crate) fn offer(rng: &mut Prg) -> (Offerer, Offer) {
    let secret = scalar(rng);
    let point = encoded(&*secret * RISTRETTO_BASEPOINT_TABLE);
    (Offerer { secret, point }, Points(vec![point]))
}

/// Replies `B_i = b_i*G + c_i*A` and keeps the keys `H(b_i*A)`, one for each of
/// the choice bits (0 or 1).
///
/// # Errors
/// [`Error::Peer`] when the offer is not one point.
pub(crate) fn accept(
    domain: &Domain,
    rng: &mut Prg,
    choices: &[u8],
    offer: &Offer,
) -> Result<(Vec<Seed>, Replies)> {
    let [point] = offer.0.as_slice() else {
        return Err(Error::peer("one point", format!("{offer:?}")));
    };
    let half = half();
    let halved = choices.iter().map(|_| Zeroizing::new(*scalar(rng) * half));
    let secrets: Vec<Zeroizing<Scalar>> = halved.collect();
    let (zero, one) = (RistrettoPoint::identity(), half * point.0);
    let reply = |(secret, bit): (&Zeroizing<Scalar>, &u8)| {
        let shift = RistrettoPoint::conditional_select(&zero, &one, Choice::from(*bit));
        &**secret * RISTRETTO_BASEPOINT_TABLE + shift
    };
    let halves: Vec<RistrettoPoint> = secrets.iter().zip(choices).map(reply).collect();
    let bytes = RistrettoPoint::double_and_compress_batch(&halves);
    let multiples = RistrettoBasepointTable::create(&point.0);
    let shared = secrets.iter().map(|secret| &**secret * &multiples).collect();
    let keys = keys(domain, &point.1, &bytes, shared);
    let replies = halves.into_iter().zip(bytes).map(|(half, bytes)| (half + half, bytes));
    Ok((keys, Points(replies.collect())))
}

impl Offerer {
    /// The pairs `H(a*B_i), H(a*(B_i - A))`.
    ///
    /// # Errors
    /// [`Error::Peer`] when the replies are not 128 points.
    pub(crate) fn finish(self, domain: &Domain, replies: &Replies) -> Result<Vec<[Seed; 2]>> {
        if replies.0.len() != COUNT {
            return Err(Error::peer(format!("{COUNT} points"), format!("{replies:?}")));
        }
        let half = Zeroizing::new(*self.secret * half());
        let shift = Zeroizing::new(*half * self.point.0);
        let zeros: Vec<_> = replies.0.iter().map(|(point, _)| *half * point).collect();
        let ones = zeros.iter().map(|zero| zero - *shift).collect();
        let bytes: Vec<_> = replies.0.iter().map(|(_, bytes)| *bytes).collect();
        let [zeros, ones] = [zeros, ones].map(|of| keys(domain, &self.point.1, &bytes, of));
        Ok(zeros.into_iter().zip(ones).map(<[Seed; 2]>::from).collect())
    }
}

/// What [`Offer`] costs when `from` sends it.
pub(crate) fn offer_cost(from: Role) -> Cost {
    Cost::message(from, POINT as u64)
}

/// What [`Replies`] costs when `from` sends it.
pub(crate) fn replies_cost(from: Role) -> Cost {
    Cost::message(from, (COUNT * POINT) as u64)
}

/// The keys of OTs with these replies, from half of what both parties know.
fn keys(
    domain: &Domain,
    offer: &CompressedRistretto,
    replies: &[CompressedRistretto],
    halves: Vec<RistrettoPoint>,
) -> Vec<Seed> {
    let halves = Zeroizing::new(halves);
    let shared = RistrettoPoint::double_and_compress_batch(halves.iter());
    let shared = Zeroizing::new(shared);
    let key = |(index, (reply, shared)): (usize, (&CompressedRistretto, &CompressedRistretto))| {
        let index = (index as u64).to_le_bytes();
        let parts: [&[u8]; 4] = [&index, offer.as_bytes(), reply.as_bytes(), shared.as_bytes()];
        let mut digest = domain.digest(b"base key", &parts);
        let mut seed = Seed([0; 16]);
        seed.0.copy_from_slice(&digest[..16]);
        digest.zeroize();
        seed
    };
    replies.iter().zip(shared.iter()).enumerate().map(key).collect()
}

/// 1/2 in the order of the group.
fn half() -> Scalar {
    Scalar::from(2u8).invert()
}

fn scalar(rng: &mut Prg) -> Zeroizing<Scalar> {
    let mut wide = Zeroizing::new([0; 64]);
    rng.fill(&mut *wide);
    Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide))
}

fn encoded(point: RistrettoPoint) -> (RistrettoPoint, CompressedRistretto) {
    (point, point.compress())
}

impl<const TAG: u8> Message for Points<TAG> {
    type Shape = usize;
    const TAG: u8 = TAG;

    fn bounds(count: &usize) -> (u64, u64) {
        let len = (count * POINT) as u64;
        (len, len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|(_, bytes)| out.extend_from_slice(bytes.as_bytes()));
    }

    fn decode(body: &[u8], count: &usize) -> Result<Self> {
        let (chunks, rest) = body.as_chunks::<POINT>();
        if chunks.len() != *count || !rest.is_empty() {
            return Err(Error::peer(format!("{count} points"), format!("{} bytes", body.len())));
        }
        let point = |bytes: &[u8; POINT]| {
            let bytes = CompressedRistretto(*bytes);
            let point = bytes.decompress().filter(|point| !point.is_identity());
            let point = point.ok_or_else(|| Error::peer("a canonical point", "another string"))?;
            Ok((point, bytes))
        };
        chunks.iter().map(point).collect::<Result<_>>().map(Self)
    }
}

impl<const TAG: u8> fmt::Debug for Points<TAG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points", self.0.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::session::SessionId;
    use ring::Random;

    fn run(session: u8, choices: &[u8]) -> (Vec<[Seed; 2]>, Vec<Seed>) {
        let domain = Domain::new(SessionId([session; 32]), Role::Client);
        let (offerer, offer) = offer(&mut Random::seeded(1));
        let (keys, replies) = accept(&domain, &mut Random::seeded(2), choices, &offer).unwrap();
        (offerer.finish(&domain, &replies).unwrap(), keys)
    }

    #[test]
    fn the_chosen_key_and_no_other() {
        let choices: Vec<u8> = (0..COUNT).map(|i| (i % 3 == 0).into()).collect();
        let (pairs, keys) = run(0, &choices);
        for ((pair, key), c) in pairs.iter().zip(&keys).zip(&choices) {
            assert!(pair[usize::from(*c)] == *key);
            assert!(pair[usize::from(1 - *c)] != *key);
        }
        let (other, _) = run(1, &choices);
        assert!(pairs.iter().zip(&other).all(|(a, b)| a != b), "keys ignore the session");
    }

    #[test]
    fn bad_points_are_refused() {
        let good = encoded(RistrettoPoint::mul_base(&Scalar::from(7u64))).1.to_bytes();
        assert!(Offer::decode(&good, &1).is_ok());
        let refused = |body: &[u8]| matches!(Offer::decode(body, &1), Err(Error::Peer { .. }));
        assert!(refused(&[0; 32]), "identity");
        assert!(refused(&[0xff; 32]), "above the modulus");
        let mut negative = good;
        negative[0] ^= 1;
        assert!(refused(&negative), "negative");
        let mut high = good;
        high[31] |= 0x80;
        assert!(refused(&high), "unused top bit");
        assert!(refused(&good[..31]));
        assert!(refused(&[good, good].concat()));
    }

    #[test]
    fn a_wrong_number_of_points_is_refused() {
        let domain = Domain::new(SessionId([0; 32]), Role::Client);
        let (offerer, offer) = offer(&mut Random::seeded(1));
        let (_, replies) = accept(&domain, &mut Random::seeded(2), &[0, 1], &offer).unwrap();
        assert!(offerer.finish(&domain, &replies).is_err());
        let two = Points(replies.0.clone());
        assert!(accept(&domain, &mut Random::seeded(2), &[0, 1], &two).is_err());
    }
}
