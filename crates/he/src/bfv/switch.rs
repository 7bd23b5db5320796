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
use crate::simd::sums;

/// A key of every digit.
pub(crate) struct SwitchKey {
    /// By prime of [`Params::extended`], digit, half: N values.
    pub(crate) values: Vec<f64>,
    /// Digits of each prime.
    pub(crate) digits: usize,
}

/// A polynomial cut into digits.
pub(crate) struct Digits {
    /// The coefficients of each digit.
    values: Values,
    /// For each digit the bits of its magnitude, and the place of the prime if the digit is
    /// all of that prime's residues.
    shapes: Vec<(u32, Option<usize>)>,
}

/// The digits in the evaluation basis of the primes of keys.
pub(crate) enum Rows<'a> {
    /// Transformed for one prime after another. The whole digits of a polynomial are its
    /// values, if there are any.
    Now(&'a Digits, Option<&'a [f64]>, Values),
    /// All transformed before.
    Kept(&'a [Values]),
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

/// For each digit the place of its prime, and the factor P * 2^(w*j) of the residue there.
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
    /// Takes a polynomial apart that is in the evaluation basis of the ciphertext primes.
    pub(crate) fn of(params: &Params, poly: &[f64]) -> Self {
        let mut coefficients = Values::of(poly);
        params.ring().backward(&mut coefficients);
        Self::of_coefficients(params, coefficients)
    }

    /// Takes a polynomial apart that is given by its coefficients mod the ciphertext primes.
    pub(crate) fn of_coefficients(params: &Params, mut coefficients: Values) -> Self {
        let degree = params.degree();
        let all: Vec<Vec<u32>> = digit_bits(params).collect();
        if all.iter().all(|bits| bits.len() == 1) {
            let shape = |(i, bits): (usize, &Vec<u32>)| (bits.iter().sum::<u32>() - 1, Some(i));
            let shapes = all.iter().enumerate().map(shape).collect();
            return Self { values: coefficients, shapes };
        }
        let mut values = Values::zero(digits(params) * degree);
        let mut outs = values.chunks_exact_mut(degree);
        let mut shapes = Vec::new();
        for (rest, bits) in coefficients.chunks_exact_mut(degree).zip(all) {
            let count = bits.len();
            for ((j, bits), out) in bits.into_iter().enumerate().zip(outs.by_ref()) {
                if j + 1 < count {
                    let base = (1u64 << bits) as f64;
                    residue::split(params.ring().level, base, out, rest);
                } else {
                    out.copy_from_slice(rest);
                }
                // The digits before may carry.
                shapes.push((bits, None));
            }
        }
        Self { values, shapes }
    }

    /// In the evaluation basis of every prime of keys.
    pub(crate) fn rows(&self, params: &Params, poly: &[f64]) -> Vec<Values> {
        let row = |(i, prime)| {
            let mut row = Values::zero(self.values.len());
            self.transform(params, Some(poly), i, prime, &mut row);
            row
        };
        params.extended().map(row).collect()
    }

    /// In the evaluation basis of the prime at a place.
    fn transform(
        &self,
        params: &Params,
        poly: Option<&[f64]>,
        place: usize,
        prime: &Prime,
        row: &mut [f64],
    ) {
        let degree = params.degree();
        let parts = row.chunks_exact_mut(degree).zip(self.values.chunks_exact(degree));
        for ((bits, whole), (part, digit)) in self.shapes.iter().zip(parts) {
            let known = poly.filter(|_| *whole == Some(place));
            if let Some(values) = known.and_then(|poly| poly.chunks_exact(degree).nth(place)) {
                part.copy_from_slice(values);
                continue;
            }
            // Transforms take what is below the prime.
            if *bits < prime.bits {
                part.copy_from_slice(digit);
            } else {
                residue::lift(params.ring().level, prime.float(), part, digit);
            }
            prime.transform.forward(part);
        }
    }
}

impl Rows<'_> {
    /// The digits times the keys, divided by the special prime, mod the ciphertext primes.
    /// To the first half `plus` is added.
    pub(crate) fn switch(mut self, params: &Params, key: &SwitchKey, plus: &[f64]) -> [Values; 2] {
        let (degree, level) = (params.degree(), params.ring().level);
        let rest = params.special().map(|(place, special)| {
            let mut sums = [0, 1].map(|_| Values::zero(degree));
            let [first, second] = &mut sums;
            self.inner(params, key, params.primes().len(), place, [first, second]);
            sums.iter_mut().for_each(|half| special.transform.backward(half));
            sums
        });
        let mut halves = [0, 1].map(|_| Values::zero(degree * params.primes().len()));
        let [first, second] = &mut halves;
        let parts = first.chunks_exact_mut(degree).zip(second.chunks_exact_mut(degree));
        let primes = params.primes().iter().enumerate().zip(plus.chunks_exact(degree));
        for (((i, prime), plus), (first, second)) in primes.zip(parts) {
            self.inner(params, key, i, i, [first, second]);
            if let Some(rest) = &rest {
                let [x, y] = rest.each_ref().map(|rest| divided(params, prime, rest));
                residue::add_subtract(level, prime.float(), first, plus, &x);
                residue::subtract(level, prime.float(), second, &y);
            } else {
                residue::add(level, prime.float(), first, plus);
            }
        }
        halves
    }

    /// The sums of both halves mod a prime: the k-th of the rows, and its place among all
    /// primes.
    fn inner(
        &mut self,
        params: &Params,
        key: &SwitchKey,
        k: usize,
        place: usize,
        [first, second]: [&mut [f64]; 2],
    ) {
        let Some(prime) = params.ring().primes.get(place) else { return };
        let row: &[f64] = match self {
            Rows::Now(digits, poly, row) => {
                digits.transform(params, *poly, place, prime, row);
                row
            }
            Rows::Kept(rows) => rows.get(k).map_or(&[], |row| row),
        };
        let (level, key) = (params.ring().level, key.at(place, params.degree()));
        sums::inner(level, prime.float(), first, second, row, key);
    }
}

impl<'a> Rows<'a> {
    /// Digits that are used once.
    pub(crate) fn once(digits: &'a Digits, poly: Option<&'a [f64]>) -> Self {
        Self::Now(digits, poly, Values::zero(digits.values.len()))
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
