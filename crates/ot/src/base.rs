//! Base OTs: 128 random 1-of-2 oblivious transfers from public-key cryptography. This is the classical
//! half; [`hybrid`] adds the lattice half.
//!
//! | | |
//! |---|---|
//! | In | chooser: 128 choice bits |
//! | Out | offerer: 128 pairs of keys; chooser: the chosen key of each |
//! | Reveals | nothing: each of the chooser's points is uniform whatever the choice |
//! | Security | malicious, with the proof of `cot/proof.rs` that the chooser has its keys; CDH over Ristretto, SHA-256 as random oracle |
//! | Cost | 128 points, then one point |
//! | Paper | Canetti, Sarkar, Wang, "Blazing fast OT for three-round UC OT extension", PKC 2020 (ePrint 2020/110), after Chou, Orlandi, "The simplest protocol for oblivious transfer", 2015 |
//!
//! What tells the choices apart is a point T out of a hash of session and direction, the multiple of
//! which nobody knows; Chou and Orlandi take the offerer's point. The hash of a key covers session,
//! direction, position and both points. Points are encoded many at a time, which takes one
//! inversion for all and doubles each: scalars are halved beforehand. With the lattice half the hash
//! covers that half's secret and messages too.

mod element;
pub(crate) mod hybrid;
pub(crate) mod lattice;

use std::fmt;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use ring::{Prg, Seed};
use subtle::{Choice, ConditionallySelectable};
use wire::{Cost, Error, Message, Result, Role, tags};
use zeroize::{Zeroize, Zeroizing};

use self::lattice::Half;
use crate::session::Domain;

/// Base OTs per setup: one for each bit of Delta.
pub(crate) const COUNT: usize = 128;
const POINT: usize = 32;

/// Ristretto points in canonical encoding, none of them the identity.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Points<const TAG: u8>(Vec<(RistrettoPoint, CompressedRistretto)>);

/// The chooser's points B_i.
pub(crate) type Choices = Points<{ tags::BASE_CHOICES }>;
/// The offerer's point A, alone.
pub(crate) type Offer = Points<{ tags::BASE_OFFER }>;

/// The chooser, waiting for the [`Offer`].
struct Chooser {
    /// Half of each b_i.
    halves: Vec<Zeroizing<Scalar>>,
    points: Vec<CompressedRistretto>,
}

/// Draws `b_i` and sends `B_i = b_i*G + c_i*T`, for choice bits `c_i` (0 or 1).
fn choose(domain: &Domain, rng: &mut Prg, choices: &[u8]) -> (Chooser, Choices) {
    let half = half();
    let halves = choices.iter().map(|_| Zeroizing::new(*scalar(rng) * half));
    let halves: Vec<Zeroizing<Scalar>> = halves.collect();
    let (zero, one) = (RistrettoPoint::identity(), half * point(domain));
    let halved = |(secret, bit): (&Zeroizing<Scalar>, &u8)| {
        let shift = RistrettoPoint::conditional_select(&zero, &one, Choice::from(*bit));
        &**secret * RISTRETTO_BASEPOINT_TABLE + shift
    };
    let halved: Vec<RistrettoPoint> = halves.iter().zip(choices).map(halved).collect();
    let points = RistrettoPoint::double_and_compress_batch(&halved);
    let whole = halved.into_iter().map(|half| half + half).zip(points.iter().copied());
    let message = Points(whole.collect());
    (Chooser { halves, points }, message)
}

impl Chooser {
    /// The keys `H(b_i*A)`, with what the chooser has of the lattice half.
    ///
    /// # Errors
    /// [`Error::Peer`] when the offer is not one point.
    fn finish(self, domain: &Domain, offer: &Offer, half: Option<&Half>) -> Result<Vec<Seed>> {
        let [(point, bytes)] = offer.0.as_slice() else {
            return Err(Error::peer("one point", format!("{offer:?}")));
        };
        let multiples = RistrettoBasepointTable::create(point);
        let shared = self.halves.iter().map(|half| &**half * &multiples).collect();
        Ok(keys(domain, (bytes, &self.points), shared, half))
    }
}

/// Draws `a` and offers `A = a*G`, and keeps the pairs `H(a*B_i), H(a*(B_i - T))`, each with what its
/// side has of the lattice half.
///
/// # Errors
/// [`Error::Peer`] when the choices are not 128 points.
fn offer(
    domain: &Domain,
    rng: &mut Prg,
    choices: &Choices,
    halves: Option<&[Half; 2]>,
) -> Result<(Vec<[Seed; 2]>, Offer)> {
    if choices.0.len() != COUNT {
        return Err(Error::peer(format!("{COUNT} points"), format!("{choices:?}")));
    }
    let secret = scalar(rng);
    let offer = encoded(&*secret * RISTRETTO_BASEPOINT_TABLE);
    let half = Zeroizing::new(*secret * half());
    let shift = Zeroizing::new(*half * point(domain));
    let zeros: Vec<_> = choices.0.iter().map(|(point, _)| *half * point).collect();
    let ones = zeros.iter().map(|zero| zero - *shift).collect();
    let points: Vec<_> = choices.0.iter().map(|(_, bytes)| *bytes).collect();
    let [zeros, ones] = [(0, zeros), (1, ones)].map(|(side, of)| {
        keys(domain, (&offer.1, &points), of, halves.map(|halves| &halves[side]))
    });
    Ok((zeros.into_iter().zip(ones).map(<[Seed; 2]>::from).collect(), Points(vec![offer])))
}

impl Offer {
    /// The encoding of the point.
    fn bytes(&self) -> [u8; POINT] {
        self.0.first().map_or([0; POINT], |(_, bytes)| bytes.to_bytes())
    }
}

/// What [`Choices`] cost when `from` sends them.
fn choices_cost(from: Role) -> Cost {
    Cost::message(from, (COUNT * POINT) as u64)
}

/// What [`Offer`] costs when `from` sends it.
fn offer_cost(from: Role) -> Cost {
    Cost::message(from, POINT as u64)
}

/// The keys of OTs with these points (the offer, then the choices), from half of what both parties know
/// and the lattice half, if there is one.
fn keys(
    domain: &Domain,
    (offer, choices): (&CompressedRistretto, &[CompressedRistretto]),
    halves: Vec<RistrettoPoint>,
    lattice: Option<&Half>,
) -> Vec<Seed> {
    let halves = Zeroizing::new(halves);
    // One by one: the encoding of a batch leaves field elements on the heap that it does not erase.
    let shared = halves.iter().map(|half| (half + half).compress());
    let shared = Zeroizing::new(shared.collect::<Vec<_>>());
    let key = |(index, (choice, shared)): (usize, (&CompressedRistretto, &CompressedRistretto))| {
        let number = (index as u64).to_le_bytes();
        let parts: [&[u8]; 4] = [&number, offer.as_bytes(), choice.as_bytes(), shared.as_bytes()];
        let mut digest = match lattice {
            None => domain.digest(b"base key", &parts),
            Some(half) => {
                let [number, offer, choice, shared] = parts;
                let secret: &[u8] = &half.secrets[index];
                let parts = [number, offer, choice, shared, secret, &half.transcript];
                domain.digest(b"base two", &parts)
            }
        };
        let mut seed = Seed([0; 16]);
        seed.0.copy_from_slice(&digest[..16]);
        digest.zeroize();
        seed
    };
    choices.iter().zip(shared.iter()).enumerate().map(key).collect()
}

/// The point T of a session and direction.
fn point(domain: &Domain) -> RistrettoPoint {
    let mut uniform = [0; 64];
    let (halves, _) = uniform.as_chunks_mut::<32>();
    for (half, number) in halves.iter_mut().zip(0u8..) {
        *half = domain.digest(b"base pnt", &[&[number]]);
    }
    RistrettoPoint::from_uniform_bytes(&uniform)
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
        let (chooser, points) = choose(&domain, &mut Random::seeded(2), choices);
        let (pairs, offer) = offer(&domain, &mut Random::seeded(1), &points, None).unwrap();
        (pairs, chooser.finish(&domain, &offer, None).unwrap())
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
        let (chooser, points) = choose(&domain, &mut Random::seeded(2), &[0, 1]);
        assert!(offer(&domain, &mut Random::seeded(1), &points, None).is_err());
        assert!(chooser.finish(&domain, &Points(points.0), None).is_err());
    }

    #[test]
    fn the_point_of_a_choice_differs_for_each_session_and_direction() {
        let of = |session, role| point(&Domain::new(SessionId([session; 32]), role)).compress();
        let points = [of(1, Role::Client), of(2, Role::Client), of(1, Role::Server)];
        assert!((0..3).all(|at| !points[..at].contains(&points[at])));
    }
}
