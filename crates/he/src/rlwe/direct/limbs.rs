//! Coefficients as f64, which are exact below 2^53. When a modulus leaves too little room above it, coefficients are split
//! into two limbs.

use ring::Wiped;
use ring::word::{mask, signed};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::rlwe::params::Params;
use crate::simd::{Level, convert};

/// Sums stay below this in magnitude.
const ROOM: u64 = 1 << 52;

/// Fewer terms between two reductions make two limbs cheaper than one.
const LEAST_BETWEEN: u64 = 8;

/// How coefficients are held.
#[derive(Clone, Copy)]
pub(super) enum Limbs {
    /// Whole; sums are reduced after so many terms.
    One { between: usize },
    /// The low half and the rest; sums never need reducing.
    Two,
}

impl Limbs {
    pub(super) fn of(params: Params, largest: u64, total: usize) -> Result<Self> {
        let bits = params.modulus_bits();
        let (largest, total) = (largest.max(1), total.max(1) as u64);
        // Reduced sums are at most half the modulus, and so is each coefficient.
        let room = if bits <= 52 { (ROOM >> (bits - 1)).saturating_sub(1) / largest } else { 0 };
        if room >= LEAST_BETWEEN.min(total) {
            return Ok(Self::One { between: room as usize });
        }
        let limb = 1u64 << (bits.div_ceil(2) - 1);
        let fits = largest.checked_mul(total).and_then(|sum| sum.checked_mul(limb));
        if fits.is_some_and(|sum| sum <= ROOM) {
            Ok(Self::Two)
        } else {
            Err(Error::shape("weights", "sums below 2^52 in limbs", "more"))
        }
    }

    pub(super) const fn count(self) -> usize {
        match self {
            Self::One { .. } => 1,
            Self::Two => 2,
        }
    }

    /// Bits of the low limb.
    pub(super) const fn low_bits(self, bits: u32) -> u32 {
        match self {
            Self::One { .. } => bits,
            Self::Two => bits.div_ceil(2),
        }
    }

    /// The centred limbs of halves of ciphertexts, extended: the low ones of all, then the others.
    pub(super) fn extend(self, level: Level, bits: u32, halves: &[&[u64]]) -> Vec<Wiped<f64>> {
        let low = self.low_bits(bits);
        let size = halves.first().map_or(0, |half| 2 * half.len());
        let limb = |write: &dyn Fn(&[u64], &mut [f64])| {
            let mut all = Wiped::new(vec![0.0; size * halves.len()]);
            all.chunks_exact_mut(size.max(1)).zip(halves).for_each(|(to, half)| write(half, to));
            all
        };
        let mut limbs = vec![limb(&|half, to| extend(level, half, low, to))];
        if matches!(self, Self::Two) {
            limbs.push(limb(&|half, to| {
                let rest = |x: &u64| x.wrapping_sub(signed(*x & mask(low), low) as u64) >> low;
                let rest: Vec<u64> = half.iter().map(rest).collect();
                extend(level, &Zeroizing::new(rest), bits - low, to);
            }));
        }
        limbs
    }
}

/// -x, then x, of the centred x: a negacyclic shift is a window of it.
fn extend(level: Level, x: &[u64], bits: u32, out: &mut [f64]) {
    let (negative, positive) = out.split_at_mut(x.len());
    convert::centred(level, x, bits, positive);
    negative.iter_mut().zip(positive).for_each(|(to, x)| *to = -*x);
}
