//! Straight-line integer programs of one argument: affine maps, products, shifts, comparisons
//! and small tables, with the range of every value.
//!
//! What a protocol has to know follows from the ranges: every value is kept in the narrowest
//! ring that its readers can use, and no factor has an unknown sign.

mod builder;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use super::refusal::Result;
pub use builder::Builder;

/// Most bits of any value.
const MOST: u32 = 61;
/// Most steps of a program.
const STEPS: usize = 400;

/// One operation on values before it; value 0 is the argument, value i + 1 what step i makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The constant plus each value times its factor.
    Affine(Vec<(usize, i64)>, i64),
    /// A square.
    Square(usize),
    /// A product.
    Product([usize; 2]),
    /// A value, which is not negative, without so many low bits.
    Shift(usize, u32),
    /// 1 if a value has reached the threshold, else 0; only a [`Step::Choose`] reads that.
    AtLeast(usize, i64),
    /// The second where the first, a [`Step::AtLeast`], is 1, else 0.
    Choose([usize; 2]),
    /// The entry of a table at a value; a power of two of entries, at most 256.
    Lookup(usize, Vec<i64>),
}

/// A program with the ranges and share widths of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StraightLine {
    /// The steps in the order in which they run.
    pub steps: Vec<Step>,
    /// The smallest and the largest number that each value takes.
    pub ranges: Vec<[i64; 2]>,
    /// The width of each value's shares, in bits.
    pub rings: Vec<u32>,
}

/// Returns the bits of shares that hold `0..=most`, with one to spare.
pub fn headroom_bits(most: i64) -> u32 {
    65 - most.max(0).leading_zeros()
}

/// Returns the bits of signed shares that hold a range.
pub fn signed_width([low, high]: [i64; 2]) -> u32 {
    65 - high.max(-1 - low).max(0).leading_zeros()
}

impl StraightLine {
    /// Every value for this argument, in place of what is there.
    fn fill(&self, argument: i64, values: &mut Vec<i64>) {
        values.clear();
        values.push(argument);
        for step in &self.steps {
            let at = |value: &usize| values.get(*value).copied().unwrap_or(0);
            let next = match step {
                Step::Affine(terms, constant) => {
                    let terms = terms.iter().map(|(value, factor)| at(value).wrapping_mul(*factor));
                    terms.fold(*constant, i64::wrapping_add)
                }
                Step::Square(value) => at(value).wrapping_mul(at(value)),
                Step::Product([a, b]) | Step::Choose([a, b]) => at(a).wrapping_mul(at(b)),
                Step::Shift(value, drop) => at(value) >> drop,
                Step::AtLeast(value, threshold) => i64::from(at(value) >= *threshold),
                Step::Lookup(value, values) => {
                    let place = at(value) as usize % values.len().max(1);
                    values.get(place).copied().unwrap_or(0)
                }
            };
            values.push(next);
        }
    }

    /// Returns the result for this argument.
    pub fn clear(&self, argument: i64) -> i64 {
        let mut values = Vec::with_capacity(self.steps.len() + 1);
        self.fill(argument, &mut values);
        values.pop().unwrap_or(0)
    }

    /// Returns the results for these arguments.
    pub fn results(&self, arguments: impl Iterator<Item = i64>) -> impl Iterator<Item = i64> {
        let mut values = Vec::with_capacity(self.steps.len() + 1);
        arguments.map(move |argument| {
            self.fill(argument, &mut values);
            values.last().copied().unwrap_or(0)
        })
    }

    /// Narrows what is known of results to `0..=most`, which the caller vouches for; their
    /// shares become as wide as that needs.
    ///
    /// # Errors
    /// The errors of [`Builder::finish`].
    pub fn limit(&mut self, most: i64) -> Result<()> {
        if let Some(range) = self.ranges.last_mut() {
            *range = [range[0].max(0), range[1].min(most)];
            let bits = headroom_bits(range[1]);
            *self = self.clone().with_rings(bits)?;
        }
        Ok(())
    }

    /// The program with results in shares of `out_bits`.
    ///
    /// # Errors
    /// For widths that no protocol has.
    pub fn widened(&self, out_bits: u32) -> Result<Self> {
        self.clone().with_rings(out_bits)
    }

    /// Returns the range of results.
    pub fn range(&self) -> [i64; 2] {
        self.ranges.last().copied().unwrap_or([0, 0])
    }

    /// Returns the width of the argument's shares, without extension, and of the result's.
    pub fn bits(&self) -> [u32; 2] {
        let first = self.ranges.first().map_or(1, |range| headroom_bits(range[1]));
        [first, self.rings.last().copied().unwrap_or(1)]
    }

    fn of(&self, value: usize) -> [i64; 2] {
        self.ranges.get(value).copied().unwrap_or([0, 0])
    }

    /// That nothing which has to be known not to be negative is negative.
    fn check(&self) -> Result<()> {
        let limit = 1i64 << (MOST - 1);
        let narrow = self.ranges.iter().all(|[low, high]| *low >= -limit && *high <= limit);
        let signs = self.steps.iter().all(|step| match step {
            Step::Square(value) | Step::Shift(value, _) => self.of(*value)[0] >= 0,
            Step::Lookup(value, values) => {
                self.of(*value)[0] >= 0 && self.of(*value)[1] < values.len() as i64
            }
            Step::Product(factors) => factors.iter().all(|value| self.of(*value)[0] >= 0),
            Step::Affine(..) | Step::AtLeast(..) | Step::Choose(_) => true,
        });
        match narrow && signs && self.bits_are_chosen_by() {
            true => Ok(()),
            false => Err("a function that diverges".into()),
        }
    }

    /// That comparisons are read by choices alone, and these choose by nothing else.
    fn bits_are_chosen_by(&self) -> bool {
        let is_bit = |value: &usize| {
            let step = value.checked_sub(1).and_then(|index| self.steps.get(index));
            matches!(step, Some(Step::AtLeast(..)))
        };
        self.steps.iter().all(|step| match step {
            Step::Choose([bit, value]) => is_bit(bit) && !is_bit(value),
            Step::Affine(terms, _) => !terms.iter().any(|(value, _)| is_bit(value)),
            Step::Product(factors) => !factors.iter().any(is_bit),
            Step::Square(value) | Step::Shift(value, _) => !is_bit(value),
            Step::AtLeast(value, _) | Step::Lookup(value, _) => !is_bit(value),
        })
    }

    /// Returns the width that a factor's shares are reduced to, of a product in `ring`.
    pub fn factor_bits(&self, value: usize, ring: u32) -> u32 {
        headroom_bits(self.of(value)[1]).min(ring)
    }

    /// Returns the width at which a value is compared with a threshold.
    pub fn compared_bits(&self, value: usize, threshold: i64) -> u32 {
        let [low, high] = self.of(value);
        signed_width([low.min(threshold) - threshold, high.max(threshold) - threshold]).max(2)
    }

    /// Returns the width of shares whose low bits are dropped, of a value without sign.
    pub fn shifted_bits(&self, value: usize, drop: u32) -> u32 {
        headroom_bits(self.of(value)[1]).max(drop + 1)
    }

    /// Widths from the last value to the first: what readers need.
    fn with_rings(mut self, out_bits: u32) -> Result<Self> {
        let mut rings = vec![1u32; self.ranges.len()];
        let raise = |rings: &mut Vec<u32>, value: usize, bits: u32| {
            if let Some(ring) = rings.get_mut(value) {
                *ring = (*ring).max(bits);
            }
        };
        raise(&mut rings, self.steps.len(), out_bits);
        for (index, step) in self.steps.iter().enumerate().rev() {
            let ring = rings.get(index + 1).copied().unwrap_or(1);
            match step {
                Step::Affine(terms, _) => {
                    for (value, factor) in terms {
                        let bits = ring.saturating_sub(factor.trailing_zeros()).max(1);
                        raise(&mut rings, *value, bits);
                    }
                }
                Step::Square(value) => {
                    raise(&mut rings, *value, self.factor_bits(*value, ring));
                }
                Step::Product(factors) => {
                    factors.iter().for_each(|value| {
                        raise(&mut rings, *value, self.factor_bits(*value, ring));
                    });
                }
                Step::Choose([_, value]) => raise(&mut rings, *value, ring),
                Step::Shift(value, drop) => {
                    raise(&mut rings, *value, self.shifted_bits(*value, *drop));
                }
                Step::AtLeast(value, threshold) => {
                    raise(&mut rings, *value, self.compared_bits(*value, *threshold));
                }
                Step::Lookup(value, values) => raise(&mut rings, *value, values.len().ilog2()),
            }
        }
        if rings.iter().any(|ring| *ring > MOST) {
            return Err("a function whose values are too wide".into());
        }
        self.rings = rings;
        Ok(self)
    }

    /// Returns about how many bits the protocol sends for an argument: for choices between
    /// programs.
    pub fn weight(&self) -> u64 {
        let steps = self.steps.iter().zip(self.rings.iter().skip(1));
        let weight = |(step, ring): (&Step, &u32)| -> u64 {
            let ring = *ring;
            let factor = |value: usize| self.factor_bits(value, ring);
            let chosen = |bits: u32| (0..bits).map(|bit| u64::from(ring - bit)).sum::<u64>();
            match step {
                Step::Affine(..) => 0,
                Step::Square(value) => chosen(factor(*value)) + 2 * u64::from(ring),
                Step::Product([a, b]) => {
                    let narrow = factor(*a).min(factor(*b));
                    2 * (chosen(narrow) + u64::from(narrow)) + 2 * u64::from(ring)
                }
                Step::Choose(_) => u64::from(2 * ring + 2),
                Step::Shift(_, drop) => u64::from(8 * drop + ring),
                Step::AtLeast(value, threshold) => {
                    u64::from(8 * self.compared_bits(*value, *threshold))
                }
                Step::Lookup(_, values) => u64::from(ring) * values.len() as u64,
            }
        };
        steps.map(weight).sum()
    }
}
