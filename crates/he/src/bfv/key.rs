//! The client's keys.

use std::fmt;

use ring::{Random, Seed};
use zeroize::Zeroizing;

use super::cipher::{CIPHER, Ciphertext, Fresh};
use super::encoder::Encoder;
use super::params::Params;
use super::ring::{Prime, Turn, domain};
use super::rotation::{ROTATION, RotationKeys, turns};
use super::switch::gadget;
use super::values::Values;
use crate::error::{Error, Result, expect_len};
use crate::rlwe::sample;
use crate::simd::convert;
use crate::simd::ntt::Factor;
use crate::simd::residue;

/// Separates the uniform half of the public key from every other use of a seed.
const PUBLIC: &[u8; 4] = b"bfvp";

/// A ternary secret. Zeroized on drop, prints nothing.
pub struct SecretKey {
    params: Params,
    /// The secret's values mod every prime in turn, the prime of keys included.
    values: Values,
}

/// An encryption of zero that the server re-randomises its responses with.
pub struct PublicKey {
    pub(crate) params: Params,
    /// `-a*s + e` and `a`, in the evaluation basis.
    pub(crate) halves: [Values; 2],
}

impl SecretKey {
    /// Makes a fresh secret. One per session.
    ///
    /// # Errors
    /// None for parameters that exist.
    pub fn generate(params: &Params, rng: &mut Random) -> Result<Self> {
        let digits = sample::ternary(rng, params.degree());
        let mut values = Values::zero(params.degree() * params.ring().primes.len());
        embed_small(params, &params.ring().primes, &digits, &mut values);
        params.ring().forward(&mut values);
        Ok(Self { params: params.clone(), values })
    }

    /// Returns the secret's N coefficients, -1 to 1. Whoever stores them must keep them from all
    /// other readers.
    pub fn coefficients(&self) -> Zeroizing<Vec<i8>> {
        let mut values = Values::of(self.at(0));
        if let Some(prime) = self.params.ring().primes.first() {
            prime.transform.backward(&mut values);
        }
        Zeroizing::new(values.iter().map(|x| *x as i8).collect())
    }

    /// Makes the secret with these coefficients.
    ///
    /// # Errors
    /// [`Error::Shape`] when they are not N from -1 to 1.
    pub fn from_coefficients(params: &Params, coefficients: &[i8]) -> Result<Self> {
        expect_len("coefficients of a secret", params.degree(), coefficients.len())?;
        // All are looked at.
        let large = coefficients.iter().fold(false, |any, x| any | !(-1..=1).contains(x));
        if large {
            return Err(Error::shape("coefficients of a secret", "-1 to 1", "others"));
        }
        let digits: Zeroizing<Vec<i64>> =
            Zeroizing::new(coefficients.iter().map(|x| i64::from(*x)).collect());
        let mut values = Values::zero(params.degree() * params.ring().primes.len());
        embed_small(params, &params.ring().primes, &digits, &mut values);
        params.ring().forward(&mut values);
        Ok(Self { params: params.clone(), values })
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Encrypts at most N `slots` below p (row 0, then row 1, the rest zero). Every call
    /// draws a new seed.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, too many slots or integers of p or more.
    pub fn encrypt(&self, encoder: &Encoder, slots: &[u64], rng: &mut Random) -> Result<Fresh> {
        self.params.check("encoder parameters", encoder.params())?;
        let (params, degree) = (&self.params, self.params.degree());
        let seed = rng.seed();
        let error = sample::narrow(rng, degree);
        let mut values = Values::zero(degree * params.primes().len());
        embed_small(params, params.primes(), &error, &mut values);
        encoder.add_scaled(&mut values, slots)?;
        params.ring().forward(&mut values);
        let primes = params.primes().iter().enumerate().zip(values.chunks_exact_mut(degree));
        let body = primes.map(|((i, prime), values)| {
            self.hide(i, prime, &seed, domain(CIPHER, 0, 0, i), values);
            prime.store(values, params.ring().order.places())
        });
        Ok(Fresh { seed: seed.clone(), body: body.collect() })
    }

    /// Returns the public key for `seed`, which must come from a hash of both parties' nonces: a
    /// key with a chosen uniform half would unmask responses. One for each seed: two would show the
    /// difference of their errors.
    ///
    /// # Errors
    /// None for parameters that exist.
    pub fn public_key(&self, seed: &Seed, rng: &mut Random) -> Result<PublicKey> {
        let (params, degree) = (&self.params, self.params.degree());
        let error = sample::narrow(rng, degree);
        let mut values = Values::zero(degree * params.primes().len());
        embed_small(params, params.primes(), &error, &mut values);
        params.ring().forward(&mut values);
        let primes = params.primes().iter().enumerate().zip(values.chunks_exact_mut(degree));
        let bodies: Vec<Vec<u64>> = primes
            .map(|((i, prime), values)| {
                self.hide(i, prime, seed, domain(PUBLIC, 0, 0, i), values);
                prime.store(values, params.ring().order.places())
            })
            .collect();
        Ok(PublicKey::within(params, seed, &bodies))
    }

    /// Returns the keys for turning both rows left by each of `steps`, different ones from 1 to N/2
    /// - 1, and for swapping the rows. One for each seed and turn.
    ///
    /// # Errors
    /// [`Error::Shape`] for other steps.
    pub fn rotation_keys(
        &self,
        steps: &[usize],
        swap: bool,
        seed: &Seed,
        rng: &mut Random,
    ) -> Result<RotationKeys> {
        let bodies: Vec<_> = self.rotation_bodies(steps, swap, seed, rng)?.flatten().collect();
        RotationKeys::new(&self.params, steps, swap, seed, &bodies)
    }

    /// Returns what is sent of such keys, [`RotationKeys::layout`]'s segments of one key at a time,
    /// made as it is asked for. One for each seed and turn.
    ///
    /// # Errors
    /// [`Error::Shape`] for other steps.
    pub fn rotation_bodies<'a>(
        &'a self,
        steps: &[usize],
        swap: bool,
        seed: &Seed,
        rng: &'a mut Random,
    ) -> Result<impl Iterator<Item = Vec<Vec<u64>>> + use<'a>> {
        let (turns, seed) = (turns(&self.params, steps, swap)?, seed.clone());
        Ok(turns.into_iter().map(move |turn| self.rotation_key(turn, &seed, rng)))
    }

    /// The bodies of one key, digit by digit, prime by prime.
    fn rotation_key(&self, turn: Turn, seed: &Seed, rng: &mut Random) -> Vec<Vec<u64>> {
        let turned = self.params.ring().order.turned(turn);
        let number = turn.number(self.params.row());
        let target = |i: usize| {
            let values = self.at(i);
            let mut out = Values::zero(values.len());
            residue::gather(&mut out, values, &turned);
            out
        };
        self.switch_key(target, |digit, i| domain(ROTATION, number, digit, i), seed, rng)
    }

    /// Encrypts a secret, whose values mod the prime at a place `target` gives, for every
    /// digit: bodies digit by digit, prime by prime.
    pub(crate) fn switch_key(
        &self,
        target: impl Fn(usize) -> Values,
        domain: impl Fn(usize, usize) -> u64,
        seed: &Seed,
        rng: &mut Random,
    ) -> Vec<Vec<u64>> {
        let params = &self.params;
        let (level, places) = (params.ring().level, params.ring().order.places());
        let mut bodies = Vec::new();
        for (digit, (place, factor)) in gadget(params).into_iter().enumerate() {
            let error = sample::narrow(rng, params.degree());
            for (i, prime) in params.extended() {
                let mut values = Values::zero(params.degree());
                convert::small(level, &error, &mut values);
                prime.transform.forward(&mut values);
                self.hide(i, prime, seed, domain(digit, i), &mut values);
                if i == place {
                    let mut target = target(i);
                    let factor = Factor::new(factor, prime.value);
                    residue::scale(level, prime.float(), &mut target, factor);
                    residue::add(level, prime.float(), &mut values, &target);
                }
                bodies.push(prime.store(&values, places));
            }
        }
        bodies
    }

    /// Subtracts `a*s`, where the seed gives a's values.
    fn hide(&self, i: usize, prime: &Prime, seed: &Seed, domain: u64, values: &mut [f64]) {
        let (degree, level) = (self.params.degree(), self.params.ring().level);
        let mut uniform = Values::zero(degree);
        let words = prime.uniform(seed, domain, degree);
        prime.load(&mut uniform, &words, self.params.ring().order.slots());
        residue::subtract_product(level, prime.float(), values, &uniform, self.at(i));
    }

    /// The values mod the prime at a place.
    pub(crate) fn at(&self, i: usize) -> &[f64] {
        self.values.chunks_exact(self.params.degree()).nth(i).unwrap_or_default()
    }

    /// `c0 + c1*s`, coefficients mod each prime in turn.
    pub(crate) fn phase(&self, cipher: &Ciphertext) -> Result<Values> {
        let [c0, c1] = &cipher.halves;
        let degree = self.params.degree();
        if cipher.params.ring().degree != degree {
            return Err(Error::shape("ciphertext parameters", &self.params, &cipher.params));
        }
        let mut phase = c0.clone();
        let parts = phase.chunks_exact_mut(degree).zip(c1.chunks_exact(degree));
        for ((i, prime), (phase, c1)) in cipher.params.primes().iter().enumerate().zip(parts) {
            prime.transform.multiply_add(phase, c1, self.at(i));
            prime.transform.reduce(phase);
        }
        cipher.params.ring().backward(&mut phase);
        Ok(phase)
    }
}

/// Integers of magnitude below 2^19, less than half of any prime, mod each of `primes`.
pub(crate) fn embed_small(params: &Params, primes: &[Prime], integers: &[i64], out: &mut [f64]) {
    let degree = params.degree();
    let (first, rest) = out.split_at_mut(degree);
    convert::small(params.ring().level, integers, first);
    for (_, out) in primes.iter().skip(1).zip(rest.chunks_exact_mut(degree)) {
        out.copy_from_slice(first);
    }
}

impl PublicKey {
    /// From the agreed seed and the bodies that the client sent: for each ciphertext
    /// prime N integers below it.
    ///
    /// # Errors
    /// [`Error::Shape`] for other lengths or integers.
    pub fn new(params: &Params, seed: &Seed, bodies: &[Vec<u64>]) -> Result<Self> {
        expect_len("primes of the public key", params.primes().len(), bodies.len())?;
        let mut pairs = params.primes().iter().zip(bodies);
        pairs.try_for_each(|(prime, body)| prime.check("public key", body))?;
        Ok(Self::within(params, seed, bodies))
    }

    /// The key of bodies that are known to be below their primes.
    fn within(params: &Params, seed: &Seed, bodies: &[Vec<u64>]) -> Self {
        let (degree, slots) = (params.degree(), params.ring().order.slots());
        let mut halves = Ciphertext::zero(params).halves.clone();
        let [b, a] = &mut halves;
        let parts = b.chunks_exact_mut(degree).zip(a.chunks_exact_mut(degree));
        for (((i, prime), body), (b, a)) in
            params.primes().iter().enumerate().zip(bodies).zip(parts)
        {
            prime.load(b, body, slots);
            prime.load(a, &prime.uniform(seed, domain(PUBLIC, 0, 0, i), degree), slots);
        }
        Self { params: params.clone(), halves }
    }

    /// Returns the segments that are sent: integers, and bits of each.
    pub fn layout(params: &Params) -> Vec<(usize, u32)> {
        params.widths().into_iter().map(|bits| (params.degree(), bits)).collect()
    }

    /// Returns the integers to send, in the segments of [`PublicKey::layout`].
    pub fn bodies(&self) -> Vec<Vec<u64>> {
        let [b, _] = &self.halves;
        let parts = self.params.primes().iter().zip(b.chunks_exact(self.params.degree()));
        parts.map(|(prime, b)| prime.store(b, self.params.ring().order.places())).collect()
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}, <hidden>)", self.params)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.params)
    }
}
