//! Exponentials of values that are not positive, by digits: the upper digits of d look a
//! value up, the three lower bits one of eight factors.

use super::real::exp_minus;
use super::refusal::{Result, is_scale};

/// Bits of the lower digit.
pub const LOW: u32 = 3;

/// About `2^(whole + part) * e^(-d*scale)` for `0 <= d < 2^bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exponent {
    /// Bits of the argument.
    pub bits: u32,
    /// Bits after the point of values and of parts.
    pub digits: [u32; 2],
    /// Exponentials of the upper digits, at most `2^whole`.
    pub values: Vec<u64>,
    /// Exponentials of the lower digits, at most `2^part`.
    pub parts: Vec<u64>,
}

impl Exponent {
    /// Exponentials of 4 to 11 bits.
    ///
    /// # Errors
    /// For other widths, for a scale that is not a positive number and for more than 40
    /// bits after the point of values, 20 of parts.
    pub fn new(bits: u32, scale: f64, [whole, part]: [u32; 2]) -> Result<Self> {
        let widths = (LOW + 1..=LOW + 8).contains(&bits) && whole <= 40 && part <= 20;
        if !widths || !is_scale(scale) {
            return Err("exponentials of these widths".into());
        }
        let digit = |value: u64, fraction: u32| {
            (exp_minus(value as f64 * scale) * (1u64 << fraction) as f64).round() as u64
        };
        Ok(Self {
            bits,
            digits: [whole, part],
            values: (0..1 << (bits - LOW)).map(|value| digit(value << LOW, whole)).collect(),
            parts: (0..1 << LOW).map(|value| digit(value, part)).collect(),
        })
    }

    /// Returns the result for `d`, from 0 to `2^(whole + part)`.
    pub fn clear(&self, d: i64) -> i64 {
        let entry =
            |table: &[u64], at: i64| table.get(at as usize).map_or(0, |entry| *entry as i64);
        entry(&self.values, d >> LOW) * entry(&self.parts, d & ((1 << LOW) - 1))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_near_the_real_one() {
        for (bits, scale, digits) in [(8, 0.125, [14, 7]), (4, 1.0, [9, 5]), (11, 0.01, [18, 11])] {
            let plan = Exponent::new(bits, scale, digits).unwrap();
            let [whole, part] = digits.map(|digit| (1u64 << digit) as f64);
            for d in 0..1i64 << bits {
                let real = (-d as f64 * scale).exp();
                let upper = (-((d >> LOW) << LOW) as f64 * scale).exp();
                let bound = (0.6 / whole + 0.6 * upper / part).max(1e-9);
                let got = plan.clear(d) as f64 / (whole * part);
                assert!((got - real).abs() <= bound, "{d}: {got}");
            }
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |bits, scale, digits| Exponent::new(bits, scale, digits).is_err();
        assert!(new(3, 0.1, [9, 5]) && new(12, 0.1, [9, 5]) && new(u32::MAX, 0.1, [9, 5]));
        assert!(new(8, 0.1, [41, 5]) && new(8, 0.1, [9, 21]));
        assert!(new(8, f64::NAN, [9, 5]) && new(8, -1.0, [9, 5]));
    }
}
