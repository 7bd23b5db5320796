//! How large noise gets, and which parameters hold it.
//!
//! Noise is what a phase differs by from q*m/p. Every bound is [`TAIL`] deviations of a
//! sum of independent terms: Gaussian errors of deviation 3.2, and roundings and digits,
//! which are uniform. Such a sum exceeds it with probability 2 * exp(-TAIL^2 / 2) <
//! 2^-65, so that among 2^24 coefficients (512 results at N = 32768) none does but with
//! probability below 2^-40.
//!
//! What is assumed and not proven: digits and roundings are as uniform as the ciphertexts
//! they come from, and terms that rotations move to one place are as uncorrelated as
//! terms of different ciphertexts. Of plaintexts nothing is assumed: every coefficient
//! may be p/2. Tests compare the bounds with measured noise.

mod estimate;

use std::sync::{Mutex, PoisonError};

use super::encoder::Encoder;
use super::params::{Params, Switching};
use crate::error::{Error, Result};
use crate::rlwe::sample::NARROW;

pub use estimate::Estimate;

/// Deviations that a coefficient stays within.
pub const TAIL: f64 = 9.6;

/// Returns a bound on the probability that the noise of a coefficient is above [`TAIL`] deviations.
pub fn coefficient_failure() -> f64 {
    2.0 * (-TAIL * TAIL / 2.0).exp()
}

/// Bits that flooding is above the noise, at least.
pub const FLOODING: u32 = 40;

/// Bits that flooding is above the noise where the modulus has room for them; as many as it has room
/// for where that is less.
pub const MOST_FLOODING: u32 = 60;

/// Digits that a prime is cut into, the cheapest first: as few bits each as so many allow.
const DIGITS: std::ops::RangeInclusive<u32> = 2..=5;

/// Largest part of ones in a ternary secret: 2/3 and six deviations at N = 2048.
const DENSITY: f64 = 0.75;

/// Returns a bound on the probability that a secret of `degree` coefficients has more ones than the
/// bounds on noise count with (Hoeffding).
pub fn key_failure(degree: usize) -> f64 {
    (-2.0 * degree as f64 * (DENSITY - 2.0 / 3.0).powi(2)).exp()
}

/// The variance of a rounding, of a uniform number between -1/2 and 1/2.
const ROUNDING: f64 = 1.0 / 12.0;

/// Sums of plaintexts that a bound has room for beside the first.
const ADDED: f64 = 11.0;

/// Most bits that a word of a response has.
const WORD: u32 = 62;

/// What is done to a fresh ciphertext up to the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The plaintext prime has at most one bit more, or is at most that which
    /// [`Encoder::prime_above`] finds.
    pub plain_bits: u32,
    /// Rotations of an input, one after another, before it is multiplied.
    pub rotations_before: usize,
    /// Products added up in a result. Where sums are rotated and added again, a product
    /// counts as often as it comes. Zero when nothing is multiplied.
    pub terms: usize,
    /// Rotations of sums that are added up in a result, counted in the same way.
    pub rotations_after: usize,
}

/// Cheapest first: degree, bits of the primes, of the special one.
const CANDIDATES: [(usize, &[u32], Option<u32>); 11] = [
    (4096, &[50, 50], None),
    (4096, &[35, 35], Some(36)),
    (4096, &[35, 35, 36], None),
    (8192, &[50, 50], Some(50)),
    (8192, &[43, 43, 44], Some(44)),
    (8192, &[50, 50, 50], Some(50)),
    (8192, &[42, 43, 43, 43], Some(43)),
    (8192, &[42, 43, 43, 43, 43], None),
    (16384, &[50, 50, 50, 50, 50], Some(50)),
    (16384, &[47, 47, 47, 47, 48, 48, 48, 48], Some(50)),
    (32768, &[49; 16], Some(50)),
];

impl Load {
    /// After `steps` times adding a result and its rotation. By half a row, a quarter and so
    /// on that is a trace: of the noise some coefficients vanish and others grow by the number
    /// of summands, not by its root. So each step counts as four times the variance.
    #[must_use]
    pub const fn folded(self, steps: u32) -> Self {
        let times = 4usize.saturating_pow(steps);
        let rotations_after = self.rotations_after.saturating_mul(times).saturating_add(times - 1);
        Self { terms: self.terms.saturating_mul(times), rotations_after, ..self }
    }
}

/// What noise depends on.
struct Sizes {
    degree: f64,
    moduli: Vec<f64>,
    special: Option<f64>,
    /// Bits of a digit, when there is no special prime.
    digit: f64,
    /// The plaintext prime.
    plain: f64,
}

impl Sizes {
    fn of(params: &Params, prime: u64) -> Self {
        let moduli = params.primes().iter().map(|prime| prime.value as f64).collect();
        let special = params.special().map(|(_, prime)| prime.value as f64);
        let digit = match params.switching() {
            Switching::Digits(bits) => f64::from(bits),
            Switching::Special(_) => 0.0,
        };
        Self { degree: params.degree() as f64, moduli, special, digit, plain: prime as f64 }
    }

    /// The variance that key switching adds.
    fn switching(&self) -> f64 {
        let digits: f64 = self.moduli.iter().map(|modulus| self.digits(*modulus)).sum();
        let sums = self.degree * NARROW * NARROW * ROUNDING * digits;
        match self.special {
            Some(special) => sums / (special * special) + self.divided(),
            None => sums,
        }
    }

    /// The squares of the digits' ranges of one prime, added up.
    fn digits(&self, modulus: f64) -> f64 {
        if self.special.is_some() {
            return modulus * modulus;
        }
        let count = (modulus.log2() / self.digit).ceil();
        let last = modulus.log2() - self.digit * (count - 1.0);
        (count - 1.0) * (2.0 * self.digit).exp2() + (2.0 * last).exp2()
    }

    /// The variance of a rounding of both halves.
    fn divided(&self) -> f64 {
        ROUNDING * (1.0 + DENSITY * self.degree)
    }

    fn fresh(&self) -> f64 {
        NARROW * NARROW + (1.0 + ADDED) * ROUNDING
    }

    /// What a plaintext multiplies the variance by.
    fn weight(&self) -> f64 {
        self.degree * (self.plain / 2.0).powi(2)
    }

    fn variance(&self, load: &Load) -> f64 {
        let input = self.fresh() + load.rotations_before as f64 * self.switching();
        let result =
            if load.terms == 0 { input } else { load.terms as f64 * self.weight() * input };
        result + load.rotations_after as f64 * self.switching()
    }

    /// The variance of a product of ciphertexts, maybe of one with itself.
    ///
    /// With phases q*m/p + e + q*k the noise is (m + p*k)*e of each with the other's e,
    /// p/q*e*e, and a rounding times 1 + s + s^2. m is at most p/2, k as large as c1*s
    /// is in q.
    fn product(&self, a: f64, b: f64) -> f64 {
        let modulus: f64 = self.moduli.iter().product();
        let both = (a.sqrt() + b.sqrt()).powi(2);
        let first = self.degree * self.plain.powi(2) * (0.25 + self.divided()) * both;
        let second = self.degree * a * b * (self.plain / modulus).powi(2);
        let rounding = self.divided() + ROUNDING * (DENSITY * self.degree).powi(2);
        first + second + rounding + self.switching()
    }

    /// Bits of the words of c1 and c0 in a response, so that their rounding takes at most
    /// 5/8 of what decrypts.
    fn response(&self) -> [u32; 2] {
        let plain = self.plain.log2().ceil();
        let rounding = bits(ROUNDING * DENSITY * self.degree).ceil();
        [plain + rounding + 2.0, plain + 3.0].map(|bits| bits as u32)
    }

    /// Whether a response decrypts that is flooded as little as possible.
    fn fits(&self, variance: f64) -> bool {
        self.holds(variance, FLOODING)
    }

    /// Bits that flooding is above noise of a variance: all that the modulus holds, of
    /// [`FLOODING`] to [`MOST_FLOODING`].
    fn flooding(&self, variance: f64) -> Option<u32> {
        (FLOODING..=MOST_FLOODING).rev().find(|above| self.holds(variance, *above))
    }

    /// Whether a response decrypts whose flooding is so many bits above its noise.
    fn holds(&self, variance: f64, above: u32) -> bool {
        let [c1, c0] = self.response();
        let modulus: f64 = self.moduli.iter().product();
        let blinding = NARROW * NARROW * (1.0 + 2.0 * DENSITY * self.degree);
        let noise = f64::from(flooding_bits(variance, above)).exp2()
            + bits(variance).exp2()
            + bits(blinding).exp2()
            + 1.0;
        let rounding = bits(ROUNDING * DENSITY * self.degree).exp2() * (-f64::from(c1)).exp2()
            + (-f64::from(c0) - 1.0).exp2();
        c1 <= WORD && noise / modulus + rounding < 0.5 / self.plain
    }
}

/// Bits of the flooding that is so many bits above noise of a variance.
fn flooding_bits(variance: f64, above: u32) -> u32 {
    bits(variance).ceil() as u32 + above
}

/// Bits of the bound for a variance.
fn bits(variance: f64) -> f64 {
    (TAIL * variance.sqrt()).log2()
}

/// Returns the bits of the largest magnitude of a result's noise.
///
/// # Errors
/// [`Error::Shape`] for other plaintext bits than the encoder's.
pub fn bound(encoder: &Encoder, load: &Load) -> Result<f64> {
    Ok(Estimate::of(encoder, load)?.bits())
}

/// Returns the bits of the words of c1 and c0 in a response.
pub fn response_bits(encoder: &Encoder) -> [u32; 2] {
    Sizes::of(encoder.params(), encoder.prime()).response()
}

fn check(encoder: &Encoder, load: &Load) -> Result<()> {
    if encoder.bits() <= load.plain_bits + 1
        || encoder.prime() <= Encoder::prime_above(encoder.params(), load.plain_bits)?
    {
        return Ok(());
    }
    let wanted = format!("at least {}", encoder.bits() - 1);
    Err(Error::shape("plaintext bits of a load", wanted, load.plain_bits))
}

/// Returns the cheapest parameters under which a flooded response decrypts, and the bits of its
/// words of c1 and c0. Without `rotations` nothing is asked of key switching.
///
/// # Errors
/// [`Error::TooLarge`] when there are none.
pub fn choose(load: &Load, rotations: bool) -> Result<(Params, [u32; 2])> {
    choose_from(0, load, rotations)
}

/// Chooses like [`choose`], among the parameters whose rows have at least `row` slots.
///
/// # Errors
/// [`Error::TooLarge`] when there are none.
pub fn choose_from(row: usize, load: &Load, rotations: bool) -> Result<(Params, [u32; 2])> {
    choose_with(row, load, rotations, 1)
}

/// Chooses like [`choose_from`], for a plaintext prime that is also 1 mod `divisor`
/// ([`Encoder::prime_with`]).
///
/// # Errors
/// [`Error::TooLarge`] when there are none.
pub fn choose_with(
    row: usize,
    load: &Load,
    rotations: bool,
    divisor: u64,
) -> Result<(Params, [u32; 2])> {
    let wide = CANDIDATES.into_iter().filter(|(degree, ..)| degree / 2 >= row);
    for (degree, moduli, special) in wide {
        let counts = DIGITS.take(if rotations { usize::MAX } else { 1 });
        let widest = moduli.iter().copied().max().unwrap_or_default();
        let switchings: Vec<Switching> = match special {
            Some(bits) => vec![Switching::Special(bits)],
            None => counts.map(|count| Switching::Digits(widest.div_ceil(count))).collect(),
        };
        for switching in switchings {
            if !expected(degree, moduli, switching, load) {
                continue;
            }
            let params = candidate(degree, moduli, switching)?;
            let prime = Encoder::prime_with(&params, load.plain_bits, divisor)?;
            let sizes = Sizes::of(&params, prime);
            if sizes.fits(sizes.variance(load)) {
                return Ok((params, sizes.response()));
            }
        }
    }
    Err(Error::TooLarge(format!(
        "no parameters with rows of {row} slots or more hold a flooded response for slots of \
         {} bits and {} products; take smaller slots or fewer products",
        load.plain_bits, load.terms
    )))
}

/// Parameters of the list, which are made once: plans choose for every layer.
fn candidate(degree: usize, moduli: &[u32], switching: Switching) -> Result<Params> {
    static KNOWN: Mutex<Vec<Params>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |params: &&Params| {
        (params.degree(), params.switching()) == (degree, switching) && params.widths() == moduli
    };
    if let Some(found) = known.iter().find(same) {
        return Ok(found.clone());
    }
    let params = Params::new(degree, moduli, switching)?;
    known.push(params.clone());
    Ok(params)
}

/// Whether primes of about these bits hold the response.
fn expected(degree: usize, moduli: &[u32], switching: Switching, load: &Load) -> bool {
    let power = |bits: &u32| f64::from(*bits).exp2();
    let (special, digit) = match switching {
        Switching::Special(bits) => (Some(power(&bits)), 0.0),
        Switching::Digits(bits) => (None, f64::from(bits)),
    };
    let moduli = moduli.iter().map(power).collect();
    let sizes =
        Sizes { degree: degree as f64, moduli, special, digit, plain: power(&load.plain_bits) };
    load.plain_bits > degree.ilog2() && sizes.fits(sizes.variance(load))
}
