//! Exponentials of values that are not positive, from a table, with few and with more bits.
//!
//! An entry has `upper` bits, those that count for a product with it, and `lower` ones below, those
//! that count besides where many are summed up. Half a last place of the upper bits is in
//! every entry, so that the upper bits alone are rounded to the nearest.

use super::real::exp_minus;
use super::refusal::{Result, is_scale};

/// Bits of the widest entry.
const MOST: u32 = 40;

/// About `one*e^(-d*scale)` for `0 <= d < 2^bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exponent {
    /// Bits of the argument.
    pub bits: u32,
    /// Bits of what a product takes, of an entry the upper ones.
    pub upper: u32,
    /// Bits of an entry below those.
    pub lower: u32,
    /// The entries that are looked up are exponentials of all arguments, with [`Exponent::half`] added.
    pub entries: Vec<u64>,
}

impl Exponent {
    /// Exponentials of 1 to 11 bits.
    ///
    /// # Errors
    /// For other widths, for a scale that is not a positive number and for more than 40
    /// bits of entries, of which each part has one at least.
    pub fn new(bits: u32, scale: f64, [upper, lower]: [u32; 2]) -> Result<Self> {
        let widths =
            upper >= 1 && lower >= 1 && upper.checked_add(lower).is_some_and(|w| w <= MOST);
        if !widths || !(1..=11).contains(&bits) || !is_scale(scale) {
            return Err("exponentials of these widths".into());
        }
        let mut plan = Self { bits, upper, lower, entries: Vec::new() };
        let one = plan.one() as f64;
        let exponential = |d: u64| (exp_minus(d as f64 * scale) * one).round() as u64;
        let half = plan.half() as u64;
        plan.entries = (0..1 << bits).map(|d| exponential(d) + half).collect();
        Ok(plan)
    }

    /// Returns what stands for 1: the largest number of `upper` bits, and zeros below.
    pub fn one(&self) -> i64 {
        (1 << (self.upper + self.lower)) - (1 << self.lower)
    }

    /// Returns half a last place of the upper bits.
    pub fn half(&self) -> i64 {
        1 << (self.lower - 1)
    }

    /// Returns the entry for `d`, from `half` to `one + half`.
    pub fn entry(&self, d: i64) -> i64 {
        self.entries.get(d as usize).map_or(0, |entry| *entry as i64)
    }

    /// Returns the exponential of `d` as sums take it, from 0 to [`Exponent::one`].
    pub fn clear(&self, d: i64) -> i64 {
        self.entry(d) - self.half()
    }

    /// Returns the exponential of `d` as products take it, below `2^upper`.
    pub fn rounded(&self, d: i64) -> i64 {
        self.entry(d) >> self.lower
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_near_the_real_one() {
        for (bits, scale, digits) in [(8, 0.125, [8, 6]), (4, 1.0, [4, 1]), (11, 0.01, [12, 9])] {
            let plan = Exponent::new(bits, scale, digits).unwrap();
            let one = plan.one() as f64;
            for d in 0..1i64 << bits {
                let real = (-d as f64 * scale).exp() * one;
                assert!((plan.clear(d) as f64 - real).abs() <= 0.5 + 1e-6, "{d}");
                let step = (1u64 << plan.lower) as f64;
                let [rounded, exact] = [plan.rounded(d), plan.clear(d)];
                assert!((rounded as f64 * step - exact as f64).abs() <= step / 2.0, "{d}");
                assert!((0..1 << plan.upper).contains(&rounded), "{d}");
            }
            assert_eq!(plan.clear(0), plan.one());
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |bits, scale, digits| Exponent::new(bits, scale, digits).is_err();
        assert!(new(0, 0.1, [9, 5]) && new(12, 0.1, [9, 5]) && new(u32::MAX, 0.1, [9, 5]));
        assert!(new(8, 0.1, [0, 5]) && new(8, 0.1, [9, 0]) && new(8, 0.1, [30, 11]));
        assert!(new(8, 0.1, [u32::MAX, 5]) && new(8, f64::NAN, [9, 5]) && new(8, -1.0, [9, 5]));
    }
}
