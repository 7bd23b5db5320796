//! The last step of a clipped layer: values inside a range as they are, a cap above it,
//! zero below, extended on the way. See `relu.rs` for the whole.
//!
//! The result has few bits, and its top bit can be kept zero: it is chosen at that width,
//! and one more choice lifts it. Shares `c, s < 2^k` of a value below `2^(k-1)` wrap when
//! either has its top bit set, so that `c + s - 2^k (msb_c OR msb_s)` is the value.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::{bit, mask};
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::relu::gated;
use crate::share::Share;

/// The public plan: values from `bits` to `out_bits`, with an upper end below
/// `2^(bits - 1)`.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    pub(crate) count: usize,
    pub(crate) bits: u32,
    pub(crate) cap: Option<u64>,
    pub(crate) out_bits: u32,
    /// Who chooses where the cap counts and how the result is lifted.
    pub(crate) asks: Role,
}

impl Inside {
    /// Correlations consumed.
    pub(crate) fn demand(&self) -> Demand {
        let lift = self.lift().as_ref().map(Switch::demand);
        self.switch().demand() + lift.unwrap_or_default()
    }

    /// What [`Inside::run`] costs when `first` sends first.
    pub(crate) fn cost(&self, first: Role) -> Cost {
        let lift = self.lift().map_or(Cost::NONE, |lift| lift.cost(!first));
        self.switch().cost(first).then(lift)
    }

    /// Width at which values are chosen.
    fn inner(&self) -> u32 {
        let needed = self.cap.map_or(self.bits, |cap| u64::BITS - cap.leading_zeros() + 1);
        if self.out_bits > self.bits { needed } else { self.out_bits }
    }

    fn switch(&self) -> Switch {
        let job = Job { count: self.count, choice_bits: 1, entry: Entry::Word(self.inner()) };
        let asked = vec![job; 1 + usize::from(self.cap.is_some())];
        match self.asks {
            Role::Client => Switch { to_client: asked, to_server: vec![job] },
            Role::Server => Switch { to_client: vec![job], to_server: asked },
        }
    }

    /// The choice by the top bit, if the result is wider than what is chosen.
    fn lift(&self) -> Option<Switch> {
        let more = self.out_bits.checked_sub(self.inner()).filter(|bits| *bits > 0)?;
        let job = Job { count: self.count, choice_bits: 1, entry: Entry::Word(more) };
        Some(Switch::to(self.asks, vec![job]))
    }

    /// `positive` and `inside` are xor shares of `[y >= 0]` and `[0 <= y <= cap]`.
    fn side(&self, role: Role, y: &[u64], positive: &Bits, inside: &Bits) -> Side {
        let mut above = positive.clone();
        above.xor(inside);
        let low = y.iter().map(|word| word & mask(self.inner())).collect::<Vec<_>>();
        let low = Zeroizing::new(low);
        let (mut choices, mut tables) =
            (vec![vec![inside.clone()]], vec![Table::words(gated(&low, inside))]);
        match self.cap {
            Some(_) if role == self.asks => choices.push(vec![above]),
            Some(cap) => tables.push(Table::words(gated(&vec![cap; y.len()], &above))),
            None => {}
        }
        Side { choices, tables }
    }

    /// Runs the step on shares of `y` mod 2^bits; `first` sends first.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when correlations do not fit, [`wire::Error::Peer`],
    /// [`wire::Error::Transport`].
    pub(crate) fn run(
        &self,
        channel: &mut Channel,
        first: Role,
        y: &[u64],
        [positive, inside]: [&Bits; 2],
        mut ots: Correlations,
    ) -> Result<Share> {
        let (role, plan) = (channel.role(), self.switch());
        let side = self.side(role, y, positive, inside);
        let now = ots.split(role, &plan.demand())?;
        let switched = mux::run(channel, &plan, first, side, now)?;
        let chosen = switched.sum(self.count, self.inner());
        let Some(lift) = self.lift() else { return Ok(chosen) };
        let side = self.wraps(role, chosen.words());
        let switched = mux::run(channel, &lift, !first, side, ots)?;
        let wraps = switched.sum(self.count, self.out_bits - self.inner());
        let pairs = chosen.words().iter().zip(wraps.words());
        let lifted = pairs.map(|(word, wrap)| word.wrapping_sub(wrap << self.inner()));
        Ok(Share::new(lifted.collect(), self.out_bits))
    }

    /// Whether the shares of a result wrap: either top bit is set.
    fn wraps(&self, role: Role, chosen: &[u64]) -> Side {
        let top = self.inner() - 1;
        if role == self.asks {
            return Side { choices: vec![vec![Bits::of_words(chosen, top)]], tables: Vec::new() };
        }
        let own = chosen.iter().map(|word| bit(*word, top)).collect();
        Side { choices: Vec::new(), tables: vec![Table::words(vec![own, vec![1; chosen.len()]])] }
    }
}
