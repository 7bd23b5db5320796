//! Key switching: a polynomial cut into digits, times a key for each digit.
//!
//! With residues c_i of a polynomial c mod the primes q_i, c = sum of g_i * c_i where
//! g_i is 1 mod q_i and 0 mod the other primes. A key for digit j of prime i encrypts
//! P * g_i * 2^(w*j) * s', with P the special prime or 1, so that the digits times the
//! keys are an encryption of P*c*s' under s; dividing by P gives that of c*s'. Keys are
//! kept divided by P already, mod every prime but the special one.
//! Source: Gentry, Halevi, Smart, "Homomorphic evaluation of the AES circuit" (CRYPTO
//! 2012), appendix D; Bajard, Eynard, Hasan, Zucca (SAC 2016) for the residues as digits.

use ring::Seed;

use super::params::{Params, Switching};
use super::ring::Prime;
use super::values::Values;
use crate::error::Result;
use crate::simd::ntt::Factor;
use crate::simd::residue::{self, Permutation};

/// A key of every digit.
pub(crate) struct SwitchKey {
    /// By prime of [`Params::extended`], digit, half: N values.
    pub(crate) values: Vec<f64>,
    /// Digits of each prime.
    pub(crate) digits: usize,
}

/// The digits of a polynomial in the evaluation basis of every prime of keys.
pub(crate) struct Digits {
    /// By digit and prime.
    values: Values,
}

/// Bits of the digits of the residues of each ciphertext prime.
pub(crate) fn digit_bits(params: &Params) -> impl Iterator<Item = Vec<u32>> {
    let switching = params.switching();
    params.widths().into_iter().map(move |width| match switching {
        Switching::Special(_) => vec![width],
        Switching::Digits(bits) => {
            (0..width).step_by(bits as usize).map(|low| bits.min(width - low)).collect()
        }
    })
}

/// All digits.
pub(crate) fn digits(params: &Params) -> usize {
    digit_bits(params).map(|digits| digits.len()).sum()
}

/// Of each digit the place of its prime, and what the residue is multiplied by there:
/// P * 2^(w*j).
pub(crate) fn gadget(params: &Params) -> Vec<(usize, u64)> {
    let primes = params.primes().iter().zip(digit_bits(params)).enumerate();
    let entries = primes.flat_map(|(i, (prime, digits))| {
        let special = params.special().map_or(1, |(_, special)| special.value % prime.value);
        digits.into_iter().scan(special, move |factor, bits| {
            let now = *factor;
            *factor = prime.product(now, (1 << bits) % prime.value);
            Some((i, now))
        })
    });
    entries.collect()
}

impl SwitchKey {
    /// From the bodies digit by digit, prime by prime, and the uniform halves that the seed
    /// gives in `domain` of digit and place; `sources` tells the slot of each value.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for bodies that are not N integers below their prime.
    pub(crate) fn new(
        params: &Params,
        sources: &Permutation,
        domain: impl Fn(usize, usize) -> u64,
        seed: &Seed,
        bodies: &[Vec<u64>],
    ) -> Result<Self> {
        let (degree, digits) = (params.degree(), digits(params));
        let primes = params.extended().count();
        let mut values = vec![0.0; 2 * degree * primes * digits];
        let mut out = values.chunks_exact_mut(degree);
        for (k, (i, prime)) in params.extended().enumerate() {
            for digit in 0..digits {
                let body = bodies.get(digit * primes + k).map(Vec::as_slice).unwrap_or_default();
                prime.check("key", body)?;
                let uniform = prime.uniform(seed, domain(digit, i), degree);
                for (words, out) in [body, &uniform].into_iter().zip(out.by_ref()) {
                    prime.load(out, words, sources);
                    let factor = Factor::new(divisor(params, i, prime).0, prime.value);
                    residue::scale(params.ring().level, prime.float(), out, factor);
                }
            }
        }
        Ok(Self { values, digits })
    }

    /// The segments that are sent: integers, and bits of each.
    pub(crate) fn layout(params: &Params) -> Vec<(usize, u32)> {
        let widths: Vec<u32> = params.extended().map(|(_, prime)| prime.bits).collect();
        let all = widths.repeat(digits(params)).into_iter();
        all.map(|bits| (params.degree(), bits)).collect()
    }

    /// The bodies digit by digit, prime by prime; `places` tells the value of each slot.
    pub(crate) fn bodies(&self, params: &Params, places: &Permutation) -> Vec<Vec<u64>> {
        let degree = params.degree();
        let body = |digit: usize, (i, prime): (usize, &Prime)| {
            let key = self.at(i, degree).chunks_exact(degree).nth(2 * digit);
            let mut values = key.unwrap_or_default().to_vec();
            let factor = Factor::new(divisor(params, i, prime).1, prime.value);
            residue::scale(params.ring().level, prime.float(), &mut values, factor);
            prime.store(&values, places)
        };
        let digits = 0..self.digits;
        digits.flat_map(|digit| params.extended().map(move |prime| body(digit, prime))).collect()
    }

    /// Both halves of every digit's key mod the prime at a place.
    fn at(&self, place: usize, degree: usize) -> &[f64] {
        let row = 2 * self.digits * degree;
        self.values.chunks_exact(row).nth(place).unwrap_or_default()
    }
}

impl Digits {
    /// Of a polynomial in the evaluation basis of the ciphertext primes.
    pub(crate) fn of(params: &Params, poly: &[f64]) -> Self {
        let mut coefficients = Values::of(poly);
        params.ring().backward(&mut coefficients);
        Self::cut(params, coefficients, Some(poly))
    }

    /// Of the coefficients of a polynomial mod the ciphertext primes.
    pub(crate) fn of_coefficients(params: &Params, coefficients: Values) -> Self {
        Self::cut(params, coefficients, None)
    }

    /// Of the coefficients of a polynomial, whose values may be there too.
    fn cut(params: &Params, mut coefficients: Values, poly: Option<&[f64]>) -> Self {
        let degree = params.degree();
        let length = digits(params) * params.extended().count() * degree;
        let mut values = Values::zero(length);
        let mut rows = values.chunks_exact_mut(params.extended().count() * degree);
        let mut digit = Values::zero(degree);
        let parts = coefficients.chunks_exact_mut(degree).zip(digit_bits(params)).enumerate();
        for (i, (rest, bits)) in parts {
            let count = bits.len();
            for (j, bits) in bits.into_iter().enumerate() {
                if count == 1 {
                    let whole = poly.and_then(|poly| poly.chunks_exact(degree).nth(i));
                    extend(params, rows.next(), rest, bits - 1, whole.map(|part| (i, part)));
                } else if j + 1 < count {
                    let base = (1u64 << bits) as f64;
                    residue::split(params.ring().level, base, &mut digit, rest);
                    extend(params, rows.next(), &digit, bits - 1, None);
                } else {
                    // The digits before may carry.
                    extend(params, rows.next(), rest, bits, None);
                }
            }
        }
        Self { values }
    }

    /// The digits times the keys, divided by the special prime, mod the ciphertext primes.
    /// To the first half `plus` is added.
    pub(crate) fn switch(&self, params: &Params, key: &SwitchKey, plus: &[f64]) -> [Values; 2] {
        let (degree, level) = (params.degree(), params.ring().level);
        let rest = params.special().map(|(place, special)| {
            let mut sums = self.inner(params, key, params.primes().len(), place);
            sums.chunks_exact_mut(degree).for_each(|half| special.transform.backward(half));
            sums
        });
        let mut halves = [0, 1].map(|_| Values::zero(degree * params.primes().len()));
        for (i, prime) in params.primes().iter().enumerate() {
            let sums = self.inner(params, key, i, i);
            let plus = plus.chunks_exact(degree).nth(i).unwrap_or_default();
            for (h, (half, sum)) in halves.iter_mut().zip(sums.chunks_exact(degree)).enumerate() {
                let Some(out) = half.chunks_exact_mut(degree).nth(i) else { continue };
                out.copy_from_slice(sum);
                let rest = rest.as_ref().and_then(|rest| rest.chunks_exact(degree).nth(h));
                let rest = rest.map(|rest| divided(params, prime, rest));
                match (h, rest) {
                    (0, None) => residue::add(level, prime.float(), out, plus),
                    (0, Some(y)) => residue::add_subtract(level, prime.float(), out, plus, &y),
                    (_, None) => {}
                    (_, Some(y)) => residue::subtract(level, prime.float(), out, &y),
                }
            }
        }
        halves
    }

    /// The sums of both halves mod a prime: the k-th of the digits, and its place among
    /// all primes.
    fn inner(&self, params: &Params, key: &SwitchKey, k: usize, place: usize) -> Values {
        let (degree, stride) = (params.degree(), params.extended().count());
        let mut sums = Values::zero(2 * degree);
        let digits = self.values.get(k * degree..).unwrap_or_default();
        if let Some(prime) = params.ring().primes.get(place) {
            let (level, key) = (params.ring().level, key.at(place, degree));
            residue::inner(level, prime.float(), &mut sums, digits, stride, key);
        }
        sums
    }
}

/// 1/P and P mod a prime at a place, for keys to be divided by P; 1 for P itself.
fn divisor(params: &Params, place: usize, prime: &Prime) -> (u64, u64) {
    match params.special() {
        Some((special, divisor)) if special != place => {
            (prime.inverse(divisor.value), divisor.value % prime.value)
        }
        _ => (1, 1),
    }
}

/// The transforms of a digit, at most 2^bits in magnitude, for each prime; for that
/// of `whole` it is there already.
fn extend(
    params: &Params,
    row: Option<&mut [f64]>,
    digit: &[f64],
    bits: u32,
    whole: Option<(usize, &[f64])>,
) {
    let parts = row.unwrap_or_default().chunks_exact_mut(params.degree());
    for ((i, prime), part) in params.extended().zip(parts) {
        match whole {
            Some((same, values)) if same == i => part.copy_from_slice(values),
            // Transforms take what is below the prime.
            _ if bits < prime.bits => {
                part.copy_from_slice(digit);
                prime.transform.forward(part);
            }
            _ => {
                residue::lift(params.ring().level, prime.float(), part, digit);
                prime.transform.forward(part);
            }
        }
    }
}

/// What a division by the special prime leaves, divided by it mod another prime, in the
/// evaluation basis.
fn divided(params: &Params, prime: &Prime, rest: &[f64]) -> Values {
    let mut values = Values::zero(rest.len());
    let special = params.special().map_or(1, |(_, special)| special.value);
    let factor = Factor::new(prime.inverse(special), prime.value);
    residue::scaled(params.ring().level, prime.float(), &mut values, rest, factor);
    prime.transform.forward(&mut values);
    values
}
