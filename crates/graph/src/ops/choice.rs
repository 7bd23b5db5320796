//! How weights are made of the bits that oblivious transfers choose by.
//!
//! Zeng et al., "UFO" (2PC inference on quantised networks), sections III-1 and V-B: a
//! weight is the sum of its bits, each times an importance of its own. Any importances cost
//! the same, so that of the topmost bit can be raised where a few weights are far larger
//! than the others.

use crate::error::Check;
use serde::{Deserialize, Serialize};

/// Most bits of a weight or multiplier.
pub const MOST_CHOICES: usize = 12;
/// Importances and offsets are smaller than this.
const LIMIT: u64 = 1 << 20;

/// `weight = offset + sum(bit[b] * importance[b])`.
///
/// Ternary weights are `[1, -1]`, binary ones in -1, 1 are `[2]` with offset -1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightBits {
    /// What each bit adds, 1 to 12 of them, none zero, below 2^20 in size.
    pub importance: Vec<i64>,
    /// What a weight without bits is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: i64,
}

impl WeightBits {
    /// Two's complement of so many bits, 1 to 12: `[1, 2, .., -2^(bits-1)]`. A single bit
    /// chooses between 0 and -1.
    pub fn twos_complement(bits: u32) -> Self {
        let mut importance: Vec<i64> = (0..bits).map(|bit| 1 << bit).collect();
        if let Some(top) = importance.last_mut() {
            *top = -*top;
        }
        Self { importance, offset: 0 }
    }

    /// Two's complement with the topmost bit doubled (UFO, algorithm 1 line 5).
    pub fn reweighted(bits: u32) -> Self {
        let mut choice = Self::twos_complement(bits);
        if let Some(top) = choice.importance.last_mut() {
            *top *= 2;
        }
        choice
    }

    /// Importances near each other, for 2 to 4 bits: the weights lie close together where most
    /// are, around zero, and products send as many bits as of two's complement.
    pub fn dense(bits: u32) -> Option<Self> {
        let (importance, offset): (&[i64], i64) = match bits {
            2 => (&[2, 3], -3),
            3 => (&[2, 3, 4], -5),
            4 => (&[2, 4, 7, 8], -10),
            _ => return None,
        };
        Some(Self { importance: importance.to_vec(), offset })
    }

    /// Returns the weight that the lowest bits of `chosen` make.
    pub fn weight(&self, chosen: u32) -> i64 {
        let bits = self.importance.iter().enumerate();
        let taken = bits.map(|(bit, importance)| i64::from(chosen >> bit & 1) * importance);
        self.offset + taken.sum::<i64>()
    }

    /// Returns all weights, by the bits that make them.
    pub fn weights(&self) -> Vec<i64> {
        (0..1u32 << self.importance.len().min(MOST_CHOICES)).map(|bits| self.weight(bits)).collect()
    }

    /// Returns the smallest and the largest weight.
    pub fn range(&self) -> [i64; 2] {
        let sum = |keep: fn(i64) -> bool| {
            self.importance.iter().copied().filter(|i| keep(*i)).sum::<i64>()
        };
        [self.offset + sum(|i| i < 0), self.offset + sum(|i| i > 0)]
    }

    /// Returns the bits that make each weight, or the first weight that none make. Where several
    /// do, the smallest number is taken.
    ///
    /// # Errors
    /// The place of a weight that has no bits.
    pub fn choose(&self, weights: &[i32]) -> Result<Vec<u32>, usize> {
        let [low, high] = self.range();
        let mut bits = vec![None; (high - low + 1) as usize];
        for (chosen, weight) in self.weights().into_iter().enumerate().rev() {
            bits[(weight - low) as usize] = Some(chosen as u32);
        }
        let find = |weight: i32| {
            let place = usize::try_from(i64::from(weight) - low).ok()?;
            bits.get(place).copied().flatten()
        };
        weights.iter().enumerate().map(|(at, weight)| find(*weight).ok_or(at)).collect()
    }

    /// Checks that bits make every weight.
    pub(crate) fn check_weights(&self, weights: &[i32]) -> Check<()> {
        let bits = self.choose(weights);
        bits.map(|_| ()).map_err(|at| format!("weight {at} has no bits"))
    }

    /// Within the bounds above.
    pub(crate) fn check(&self) -> Check<()> {
        let count = self.importance.len();
        if !(1..=MOST_CHOICES).contains(&count) {
            return Err(format!("weights of {count} bits, 1 to {MOST_CHOICES} are possible"));
        }
        let small = |value: i64| value.unsigned_abs() < LIMIT;
        let fits = self.importance.iter().all(|i| *i != 0 && small(*i)) && small(self.offset);
        fits.then_some(()).ok_or("a weight bit counts for nothing or for too much".into())
    }
}

/// Whether a number may be left out of JSON because it is 0.
pub(crate) fn is_zero(value: &i64) -> bool {
    *value == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bits_make_the_weights_they_are_chosen_for() {
        let of = |importance: &[i64], offset| WeightBits { importance: importance.into(), offset };
        let two = WeightBits::twos_complement(2);
        assert_eq!(two, of(&[1, -2], 0));
        assert_eq!(two.weights(), [0, 1, -2, -1]);
        assert_eq!(WeightBits::reweighted(3), of(&[1, 2, -8], 0));
        assert_eq!(WeightBits::reweighted(3).range(), [-8, 3]);
        let dense = (2..=4).filter_map(WeightBits::dense);
        let others = [two, WeightBits::reweighted(8), of(&[1, -1], 0), of(&[2], -1)];
        for choice in others.into_iter().chain(dense) {
            choice.check().unwrap();
            let weights: Vec<i32> = choice.weights().into_iter().map(|w| w as i32).collect();
            let chosen = choice.choose(&weights).unwrap();
            assert!(chosen.iter().zip(&weights).all(|(c, w)| choice.weight(*c) == i64::from(*w)));
        }
    }

    #[test]
    fn dense_weights_send_as_many_bits_as_twos_complement() {
        let zeros = |choice: &WeightBits| -> u32 {
            choice.importance.iter().map(|importance| importance.trailing_zeros()).sum()
        };
        for bits in 2..=4 {
            let dense = WeightBits::dense(bits).unwrap();
            assert_eq!(dense.importance.len(), bits as usize);
            assert!(zeros(&dense) >= zeros(&WeightBits::twos_complement(bits)));
        }
        assert_eq!(WeightBits::dense(5), None);
    }

    #[test]
    fn weights_without_bits_and_senseless_bits_are_refused() {
        let choice = WeightBits::reweighted(3);
        assert_eq!(choice.choose(&[3, -5, 4]), Err(2));
        assert_eq!(choice.choose(&[0, -9]), Err(1));
        assert_eq!(WeightBits { importance: vec![2], offset: -1 }.choose(&[1, 0]), Err(1));
        let of = |importance: Vec<i64>, offset| WeightBits { importance, offset };
        let wrong = [of(vec![], 0), of(vec![1; 13], 0), of(vec![1, 0], 0), of(vec![1 << 20], 0)];
        assert!(wrong.iter().all(|choice| choice.check().is_err()));
        assert!(of(vec![1], i64::MIN).check().is_err());
    }
}
