//! The server's answer: masked, re-randomised, flooded, shortened.
//!
//! Let c be the ciphertext, v its slots, r the mask. The client gets the phase of
//! c + Enc(r) + Enc_pk(0) + (flooding, 0), rounded to fewer bits. Slots are v + r, uniform
//! when r is. c1 is c1 of c plus `a*u + e1` with fresh u and e1: pseudo-random. Noise is
//! that of c, at most 2^B, plus flooding uniform in +-2^(B+f): within 2^-f of flooding
//! alone at every coefficient, whatever the weights are. f is 60, or as much as the modulus
//! has room for, at least 40 ([`super::noise`]). Rounding and decryption come after, and reveal no more.

use std::fmt;

use ring::Random;
use ring::word::mask;
use zeroize::Zeroizing;

use super::cipher::{Ciphertext, add};
use super::encoder::Encoder;
use super::key::{PublicKey, SecretKey, embed_small};
use super::noise::{self, Estimate, Load};
use super::params::Params;
use super::radix::{MixedRadix, fractions};
use super::ring::Prime;
use super::values::Values;
use crate::error::{Error, Result, expect_len};
use crate::rlwe::sample;
use crate::simd::ntt::{Factor, power};
use crate::simd::{convert, residue};

/// Bits of a limb of flooding.
const LIMB: u32 = 48;

/// What the client gets: N integers each of two widths, coefficients mod powers of two.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The half that the secret multiplies.
    pub c1: Vec<u64>,
    /// The half that holds the slots.
    pub c0: Vec<u64>,
    /// Bits of the integers of c1 and of c0.
    pub bits: [u32; 2],
}

impl Ciphertext {
    /// Answers with the slots plus `mask`, N integers uniform below p that the server
    /// keeps. `load` says what was done to the ciphertext, which bounds its noise; it
    /// must not depend on weights, and covers no dropped primes.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters or a mask that is not N integers below p;
    /// [`Error::TooLarge`] when the modulus has no room for flooding. There is no way to
    /// get a response that is not flooded.
    pub fn respond(
        self,
        key: &PublicKey,
        encoder: &Encoder,
        mask: &[u64],
        load: &Load,
        rng: &mut Random,
    ) -> Result<Response> {
        let noise = Estimate::of(encoder, load)?;
        self.respond_within(key, encoder, mask, &noise, rng)
    }

    /// Responds like [`Ciphertext::respond`], with the noise estimate that was carried along
    /// to this ciphertext.
    ///
    /// # Errors
    /// The errors of [`Ciphertext::respond`].
    pub fn respond_within(
        self,
        key: &PublicKey,
        encoder: &Encoder,
        mask: &[u64],
        noise: &Estimate,
        rng: &mut Random,
    ) -> Result<Response> {
        Ok(self.masked(key, encoder, mask, noise, rng)?.shortened(encoder))
    }

    /// Coefficients, rounded.
    pub(crate) fn shortened(mut self, encoder: &Encoder) -> Response {
        let bits = noise::response_bits(encoder);
        let params = self.params.clone();
        let [c0, c1] = &mut self.halves;
        let [c1, c0] =
            [(c1, bits[0]), (c0, bits[1])].map(|(half, bits)| shorten(&params, half, bits));
        Response { c1, c0, bits }
    }

    /// What is rounded, as coefficients.
    pub(crate) fn masked(
        mut self,
        key: &PublicKey,
        encoder: &Encoder,
        mask: &[u64],
        noise: &Estimate,
        rng: &mut Random,
    ) -> Result<Self> {
        key.params().check_covers("public key parameters", &self.params)?;
        encoder.params().check_covers("encoder parameters", &self.params)?;
        expect_len("mask", self.params.degree(), mask.len())?;
        noise.params().check("parameters of the noise", &self.params)?;
        if noise.prime() != encoder.prime() {
            return Err(Error::shape("prime of the noise", encoder.prime(), noise.prime()));
        }
        let flooding = noise.flooding()?;
        self.blind(key, rng);
        let params = self.params.clone();
        let [c0, _] = &mut self.halves;
        flood(&params, c0, flooding, rng);
        encoder.add_scaled(c0, mask)?;
        Ok(self)
    }

    /// Adds a fresh encryption of zero, the key times a ternary polynomial plus errors; from
    /// the evaluation basis to coefficients.
    fn blind(&mut self, key: &PublicKey, rng: &mut Random) {
        let params = &self.params;
        let degree = params.degree();
        let ternary = sample::ternary(rng, degree);
        let mut u = Values::zero(degree * params.primes().len());
        embed_small(params, params.primes(), &ternary, &mut u);
        params.ring().forward(&mut u);
        for (half, key) in self.halves.iter_mut().zip(&key.halves) {
            let factors = key.chunks_exact(degree).zip(u.chunks_exact(degree));
            let parts = half.chunks_exact_mut(degree).zip(factors);
            for (prime, (half, (key, u))) in params.primes().iter().zip(parts) {
                prime.transform.multiply_add(half, key, u);
                prime.transform.reduce(half);
            }
        }
        let params = self.params.clone();
        for half in &mut self.halves {
            params.ring().backward(half);
            add_error(&params, half, rng);
        }
    }
}

impl PublicKey {
    /// Encrypts at most N `slots` below p without the secret. Its noise, about
    /// `3.2 * sqrt(4*N/3)` in deviation, is above that of [`SecretKey::encrypt`].
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, too many slots or integers of p or more.
    pub fn encrypt(
        &self,
        encoder: &Encoder,
        slots: &[u64],
        rng: &mut Random,
    ) -> Result<Ciphertext> {
        let mut cipher = Ciphertext::zero(self.params());
        cipher.blind(self, rng);
        for half in &mut cipher.halves {
            self.params().ring().forward(half);
        }
        cipher.add_slots(encoder, slots)?;
        Ok(cipher)
    }
}

/// Adds Gaussian errors to coefficients mod each prime in turn.
fn add_error(params: &Params, half: &mut [f64], rng: &mut Random) {
    let error = sample::narrow(rng, params.degree());
    let mut residues = Values::zero(half.len());
    embed_small(params, params.primes(), &error, &mut residues);
    add(params, half, &residues);
}

/// Adds integers uniform from -2^bits to 2^bits - 1: limbs of an integer below
/// 2^(bits + 1), and -2^bits.
fn flood(params: &Params, half: &mut [f64], bits: u32, rng: &mut Random) {
    let (degree, level) = (params.degree(), params.ring().level);
    let widths = (0..=bits).step_by(LIMB as usize).map(|low| (bits + 1 - low).min(LIMB));
    for (limb, width) in widths.enumerate() {
        let words = Zeroizing::new(rng.uniform(degree, width));
        let mut limbs = Values::zero(degree);
        limbs.iter_mut().zip(words.iter()).for_each(|(to, word)| *to = *word as i64 as f64);
        for (prime, half) in params.primes().iter().zip(half.chunks_exact_mut(degree)) {
            let factor =
                Factor::new(power(2, u64::from(LIMB) * limb as u64, prime.value), prime.value);
            residue::add_scaled(level, prime.float(), half, &limbs, factor);
        }
    }
    for (prime, half) in params.primes().iter().zip(half.chunks_exact_mut(degree)) {
        let lowest = (prime.value - power(2, u64::from(bits), prime.value)) % prime.value;
        let lowest = Factor::new(lowest, prime.value);
        let lowest = vec![lowest.value; degree];
        residue::add(level, prime.float(), half, &lowest);
    }
}

/// Coefficients c mod q to round(c * 2^bits / q) mod 2^bits.
fn shorten(params: &Params, half: &mut [f64], bits: u32) -> Vec<u64> {
    let round = 1u64 << (u64::BITS - bits - 1);
    let words = fractions(params, half);
    words.iter().map(|word| word.wrapping_add(round) >> (u64::BITS - bits)).collect()
}

impl Response {
    /// Returns the segments that are sent, c1 and then c0: integers, and bits of each.
    pub fn layout(encoder: &Encoder) -> [(usize, u32); 2] {
        noise::response_bits(encoder).map(|bits| (encoder.params().degree(), bits))
    }

    fn check(&self, params: &Params) -> Result<()> {
        let [first, second] = self.bits;
        if !(1..=first).contains(&second) || first > 62 {
            let got = format!("{first} and {second}");
            return Err(Error::shape("response bits", "at most 62 of c1, of c0 no more", got));
        }
        for (words, bits) in [(&self.c1, first), (&self.c0, second)] {
            expect_len("response", params.degree(), words.len())?;
            if words.iter().any(|word| word & !mask(bits) != 0) {
                return Err(Error::shape("response", format!("integers of {bits} bits"), "more"));
            }
        }
        Ok(())
    }
}

impl SecretKey {
    /// Returns the N slots below p of a response.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, lengths or widths.
    pub fn decrypt(&self, encoder: &Encoder, response: &Response) -> Result<Zeroizing<Vec<u64>>> {
        self.params().check("encoder parameters", encoder.params())?;
        response.check(self.params())?;
        let [bits, shorter] = response.bits;
        let mut phase = self.times(&response.c1, bits)?;
        for (phase, c0) in phase.iter_mut().zip(&response.c0) {
            let sum = phase.wrapping_add(c0 << (bits - shorter));
            *phase = sum << (u64::BITS - bits);
        }
        decode(encoder, &phase)
    }

    /// Returns the N slots below p of a ciphertext, without leaving this side: for tests, and to
    /// look at how much noise there is.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters.
    pub fn open(&self, encoder: &Encoder, cipher: &Ciphertext) -> Result<Zeroizing<Vec<u64>>> {
        let mut phase = self.phase(cipher)?;
        decode(encoder, &fractions(cipher.params(), &mut phase))
    }

    /// Returns the bits of the largest coefficient of the noise of a ciphertext that should have
    /// `slots`; for tests and measurements.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, too many slots or integers of p or more.
    pub fn noise(&self, encoder: &Encoder, cipher: &Ciphertext, slots: &[u64]) -> Result<f64> {
        let params = cipher.params();
        let mut phase = self.phase(cipher)?;
        phase.iter_mut().for_each(|x| *x = -*x);
        encoder.add_scaled(&mut phase, slots)?;
        let radix = MixedRadix::new(params.ring().level, params.primes());
        let largest = radix.magnitudes(&mut phase).into_iter().fold(1.0, f64::max);
        Ok(largest.log2())
    }

    /// `half`, mod 2^bits, times the secret, mod 2^64: with as many primes as tell the
    /// products apart.
    fn times(&self, half: &[u64], bits: u32) -> Result<Zeroizing<Vec<u64>>> {
        let (params, degree) = (self.params(), self.params().degree());
        let range = bits + degree.ilog2() + 1;
        let primes = least_primes(params, range)?;
        let unused = u64::BITS - bits;
        let centred: Vec<i64> =
            half.iter().map(|word| ((word << unused) as i64) >> unused).collect();
        let mut values = Values::zero(degree * primes.len());
        for (prime, values) in primes.iter().zip(values.chunks_exact_mut(degree)) {
            convert::residues(params.ring().level, &centred, prime.value, values);
        }
        params.ring().forward(&mut values);
        for ((i, prime), values) in primes.iter().enumerate().zip(values.chunks_exact_mut(degree)) {
            let before = Values::of(values);
            residue::multiply(params.ring().level, prime.float(), values, &before, self.at(i));
        }
        params.ring().backward(&mut values);
        Ok(MixedRadix::new(params.ring().level, primes).words(&mut values))
    }
}

/// The first primes whose product is at least 2^bits.
fn least_primes(params: &Params, bits: u32) -> Result<&[Prime]> {
    let enough = (1..=params.primes().len()).find(|count| {
        let sum: u32 = params.primes().iter().take(*count).map(|prime| prime.bits - 1).sum();
        sum >= bits
    });
    let primes = enough.and_then(|count| params.primes().get(..count));
    primes.ok_or_else(|| Error::shape("response bits", "fewer than the modulus has", bits))
}

/// Phases as fractions of 2^64 to slots.
fn decode(encoder: &Encoder, phase: &[u64]) -> Result<Zeroizing<Vec<u64>>> {
    let prime = encoder.prime();
    let coefficient = |phase: &u64| {
        let rounded = (u128::from(*phase) * u128::from(prime) + (1 << 63)) >> 64;
        let less = (rounded as u64).wrapping_sub(prime);
        less.wrapping_add(prime & ring::word::spread(less >> 63))
    };
    let coefficients: Zeroizing<Vec<u64>> = Zeroizing::new(phase.iter().map(coefficient).collect());
    encoder.decode(&coefficients)
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response(<{} coefficients of {:?} bits>)", self.c0.len(), self.bits)
    }
}
