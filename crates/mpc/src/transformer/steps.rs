//! Public step functions of a shared value.
//!
//! | | |
//! |---|---|
//! | In | shares of `-2^(bits-1) <= y - t < 2^(bits-1)` mod 2^bits for every threshold t; correlations |
//! | Out | for each threshold, shares of `[y >= t]` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a sign bit for each threshold, all at once |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), DReLU |
//!
//! A function that is constant between the thresholds is a sum of these, so that any
//! number of such functions come out of one run.

use wire::{Channel, Cost, Result, Role};

use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::sign::{self, Signs, Told};
use crate::protocol::Protocol;
use crate::share::{Share, server_only};

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    bits: u32,
    thresholds: Vec<i64>,
    signs: Signs,
}

impl Steps {
    /// `count` values of `bits`, thresholds in rising order.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for widths that signs have not.
    pub(super) fn new(
        count: usize,
        bits: u32,
        thresholds: Vec<i64>,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let signs = count.saturating_mul(thresholds.len());
        let signs = Signs::new(signs, bits, Told::NonNegative, out_bits, radix)?;
        Ok(Self { bits, thresholds, signs })
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        self.signs.demand()
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        self.signs.cost()
    }
}

/// Finds which thresholds are reached: those of all values for the first, then for the
/// next.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Steps,
    y: &Share,
    ots: Correlations,
) -> Result<Share> {
    let role = channel.role();
    let mut above = Vec::with_capacity(y.len() * plan.thresholds.len());
    for threshold in &plan.thresholds {
        let threshold = server_only(role, *threshold as u64);
        above.extend(y.words().iter().map(|word| word.wrapping_sub(threshold)));
    }
    sign::run(channel, &plan.signs, &Share::new(above, plan.bits), ots)
}

/// Shares of `values[i]` where i thresholds are reached, from what [`run`] found for
/// `count` values.
pub(super) fn valued(role: Role, count: usize, reached: &Share, values: &[i64]) -> Share {
    let first = server_only(role, values.first().copied().unwrap_or(0) as u64);
    let mut words = vec![first; count];
    let rises = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as u64);
    for (rise, reached) in rises.zip(reached.words().chunks(count.max(1))) {
        let sums = words.iter_mut().zip(reached);
        sums.for_each(|(sum, one)| *sum = sum.wrapping_add(one.wrapping_mul(rise)));
    }
    Share::new(words, reached.bits())
}
