//! Two choices in one exchange: the saturated positive part of a value, and its absolute value as the
//! argument of a curve.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits; xor shares of `[x >= 0]`, of whether `0 <= x < 2^a`, and of whether the curve tells `abs(x)` apart from its last argument; correlations |
//! | Out | shares of `min(max(x, 0), 2^a - 1)` mod 2^inner, a <= inner <= bits, and of `abs(x)` mod 2^a where the third bit is set, else of `2^a - 1` |
//! | Reveals | masked bits and masked shares |
//! | Security | semi-honest, given the correlations |
//! | Cost | inner + a + 2 bits each way and inner + 1 more; 2 rounds, whoever begins |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), multiplexer |
//!
//! `abs(x)` is twice x where that is positive, less x. Inside the curve the product of x and its sign
//! is a part of what is positive, so one product more gives the argument, and neither waits for the
//! other.

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
pub(super) struct AtOnce {
    pub(super) count: usize,
    /// Width of what is positive.
    pub(super) inner: u32,
    /// Width of arguments, a.
    pub(super) magnitude: u32,
}

/// Who chooses where values saturate.
const ASKS: Role = Role::Client;

impl AtOnce {
    fn job(&self, bits: u32) -> Job {
        Job { count: self.count, choice_bits: 1, entry: Entry::Word(bits) }
    }

    fn switch(&self) -> Switch {
        let [value, below] = [self.inner, self.magnitude].map(|bits| self.job(bits));
        Switch { to_client: vec![value, below, value], to_server: vec![value, below] }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// What [`AtOnce::run`] costs when `first` sends first.
    pub(super) fn cost(&self, first: Role) -> Cost {
        self.switch().cost(first)
    }

    /// This party's choices and tables; the bits are whether x is positive, positive within the curve,
    /// and told apart by it.
    fn side(&self, role: Role, x: &Share, [sign, upper, told]: [&Bits; 3]) -> Result<Side> {
        let last = mask(self.magnitude);
        let low = x.narrow(self.inner)?;
        let zero = Share::new(vec![0; x.len()], self.magnitude);
        let below = zero.add_scaled(&x.narrow(self.magnitude)?, -1).plus(role, -(last as i64));
        let table = |values: &[u64], bit: &Bits| Table::words(gated(values, bit));
        let mut above = sign.clone();
        above.xor(upper);
        let mut choices = vec![vec![upper.clone()], vec![told.clone()]];
        let mut tables = vec![table(low.words(), upper), table(below.words(), told)];
        if role == ASKS {
            choices.push(vec![above]);
        } else {
            tables.push(table(&vec![last; x.len()], &Zeroizing::new(above)));
        }
        Ok(Side { choices, tables })
    }

    /// Chooses; the bits are whether x is not negative, whether it is that within the curve, and whether
    /// the curve tells it apart. Returns what is positive, then the arguments.
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
        let role = channel.role();
        let side = self.side(role, x, bits)?;
        let switched = mux::run(channel, &self.switch(), first, side, ots)?;
        let [within, capped] = [0, 2].map(|place| switched.sum_at(place, self.count, self.inner));
        let below = switched.sum_at(1, self.count, self.magnitude);
        let argument = below.add_scaled(&within.narrow(self.magnitude)?, 2);
        let last = mask(self.magnitude) as i64;
        Ok([within.add_scaled(&capped, 1), argument.plus(role, last)])
    }
}
