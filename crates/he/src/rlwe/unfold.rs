//! One ciphertext to many: the coefficients of a polynomial dealt to several.
//!
//! A server that holds the client's keys turns an encryption of
//! `sum over u of x_u(X^c) * X^u`, u below 2^m, into encryptions of `2^m * x_u(X^c)`, where
//! 2^m divides c. Level i takes
//! f, a polynomial in X^(2^i), and `t(f) = f(X^(N/2^i + 1))`, which is f with the sign of
//! every other coefficient changed: `f + t(f)` and `X^-(2^i) * (f - t(f))` are twice its
//! halves. t changes the secret too; a key switch changes it back, with random digits of
//! c1 and keys that encrypt the turned secret times the digits' powers of two.
//!
//! Source: Angel, Chen, Laine, Setty, "PIR with compressed queries and amortized query
//! processing" (SealPIR, IEEE S&P 2018), section 3.3; random digits after Genise,
//! Micciancio, Polyakov (EUROCRYPT 2019); noise: [`super::gadget`].
//!
//! # Security
//! The keys are encryptions under the secret of multiples of its own automorphisms: RLWE
//! with circular security, as of every scheme that rotates. What the server sends after an
//! unfolding is re-randomised like any other response.

use std::fmt;

use ring::word::mask;
use ring::{Random, Seed};
use zeroize::Zeroizing;

use super::cipher::Ciphertext;
use super::gadget::{Gadget, MOST_LEVELS};
use super::key::SecretKey;
use super::ntt::{Kernel, Transformed};
use super::params::Params;
use super::sample;
use crate::error::{Error, Result, expect_len};
use crate::simd::{Level, digits};

/// Keys for all levels of an unfolding. Serve ciphertexts of their own parameters.
pub struct UnfoldKey {
    params: Params,
    levels: Vec<SwitchKey>,
}

/// For every digit both halves of an encryption of the turned secret's multiple.
struct SwitchKey {
    gadget: Gadget,
    halves: Vec<[Transformed; 2]>,
}

/// Separates the uniform halves of these keys from every other use of a seed, and from
/// each other.
const fn domain(level: usize, digit: u32) -> u64 {
    u64::from_le_bytes([b'r', b'l', b'w', b'e', b'.', b'u', level as u8, digit as u8])
}

fn check_levels(levels: usize) -> Result<()> {
    if levels <= MOST_LEVELS {
        return Ok(());
    }
    Err(Error::shape("levels of an unfolding", format!("at most {MOST_LEVELS}"), levels))
}

impl SecretKey {
    /// Returns the integers to send for unfoldings of up to `levels`, in the segments of
    /// [`UnfoldKey::layout`]. `seed` is agreed as that of the public key.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than [`MOST_LEVELS`].
    pub fn unfold_bodies(
        &self,
        levels: usize,
        seed: &Seed,
        rng: &mut Random,
    ) -> Result<Vec<Vec<u64>>> {
        check_levels(levels)?;
        let params = self.params();
        let (degree, bits) = (params.degree(), params.modulus_bits());
        let secret = self.coefficients()?;
        let mut bodies = Vec::new();
        for level in 0..levels {
            let turned = Zeroizing::new(turn(&secret, level));
            let gadget = Gadget::of(params, level);
            for digit in 0..gadget.count {
                let a = sample::expand(seed, domain(level, digit), degree, bits);
                let product = self.times_secret(&a, bits)?;
                let error = sample::narrow(rng, degree);
                let shift = gadget.rounded + digit * gadget.bits;
                let terms = turned.iter().zip(product.iter()).zip(error.iter());
                let body = terms.map(|((turned, product), error)| {
                    let known = (turned << shift).wrapping_add(*error as u64);
                    known.wrapping_sub(*product) & mask(bits)
                });
                bodies.push(body.collect());
            }
        }
        Ok(bodies)
    }
}

impl UnfoldKey {
    /// From the agreed seed and the bodies that the client sent.
    ///
    /// # Errors
    /// [`Error::Shape`] for other lengths, integers beyond the modulus, or too many levels.
    pub fn new(params: Params, levels: usize, seed: &Seed, bodies: &[Vec<u64>]) -> Result<Self> {
        expect_len(
            "segments of unfolding keys",
            Self::layout(params, levels)?.len(),
            bodies.len(),
        )?;
        let mut rest = bodies.iter();
        let keys = (0..levels).map(|level| SwitchKey::new(params, level, seed, &mut rest));
        Ok(Self { params, levels: keys.collect::<Result<_>>()? })
    }

    /// Returns the segments that are sent: integers, and bits of each. Level by level, digit by
    /// digit.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than [`MOST_LEVELS`].
    pub fn layout(params: Params, levels: usize) -> Result<Vec<(usize, u32)>> {
        check_levels(levels)?;
        let digits: u32 = (0..levels).map(|level| Gadget::of(params, level).count).sum();
        Ok(vec![(params.degree(), params.modulus_bits()); digits as usize])
    }

    /// Returns the parameters.
    pub const fn params(&self) -> Params {
        self.params
    }

    /// Levels that there are keys for.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Transforms that `levels` of an unfolding take, each mod one prime.
    pub fn transforms(params: Params, levels: usize) -> usize {
        let each = (0..levels).map(|level| {
            let digits = Gadget::of(params, level).count as usize;
            (1 << level) * (2 * digits + 4)
        });
        each.sum()
    }
}

impl SwitchKey {
    fn new<'a>(
        params: Params,
        level: usize,
        seed: &Seed,
        bodies: &mut impl Iterator<Item = &'a Vec<u64>>,
    ) -> Result<Self> {
        let (degree, bits) = (params.degree(), params.modulus_bits());
        let (kernel, gadget) = (Kernel::of(degree)?, Gadget::of(params, level));
        let norm = u64::from(gadget.count) * norm(params, gadget);
        let halves = bodies.take(gadget.count as usize).zip(0..).map(|(body, digit)| {
            expect_len("unfolding key", degree, body.len())?;
            if body.iter().any(|value| value & !mask(bits) != 0) {
                let wanted = format!("integers of {bits} bits");
                return Err(Error::shape("unfolding key", wanted, "more"));
            }
            let a = sample::expand(seed, domain(level, digit), degree, bits);
            Ok([body, &a].map(|half| kernel.unsigned(half, bits, norm)))
        });
        Ok(Self { gadget, halves: halves.collect::<Result<_>>()? })
    }

    /// Both halves of an encryption, under the secret, of the turned secret times `c1`.
    fn switch(&self, params: Params, mut c1: Vec<u64>, rng: &mut Random) -> Result<[Vec<u64>; 2]> {
        let (degree, bits) = (params.degree(), params.modulus_bits());
        let (kernel, level, gadget) = (Kernel::of(degree)?, Level::best(), self.gadget);
        let random = rng.uniform(degree, bits);
        let mut digit = vec![0.0; degree];
        if gadget.rounded > 0 {
            digits::take(level, &mut c1, &random, 0, gadget.rounded, &mut digit);
        }
        let primes = self.halves.first().map_or(0, |[b, _]| b.primes());
        let mut sums = [kernel.zero(primes), kernel.zero(primes)];
        for (halves, index) in self.halves.iter().zip(0..) {
            let shift = gadget.rounded + index * gadget.bits;
            digits::take(level, &mut c1, &random, shift, gadget.bits, &mut digit);
            let transformed = kernel.small(&digit, primes);
            for (sum, half) in sums.iter_mut().zip(halves) {
                kernel.accumulate(sum, half, &transformed, norm(params, gadget))?;
            }
        }
        Ok(sums.map(|sum| kernel.finish(sum)))
    }
}

/// Bound on the L1 norm of a digit.
fn norm(params: Params, gadget: Gadget) -> u64 {
    (params.degree() as u64) << gadget.bits
}

impl Ciphertext {
    /// The first `count` of the 2^levels ciphertexts in this one: of
    /// `sum over u of x_u(X^c) * X^u` with 2^levels dividing c, those of
    /// `2^levels * x_u(X^c)`. Digits are drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a key of other parameters or too few levels, or a count that is
    /// none or more than there are.
    pub fn unfold(
        self,
        key: &UnfoldKey,
        levels: usize,
        count: usize,
        rng: &mut Random,
    ) -> Result<Vec<Self>> {
        if self.params != key.params {
            return Err(Error::shape("unfolding key parameters", self.params, key.params));
        }
        let keys = key.levels.get(..levels).ok_or_else(|| {
            Error::shape("levels of an unfolding", format!("at most {}", key.levels.len()), levels)
        })?;
        if count == 0 || count > 1 << levels {
            let wanted = format!("1 to {}", 1 << levels);
            return Err(Error::shape("ciphertexts of an unfolding", wanted, count));
        }
        let mut all = vec![self];
        for (level, key) in keys.iter().enumerate() {
            let mut odd = Vec::with_capacity(all.len());
            for cipher in &mut all {
                odd.push(cipher.halve(key, level, rng)?);
            }
            all.extend(odd);
            all.truncate(count);
        }
        Ok(all)
    }

    /// Keeps twice the even half and returns twice the odd one.
    fn halve(&mut self, key: &SwitchKey, level: usize, rng: &mut Random) -> Result<Self> {
        let params = self.params;
        let [mut t0, t1] = key.switch(params, turn(&self.c1, level), rng)?;
        let turned = turn(&self.c0, level);
        t0.iter_mut().zip(turned).for_each(|(to, turned)| *to = to.wrapping_add(turned));
        let bits = params.modulus_bits();
        let c0 = split(&mut self.c0, &t0, 1 << level, bits);
        let c1 = split(&mut self.c1, &t1, 1 << level, bits);
        Ok(Self { params, c0, c1 })
    }
}

/// Makes `f` the sum of both and returns their difference divided by X^power.
fn split(f: &mut [u64], turned: &[u64], power: usize, bits: u32) -> Vec<u64> {
    let mut odd = Vec::with_capacity(f.len());
    for (f, turned) in f.iter_mut().zip(turned) {
        odd.push(f.wrapping_sub(*turned) & mask(bits));
        *f = f.wrapping_add(*turned) & mask(bits);
    }
    odd.rotate_left(power);
    let kept = odd.len().saturating_sub(power);
    for value in odd.iter_mut().skip(kept) {
        *value = value.wrapping_neg() & mask(bits);
    }
    odd
}

/// `f(X^(N/2^level + 1))` mod 2^64.
fn turn(f: &[u64], level: usize) -> Vec<u64> {
    let degree = f.len();
    let factor = (degree >> level) + 1;
    let mut turned = vec![0; degree];
    for (power, value) in f.iter().enumerate() {
        let to = (power * factor) & (2 * degree - 1);
        let sign = 0u64.wrapping_sub(u64::from(to >= degree));
        if let Some(slot) = turned.get_mut(to & (degree - 1)) {
            *slot = (value ^ sign).wrapping_sub(sign);
        }
    }
    turned
}

impl fmt::Debug for UnfoldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnfoldKey({}, <{} levels>)", self.params, self.levels.len())
    }
}
