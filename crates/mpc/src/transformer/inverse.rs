//! Reciprocals of shared values and of their roots.
//!
//! | | |
//! |---|---|
//! | In | shares of `0 <= y < 2^top` mod 2^(top+1), top = low + octaves or low + 2*octaves; correlations |
//! | Out | shares of about `peak*2^low/y` or of `peak*sqrt(2^low/y)`, peak where y is below 2^low, mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a sign bit for each octave but the first, two products with powers of two, two truncations and a curve |
//! | Error | at most 1.25 last places and a 4096th of peak ([`Inverse::clear`] is exact) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), reciprocal and root: normalisation, then a table of the leading bits |
//!
//! An octave of reciprocals is a factor of two, of roots one of four. A power of it brings the
//! leading bit of `y` to its place or, of roots, next to it; of u below 1 that the product then
//! is a part of its range, the upper bits look `peak/(2*u)` or `peak/(2*sqrt(u))` up, which is
//! scaled back by a power of two.

use wire::{Channel, Cost, Error, Result};

use super::curve::{self, Curve};
use super::steps::{self, Steps};
use crate::compare::Radix;
use crate::extend::Sign;
use crate::multiply::{self, Factor, Multiply};
use crate::pads::{Need, Pads};
use crate::share::Share;
use crate::truncate::{self, Truncate};

/// Bits of the leading part beyond those of the result.
const GUARD: u32 = 2;
/// Bits of the widest leading part.
const MOST: u32 = 14;

/// What is computed.
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
}

/// The public plan.
#[derive(Clone, Debug)]
pub struct Inverse {
    count: usize,
    /// Width of the values.
    bits: u32,
    /// Factors that bring the leading bit to its place, by octave, and those back.
    factors: [Vec<i64>; 2],
    /// Bits below the leading part.
    drop: u32,
    /// Bits after the point of the result, before it is rounded.
    back: u32,
    steps: Steps,
    normalising: Multiply,
    leading: Truncate,
    curve: Curve,
    scaling: Multiply,
    rounding: Truncate,
}

impl Inverse {
    /// `count` values, two octaves at least; `0 < peak < 2^(out_bits-1)`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that no protocol has.
    pub fn new(
        count: usize,
        power: Power,
        [low, octaves]: [u32; 2],
        peak: f64,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let (octave, back) = (power.octave(), octaves.saturating_sub(1));
        let top = low + octave * octaves;
        let leading = (out_bits + GUARD).min(MOST).min(top.saturating_sub(1));
        if back == 0 || top > 60 || leading <= octave || out_bits + back > 60 {
            return Err(Error::misuse("inverses with these widths"));
        }
        let (bits, drop) = (top + 1, top - leading);
        let known = |bits| Factor { bits, sign: Sign::NonNegative };
        let least = 1i64 << (leading - octave);
        let one = (1u64 << leading) as f64;
        let value = |z: i64| peak * power.of((z.max(least) as f64 + 0.5) / one);
        let thresholds = (1..octaves).map(|k| 1i64 << (low + octave * k)).collect();
        let factors =
            [octave, 1].map(|bits| (0..octaves).rev().map(|k| 1i64 << (bits * k)).collect());
        // Of both factors, and of one more bit that tells that they are not negative.
        let [wide, narrow] = [octave * back + 2, back + 2];
        let scaled = out_bits + back;
        Ok(Self {
            count,
            bits,
            factors,
            drop,
            back,
            steps: Steps::new(count, bits, thresholds, wide, radix)?,
            normalising: Multiply::new(count, [known(bits), known(wide)], bits, radix)?,
            leading: Truncate::new(count, bits, drop, leading, radix)?,
            curve: Curve::new(count, leading, value, out_bits, radix)?,
            scaling: Multiply::new(count, [known(out_bits), known(narrow)], scaled, radix)?,
            rounding: Truncate::new(count, scaled, back, out_bits, radix)?,
        })
    }

    /// Width of the values.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    fn half(&self) -> i64 {
        1 << (self.back - 1)
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        let leading = self.steps.need() + self.normalising.need() + self.leading.need();
        leading + self.curve.need() + self.scaling.need() + self.rounding.need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        let leading = self.steps.cost().then(self.normalising.cost()).then(self.leading.cost());
        leading.then(self.curve.cost()).then(self.scaling.cost()).then(self.rounding.cost())
    }

    /// The result in the clear.
    pub fn clear(&self, y: i64) -> i64 {
        let reached = self.steps.reached(y);
        let [factor, back] =
            [0, 1].map(|which: usize| self.factors[which].get(reached).copied().unwrap_or(1));
        (self.curve.clear((y * factor) >> self.drop) * back + self.half()) >> self.back
    }
}

/// Runs the protocol.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Inverse, y: &Share, mut pads: Pads) -> Result<Share> {
    y.check(plan.count, plan.bits, "inverse")?;
    let role = channel.role();
    let now = pads.split(role, &plan.steps.need())?;
    let reached = steps::run(channel, &plan.steps, y, now)?;
    let [factor, back] =
        plan.factors.each_ref().map(|values| steps::valued(role, plan.count, &reached, values));
    let now = pads.split(role, &plan.normalising.need())?;
    let normal = multiply::run(channel, &plan.normalising, y, &factor, now)?;
    let now = pads.split(role, &plan.leading.need())?;
    let leading = truncate::run(channel, &plan.leading, &normal, now)?;
    let now = pads.split(role, &plan.curve.need())?;
    let value = curve::run(channel, &plan.curve, &leading, now)?;
    let now = pads.split(role, &plan.scaling.need())?;
    let back = back.narrow(plan.back + 2)?;
    let scaled = multiply::run(channel, &plan.scaling, &value, &back, now)?;
    truncate::run(channel, &plan.rounding, &scaled.plus(role, plan.half()), pads)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
    use ring::Random;

    #[test]
    fn every_octave_and_its_edges() {
        let mut rng = Random::seeded(72);
        for (power, low, octaves, peak, out_bits) in [
            (Power::Reciprocal, 20u32, 8u32, 1016.0, 11u32),
            (Power::Reciprocal, 14, 2, 100.0, 8),
            (Power::Reciprocal, 18, 13, 16_376.0, 15),
            (Power::Root, 22, 6, 2040.0, 12),
            (Power::Root, 14, 2, 100.0, 9),
        ] {
            let (octave, one) = (power.octave(), (1i64 << low) as f64);
            let top = low + octave * octaves;
            let edges = (low..top).map(|bit| 1i64 << bit);
            let mut values: Vec<i64> = edges.flat_map(|edge| [edge - 1, edge]).collect();
            values.extend([0, 1, (1 << top) - 1]);
            values.extend(rng.uniform(100, top).iter().map(|y| *y as i64));
            let sizes = [low, octaves];
            let plan =
                Inverse::new(values.len(), power, sizes, peak, out_bits, Radix::Four).unwrap();
            let (client, server) = split(&mut rng, &values, plan.bits);
            let (c, s) = both(
                &mut rng,
                &plan.need(),
                |ch, pads| run(ch, &plan, &client, pads),
                |ch, pads| run(ch, &plan, &server, pads),
            );
            assert_eq!(c.cost, plan.cost());
            let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
            assert_eq!(got, values.iter().map(|y| plan.clear(*y)).collect::<Vec<_>>());
            for (y, got) in values.iter().zip(got) {
                let ratio = one / (*y as f64).max(one);
                let real = peak * if power == Power::Root { ratio.sqrt() } else { ratio };
                let bound = 1.25 + peak / 4096.0;
                assert!((got as f64 - real).abs() < bound, "{power:?} {y}: {got} {real}");
            }
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new =
            |low, octaves| Inverse::new(1, Power::Root, [low, octaves], 100.0, 9, Radix::Four);
        assert!(new(20, 1).is_err() && new(20, 21).is_err());
    }
}
