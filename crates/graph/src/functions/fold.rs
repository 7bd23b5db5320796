//! Smooth functions whose argument is folded before it is looked up.
//!
//! `y = relu(x) + base +- C(z)` with a curve C of few values, or a table, over an argument z that
//! x gives by one comparison: `|x|` for bumps that are the same on both sides of 0 (SiLU,
//! HardSwish, softplus) and for odd functions (sigmoid, tanh), what lies below 0 (ELU), or all of
//! x. The argument saturates, so that nothing has to be clipped first.

use super::curve::{Curve, WHOLE, circuit, dull};
use super::refusal::Result;
use pricing::fixed::message::{COMPARISON_ROUNDS, EXTENSION_ROUNDS};
use serde::{Deserialize, Serialize};

/// Bits of the largest and of the smallest magnitude.
const MAGNITUDES: std::ops::RangeInclusive<u32> = 2..=13;
/// Rounds of choices among shares, one after another.
const CHOICE_ROUNDS: usize = 2;
/// Bits of the largest constant.
const LARGEST: u32 = 30;

/// How an integer x gives the argument of the curve, with `a` bits of magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Argument {
    /// `min(|x|, 2^a - 1)`; the result is `base + C`.
    Even,
    /// `min(|x|, 2^a - 1)`; the result is `base + C` below 0 and `base + span - C` from 0 on.
    Odd {
        /// The sum of the limits on both sides, without the base: not negative.
        span: i64,
    },
    /// `min(max(-x, 0), 2^a - 1)`.
    Negative,
    /// `x + 2^a`, from 0 to `2^(a+1) - 1`.
    Whole,
}

/// A smooth function on integers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fold {
    /// Bits of the absolute values that the curve tells apart.
    pub magnitude: u32,
    /// How x gives the argument of the curve.
    pub argument: Argument,
    /// Whether `min(max(x, 0), 2^magnitude - 1)` is part of the result.
    pub relu: bool,
    /// Whether the curve's value is subtracted.
    pub below: bool,
    /// The constant that is added to all results.
    pub base: i64,
    /// The curve.
    pub curve: Curve,
    /// The least and the largest result.
    ends: [i64; 2],
}

impl Fold {
    /// Puts the function together.
    ///
    /// # Errors
    /// For a magnitude of other than 2 to 13 bits, for a curve of other arguments than these
    /// give, for constants of more than 30 bits, and for an odd function with a ReLU, with a
    /// curve that is subtracted or with a span below what the curve holds.
    pub fn new(
        magnitude: u32,
        argument: Argument,
        [relu, below]: [bool; 2],
        base: i64,
        curve: Curve,
    ) -> Result<Self> {
        if !MAGNITUDES.contains(&magnitude) {
            return Err("a function of values of other than 2 to 13 bits".into());
        }
        let whole = u32::from(argument == Argument::Whole);
        if curve.bits() != magnitude + whole {
            return Err(format!("a curve of {} bits for values of {magnitude}", curve.bits()));
        }
        let small = |value: i64| value.unsigned_abs() < 1 << LARGEST;
        if let Argument::Odd { span } = argument
            && (relu || below || span < 0 || !small(span))
        {
            return Err("an odd function with other parts".into());
        }
        if !small(base) {
            return Err("a function far from zero".into());
        }
        let fold = Self { magnitude, argument, relu, below, base, curve, ends: [0; 2] };
        let edge = 1i64 << magnitude;
        if let Argument::Odd { span } = argument
            && (0..edge).any(|z| fold.mirrored(span, z) < 0)
        {
            return Err("an odd function whose curve exceeds its span".into());
        }
        let results = (-edge - 1..=edge).map(|x| fold.clear(x));
        let ends = results.fold([i64::MAX, i64::MIN], |[a, b], y| [a.min(y), b.max(y)]);
        if !ends.into_iter().all(small) {
            return Err("a function with results of more than 30 bits".into());
        }
        Ok(Self { ends, ..fold })
    }

    /// The largest argument of each side.
    fn last(&self) -> i64 {
        (1 << self.magnitude) - 1
    }

    /// Returns the argument of the curve for `x`.
    pub fn argument_of(&self, x: i64) -> i64 {
        let last = self.last();
        match self.argument {
            Argument::Even | Argument::Odd { .. } => {
                x.unsigned_abs().min(last.unsigned_abs()) as i64
            }
            Argument::Negative => x.clamp(-last, 0).abs(),
            Argument::Whole => x.clamp(-last - 1, last) + last + 1,
        }
    }

    /// Returns the result for `x`.
    pub fn clear(&self, x: i64) -> i64 {
        let positive = if self.relu { x.clamp(0, self.last()) } else { 0 };
        let z = self.argument_of(x);
        let curve = match self.argument {
            Argument::Odd { span } if x >= 0 => self.mirrored(span, z),
            _ => self.curve.clear(z),
        };
        positive + self.base + if self.below { -curve } else { curve }
    }

    /// `span - C(z)`: of lines before their last bits are dropped, so that no bit is lost twice.
    fn mirrored(&self, span: i64, z: i64) -> i64 {
        match &self.curve {
            Curve::Whole(_) => span - self.curve.clear(z),
            Curve::Lines(lines) => {
                (((span + 1) << lines.fraction) - lines.point(z)) >> lines.fraction
            }
        }
    }

    /// Returns the least and the largest result of any x.
    pub fn ends(&self) -> [i64; 2] {
        self.ends
    }

    /// Returns the least and the largest result for `low <= x <= high`.
    pub fn range(&self, low: i64, high: i64) -> [i64; 2] {
        let edge = 1i64 << self.magnitude;
        if low < -edge && high > edge {
            return self.ends;
        }
        let [low, high] = [low, high].map(|x| x.clamp(-edge - 1, edge));
        let all = (low..=high).map(|x| self.clear(x));
        all.fold([i64::MAX, i64::MIN], |[least, most], y| [least.min(y), most.max(y)])
    }

    /// Returns about how many bits a value takes on the wire beyond its comparison, and how many
    /// rounds there are. Close enough to choose by: frames, correlations, and what depends on the
    /// widths of shares before and behind are left out.
    pub fn price(&self) -> [usize; 2] {
        let [least, most] = self.ends;
        let results = (most - least).max(1).ilog2() as usize + 2;
        let odd = matches!(self.argument, Argument::Odd { .. });
        let positive = if self.relu { 3 * results } else { 0 };
        let chosen = positive + 4 * self.magnitude as usize + 4;
        let [curve, rounds] = match &self.curve {
            Curve::Whole(entries) => {
                let largest = entries.iter().fold(1, |all, entry| all | entry);
                let width = largest.ilog2() as usize + 1;
                let bits = self.curve.bits() as usize;
                let by_transfers = match self.curve.bits() {
                    ..=WHOLE => bits + (entries.len() - 1) * width,
                    _ => usize::MAX,
                };
                let number = (width + usize::from(odd)) * (results + 1);
                [by_transfers.min(circuit([bits, dull(entries)], width)) + number, 4]
            }
            Curve::Lines(lines) => lines.price(results, odd),
        };
        [chosen + curve, COMPARISON_ROUNDS + CHOICE_ROUNDS + EXTENSION_ROUNDS + rounds]
    }

    /// Returns whether `-2^magnitude` has to be told from 0: both have the same last bits.
    pub fn tells_ends_apart(&self) -> bool {
        let [first, last] = [0, self.last()].map(|z| self.curve.clear(z));
        self.argument != Argument::Whole && first != last
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table(entries: &[u64]) -> Curve {
        Curve::Whole(entries.to_vec())
    }

    #[test]
    fn each_argument_means_what_it_says() {
        let curve = || table(&[5, 3, 2, 1]);
        let fold = |argument, flags, base| {
            let fold = Fold::new(2, argument, flags, base, curve()).unwrap();
            (-5..=5).map(|x| fold.clear(x)).collect::<Vec<_>>()
        };
        let even = fold(Argument::Even, [true, false], 0);
        assert_eq!(even, [1, 1, 1, 2, 3, 5, 4, 4, 4, 4, 4]);
        let odd = fold(Argument::Odd { span: 11 }, [false, false], -1);
        assert_eq!(odd, [0, 0, 0, 1, 2, 5, 7, 8, 9, 9, 9]);
        let negative = fold(Argument::Negative, [true, true], 5);
        assert_eq!(negative, [4, 4, 4, 3, 2, 0, 1, 2, 3, 3, 3]);
        let whole = table(&[9, 8, 7, 6, 5, 4, 3, 2]);
        let whole = Fold::new(2, Argument::Whole, [true, false], 0, whole).unwrap();
        let results: Vec<i64> = (-5..=5).map(|x| whole.clear(x)).collect();
        assert_eq!(results, [9, 9, 8, 7, 6, 5, 5, 5, 5, 5, 5]);
        assert_eq!(whole.ends(), [5, 9]);
    }

    #[test]
    fn ranges_hold_every_result_and_no_more() {
        let fold = Fold::new(2, Argument::Negative, [true, true], 5, table(&[5, 3, 2, 1])).unwrap();
        for low in -9..9 {
            for high in low..9 {
                let results = || (low..=high).map(|x| fold.clear(x));
                let want = [results().min().unwrap(), results().max().unwrap()];
                assert_eq!(fold.range(low, high), want);
            }
        }
        assert_eq!(fold.range(i64::MIN, i64::MAX), fold.ends());
    }

    #[test]
    fn misfits_are_refused() {
        let new = |magnitude, argument, flags, base| {
            Fold::new(magnitude, argument, flags, base, table(&[0; 4])).is_err()
        };
        let plain = [false, false];
        assert!(new(1, Argument::Whole, plain, 0) && new(14, Argument::Even, plain, 0));
        assert!(new(3, Argument::Even, plain, 0) && new(2, Argument::Whole, plain, 0));
        assert!(new(2, Argument::Even, plain, 1 << 30) && new(2, Argument::Even, plain, i64::MIN));
        for (span, flags) in [(-1, plain), (1 << 30, plain), (3, [true, false]), (3, [false, true])]
        {
            assert!(new(2, Argument::Odd { span }, flags, 0));
        }
        assert!(!new(2, Argument::Odd { span: 0 }, plain, 0));
    }
}
