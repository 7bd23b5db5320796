//! A range split into branches, each of which a factor brings to the same interval.

use super::newton::Interval;
use super::refusal::Result;
use super::straight_line::Builder;

/// Most branches.
const MOST: u32 = 12;

/// The branches of integers from `low` to `high`: each spans a factor of `4^ratio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branches {
    low: i64,
    high: i64,
    ratio: u32,
    count: u32,
    /// Low bits that are dropped, and bits that are left.
    drop: u32,
    bits: u32,
}

impl Branches {
    /// `1 <= low < high < 2^56`; values are left with at least `bits` bits.
    ///
    /// # Errors
    /// For other ranges, and more than 12 branches.
    pub fn new([low, high]: [i64; 2], ratio: u32, bits: u32) -> Result<Self> {
        if low < 1 || low >= high || high >= 1 << 56 || !(1..=3).contains(&ratio) {
            return Err("branches of this range".into());
        }
        let enough = |count: &u32| {
            let reach = low.checked_shl(2 * ratio * count).filter(|_| 2 * ratio * count < 63);
            reach.is_none_or(|reach| reach >> (2 * ratio * count) != low || reach > high)
        };
        let count = (1..=MOST).find(enough).ok_or("a range of too many branches")?;
        let length = 64 - high.leading_zeros();
        // Together they are even: the root of a power of two is one then.
        let drop = length.saturating_sub(bits);
        let bits = (length - drop).max(1);
        let bits = bits + (bits + drop) % 2;
        Ok(Self { low, high, ratio, count, drop, bits })
    }

    /// Integers of a range as a single branch.
    ///
    /// # Errors
    /// The text says which range is refused; [`Branches::new`] refuses it, too.
    pub fn whole(range: [i64; 2], bits: u32) -> Result<Self> {
        Ok(Self { count: 1, ..Self::new(range, 3, bits)? })
    }

    /// Returns the real number that the integer 1 stands for after normalisation.
    pub fn whole_value(&self) -> f64 {
        (1u64 << (self.bits + self.drop)) as f64
    }

    /// Returns the number of branches.
    pub fn count(&self) -> u32 {
        self.count
    }

    fn half(&self) -> i64 {
        (1 << self.drop) >> 1
    }

    /// Where branch `index` begins.
    fn begin(&self, index: u32) -> i64 {
        let shift = 2 * self.ratio * (self.count - index);
        (self.high >> shift) + 1
    }

    /// Returns the interval in which normalised values lie.
    pub fn interval(&self) -> Interval {
        let lows = (0..self.count).map(|index| {
            let begin = if index == 0 { self.low } else { self.begin(index).max(self.low) };
            begin << (2 * self.ratio * (self.count - 1 - index))
        });
        let [low, high] =
            [lows.min().unwrap_or(1), self.high].map(|end| (end + self.half()) >> self.drop);
        Interval { low, high, bits: self.bits }
    }

    /// Returns whether `u` has reached each branch but the first, and u normalised.
    pub fn normalise(&self, builder: &mut Builder, u: usize) -> (Vec<usize>, usize) {
        let reached: Vec<usize> =
            (1..self.count).map(|index| builder.at_least(u, self.begin(index))).collect();
        let factor = |index: u32| 1i64 << (2 * self.ratio * (self.count - 1 - index));
        let normal = select(builder, u, &reached, factor);
        let Interval { low, high, .. } = self.interval();
        builder.known(normal, [low << self.drop >> 1, self.high]);
        let normal = builder.rounded(normal, self.drop);
        builder.known(normal, [low, high]);
        (reached, normal)
    }

    /// `root` of what was normalised, times `2^ratio` for each branch that was reached: then a
    /// root of u is that times `2^-scale`, the second result.
    pub fn scaled(&self, builder: &mut Builder, reached: &[usize], root: usize) -> (usize, i64) {
        let result = select(builder, root, reached, |index| 1 << (self.ratio * index));
        let scale = i64::from(self.ratio * (self.count - 1));
        (result, scale - i64::from((self.bits + self.drop) / 2))
    }

    /// `inverse` root of what was normalised, halved `ratio` times for each branch that was
    /// reached: an inverse root of u is that times `2^-scale`, the second result.
    pub fn unscaled(
        &self,
        builder: &mut Builder,
        reached: &[usize],
        inverse: usize,
    ) -> (usize, i64) {
        let factor = |index: u32| 1i64 << (self.ratio * (self.count - 1 - index));
        let result = select(builder, inverse, reached, factor);
        (result, i64::from((self.bits + self.drop) / 2))
    }
}

/// `value` times the factor of its branch.
fn select(
    builder: &mut Builder,
    value: usize,
    reached: &[usize],
    factor: impl Fn(u32) -> i64,
) -> usize {
    if reached.is_empty() {
        return value;
    }
    let mut terms = vec![(value, factor(0))];
    for (index, bit) in (1..).zip(reached) {
        let part = builder.choose(*bit, value);
        terms.push((part, factor(index) - factor(index - 1)));
    }
    let sum = builder.affine(&terms, 0);
    // It is one of these products.
    let factors = || (0..=reached.len() as u32).map(&factor);
    let [low, high] = builder.range(value);
    let [least, most] = [factors().min().unwrap_or(1), factors().max().unwrap_or(1)];
    builder.known(sum, [low.saturating_mul(least), high.saturating_mul(most)]);
    sum
}
