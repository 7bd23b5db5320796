//! Smooth maxima.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits, `-2^(bits-2) <= x < 2^(bits-2)`; correlations |
//! | Out | shares of about `((1 + slope)*x + sqrt(((1 - slope)*x)^2 + smoothness^2)) / 2` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a square, comparisons and choices between branches, and what iterations take ([`Smu::cost`]) |
//! | Paper | Comet, section 3.1 (SMU in GELU's place), with a start that is local on uniform shares |
//!
//! The function is [`functions::Smu`].

use graph::functions;
use wire::{Channel, Cost, Result};

use super::straight_line::{self, Program};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Smu {
    function: functions::Smu,
    program: Program,
}

impl Smu {
    /// Plans the function on `count` values.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for other sizes than protocols have.
    pub fn new(count: usize, function: &functions::Smu, radix: Radix) -> Result<Self> {
        let straight_line = &function.straight_line;
        let program = Program::new(count, straight_line, straight_line.bits()[0], radix)?;
        Ok(Self { function: function.clone(), program })
    }

    /// Returns what is computed.
    pub fn function(&self) -> &functions::Smu {
        &self.function
    }
}

/// Runs the layer.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Smu, x: &Share, ots: Correlations) -> Result<Share> {
    let x = x.plus(channel.role(), plan.function.real.offset());
    straight_line::run(channel, &plan.program, &x, ots)
}

impl Protocol for Smu {
    fn operator(&self) -> &'static str {
        "smooth maximum"
    }

    fn describe(&self) -> String {
        format!("Newton's iterations by OT, {} of them", self.function().iterations)
    }

    fn demand(&self) -> Demand {
        self.program.demand()
    }

    fn cost(&self) -> Cost {
        self.program.cost()
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nonlinear::comet::softmax::ReluSoftmax;
    use graph::functions::newton::Newton;
    use graph::functions::smu::{ERROR, Smooth};
    use graph::functions::starts::Start;

    const COUNT: usize = 4096;

    fn smooth(smoothness: f64, fraction: u32) -> Smooth {
        Smooth { bits: 9, scale: 1.0 / 32.0, slope: 0.0, smoothness, fraction }
    }

    /// The leanest iteration from `start` that comes as near as is asked for.
    fn newton(smooth: Smooth, start: Start) -> Newton {
        let own = functions::Smu::least(smooth).unwrap().0;
        let mut plans = (1..=12).flat_map(|iterations| {
            (4..=14).map(move |precision| Newton { iterations, precision, ..own })
        });
        let near = |newton: &Newton| {
            let plan = functions::Smu::unchecked(smooth, start, *newton, 13);
            plan.is_ok_and(|plan| plan.error() <= ERROR)
        };
        if start == Start::Affine { own } else { plans.find(near).unwrap() }
    }

    fn smu_bytes(start: Start) -> f64 {
        let smooth = smooth(0.8, 0);
        let function = functions::Smu::unchecked(smooth, start, newton(smooth, start), 13);
        Smu::new(COUNT, &function.unwrap(), Radix::Four).unwrap().cost().bytes() as f64
    }

    fn softmax_bytes(start: Start) -> f64 {
        let smooth = smooth(0.5, 2);
        let rows = Newton { iterations: 3, ratio: 2, precision: 10 };
        let rows = if start == Start::Flooding { Newton { iterations: 20, ..rows } } else { rows };
        let both = [newton(smooth, start), rows];
        let function = functions::ReluSoftmax::from(128, smooth, 0.5, start, both, 8).unwrap();
        let plan = ReluSoftmax::new(COUNT / 128, &function, false, Radix::Four).unwrap();
        plan.cost().bytes() as f64
    }

    #[test]
    fn the_affine_start_takes_less_than_half_of_what_every_other_takes() {
        let own = [smu_bytes(Start::Affine), softmax_bytes(Start::Affine)];
        for start in Start::ALL.into_iter().filter(|start| *start != Start::Affine) {
            let ratios = [smu_bytes(start) / own[0], softmax_bytes(start) / own[1]];
            assert!(ratios[0] > 3.0 && ratios[1] > 2.0, "{start:?}: {ratios:?}");
            if start == Start::Crypten {
                assert!(ratios.iter().all(|ratio| *ratio > 3.4), "{ratios:?}");
            }
        }
    }
}
