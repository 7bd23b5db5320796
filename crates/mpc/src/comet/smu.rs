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

use super::formula::{self, Program};
use crate::compare::Radix;
use crate::pads::{Need, Pads};
use crate::share::Share;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Smu {
    function: functions::Smu,
    program: Program,
}

impl Smu {
    /// `count` values.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for other sizes than protocols have.
    pub fn new(count: usize, function: &functions::Smu, radix: Radix) -> Result<Self> {
        let formula = &function.formula;
        let program = Program::new(count, formula, formula.bits()[0], radix)?;
        Ok(Self { function: function.clone(), program })
    }

    /// What is computed.
    pub fn function(&self) -> &functions::Smu {
        &self.function
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        self.program.need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        self.program.cost()
    }
}

/// Runs the layer.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Smu, x: &Share, pads: Pads) -> Result<Share> {
    let x = x.plus(channel.role(), plan.function.real.offset());
    formula::run(channel, &plan.program, &x, pads)
}
