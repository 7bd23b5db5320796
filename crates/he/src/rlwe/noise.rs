//! How far phases are from the truth, and which modulus that asks for.
//!
//! With per-coefficient terms that are independent and subgaussian, the phase of
//! a response is off by (in units of 1 mod 2^K)
//!
//! | term | variance proxy |
//! |---|---|
//! | client's errors times weights | 3.2^2 * sum of w^2 |
//! | public key's error times u | (2/3) * norm^2 of that error |
//! | e1 times the secret | 3.2^2 * norm^2 of the secret |
//! | e0 | 2^24 |
//! | rounding of c1 to K' bits, times the secret | 4^(K-K')/12 * norm^2 of the secret |
//!
//! and by less than 2^(K-K') for the floor of c0. The discrete Gaussian, the
//! uniform ternary and the uniform rounding error are subgaussian with their own
//! variance as proxy (Canonne, Kamath, Steinke 2020, and comparison of power
//! series). The two norms hold up to 2^-64 per key: norm^2 of an error is below
//! 3.2^2 * (N + 2 sqrt(N t) + 2t) (Hsu, Kakade, Zhang 2012), that of a secret
//! below 2N/3 + sqrt(N t / 2) (Hoeffding), with t = 64 ln 2. A sum S of proxy V
//! exceeds sqrt(2 V ln2 (f + 1)) in magnitude with probability below 2^-f.

use super::gadget::{FORM_FAILURE, growth};
use super::params::{LEAST_MODULUS_BITS, Params, TABLE};
use super::rescale::EXACT_BITS;
use super::sample::{COVER, NARROW, WIDE};
use crate::error::{Error, Result};

/// Failure of 2^-40 for one coefficient: how often the error of a stochastic rescale may be above
/// [`stochastic_error`]. What widths leave room for is more, and that is exceeded far more rarely
/// ([`Noise::beyond`]).
pub const PER_COEFFICIENT: f64 = 40.0;
/// Failure of 2^-40 for a whole tensor of at most 2^26 coefficients (union bound).
pub const PER_TENSOR: f64 = 66.0;

/// Extra response bits below the output, stochastic mode.
pub const STOCHASTIC_SPARE: u32 = 8;
/// Extra response bits below the accumulator, exact mode.
pub const EXACT_SPARE: u32 = 9;

/// The weights that hit one output coefficient: those of *all* polynomials summed
/// into a response, since every coefficient of a product sees every weight of the
/// polynomial, those of its neighbours' output channels included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    squares: f64,
}

/// A response's noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    params: Params,
    load: Load,
    response_bits: u32,
    responses: u32,
    /// Deviation of e0.
    wide: f64,
}

impl Load {
    /// From the sum of the squared weights.
    pub const fn from_squares(squares: f64) -> Self {
        Self { squares }
    }

    /// From public facts: at most `count` weights of magnitude at most `largest`.
    pub fn bounded(count: usize, largest: u64) -> Self {
        Self { squares: count as f64 * (largest as f64).powi(2) }
    }

    /// The load of these weights on ciphertexts that were unfolded before
    /// ([`super::Ciphertext::unfold`]), and came without the lowest `dropped` bits of their bodies
    /// ([`super::Fresh::shorten`]).
    pub fn unfolded(self, params: Params, levels: usize, dropped: u32) -> Self {
        Self { squares: self.squares * growth(params, levels, dropped) }
    }
}

impl Noise {
    /// Makes the noise of a response with `response_bits` = K' bits.
    pub const fn new(params: Params, load: Load, response_bits: u32) -> Self {
        Self { params, load, response_bits, responses: 1, wide: WIDE }
    }

    /// The noise of a response whose e0 covers a key of any errors ([`super::Ciphertext::respond_covered`]).
    #[must_use]
    pub const fn covered(self) -> Self {
        Self { wide: COVER, ..self }
    }

    /// The noise of the sum of `responses` responses; the load is that of all of them.
    #[must_use]
    pub const fn summed(self, responses: u32) -> Self {
        Self { responses, ..self }
    }

    /// Returns the bound on the phase's error before the response is shortened, in units of 1 mod
    /// 2^K, failing with probability below 2^-failure_bits per coefficient.
    pub fn phase(&self, failure_bits: f64) -> f64 {
        tail(failure_bits) * self.phase_proxy().sqrt()
    }

    /// Returns the bound on the noise after shortening, the floor of c0 included.
    pub fn response(&self, failure_bits: f64) -> f64 {
        self.scaled(failure_bits, 0.0, i64::from(self.params.modulus_bits()))
    }

    /// Returns the bound on the rescaled result's error in units of the output, both parties' local
    /// rounding included.
    pub fn rescale_error(&self, out_bits: u32, failure_bits: f64) -> f64 {
        self.scaled(failure_bits, 1.0, i64::from(out_bits))
    }

    /// Returns a bound on the probability that the rescaled result of one coefficient is off by
    /// `room` units of the output or more, for keys whose norms are within their bounds
    /// ([`key_failure`]).
    pub fn beyond(&self, out_bits: u32, room: f64) -> f64 {
        let (fixed, deviation) = self.parts(1.0, i64::from(out_bits));
        let deviations = (room - fixed).max(0.0) / deviation;
        (2.0 * (-deviations * deviations / 2.0).exp()).min(1.0)
    }

    /// Random part plus c0's floor plus `local`, in units of 2^(K - bits).
    fn scaled(&self, failure_bits: f64, local: f64, bits: i64) -> f64 {
        let (fixed, deviation) = self.parts(local, bits);
        fixed + tail(failure_bits) * deviation
    }

    /// What every coefficient may be off by, and the root of the proxy of what comes on top, in
    /// units of 2^(K - bits).
    fn parts(&self, local: f64, bits: i64) -> (f64, f64) {
        let at = |width: i64| 2f64.powi((bits - width) as i32);
        let unit = at(i64::from(self.params.modulus_bits()));
        let coarse = at(i64::from(self.response_bits));
        let shortened = self.response_bits < self.params.modulus_bits();
        let rounding = if shortened { coarse } else { 0.0 };
        let secret = secret_norm(self.params.degree());
        let responses = f64::from(self.responses);
        let rounded = responses * rounding * rounding * secret / 12.0;
        let proxy = self.phase_proxy() * unit * unit + rounded;
        // One floor of c0 and the client's own floor are one floor together.
        (local.max(rounding) + (responses - 1.0) * rounding, proxy.sqrt())
    }

    fn phase_proxy(&self) -> f64 {
        let degree = self.params.degree();
        let variance = NARROW * NARROW;
        let each = variance * (error_norm(degree) + secret_norm(degree)) + self.wide * self.wide;
        variance * self.load.squares + f64::from(self.responses) * each
    }
}

/// Multiples of the root of the proxy that are exceeded with 2^-failure_bits.
fn tail(failure_bits: f64) -> f64 {
    (2.0 * std::f64::consts::LN_2 * (failure_bits + 1.0)).sqrt()
}

const NORM_FAILURE: f64 = 64.0 * std::f64::consts::LN_2;

/// Returns a bound on the probability that a client's key is one for which the bounds on noise do
/// not hold: that a norm of its secret or of its public error is larger, or, of keys that unfold
/// `levels` times, a form of the errors of their digits ([`super::gadget`]).
pub fn key_failure(levels: usize) -> f64 {
    let forms = 2.0 * levels as f64 * (-FORM_FAILURE).exp();
    2.0 * (-NORM_FAILURE).exp() + forms
}

/// Bound on the squared norm of the secret.
fn secret_norm(degree: usize) -> f64 {
    let degree = degree as f64;
    2.0 * degree / 3.0 + (degree * NORM_FAILURE / 2.0).sqrt()
}

/// Two thirds (u's variance) of the bound on the public key's error's squared
/// norm, in units of 3.2^2.
fn error_norm(degree: usize) -> f64 {
    let degree = degree as f64;
    2.0 / 3.0 * (degree + 2.0 * (degree * NORM_FAILURE).sqrt() + 2.0 * NORM_FAILURE)
}

/// Returns the largest error of a stochastic rescale, in units of the output, except with
/// probability 2^-40 per coefficient, under moduli of [`stochastic`].
pub const fn stochastic_error(degree: usize) -> f64 {
    if degree == 2048 { 1.35 } else { 1.5 }
}

/// Returns the most bits that the bodies of ciphertexts may lack, of those below `plain_bits` of the
/// modulus, such that noise is still `enough`; nothing where it is not with all bits.
pub fn droppable(params: Params, plain_bits: u32, enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !enough(0) {
        return None;
    }
    let (mut least, mut most) = (0, params.modulus_bits().saturating_sub(plain_bits + 1));
    while least < most {
        let middle = (least + most).div_ceil(2);
        if enough(middle) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    Some(least)
}

/// Returns the smallest (parameters, K') for exact mode: the sum of both shares is off by less than
/// 2^3 units at `plain_bits + 4`, except with probability 2^-40 per tensor. N = 2048 if its modulus
/// is enough.
///
/// # Errors
/// [`Error::TooLarge`] when no modulus of the table is enough.
pub fn exact(plain_bits: u32, load: Load) -> Result<(Params, u32)> {
    exact_at(2048, plain_bits, load).or_else(|_| exact_at(4096, plain_bits, load))
}

/// [`exact`] at a given degree.
///
/// # Errors
/// [`Error::TooLarge`] when the degree's largest modulus is not enough.
pub fn exact_at(degree: usize, plain_bits: u32, load: Load) -> Result<(Params, u32)> {
    let response_bits = plain_bits + EXACT_SPARE;
    let bits = plain_bits + EXACT_BITS;
    let margin = f64::from(1 << (EXACT_BITS - 1));
    search(degree, response_bits, |params| {
        Noise::new(params, load, response_bits).rescale_error(bits, PER_TENSOR) < margin
    })
}

/// Returns the smallest (parameters, K') for a stochastic rescale from `plain_bits` to `out_bits`
/// within [`stochastic_error`] per coefficient. This keeps the perturbation of the client's input,
/// seen at the output, to about 2^-6 of a unit in deviation. N = 2048 if its modulus is enough.
///
/// # Errors
/// [`Error::TooLarge`] when no modulus of the table is enough.
pub fn stochastic(plain_bits: u32, out_bits: u32, load: Load) -> Result<(Params, u32)> {
    stochastic_at(2048, plain_bits, out_bits, load)
        .or_else(|_| stochastic_at(4096, plain_bits, out_bits, load))
}

/// [`stochastic`] at a given degree.
///
/// # Errors
/// [`Error::TooLarge`] when the degree's largest modulus is not enough.
pub fn stochastic_at(
    degree: usize,
    plain_bits: u32,
    out_bits: u32,
    load: Load,
) -> Result<(Params, u32)> {
    stochastic_within(degree, plain_bits, out_bits, load, stochastic_error(degree))
}

/// [`stochastic_at`] for an error below `bound`, in units of the output.
///
/// # Errors
/// [`Error::TooLarge`] when the degree's largest modulus is not enough.
pub fn stochastic_within(
    degree: usize,
    plain_bits: u32,
    out_bits: u32,
    load: Load,
    bound: f64,
) -> Result<(Params, u32)> {
    let response_bits = out_bits + STOCHASTIC_SPARE;
    let least = plain_bits.max(out_bits + 20);
    search(degree, least, |params| {
        let noise = Noise::new(params, load, response_bits);
        noise.rescale_error(out_bits, PER_COEFFICIENT) < bound
    })
    .map(|(params, _)| (params, response_bits))
}

/// The smallest modulus of at least `least` bits that is `enough`, with `least`.
fn search(degree: usize, least: u32, enough: impl Fn(Params) -> bool) -> Result<(Params, u32)> {
    let most = TABLE.iter().find(|(known, _)| *known == degree).map_or(0, |(_, bits)| *bits);
    (least.max(LEAST_MODULUS_BITS)..=most)
        .filter_map(|bits| Params::new(degree, bits).ok())
        .find(|params| enough(*params))
        .map(|params| (params, least))
        .ok_or_else(|| {
            Error::TooLarge(format!(
                "a modulus of at most {most} bits at degree {degree} cannot hold this precision"
            ))
        })
}
