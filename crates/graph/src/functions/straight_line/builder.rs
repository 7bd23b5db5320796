//! Programs that grow, step by step, by interval arithmetic.

use super::super::refusal::Result;
use super::{MOST, STEPS, Step, StraightLine};

/// A program that grows.
#[derive(Clone, Debug)]
pub struct Builder {
    steps: Vec<Step>,
    ranges: Vec<[i64; 2]>,
    failed: Option<String>,
}

impl Builder {
    /// A program of an argument in this range.
    pub fn new(range: [i64; 2]) -> Self {
        Self { steps: Vec::new(), ranges: vec![range], failed: None }
    }

    /// Returns the range of a value.
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

    /// Adds the square `value^2` and returns its index.
    pub fn square(&mut self, value: usize) -> usize {
        let ends = self.factor(value).map(|end| end.checked_mul(end));
        self.push(Step::Square(value), ends)
    }

    /// Adds the product `a*b` and returns its index.
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

    /// Adds the lookup `values[value]` and returns its index.
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

    /// `straight-line program` of a value that lies in its range, with the ranges that it has.
    pub fn inline(&mut self, straight_line: &StraightLine, argument: usize) -> usize {
        let base = self.steps.len();
        let at = |value: &usize| if *value == 0 { argument } else { base + value };
        for (step, range) in straight_line.steps.iter().zip(straight_line.ranges.iter().skip(1)) {
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
        at(&straight_line.steps.len())
    }

    /// Returns the program whose result is the last value.
    ///
    /// # Errors
    /// For values beyond all widths, factors of unknown sign and tables that do not fit.
    pub fn finish(self, out_bits: u32) -> Result<StraightLine> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        let Self { steps, ranges, .. } = self;
        let straight_line = StraightLine { steps, ranges, rings: Vec::new() };
        straight_line.check()?;
        straight_line.with_rings(out_bits)
    }

    /// Finishes a program whose argument takes these values only; ranges are those that occur.
    ///
    /// # Errors
    /// The errors of [`Builder::finish`], and one where a factor is negative after all.
    pub fn finish_over(
        self,
        arguments: impl Iterator<Item = i64>,
        out_bits: u32,
    ) -> Result<StraightLine> {
        let Self { steps, mut ranges, .. } = self;
        ranges.iter_mut().for_each(|range| *range = [i64::MAX, i64::MIN]);
        let mut straight_line = StraightLine { steps, ranges: Vec::new(), rings: Vec::new() };
        let mut values = Vec::with_capacity(ranges.len());
        for argument in arguments {
            straight_line.fill(argument, &mut values);
            for (range, value) in ranges.iter_mut().zip(&values) {
                *range = [range[0].min(*value), range[1].max(*value)];
            }
        }
        straight_line.ranges = ranges;
        straight_line.check()?;
        straight_line.with_rings(out_bits)
    }
}
