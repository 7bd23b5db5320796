//! Reciprocals and inverse roots by octaves.
//!
//! An octave of reciprocals is a factor of two, of roots one of four. A power of it brings the
//! leading bit of `y` to its place or, of roots, next to it; of u below 1 that the product then
//! is a part of its range, the upper bits look `peak/(2*u)` or `peak/(2*sqrt(u))` up, which is
//! scaled back by a power of two. Below the first octave the result is about peak.
//!
//! Error: at most 1.25 last places and a 4096th of peak.

use super::curve::{Curve, MOST};
use super::refusal::Result;

/// Bits of the leading part beyond those of the result.
const GUARD: u32 = 2;

/// The function of y that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// 1/y.
    Reciprocal,
    /// 1/sqrt(y).
    Root,
}

impl Power {
    /// Bits of y in an octave.
    fn octave(self) -> u32 {
        match self {
            Self::Reciprocal => 1,
            Self::Root => 2,
        }
    }

    /// The function of the leading part, 1 where it is as small as it gets.
    fn of(self, u: f64) -> f64 {
        match self {
            Self::Reciprocal => 0.5 / u,
            Self::Root => 0.5 / u.sqrt(),
        }
    }

    /// What multiplied with the function of y is a constant.
    fn weight(self, y: f64) -> f64 {
        match self {
            Self::Reciprocal => y,
            Self::Root => y.sqrt(),
        }
    }
}

/// About `peak*2^low/y` or `peak*sqrt(2^low/y)` for `0 <= y < 2^top`, top = low + octaves or
/// low + 2*octaves, and about peak below `2^low`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inverse {
    power: Power,
    /// Width of y, with a bit that tells that it is not negative.
    pub bits: u32,
    /// Width of the result, with a bit that tells that it is not negative.
    pub out_bits: u32,
    /// Bits of the leading part, and below it.
    pub leading: [u32; 2],
    /// Bits that powers of two take to scale results back.
    pub back: u32,
    /// Bits that powers take to bring y to its place.
    pub forth: u32,
    /// Where octaves but the first begin.
    pub thresholds: Vec<i64>,
    /// Factors that bring the leading bit to its place, by octave, and those back.
    pub factors: [Vec<i64>; 2],
    /// The curve of the leading part.
    pub curve: Curve,
}

impl Inverse {
    /// Two octaves at least; `0 < peak < 2^(out_bits-1)`.
    ///
    /// # Errors
    /// For widths that no protocol has, and for another peak.
    pub fn new(power: Power, [low, octaves]: [u32; 2], peak: f64, out_bits: u32) -> Result<Self> {
        let octave = power.octave();
        if !(2..=60).contains(&octaves) || low > 60 || !(2..=60).contains(&out_bits) {
            return Err("inverses with these widths".into());
        }
        let (top, back) = (low + octave * octaves, octaves - 1);
        let leading = (out_bits + GUARD).min(MOST).min(top - 1);
        if top > 60 || leading <= octave || out_bits + back > 60 {
            return Err("inverses with these widths".into());
        }
        if !(peak > 0.0 && peak < (1u64 << (out_bits - 1)) as f64) {
            return Err("inverses with this peak".into());
        }
        let least = 1i64 << (leading - octave);
        let one = (1u64 << leading) as f64;
        let value = |z: i64| peak * power.of((z.max(least) as f64 + 0.5) / one);
        Ok(Self {
            power,
            bits: top + 1,
            out_bits,
            leading: [leading, top - leading],
            back,
            forth: octave * back,
            thresholds: (1..octaves).map(|k| 1i64 << (low + octave * k)).collect(),
            factors: [octave, 1]
                .map(|bits| (0..octaves).rev().map(|k| 1i64 << (bits * k)).collect()),
            curve: Curve::new(leading, value)?,
        })
    }

    /// Returns half a last place of what scaling back leaves.
    pub fn half(&self) -> i64 {
        1 << (self.back - 1)
    }

    /// Returns the number of thresholds that `y` has reached.
    pub fn reached(&self, y: i64) -> usize {
        self.thresholds.iter().filter(|threshold| y >= **threshold).count()
    }

    /// Returns the integer result for `y`.
    pub fn clear(&self, y: i64) -> i64 {
        let reached = self.reached(y);
        let [factor, back] =
            [0, 1].map(|which: usize| self.factors[which].get(reached).copied().unwrap_or(1));
        let leading = (y * factor) >> self.leading[1];
        (self.curve.clear(leading) * back + self.half()) >> self.back
    }

    /// Returns the largest result.
    pub fn most(&self) -> i64 {
        // Scaling back by half or less, and rounding, makes nothing larger.
        self.leads().map(|z| self.curve.clear(z)).max().unwrap_or(0)
    }

    /// Returns the largest result for each of `leasts` and more, at least 0.
    pub fn most_from(&self, leasts: &[i64]) -> Vec<i64> {
        let mut largest: Vec<i64> = self.leads().map(|z| self.curve.clear(z)).collect();
        for z in (1..largest.len()).rev() {
            largest[z - 1] = largest[z - 1].max(largest[z]);
        }
        let from = |lead: i64, reached: usize| {
            let largest = largest.get(lead as usize).copied().unwrap_or(0);
            let back = self.factors[1].get(reached).copied().unwrap_or(0);
            (largest * back + self.half()) >> self.back
        };
        let normal = 1 << (self.leading[0] - self.power.octave());
        let most = |least: &i64| {
            let reached = self.reached(*least);
            let forth = self.factors[0].get(reached).copied().unwrap_or(1);
            from((least * forth) >> self.leading[1], reached).max(from(normal, reached + 1))
        };
        leasts.iter().map(most).collect()
    }

    /// Returns a bound on `clear(y)*y`, or `clear(y)*sqrt(y)` of roots, over all y.
    pub fn most_weighted(&self) -> f64 {
        // Rounding what is scaled back adds a half at most.
        let rounding = self.power.weight((1u64 << (self.bits - 1)) as f64) / 2.0;
        // The last factor covers the rounding of f64 itself.
        (self.weighted() + rounding) * (1.0 + 1e-12)
    }

    /// Returns a bound on y, or `sqrt(y)` of roots, where `clear(y)` is `result`, at least 1.
    pub fn most_weight(&self, result: i64) -> f64 {
        self.weighted() / (result as f64 - 0.5) * (1.0 + 1e-12)
    }

    /// A bound on y, or its root, times its result before that is rounded.
    fn weighted(&self) -> f64 {
        // y, with its leading bit brought to its place, is below z + 1 steps, and its weight
        // grows by as much on the way as the curve's value shrinks on the way back.
        let step = (1u64 << self.leading[1]) as f64;
        let weighted = |z: i64| {
            let [value, weight] =
                [self.curve.clear(z) as f64, self.power.weight((z + 1) as f64 * step)];
            value * weight
        };
        self.leads().map(weighted).fold(0.0, f64::max) / (1u64 << self.back) as f64
    }

    fn leads(&self) -> std::ops::Range<i64> {
        0..1 << self.leading[0]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    fn inverses() -> Vec<(Power, [u32; 2], f64, Inverse)> {
        let plans = [
            (Power::Reciprocal, [20, 8], 1016.0, 11),
            (Power::Reciprocal, [14, 2], 100.0, 8),
            (Power::Reciprocal, [18, 13], 16_376.0, 15),
            (Power::Reciprocal, [3, 2], 7.0, 4),
            (Power::Root, [22, 6], 2040.0, 12),
            (Power::Root, [14, 2], 100.0, 9),
        ];
        let plan = |(power, sizes, peak, bits)| {
            (power, sizes, peak, Inverse::new(power, sizes, peak, bits).unwrap())
        };
        plans.map(plan).into()
    }

    fn values(top: u32, low: u32) -> Vec<i64> {
        let edges = (low..top).map(|bit| 1i64 << bit);
        let mut values: Vec<i64> = edges.flat_map(|edge| [edge - 1, edge]).collect();
        values.extend([0, 1, (1 << top) - 1]);
        values.extend(Random::seeded(72).uniform(20_000, top).iter().map(|y| *y as i64));
        values
    }

    #[test]
    fn every_octave_and_its_edges() {
        for (power, [low, _], peak, plan) in inverses() {
            let one = (1i64 << low) as f64;
            for y in values(plan.bits - 1, low) {
                let ratio = one / (y as f64).max(one);
                let real = peak * if power == Power::Root { ratio.sqrt() } else { ratio };
                let bound = 1.25 + peak / 4096.0;
                let got = plan.clear(y) as f64;
                assert!((got - real).abs() < bound, "{power:?} {y}: {got} {real}");
            }
        }
    }

    #[test]
    fn bounds_hold_and_are_near() {
        for (power, [low, _], peak, plan) in inverses() {
            let (mut largest, mut weighted) = (0, 0f64);
            for y in values(plan.bits - 1, low) {
                largest = largest.max(plan.clear(y));
                weighted = weighted.max(plan.clear(y) as f64 * power.weight(y as f64));
            }
            assert!(largest <= plan.most() && plan.most() <= peak as i64 + 2);
            let bound = plan.most_weighted();
            assert!(weighted <= bound && bound <= 1.35 * weighted, "{weighted} {bound}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |sizes, peak, bits| Inverse::new(Power::Root, sizes, peak, bits).is_err();
        assert!(new([20, 1], 100.0, 9) && new([20, 21], 100.0, 9));
        assert!(new([u32::MAX, 2], 100.0, 9) && new([20, u32::MAX], 100.0, 9));
        assert!(new([20, 2], 100.0, 0) && new([20, 2], 100.0, u32::MAX));
        assert!(new([20, 2], f64::NAN, 9) && new([20, 2], 256.0, 9) && new([20, 2], -1.0, 9));
    }
}
