//! Comparison of two private integers: the carry of a shared sum.
//!
//! | | |
//! |---|---|
//! | In | `B` of the client and `A` of the server, `bits` wide; random OTs |
//! | Out | xor shares of `[B > A]`; with a middle, also of `[the sum's middle bits are 0]`, and whether the bit below is 1 then |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | about 6 bits per bit at radix 4, 9 at radix 2; 2 + levels rounds; a chain 2 rounds; carries 4 bits per bit, bits - 1 rounds |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), algorithm 1 (leaves and tree); `chain.rs`; `ripple.rs` |
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
mod ripple;
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
use leaves::{Leaf, Ripple, asked_leaves, told_leaves};

/// Bits of a digit where a chain is wanted whose rows no pad could mask.
const WITHOUT_CHAIN: u32 = 4;

/// Wires whose xor is a bit.
type Sum = Vec<Wire>;

/// The public plan of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    asks: Role,
    bits: u32,
    low: u32,
    /// The digits and their tables, where they are chained; there are no leaves then.
    chain: Option<Chain>,
    leaves: Vec<Leaf>,
    /// What gates read beside the leaf, where carries go from bit to bit.
    ripple: Option<Ripple>,
    circuit: Circuit,
    greater: Sum,
    middle_zero: Option<Sum>,
    upper_half: Option<Sum>,
    interior: Option<Sum>,
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
        let goal = Goal::Halves { low, interior };
        match radix {
            Radix::Ripple => Self::rippled(low, bits, Some(interior)),
            _ => Self::chained(low, bits, radix, goal).unwrap_or_else(|| {
                let width = radix.digit_bits().unwrap_or(WITHOUT_CHAIN);
                Self::tree_with_halves(low, bits, width, interior)
            }),
        }
    }

    fn new(low: u32, bits: u32, radix: Radix) -> Self {
        let goal = if low < bits { Goal::Middle { low } } else { Goal::Carry };
        match radix {
            Radix::Ripple => Self::rippled(low, bits, None),
            _ => Self::chained(low, bits, radix, goal).unwrap_or_else(|| {
                Self::tree(low, bits, radix.digit_bits().unwrap_or(WITHOUT_CHAIN))
            }),
        }
    }

    /// Plans a chain, if that is wanted and the rows of its tables fit into pads.
    fn chained(low: u32, bits: u32, radix: Radix, goal: Goal) -> Option<Self> {
        let chain = (radix == Radix::Chain).then(|| Chain::new(bits, goal))??;
        let mut plan = Self::empty(low, bits);
        plan.greater = vec![plan.circuit.wire()];
        let mut told = (1..goal.outcomes()).map(|_| vec![plan.circuit.wire()]);
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
            ripple: None,
            circuit: Circuit::default(),
            greater: Vec::new(),
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
    let wires = gmw::run(channel, &plan.circuit, leaves, ots, !plan.asks)?;
    let told = |sum: &Option<Sum>| match sum {
        Some(sum) => added(&wires, sum),
        None => Ok(Bits::default()),
    };
    Ok(Compared {
        greater: added(&wires, &plan.greater)?,
        middle_zero: told(&plan.middle_zero)?,
        upper_half: told(&plan.upper_half)?,
        interior: told(&plan.interior)?,
    })
}

/// The xor of some wires.
fn added(wires: &[Bits], sum: &[Wire]) -> Result<Bits> {
    let mut all: Option<Bits> = None;
    for wire in sum {
        let wire = wires.get(*wire).ok_or_else(|| defect("a comparison has no output"))?;
        match &mut all {
            Some(all) => all.xor(wire),
            None => all = Some(wire.clone()),
        }
    }
    all.ok_or_else(|| defect("a comparison has no output"))
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
