//! GELU.
//!
//! `gelu(x) = relu(x) - d(|x|)` with the small bump `d(z) = z*Phi(-z)` from a curve over
//! `z < 2^magnitude`, beyond which it rounds to nothing.
//!
//! Error, from the real function of any x: at most 0.5 last places for magnitudes up to 8,
//! and where `2^magnitude*scale <= 8`, 0.9 up to 11 and 1.25 for 12.

use super::curve::Curve;
use super::real::normal_tail;
use super::refusal::{Result, is_scale};

/// Bits of the longest curve.
const MOST: u32 = 12;

/// GELU on integers: about `gelu(x*scale)/scale` for an integer x.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gelu {
    /// Bits of the absolute values that the curve covers.
    pub magnitude: u32,
    /// The value of one last place, of input and output.
    pub scale: f64,
    /// The distance of GELU from ReLU, which is 0 at 0.
    pub bump: Curve,
    /// The largest distance of GELU from ReLU, in last places.
    pub depth: i64,
}

impl Gelu {
    /// Magnitudes from [`Gelu::least`] to 12.
    ///
    /// # Errors
    /// For other magnitudes, also for such that lines over them are too coarse near 0, and
    /// for a scale that is not a positive number.
    pub fn new(magnitude: u32, scale: f64) -> Result<Self> {
        if !(2..=MOST).contains(&magnitude) {
            return Err("a GELU of values of other than 2 to 12 bits".into());
        }
        if !is_scale(scale) {
            return Err("a GELU of values with this scale".into());
        }
        if !vanishes(magnitude, scale) {
            return Err(format!("a GELU that is no ReLU yet beyond {magnitude} bits"));
        }
        let bump = Curve::new(magnitude, |z| bump(z, scale))?;
        let depth = (0..1 << magnitude).map(|z| bump.clear(z)).max().unwrap_or(0);
        if bump.clear(0) != 0 || depth >= 1 << (magnitude - 1) {
            return Err(format!("a GELU of more bits than it needs, {magnitude}"));
        }
        Ok(Self { magnitude, scale, bump, depth })
    }

    /// Returns the magnitude that costs least, if there is any.
    pub fn least(scale: f64) -> Option<u32> {
        (2..=MOST).find(|magnitude| is_scale(scale) && vanishes(*magnitude, scale))
    }

    /// Returns the result for `x`.
    pub fn clear(&self, x: i64) -> i64 {
        let z = if self.is_bent(x) { x.abs() } else { 0 };
        x.max(0) - self.bump.clear(z)
    }

    /// Whether the curve covers `x`.
    fn is_bent(&self, x: i64) -> bool {
        x.unsigned_abs() < 1 << self.magnitude
    }

    /// How far [`Gelu::clear`] is from the real function, in last places.
    pub fn error(&self, x: i64) -> f64 {
        (self.clear(x) as f64 - real(x, self.scale)).abs()
    }

    /// Returns the least and the largest result for `low <= x <= high`.
    pub fn range(&self, low: i64, high: i64) -> [i64; 2] {
        // Beyond the curve results grow with x: there the ends tell.
        let edge = 1i64 << self.magnitude;
        let bent = low.max(-edge)..=high.min(edge);
        let all = bent.chain([low, high]).map(|x| self.clear(x));
        all.fold([i64::MAX, i64::MIN], |[least, most], got| [least.min(got), most.max(got)])
    }
}

/// How far GELU lies below ReLU at z >= 0, in last places.
fn bump(z: i64, scale: f64) -> f64 {
    z as f64 * normal_tail(z as f64 * scale)
}

/// Whether the bump rounds to nothing from `2^magnitude` on. That it is below a half means,
/// from 4 last places on, that the tail is below an eighth: z*scale is above 1, and from 0.76
/// on bumps fall.
fn vanishes(magnitude: u32, scale: f64) -> bool {
    bump(1 << magnitude, scale) < 0.5
}

/// GELU in last places.
fn real(x: i64, scale: f64) -> f64 {
    let below = normal_tail((x as f64 * scale).abs());
    x as f64 * if x < 0 { below } else { 1.0 - below }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check_errors(magnitude: u32, range: f64, bound: f64) {
        let edge = 1i64 << magnitude;
        let plan = Gelu::new(magnitude, range / edge as f64).unwrap();
        let wide = [3 * edge, 100 * edge, 1 << 40];
        let all = (-2 * edge..2 * edge).chain(wide).chain(wide.map(|x| -x));
        let worst = all.map(|x| plan.error(x)).fold(0.0, f64::max);
        assert!(worst <= bound + 1e-9, "{magnitude} {range}: {worst}");
    }

    #[test]
    fn errors_are_as_stated() {
        for magnitude in 2..=12 {
            let bound = match magnitude {
                ..=8 => 0.5,
                9..=11 => 0.9,
                _ => 1.25,
            };
            for range in [4.0, 5.7, 8.0] {
                check_errors(magnitude, range, bound);
            }
            if magnitude <= 8 {
                check_errors(magnitude, 16.0, bound);
                check_errors(magnitude, 1e9, bound);
            }
        }
    }

    #[test]
    fn the_least_magnitude_is_that() {
        for scale in [1e9, 1.0, 0.5, 0.3, 0.0625, 0.03, 0.01, 0.004, 0.001] {
            let least = Gelu::least(scale).unwrap();
            let plan = Gelu::new(least, scale).unwrap();
            assert!(least == 2 || Gelu::new(least - 1, scale).is_err(), "{scale}");
            let worst = (-9999..9999).map(|x| plan.error(x)).fold(0.0, f64::max);
            assert!(worst <= 0.9, "{scale}: {worst}");
        }
        assert!([1e-9, 0.0, -1.0, f64::NAN].iter().all(|scale| Gelu::least(*scale).is_none()));
    }

    #[test]
    fn ranges_hold_every_result_and_no_more() {
        let plan = Gelu::new(4, 0.3).unwrap();
        for low in -40..40 {
            for high in low..40 {
                let results = || (low..=high).map(|x| plan.clear(x));
                let want = [results().min().unwrap(), results().max().unwrap()];
                assert_eq!(plan.range(low, high), want);
            }
        }
        assert_eq!(plan.range(i64::MIN, i64::MAX), [-plan.depth, i64::MAX]);
    }

    #[test]
    fn misfits_are_refused() {
        assert!(Gelu::new(1, 1.0).is_err() && Gelu::new(13, 1.0).is_err());
        assert!(Gelu::new(u32::MAX, 1.0).is_err() && Gelu::new(6, 0.03).is_err());
        for scale in [0.0, -0.1, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 2.0] {
            assert!(Gelu::new(7, scale).is_err());
        }
        for scale in [f64::MAX, 1.0, 1e-9, f64::MIN_POSITIVE] {
            assert!(Gelu::new(12, scale).is_ok() || scale < 1.0);
        }
    }
}
