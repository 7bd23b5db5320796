//! GELU, saturating.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits, |x| <= 2^(bits-1) - 2^magnitude or bits = magnitude + 1; correlations |
//! | Out | shares of about `gelu(x*scale)/scale` mod 2^out_bits, x first kept in `[-2^magnitude, 2^magnitude)` |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a saturating ReLU where bits > magnitude + 1, a ReLU, a table of 2^magnitude narrow entries; from 9 bits of magnitude on as in `curve.rs` |
//! | Error | from the real function of the saturated x, where 4 <= 2^magnitude*scale <= 16: at most 0.5 last places for magnitudes up to 8, 0.9 up to 11, 1.25 for 12 |
//! | Paper | Rathee et al., SiRNN (S&P 2021); ReLU as in ENGINE section 4 |
//!
//! `gelu(x) = relu(x) - d(|x|)` with the small bump `d(z) = z*Phi(-z)` from a table. The
//! ReLU gives the absolute value for nothing, `|x| = 2*relu(x) - x`, and x is saturated
//! before by the ReLU of `x + 2^magnitude`. Where |x| = 2^magnitude it is read as 0, whose
//! bump is as small.

use wire::{Channel, Cost, Error, Result};

use super::curve::{self, Curve};
use super::real::normal_tail;
use crate::compare::Radix;
use crate::pads::{Need, Pads};
use crate::relu::{self, Relu};
use crate::share::Share;

/// What integers mean: real values are multiples of `scale`, and those of interest have
/// absolute values up to `2^magnitude*scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Bits of absolute values, 2 to 12.
    pub magnitude: u32,
    /// Of one last place; of input and output.
    pub scale: f64,
}

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Gelu {
    count: usize,
    bits: u32,
    calibration: Calibration,
    /// Where inputs have more bits than count.
    saturation: Option<Relu>,
    relu: Relu,
    bump: Curve,
}

impl Gelu {
    /// `count` values of `bits` to `out_bits`.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless the magnitude is 2 to 12, `bits` is one more or three or
    /// more more, up to 63, and so is `out_bits` (one or more), and the scale is a
    /// positive number.
    pub fn new(
        count: usize,
        bits: u32,
        calibration: Calibration,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let Calibration { magnitude, scale } = calibration;
        let exact = magnitude + 1;
        let widths = bits == exact || (exact + 2..=63).contains(&bits);
        if !(2..=12).contains(&magnitude) || !widths || !(exact..=63).contains(&out_bits) {
            return Err(Error::misuse("a GELU with these widths"));
        }
        if !scale.is_normal() || scale < 0.0 {
            return Err(Error::misuse("a GELU of values with this scale"));
        }
        let clip = || Relu::new(count, bits, Some(exact), exact, radix);
        Ok(Self {
            count,
            bits,
            calibration,
            saturation: (bits > exact).then(clip).transpose()?,
            relu: Relu::new(count, exact, None, out_bits, radix)?,
            bump: Curve::new(count, magnitude, |z| bump(z, scale), out_bits, radix)?,
        })
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        let first = self.saturation.as_ref().map(Relu::need).unwrap_or_default();
        first + self.relu.need() + self.bump.need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        let first = self.saturation.as_ref().map_or(Cost::NONE, Relu::cost);
        first.then(self.relu.cost()).then(self.bump.cost())
    }

    /// The result for `x` in the clear, bit for bit.
    pub fn clear(&self, x: i64) -> i64 {
        let edge = 1i64 << self.calibration.magnitude;
        let x = x.clamp(-edge, edge - 1);
        x.max(0) - self.bump.clear(x.abs() & (edge - 1))
    }

    /// How far [`Gelu::clear`] is from the real function of the saturated `x`, in last
    /// places.
    pub fn error(&self, x: i64) -> f64 {
        let edge = 1i64 << self.calibration.magnitude;
        let x = x.clamp(-edge, edge - 1);
        (self.clear(x) as f64 - real(x, self.calibration.scale)).abs()
    }

    /// `x + 2^magnitude`, saturated, and back.
    fn saturated(&self, channel: &mut Channel, x: &Share, pads: &mut Pads) -> Result<Share> {
        let Some(plan) = &self.saturation else { return Ok(x.clone()) };
        let (role, edge) = (channel.role(), 1i64 << self.calibration.magnitude);
        let now = pads.split(role, &plan.need())?;
        let moved = relu::run(channel, plan, &x.plus(role, edge), now)?;
        Ok(moved.plus(role, -edge))
    }
}

/// How far GELU lies below ReLU at z >= 0, in last places.
fn bump(z: i64, scale: f64) -> f64 {
    z as f64 * normal_tail(z as f64 * scale)
}

/// GELU in last places.
fn real(x: i64, scale: f64) -> f64 {
    let below = normal_tail((x as f64 * scale).abs());
    x as f64 * if x < 0 { below } else { 1.0 - below }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Gelu, x: &Share, mut pads: Pads) -> Result<Share> {
    x.check(plan.count, plan.bits, "GELU")?;
    let x = plan.saturated(channel, x, &mut pads)?;
    let now = pads.split(channel.role(), &plan.relu.need())?;
    let positive = relu::run(channel, &plan.relu, &x, now)?;
    let magnitude = plan.calibration.magnitude;
    let half = positive.narrow(magnitude)?;
    let absolute = half.add_scaled(&half, 1).add_scaled(&x.narrow(magnitude)?, -1);
    let bump = curve::run(channel, &plan.bump, &absolute, pads)?;
    Ok(positive.add_scaled(&bump, -1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
    use ring::Random;

    fn plan(count: usize, bits: u32, magnitude: u32, scale: f64, out_bits: u32) -> Gelu {
        let calibration = Calibration { magnitude, scale };
        Gelu::new(count, bits, calibration, out_bits, Radix::Sixteen).unwrap()
    }

    #[test]
    fn every_value_of_every_width_comes_out_as_in_the_clear() {
        let mut rng = Random::seeded(70);
        for (bits, magnitude, scale, out_bits) in [
            (3, 2, 1.0, 3),
            (8, 7, 0.0625, 8),
            (12, 7, 0.0625, 8),
            (12, 7, 0.1, 20),
            (9, 8, 0.02, 9),
            (10, 9, 0.0156, 10),
            (14, 11, 0.004, 12),
            (13, 12, 0.002, 24),
        ] {
            let edge = match bits == magnitude + 1 {
                true => 1i64 << magnitude,
                false => (1i64 << (bits - 1)) - (1 << magnitude),
            };
            let values: Vec<i64> = (-edge..edge).collect();
            let plan = plan(values.len(), bits, magnitude, scale, out_bits);
            let (client, server) = split(&mut rng, &values, bits);
            let (c, s) = both(
                &mut rng,
                &plan.need(),
                |ch, pads| run(ch, &plan, &client, pads),
                |ch, pads| run(ch, &plan, &server, pads),
            );
            assert_eq!(c.cost, plan.cost());
            let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
            let want: Vec<i64> = values.iter().map(|x| plan.clear(*x)).collect();
            assert_eq!(got, want, "{bits} {magnitude}");
        }
    }

    #[test]
    fn errors_are_as_stated() {
        for magnitude in 2..=12 {
            for range in [4.0, 5.7, 8.0, 11.0, 16.0] {
                let edge = 1i64 << magnitude;
                let plan = plan(1, magnitude + 1, magnitude, range / edge as f64, magnitude + 1);
                let worst = (-edge..edge).map(|x| plan.error(x)).fold(0.0, f64::max);
                let bound = match magnitude {
                    ..=8 => 0.5,
                    9..=11 => 0.9,
                    _ => 1.25,
                };
                assert!(worst <= bound + 1e-9, "{magnitude} {range}: {worst}");
            }
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |bits, magnitude, scale, out_bits| {
            Gelu::new(1, bits, Calibration { magnitude, scale }, out_bits, Radix::Four)
        };
        assert!(new(8, 7, 0.1, 7).is_err() && new(9, 7, 0.1, 8).is_err());
        assert!(new(64, 7, 0.1, 8).is_err() && new(14, 13, 0.1, 14).is_err());
        for scale in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert!(new(8, 7, scale, 8).is_err());
        }
    }
}
