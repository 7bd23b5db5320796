//! Smooth functions of few bits by a clip and one table of all that is inside.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits, bits >= magnitude + 3, |x| < 2^(bits-1) - 2^magnitude, magnitude <= 7; correlations |
//! | Out | shares of the function of x mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a ReLU that saturates (`relu.rs`), a lookup of magnitude + 1 bits (`lookup.rs`) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), tables of truncated arguments |
//!
//! The results are those of [`super::Fold`], in about half the rounds and several times the bytes:
//! `x + 2^magnitude` is clipped to the positions of the table.

use graph::functions;
use wire::{Channel, Cost, Error, Result, Role};

use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::lookup::{self, Lookup};
use crate::nonlinear::relu::{self, Relu};
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Clipped {
    magnitude: u32,
    clip: Relu,
    lookup: Lookup,
    values: Vec<u64>,
}

impl Clipped {
    /// Plans `count` values of `bits` to `out_bits` (up to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for a magnitude above 7, for `bits` below the magnitude and 3 or above 63,
    /// and for results that `out_bits` do not hold.
    pub fn new(
        count: usize,
        bits: u32,
        function: &functions::Fold,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let (magnitude, positions) = (function.magnitude, function.magnitude + 1);
        let [least, most] = function.ends();
        let narrowest = (most - least).max(1).ilog2() + 1;
        if magnitude + 3 > bits || !(narrowest..=63).contains(&out_bits) {
            return Err(Error::misuse("a smooth function with these widths"));
        }
        let edge = 1i64 << magnitude;
        Ok(Self {
            magnitude,
            lookup: Lookup::new(count, positions, out_bits)?,
            clip: Relu::new(count, bits, Some(positions), positions, radix)?,
            values: (-edge..edge).map(|x| function.clear(x) as u64).collect(),
        })
    }
}

impl Protocol for Clipped {
    fn operator(&self) -> &'static str {
        "fold"
    }

    fn describe(&self) -> String {
        "clip and table by OT".into()
    }

    fn demand(&self) -> Demand {
        self.clip.demand() + self.lookup.demand()
    }

    fn cost(&self) -> Cost {
        self.clip.cost().then(self.lookup.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], mut ots: Correlations) -> Result<Share> {
        let role = channel.role();
        let y = input(inputs, 0)?.plus(role, 1 << self.magnitude);
        let now = ots.split(role, &self.clip.demand())?;
        let position = relu::run(channel, &self.clip, &y, now)?;
        let table = if role == Role::Server { self.values.as_slice() } else { &[] };
        lookup::run(channel, &self.lookup, &position, table, ots)
    }
}
