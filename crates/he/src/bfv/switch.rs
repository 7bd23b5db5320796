//! Key switching: a polynomial cut into digits, times a key for each digit.
//!
//! With residues c_i of a polynomial c mod the primes q_i, c = sum of g_i * c_i where
//! g_i is 1 mod q_i and 0 mod the other primes. A key for digit j of prime i encrypts
//! P * g_i * 2^(w*j) * s', with P the special prime or 1, so that the digits times the
//! keys are an encryption of P*c*s' under s; dividing by P gives that of c*s'.
//! Source: Gentry, Halevi, Smart, "Homomorphic evaluation of the AES circuit" (CRYPTO
//! 2012), appendix D; Bajard, Eynard, Hasan, Zucca (SAC 2016) for the residues as digits.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::params::{Params, Switching};
use crate::simd::ntt::Factor;
use crate::simd::residue;

/// A key of every digit.
pub(crate) struct SwitchKey {
    /// By prime of [`Params::extended`], digit, half: N values.
    pub(crate) values: Vec<f64>,
}

/// The digits of a polynomial in the evaluation basis of every prime of keys.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Digits {
    /// By prime and digit.
    values: Vec<f64>,
}

/// Digits of the residues of each ciphertext prime.
pub(crate) fn digits_of_primes(params: &Params) -> Vec<usize> {
    let count = |bits: u32| match params.switching() {
        Switching::Special(_) => 1,
        Switching::Digits(digit) => bits.div_ceil(digit) as usize,
    };
    params.widths().into_iter().map(count).collect()
}

/// All digits.
pub(crate) fn digits(params: &Params) -> usize {
    digits_of_primes(params).iter().sum()
}

/// Of each digit the place of its prime, and what the residue is multiplied by there:
/// P * 2^(w*j).
pub(crate) fn gadget(params: &Params) -> Vec<(usize, u64)> {
    let counts = digits_of_primes(params);
    let entries = params.primes().iter().zip(counts).enumerate().flat_map(|(i, (prime, count))| {
        let special = params.special().map_or(1, |(_, special)| special.value % prime.value);
        let factor = move |j: usize| match params.switching() {
            Switching::Special(_) => special,
            Switching::Digits(bits) => (1u64 << (bits * j as u32)) % prime.value,
        };
        (0..count).map(move |j| (i, factor(j)))
    });
    entries.collect()
}

impl Digits {
    /// Of a polynomial in the evaluation basis of the ciphertext primes.
    pub(crate) fn of(params: &Params, poly: &[f64]) -> Self {
        let (degree, count) = (params.degree(), digits(params));
        let mut digits = Self { values: vec![0.0; params.extended().count() * count * degree] };
        let mut rest = vec![0.0; degree];
        let mut digit = vec![0.0; degree];
        let mut first = 0;
        let parts = params.primes().iter().zip(poly.chunks_exact(degree));
        for (i, ((prime, part), of_prime)) in parts.zip(digits_of_primes(params)).enumerate() {
            rest.copy_from_slice(part);
            prime.transform.backward(&mut rest);
            for j in 0..of_prime {
                if j + 1 < of_prime {
                    cut(params, &mut digit, &mut rest);
                } else {
                    std::mem::swap(&mut digit, &mut rest);
                }
                let whole = (of_prime == 1).then_some((i, part));
                digits.fill(params, first + j, &digit, whole);
            }
            first += of_prime;
        }
        rest.zeroize();
        digit.zeroize();
        digits
    }

    /// Transforms a digit for each prime; for that of `whole` it is there already.
    fn fill(
        &mut self,
        params: &Params,
        place: usize,
        digit: &[f64],
        whole: Option<(usize, &[f64])>,
    ) {
        let (degree, level) = (params.degree(), params.ring().level);
        let row = self.values.len() / params.extended().count();
        let rows = self.values.chunks_exact_mut(row);
        for ((i, prime), row) in params.extended().zip(rows) {
            let Some(to) = row.chunks_exact_mut(degree).nth(place) else { continue };
            match whole {
                Some((same, values)) if same == i => to.copy_from_slice(values),
                _ => {
                    residue::lift(level, prime.float(), to, digit);
                    prime.transform.forward(to);
                }
            }
        }
    }

    /// The digits times the keys, divided by the special prime: both halves mod the
    /// ciphertext primes.
    pub(crate) fn switch(&self, params: &Params, key: &SwitchKey) -> [Vec<f64>; 2] {
        let (degree, level) = (params.degree(), params.ring().level);
        let row = self.values.len() / params.extended().count();
        let mut sums = vec![0.0; 2 * degree];
        let mut halves = [0, 1].map(|_| vec![0.0; degree * params.primes().len()]);
        // The special prime is the last.
        let keys = key.values.chunks_exact(2 * row);
        for (((i, prime), row), key) in
            params.extended().zip(self.values.chunks_exact(row)).zip(keys)
        {
            residue::inner(level, prime.float(), &mut sums, row, key);
            if i < params.primes().len() {
                for (half, sum) in halves.iter_mut().zip(sums.chunks_exact(degree)) {
                    if let Some(to) = half.chunks_exact_mut(degree).nth(i) {
                        to.copy_from_slice(sum);
                    }
                }
            }
        }
        if let Some((_, special)) = params.special() {
            for (half, sum) in halves.iter_mut().zip(sums.chunks_exact_mut(degree)) {
                special.transform.backward(sum);
                divide(params, half, sum, special.value);
            }
        }
        halves
    }
}

/// `(half - rest) / divisor`, where `rest` is what the division leaves, centred.
fn divide(params: &Params, half: &mut [f64], rest: &[f64], divisor: u64) {
    let (degree, level) = (params.degree(), params.ring().level);
    let mut lifted = vec![0.0; degree];
    for (prime, half) in params.primes().iter().zip(half.chunks_exact_mut(degree)) {
        residue::lift(level, prime.float(), &mut lifted, rest);
        prime.transform.forward(&mut lifted);
        residue::subtract(level, prime.float(), half, &lifted);
        let factor = Factor::new(prime.inverse(divisor), prime.value);
        residue::scale(level, prime.float(), half, factor);
    }
}

/// Takes a digit off.
fn cut(params: &Params, digit: &mut [f64], rest: &mut [f64]) {
    if let Switching::Digits(bits) = params.switching() {
        residue::split(params.ring().level, (1u64 << bits) as f64, digit, rest);
    }
}
