//! Comparison of two private integers: the carry of a shared sum.
//!
//! | | |
//! |---|---|
//! | In | `B` of the client and `A` of the server, `bits` wide; random OTs |
//! | Out | xor shares of `[B > A]`; with a middle, also of `[the sum's middle bits are 0]`, and whether the bit below is 1 then |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | about 7 bits per bit at radix 4, 9 at radix 2; 2 + levels rounds; a chain 2 rounds |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), algorithm 1 (leaves and tree); `chain.rs` |
//!
//! For shares `x = c + s mod 2^n` the carry into bit p is `[c mod 2^p > A mod 2^p]`
//! with `A = 2^n - 1 - s`, so every protocol here feeds `B = c` and that `A`.
//!
//! With a *middle* (bits `low..bits`), two chains of equalities run beside the
//! comparison: E says that the middles add up to -1, Z that they add up to 0. With
//! the carry of the low part they tell whether the middle bits of x are zero, which
//! saturation needs; the leaves are read once for both.

mod chain;
pub(crate) mod chained;
mod leaves;
pub(crate) mod minterms;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tree;

use ot::Job;
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::boolean::gmw::{self, Circuit, Wire};
pub use crate::boolean::radix::Radix;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::share::Share;
use chain::{Chain, Goal};
use leaves::{Leaf, asked_leaves, told_leaves};

/// Bits of a digit where a chain is wanted whose rows no pad could mask.
const WITHOUT_CHAIN: u32 = 4;

/// The public plan of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    asks: Role,
    bits: u32,
    low: u32,
    /// The digits and their tables, where they are chained; there are no leaves then.
    chain: Option<Chain>,
    leaves: Vec<Leaf>,
    circuit: Circuit,
    greater: Wire,
    middle_zero: Option<Wire>,
    upper_half: Option<Wire>,
    interior: Option<Wire>,
}

/// Xor shares of what a comparison found.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Compared {
    /// `[B > A]`.
    pub greater: Bits,
    /// Whether the sum's bits `low..bits` are all zero; empty without a middle.
    pub middle_zero: Bits,
    /// Whether besides the bit below the middle is 1; empty where that is not asked.
    pub upper_half: Bits,
    /// Whether besides the bits below the middle are not all zero; empty where that is not asked.
    pub interior: Bits,
}

impl Comparison {
    /// Compares `bits`-wide integers (1 to 63).
    pub fn carry(bits: u32, radix: Radix) -> Self {
        Self::new(bits, bits, radix)
    }

    /// Compares `bits`-wide integers and tests bits `low..bits` of the sum for zero.
    pub fn with_middle(low: u32, bits: u32, radix: Radix) -> Self {
        Self::new(low, bits, radix)
    }

    /// Takes the OTs behind the gates from `sender` alone, or half from each party.
    /// The leaves' come from whoever does not ask either way.
    pub fn gates_from(mut self, sender: Option<Role>) -> Self {
        self.circuit.sender = sender;
        self
    }

    /// Lets `role` ask for the leaves, and so speak first; the client does by default.
    pub fn asked_by(mut self, role: Role) -> Self {
        self.asks = role;
        self
    }

    /// Lets that party ask after whom the last message is `role`'s.
    pub fn ending_with(self, role: Role) -> Self {
        let asks = if self.last_sender() == role { self.asks } else { !self.asks };
        self.asked_by(asks)
    }

    /// Returns who asks for the leaves, and so speaks first.
    pub fn asks(&self) -> Role {
        self.asks
    }

    /// Like [`Comparison::with_middle`], and tells besides, of sums below `2^low`, whether they are
    /// `2^(low - 1)` or more, and for `interior` whether they are not zero; `1 < low < bits`.
    pub fn with_halves(low: u32, bits: u32, radix: Radix, interior: bool) -> Self {
        match radix.digit_bits() {
            Some(width) => Self::tree_with_halves(low, bits, width, interior),
            None => Self::chained(low, bits, Goal::Halves { low, interior })
                .unwrap_or_else(|| Self::tree_with_halves(low, bits, WITHOUT_CHAIN, interior)),
        }
    }

    fn new(low: u32, bits: u32, radix: Radix) -> Self {
        let goal = if low < bits { Goal::Middle { low } } else { Goal::Carry };
        match radix.digit_bits() {
            Some(width) => Self::tree(low, bits, width),
            None => Self::chained(low, bits, goal)
                .unwrap_or_else(|| Self::tree(low, bits, WITHOUT_CHAIN)),
        }
    }

    /// Plans a chain, if the rows of its tables fit into pads.
    fn chained(low: u32, bits: u32, goal: Goal) -> Option<Self> {
        let chain = Chain::new(bits, goal)?;
        let mut plan = Self::empty(low, bits);
        plan.greater = plan.circuit.wire();
        let mut told = (1..goal.outcomes()).map(|_| plan.circuit.wire());
        plan.middle_zero = told.next();
        plan.upper_half = told.next();
        plan.interior = told.next();
        drop(told);
        plan.chain = Some(chain);
        Some(plan)
    }

    fn empty(low: u32, bits: u32) -> Self {
        Self {
            asks: Role::Client,
            bits,
            low,
            chain: None,
            leaves: Vec::new(),
            circuit: Circuit::default(),
            greater: 0,
            middle_zero: None,
            upper_half: None,
            interior: None,
        }
    }

    /// Returns this party's operand for the carry of its shares into bit `bits`.
    pub fn operand(&self, role: Role, words: &[u64]) -> Zeroizing<Vec<u64>> {
        let all = mask(self.bits);
        let flip = if role == self.asks { 0 } else { all };
        Zeroizing::new(words.iter().map(|word| (word & all) ^ flip).collect())
    }

    fn jobs(&self, count: usize) -> Vec<Job> {
        if let Some(chain) = &self.chain {
            return chain.jobs(count);
        }
        self.leaves.iter().map(|leaf| leaf.job(count)).collect()
    }

    /// Returns the OTs for `count` comparisons.
    pub fn demand(&self, count: usize) -> Demand {
        Demand::from(!self.asks, self.jobs(count)) + self.circuit.demand(count)
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self, count: usize) -> Cost {
        let jobs = self.jobs(count);
        let answer = match &self.chain {
            Some(chain) => chain.answer_cost(!self.asks, count),
            None => ot::one_of_n::masked_cost(!self.asks, &jobs),
        };
        ot::one_of_n::choices_cost(self.asks, &jobs)
            .then(answer)
            .then(self.circuit.cost(count, !self.asks))
    }

    /// Returns who sends the last message, and so may go on at once.
    pub fn last_sender(&self) -> Role {
        self.circuit.last_sender(!self.asks)
    }
}

/// Compares `operands`: those of the party that asks are `B`, the other's `A`; each `bits` wide.
///
/// # Errors
/// [`wire::Error::Misuse`] when correlations do not fit, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Comparison,
    operands: &[u64],
    mut ots: Correlations,
) -> Result<Compared> {
    let leaves = match (&plan.chain, channel.role() == plan.asks) {
        (Some(chain), true) => chain::outcome(chain::asked(channel, chain, operands, &mut ots)?)?,
        (Some(chain), false) => chain::outcome(chain::told(channel, chain, operands, &mut ots)?)?,
        (None, true) => asked_leaves(channel, plan, operands, &mut ots)?,
        (None, false) => told_leaves(channel, plan, operands, &mut ots)?,
    };
    let mut wires = gmw::run(channel, &plan.circuit, leaves, ots, !plan.asks)?;
    let mut take = |wire: Wire| wires.get_mut(wire).map(std::mem::take);
    let middle_zero = plan.middle_zero.and_then(&mut take).unwrap_or_default();
    let upper_half = plan.upper_half.and_then(&mut take).unwrap_or_default();
    let interior = plan.interior.and_then(&mut take).unwrap_or_default();
    let greater = take(plan.greater).ok_or_else(|| defect("a comparison has no output"))?;
    Ok(Compared { greater, middle_zero, upper_half, interior })
}

/// Compares the low bits of both parties' summands of `x`, with OTs off the front
/// of `ots`: `greater` is the carry out of them.
///
/// # Errors
/// As [`run`].
pub(crate) fn of_share(
    channel: &mut Channel,
    plan: &Comparison,
    x: &Share,
    ots: &mut Correlations,
) -> Result<Compared> {
    let role = channel.role();
    let operands = plan.operand(role, x.words());
    let now = ots.split(role, &plan.demand(x.len()))?;
    run(channel, plan, &operands, now)
}
