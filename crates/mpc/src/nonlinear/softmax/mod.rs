//! The label and the probability of the top class.
//!
//! | | |
//! |---|---|
//! | In | shares of K logits `x_i`, integers of which one is worth `scale`; prepared circuits |
//! | Out | shares of the label `t`, and of `D`, the sum of `e^(scale*(x_i - x_t))` in fixed point |
//! | Reveals | masked shares; labels |
//! | Security | semi-honest, as [`crate::garbled`] |
//! | Cost | two garbled steps, 4 rounds, server first ([`Plan::cost`]) |
//! | Paper | FALCON (Li et al., 2018), section 5.5 and Theorem 1 |
//!
//! The probability of the top class is `p = 1/D`. One circuit finds `t` and `x_t`; the
//! differences `d_i = x_t - x_i` are local; one circuit a class turns each into its term
//! (`exponent.rs`), zero when it is so small that Theorem 1 drops it; the sum is local.
//! Label and D are opened to the client alone, who divides. Of equal logits the first wins.
//!
//! *Error.* `|p - p'| <= 10^-l` is proven, not measured. Theorem 1 covers dropped terms
//! only; the budget for all is
//! - half for dropped terms: each is below `e^-m` with `m = ln((2*10^l - 1)(K - 1))`, so
//!   that all together take at most `1/(2*10^l - 1)` off `D >= 1`, and `10^-l/2` off p;
//! - a quarter for rounding differences to steps of `u <= 2*10^-l` (their middle is taken):
//!   every term but the first changes by a factor within `e^(+-u/2)`, and p, as a function
//!   of the logarithm of their sum, has slope at most 1/4: `u/8`;
//! - a quarter for fixed point: tables, products and truncations are off by at most delta
//!   for each of K - 1 terms (`Exponent::error`), and p by at most `(K-1)*delta` as both
//!   denominators are at least 1. The first term, `e^0`, is put right exactly.

mod exponent;
mod fixed;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use gc::{Builder, Wire};
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};

use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::garbled::{self, Garbled, Ring};
use crate::protocol::{Protocol, input};
use crate::share::Share;
use exponent::Exponent;

/// Most classes.
const MOST_CLASSES: usize = 1 << 16;
/// Most decimals.
const MOST_DIGITS: u32 = 6;

/// The public plan.
#[derive(Clone, Debug)]
pub struct Plan {
    classes: usize,
    top: Garbled,
    terms: Garbled,
    exponent: Exponent,
    /// The ring of the differences.
    differences: Ring,
    sum_bits: u32,
}

impl Plan {
    /// For `classes` logits (2 to 2^16) of a signed `width` shared in `from`, worth `scale`
    /// each, and a probability off by at most `10^-digits` (1 to 6).
    ///
    /// # Errors
    /// [`Error::Misuse`] for numbers out of range, or when the ring has no room for
    /// differences of logits.
    pub fn new(classes: usize, from: Ring, width: u32, scale: f64, digits: u32) -> Result<Self> {
        let legal = (2..=MOST_CLASSES).contains(&classes) && (1..=MOST_DIGITS).contains(&digits);
        if !legal || !(2..=48).contains(&width) || !scale.is_normal() || scale < 0.0 {
            return Err(Error::misuse(format!(
                "a softmax of {classes} classes, {width} bits, scale {scale}, {digits} decimals"
            )));
        }
        let differences = match from {
            Ring::Power(_) => Ring::Power(width),
            prime => prime,
        };
        let exponent = Exponent::new(classes, width, scale, digits)?;
        let sum_bits = exponent.fraction_bits() + 1 + classes.next_power_of_two().ilog2();
        // As wide as the denominator, so that both are opened together.
        let label = Ring::Power(sum_bits);
        let top = Garbled::top(1, classes, from, width, label, Some(differences))?;
        let circuit = |difference: &[Wire], b: &mut Builder| exponent.circuit(b, difference);
        let terms = Garbled::unsigned(classes, differences, width, circuit, Ring::Power(sum_bits))?;
        Ok(Self { classes, top, terms, exponent, differences, sum_bits })
    }

    /// Returns the number of AND gates of both steps.
    pub fn and_gates(&self) -> usize {
        self.top.and_gates() + self.terms.and_gates()
    }

    /// Returns the fraction bits of the denominator.
    pub fn fraction_bits(&self) -> u32 {
        self.exponent.fraction_bits()
    }

    /// Returns the width of the shares of label and denominator.
    pub fn sum_bits(&self) -> u32 {
        self.sum_bits
    }

    /// Returns the probability that an opened denominator stands for; of 0, which no run gives, 1.
    pub fn probability(&self, denominator: u64) -> f64 {
        (self.exponent.one() as f64 / denominator as f64).min(1.0)
    }

    /// What the server adds for the first term, which the circuit does not give exactly.
    fn amends(&self) -> u64 {
        self.exponent.one().wrapping_sub(self.exponent.clear(0))
    }
}

/// Shares of the label, unsigned, and of the denominator, one value each.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Plan,
    logits: &Share,
    mut ots: Correlations,
) -> Result<(Share, Share)> {
    let role = channel.role();
    let now = ots.split(role, &plan.top.demand())?;
    let found = garbled::run_all(channel, &plan.top, logits, now)?;
    let [label, largest] =
        <[Share; 2]>::try_from(found).map_err(|_| defect("a top class came without its value"))?;
    let differences = plan.differences(logits, &largest);
    let terms = garbled::run(channel, &plan.terms, &differences, ots)?;
    let first = if role == Role::Server { plan.amends() } else { 0 };
    let sum = terms.words().iter().fold(first, |sum, word| sum.wrapping_add(*word));
    Ok((label, Share::new(vec![sum], plan.sum_bits)))
}

impl Plan {
    /// `x_t - x_i`, local.
    fn differences(&self, logits: &Share, largest: &Share) -> Share {
        let ring = self.differences;
        let top = largest.words().first().copied().unwrap_or_default();
        let less = |word: &u64| ring.subtract(top, ring.reduce(*word));
        Share::new(logits.words().iter().map(less).collect(), ring.bits())
    }
}

/// Returns what [`run`] computes, in the clear: the label and the denominator's word.
///
/// # Errors
/// [`Error::Misuse`] for another number of logits than planned.
pub fn clear(plan: &Plan, logits: &[i64]) -> Result<(usize, u64)> {
    let largest = logits.iter().max().filter(|_| logits.len() == plan.classes);
    let largest = largest.ok_or_else(|| Error::misuse("other logits than planned"))?;
    let label = logits.iter().position(|x| x == largest).unwrap_or_default();
    let terms = logits.iter().map(|x| plan.exponent.clear(largest.wrapping_sub(*x) as u64));
    let sum = terms.fold(plan.amends(), u64::wrapping_add);
    Ok((label, sum & mask(plan.sum_bits)))
}

impl Protocol for Plan {
    fn operator(&self) -> &'static str {
        "probability"
    }

    fn describe(&self) -> String {
        "garbled circuits".into()
    }

    fn demand(&self) -> Demand {
        self.top.demand() + self.terms.demand()
    }

    fn cost(&self) -> Cost {
        self.top.cost().then(self.terms.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        let (label, denominator) = run(channel, self, input(inputs, 0)?, ots)?;
        let words = [label.words(), denominator.words()].concat();
        Ok(Share::new(words, denominator.bits()))
    }
}
