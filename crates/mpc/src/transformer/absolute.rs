//! A value where it is positive, and its absolute value where that is small, at once.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits; xor shares of `[x >= 0]`, of whether `-2^a <= x < 2^a`, and of whether both; correlations |
//! | Out | shares of max(x, 0) mod 2^out_bits, out_bits <= bits, and of `abs(x)` mod 2^a where the second bit is set, else of 0 |
//! | Reveals | masked bits and masked shares |
//! | Security | semi-honest, given the correlations |
//! | Cost | out_bits + 2*a + 2 bits each way; 2 rounds, whoever begins |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), multiplexer |
//!
//! `abs(x)` is twice x where it is small and positive, less x where it is small: two products of
//! x with bits that one comparison tells, which wait for nothing but these.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::relu::gated;
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Absolute {
    pub(super) count: usize,
    /// Width of the values where they are positive.
    pub(super) out_bits: u32,
    /// Width of absolute values, a: 2 bits or more.
    pub(super) magnitude: u32,
}

impl Absolute {
    /// Widths of x itself, of half of what is twice x, and of what is taken off that.
    fn widths(&self) -> [u32; 3] {
        [self.out_bits, self.magnitude - 1, self.magnitude]
    }

    fn switch(&self) -> Switch {
        let job = |bits| Job { count: self.count, choice_bits: 1, entry: Entry::Word(bits) };
        let jobs = self.widths().map(job).to_vec();
        Switch { to_client: jobs.clone(), to_server: jobs }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// What [`Absolute::run`] costs when `first` sends first.
    pub(super) fn cost(&self, first: Role) -> Cost {
        self.switch().cost(first)
    }

    /// Chooses; the bits are whether x is positive, small and positive, and small. Returns the
    /// positive values, then the absolute ones.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when correlations do not fit, [`wire::Error::Peer`],
    /// [`wire::Error::Transport`].
    pub(super) fn run(
        &self,
        channel: &mut Channel,
        first: Role,
        x: &Share,
        bits: [&Bits; 3],
        ots: Correlations,
    ) -> Result<[Share; 2]> {
        let table = |(bit, width): (&Bits, u32)| {
            let low: Vec<u64> = x.words().iter().map(|word| word & mask(width)).collect();
            Table::words(gated(&Zeroizing::new(low), bit))
        };
        let choices = bits.iter().map(|bit| vec![(*bit).clone()]).collect();
        let tables = bits.into_iter().zip(self.widths()).map(table).collect();
        let side = Side { choices, tables };
        let switched = mux::run(channel, &self.switch(), first, side, ots)?;
        let sum = |place: usize, bits: u32| switched.sum_at(place, self.count, bits);
        let [positive, twice, less] =
            [sum(0, self.out_bits), sum(1, self.magnitude), sum(2, self.magnitude)];
        Ok([positive, less.add_scaled(&less, -2).add_scaled(&twice, 2)])
    }
}
