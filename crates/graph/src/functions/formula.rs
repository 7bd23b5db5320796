//! Straight-line integer programs of one argument: affine maps, products, shifts, comparisons
//! and small tables, with the range of every value.
//!
//! What a protocol has to know follows from the ranges: every value is kept in the narrowest
//! ring that its readers can use, and no factor has an unknown sign.

use super::Result;

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
pub struct Formula {
    /// In order.
    pub steps: Vec<Step>,
    /// Of every value: its smallest and its largest.
    pub ranges: Vec<[i64; 2]>,
    /// Of every value: the width of its shares.
    pub rings: Vec<u32>,
}

/// A program that grows.
#[derive(Clone, Debug)]
pub struct Builder {
    steps: Vec<Step>,
    ranges: Vec<[i64; 2]>,
    failed: Option<String>,
}

/// Bits of shares that hold `0..=most`, with one to spare.
pub fn spare(most: i64) -> u32 {
    65 - most.max(0).leading_zeros()
}

/// Bits of signed shares that hold a range.
pub fn signed_width([low, high]: [i64; 2]) -> u32 {
    65 - high.max(-1 - low).max(0).leading_zeros()
}

impl Builder {
    /// A program of an argument in this range.
    pub fn new(range: [i64; 2]) -> Self {
        Self { steps: Vec::new(), ranges: vec![range], failed: None }
    }

    /// The range of a value.
    pub fn range(&self, value: usize) -> [i64; 2] {
        self.ranges.get(value).copied().unwrap_or([0, 0])
    }

    /// Narrows what is known of a value to `range`, which the caller vouches for.
    pub fn known(&mut self, value: usize, [low, high]: [i64; 2]) {
        if let Some(range) = self.ranges.get_mut(value) {
            *range = [range[0].max(low), range[1].min(high)];
        }
    }

    /// What reads beyond the program, or has values beyond all widths, fails in the end.
    fn push(&mut self, step: Step, ends: impl IntoIterator<Item = Option<i128>>) -> usize {
        let (mut low, mut high) = (i128::MAX, i128::MIN);
        for end in ends {
            let end = end.unwrap_or(i128::MAX);
            (low, high) = (low.min(end), high.max(end));
        }
        let limit = 1i128 << (MOST - 1);
        if low < -limit || high > limit || self.steps.len() >= STEPS {
            self.failed = Some("a function whose values are too wide".into());
            (low, high) = (0, 1);
        }
        self.steps.push(step);
        self.ranges.push([low as i64, high as i64]);
        self.steps.len()
    }

    fn wide(&self, value: usize) -> [i128; 2] {
        self.range(value).map(i128::from)
    }

    /// `constant + sum of factor*value`.
    pub fn affine(&mut self, terms: &[(usize, i64)], constant: i64) -> usize {
        let (mut low, mut high) = (Some(i128::from(constant)), Some(i128::from(constant)));
        for (value, factor) in terms {
            let factor = i128::from(*factor);
            let [a, b] = self.wide(*value).map(|end| end.checked_mul(factor));
            let [a, b] = if factor < 0 { [b, a] } else { [a, b] };
            low = low.zip(a).map(|(x, y)| x.saturating_add(y));
            high = high.zip(b).map(|(x, y)| x.saturating_add(y));
        }
        self.push(Step::Affine(terms.to_vec(), constant), [low, high])
    }

    /// A factor's range; factors are not negative.
    fn factor(&mut self, value: usize) -> [i128; 2] {
        if self.range(value)[0] < 0 {
            self.failed = Some("a function with a factor of unknown sign".into());
        }
        self.wide(value)
    }

    /// `value^2`.
    pub fn square(&mut self, value: usize) -> usize {
        let ends = self.factor(value).map(|end| end.checked_mul(end));
        self.push(Step::Square(value), ends)
    }

    /// `a*b`.
    pub fn product(&mut self, a: usize, b: usize) -> usize {
        let ([low, high], [least, most]) = (self.factor(a), self.factor(b));
        let ends = [low.checked_mul(least), high.checked_mul(most)];
        self.push(Step::Product([a, b]), ends)
    }

    /// `a*b`, which lies in `range`: the caller vouches for that.
    pub fn product_within(&mut self, a: usize, b: usize, [low, high]: [i64; 2]) -> usize {
        self.push(Step::Product([a, b]), [low, high].map(|end| Some(end.into())))
    }

    /// `floor(value / 2^drop)`.
    pub fn shift(&mut self, value: usize, drop: u32) -> usize {
        if drop == 0 {
            return value;
        }
        let low = self.range(value)[0];
        let drop = drop.min(MOST);
        let below = if low < 0 { ((-low) >> drop) + 1 } else { 0 };
        let raised = match below {
            0 => value,
            _ => self.affine(&[(value, 1)], below << drop),
        };
        let ends = self.wide(raised).map(|end| Some(end >> drop));
        let shifted = self.push(Step::Shift(raised, drop), ends);
        if below == 0 { shifted } else { self.affine(&[(shifted, 1)], -below) }
    }

    /// `floor(value / 2^drop + 1/2)`.
    pub fn rounded(&mut self, value: usize, drop: u32) -> usize {
        if drop == 0 {
            return value;
        }
        let moved = self.affine(&[(value, 1)], 1 << (drop.min(MOST) - 1));
        self.shift(moved, drop)
    }

    /// `[value >= threshold]`.
    pub fn at_least(&mut self, value: usize, threshold: i64) -> usize {
        let [low, high] = self.range(value);
        let ends = [low, high].map(|end| Some(i128::from(end >= threshold)));
        self.push(Step::AtLeast(value, threshold), ends)
    }

    /// `value` where `bit`, of [`Builder::at_least`], is 1, else 0.
    pub fn choose(&mut self, bit: usize, value: usize) -> usize {
        let [low, high] = self.wide(value);
        self.push(Step::Choose([bit, value]), [Some(low), Some(high), Some(0)])
    }

    /// `values[value]`.
    pub fn lookup(&mut self, value: usize, mut values: Vec<i64>) -> usize {
        let [low, high] = self.range(value);
        let places = values.len().next_power_of_two().max(2);
        if low < 0 || high >= values.len() as i64 || places > 256 {
            self.failed = Some("a function with a table that does not fit".into());
        }
        let last = values.last().copied().unwrap_or(0);
        values.resize(places, last);
        let ends: Vec<_> = values.iter().map(|value| Some(i128::from(*value))).collect();
        self.push(Step::Lookup(value, values), ends)
    }

    /// `formula` of a value that lies in its range, with the ranges that it has.
    pub fn inline(&mut self, formula: &Formula, argument: usize) -> usize {
        let base = self.steps.len();
        let at = |value: &usize| if *value == 0 { argument } else { base + value };
        for (step, range) in formula.steps.iter().zip(formula.ranges.iter().skip(1)) {
            let step = match step {
                Step::Affine(terms, constant) => {
                    Step::Affine(terms.iter().map(|(v, f)| (at(v), *f)).collect(), *constant)
                }
                Step::Square(value) => Step::Square(at(value)),
                Step::Product([a, b]) => Step::Product([at(a), at(b)]),
                Step::Choose([bit, value]) => Step::Choose([at(bit), at(value)]),
                Step::Shift(value, drop) => Step::Shift(at(value), *drop),
                Step::AtLeast(value, threshold) => Step::AtLeast(at(value), *threshold),
                Step::Lookup(value, values) => Step::Lookup(at(value), values.clone()),
            };
            self.push(step, range.map(|end| Some(end.into())));
        }
        at(&formula.steps.len())
    }

    /// The program whose result is the last value.
    ///
    /// # Errors
    /// For values beyond all widths, factors of unknown sign and tables that do not fit.
    pub fn finish(self, out_bits: u32) -> Result<Formula> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        let Self { steps, ranges, .. } = self;
        let formula = Formula { steps, ranges, rings: Vec::new() };
        formula.check()?;
        formula.with_rings(out_bits)
    }

    /// The same where the argument takes these values only; ranges are those that occur.
    ///
    /// # Errors
    /// As [`Builder::finish`], and where a factor is negative after all.
    pub fn finish_over(
        self,
        arguments: impl Iterator<Item = i64>,
        out_bits: u32,
    ) -> Result<Formula> {
        let Self { steps, mut ranges, .. } = self;
        ranges.iter_mut().for_each(|range| *range = [i64::MAX, i64::MIN]);
        let mut formula = Formula { steps, ranges: Vec::new(), rings: Vec::new() };
        let mut values = Vec::with_capacity(ranges.len());
        for argument in arguments {
            formula.fill(argument, &mut values);
            for (range, value) in ranges.iter_mut().zip(&values) {
                *range = [range[0].min(*value), range[1].max(*value)];
            }
        }
        formula.ranges = ranges;
        formula.check()?;
        formula.with_rings(out_bits)
    }
}

impl Formula {
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

    /// The result for this argument.
    pub fn clear(&self, argument: i64) -> i64 {
        let mut values = Vec::with_capacity(self.steps.len() + 1);
        self.fill(argument, &mut values);
        values.pop().unwrap_or(0)
    }

    /// The results for these arguments.
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
    /// As [`Builder::finish`].
    pub fn limit(&mut self, most: i64) -> Result<()> {
        if let Some(range) = self.ranges.last_mut() {
            *range = [range[0].max(0), range[1].min(most)];
            let bits = spare(range[1]);
            *self = self.clone().with_rings(bits)?;
        }
        Ok(())
    }

    /// The same program with results in shares of `out_bits`.
    ///
    /// # Errors
    /// For widths that no protocol has.
    pub fn widened(&self, out_bits: u32) -> Result<Self> {
        self.clone().with_rings(out_bits)
    }

    /// The range of results.
    pub fn range(&self) -> [i64; 2] {
        self.ranges.last().copied().unwrap_or([0, 0])
    }

    /// Width of the argument's shares, without extension, and of the result's.
    pub fn bits(&self) -> [u32; 2] {
        let first = self.ranges.first().map_or(1, |range| spare(range[1]));
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

    /// The width that a factor's shares are reduced to, of a product in `ring`.
    pub fn factor_bits(&self, value: usize, ring: u32) -> u32 {
        spare(self.of(value)[1]).min(ring)
    }

    /// The width at which a value is compared with a threshold.
    pub fn compared_bits(&self, value: usize, threshold: i64) -> u32 {
        let [low, high] = self.of(value);
        signed_width([low.min(threshold) - threshold, high.max(threshold) - threshold]).max(2)
    }

    /// The width of shares whose low bits are dropped, of a value without sign.
    pub fn shifted_bits(&self, value: usize, drop: u32) -> u32 {
        spare(self.of(value)[1]).max(drop + 1)
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

    /// About how many bits the protocol sends for an argument: for choices between programs.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_and_rings_are_what_readers_need() {
        let mut builder = Builder::new([0, 100]);
        let square = builder.square(0);
        let reached = builder.at_least(square, 5000);
        let chosen = builder.choose(reached, square);
        let sum = builder.affine(&[(chosen, 3), (0, -8)], 7);
        builder.rounded(sum, 4);
        let loose = builder.clone().finish(9).unwrap();
        let tight = builder.finish_over(0..=100, 12).unwrap();
        for x in 0..=100i64 {
            let kept = if x * x >= 5000 { x * x } else { 0 };
            let want = (3 * kept - 8 * x + 7 + 8) >> 4;
            assert_eq!([loose.clear(x), tight.clear(x)], [want; 2]);
            let ranges = [loose.range(), tight.range()];
            assert!(ranges.iter().all(|[low, high]| (*low..=*high).contains(&want)));
        }
        assert!(tight.range()[1] <= loose.range()[1]);
        // The square of 100 and a bit to spare; shares of the result as asked for.
        assert_eq!((loose.bits(), tight.bits()), ([8, 9], [8, 12]));
        assert!(tight.weight() > 0);
    }

    #[test]
    fn programs_that_no_protocol_runs_are_refused() {
        let refused = |make: &dyn Fn(&mut Builder) -> usize| {
            let mut builder = Builder::new([-5, 1 << 30]);
            make(&mut builder);
            builder.finish(8).is_err()
        };
        assert!(refused(&|b| b.square(0)));
        assert!(refused(&|b| {
            let positive = b.affine(&[(0, 1)], 5);
            let square = b.square(positive);
            b.square(square)
        }));
        assert!(refused(&|b| b.lookup(0, vec![1, 2])));
        assert!(refused(&|b| {
            let bit = b.at_least(0, 3);
            b.affine(&[(bit, 1)], 0)
        }));
        assert!(refused(&|b| b.choose(0, 0)));
        assert!(!refused(&|b| {
            let bit = b.at_least(0, 3);
            b.choose(bit, 0)
        }));
    }

    #[test]
    fn an_inlined_program_computes_the_same() {
        let mut inner = Builder::new([1, 9]);
        let square = inner.square(0);
        inner.affine(&[(square, 2), (0, 1)], -1);
        let inner = inner.finish(10).unwrap();
        let mut outer = Builder::new([0, 8]);
        let moved = outer.affine(&[(0, 1)], 1);
        let result = outer.inline(&inner, moved);
        outer.affine(&[(result, 3)], 0);
        let outer = outer.finish(12).unwrap();
        for x in 0..=8 {
            assert_eq!(outer.clear(x), 3 * inner.clear(x + 1));
        }
    }
}
