//! Random digits of polynomials, and the noise that unfolding with them makes.
//!
//! Level i of an unfolding ([`super::unfold`]) switches keys with digits of w = 4 + i bits,
//! l of them, above D = K - w*l bits that are rounded. Later levels add to fewer results,
//! so they may be noisier, and there are more of them.
//!
//! # Noise
//! Every digit and every rounding error is drawn with expectation zero from two values 2^w
//! (2^D) apart, whatever was drawn before; key errors, secret and multipliers being fixed,
//! sums of them are martingales, subgaussian with proxy 4^w/4 (4^D/4) times the squared
//! factors (Hoeffding's lemma). Both children of a node are `f + t(f)` and
//! `X^-s * (f - t(f))` with an isometry t: together they have four times the squared norm
//! of f, and an error of t(f) alone enters both of them. So an error at level i of m reaches
//! a response with squared factors of at most `2 * 4^(m-1-i) * Y` over all nodes of the
//! level, Y being the sum of all squared multipliers, and the client's own errors with
//! `4^m * Y`. The client may round the body of what it sends to multiples of 2^t, with
//! expectation zero too: that adds 4^t/4 to the proxy of its own errors.
//!
//! These factors are multiplied by the key's errors e (by the secret s) as polynomials,
//! which gives a quadratic form in e (s) of trace `T = N * 2 * 4^(m-1-i) * Y` in units of
//! 3.2^2 (2/3), and of norm at most T/2, since conjugate embeddings are equally long; errors
//! of different digits and levels are independent. A form M of independent subgaussians of
//! proxy 1 exceeds `tr M + 2 sqrt(tr(M^2) t) + 2 |M| t` with probability below e^-t (Hsu,
//! Kakade, Zhang 2012); t = 96 ln 2 here.

use super::params::Params;
use super::sample::NARROW;

/// Most levels of an unfolding.
pub const MOST_LEVELS: usize = 4;

/// Bits of the digits of the first level.
const FIRST_BITS: u32 = 4;

pub(super) const FORM_FAILURE: f64 = 96.0 * std::f64::consts::LN_2;

/// How a level cuts polynomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gadget {
    /// The bits of a digit.
    pub(crate) bits: u32,
    /// The number of digits.
    pub(crate) count: u32,
    /// The bits below all digits, which are rounded away.
    pub(crate) rounded: u32,
}

impl Gadget {
    /// The decomposition for `level`, from 0 to [`MOST_LEVELS`] - 1.
    pub(crate) const fn of(params: Params, level: usize) -> Self {
        let (bits, modulus_bits) = (FIRST_BITS + level as u32, params.modulus_bits());
        let count = (modulus_bits - bits - 1).div_ceil(bits);
        Self { bits, count, rounded: modulus_bits - bits * count }
    }
}

/// What `levels` of unfolding multiply the squared multipliers by, in the noise's proxy in
/// units of 3.2^2, where the body was rounded to multiples of `2^dropped`.
pub(super) fn growth(params: Params, levels: usize, dropped: u32) -> f64 {
    let dropped = if dropped == 0 { 0.0 } else { 4f64.powi(dropped as i32) / 4.0 };
    let (mut trace, mut squares, mut most, mut rounded) = (0.0, 0.0, 0f64, 0.0);
    for level in 0..levels {
        let Gadget { bits, count, rounded: below } = Gadget::of(params, level);
        let form = params.degree() as f64 * 2.0 * 4f64.powi((levels - 1 - level) as i32);
        let proxy = |bits: u32| 4f64.powi(bits as i32) / 4.0;
        let each = form * proxy(bits);
        trace += f64::from(count) * each;
        squares += f64::from(count) * each * each / 2.0;
        most = most.max(each / 2.0);
        rounded += form * proxy(below);
    }
    let errors = trace + 2.0 * (squares * FORM_FAILURE).sqrt() + 2.0 * most * FORM_FAILURE;
    let secret = rounded * (1.0 + (2.0 * FORM_FAILURE).sqrt() + FORM_FAILURE);
    let own = 4f64.powi(levels as i32) * (1.0 + dropped / (NARROW * NARROW));
    own + errors + 2.0 / 3.0 * secret / (NARROW * NARROW)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::params::{LEAST_MODULUS_BITS, TABLE};
    use super::*;

    #[test]
    fn digits_and_roundings_fill_every_modulus() {
        for (degree, most) in TABLE {
            for bits in LEAST_MODULUS_BITS..=most {
                for level in 0..MOST_LEVELS {
                    let gadget = Gadget::of(Params::new(degree, bits).unwrap(), level);
                    assert_eq!(gadget.bits * gadget.count + gadget.rounded, bits);
                    assert!(gadget.rounded <= gadget.bits + 1, "{gadget:?}");
                }
            }
        }
    }
}
