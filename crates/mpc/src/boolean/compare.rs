//! Comparison of two private integers: the carry of a shared sum.
//!
//! | | |
//! |---|---|
//! | In | `B` of the client and `A` of the server, `bits` wide; random OTs |
//! | Out | xor shares of `[B > A]`; with a middle, also of `[the sum's middle bits are 0]`, and whether the bit below is 1 then |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | about 7 bits per bit at radix 4, 9 at radix 2; 2 + levels rounds |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), algorithm 1 (leaves and tree) |
//!
//! For shares `x = c + s mod 2^n` the carry into bit p is `[c mod 2^p > A mod 2^p]`
//! with `A = 2^n - 1 - s`, so every protocol here feeds `B = c` and that `A`.
//!
//! With a *middle* (bits `low..bits`), two chains of equalities run beside the
//! comparison: E says that the middles add up to -1, Z that they add up to 0. With
//! the carry of the low part they tell whether the middle bits of x are zero, which
//! saturation needs; the leaves are read once for both.

mod leaves;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::boolean::gmw::{self, Circuit, Gate, Partner, Wire};
pub use crate::boolean::radix::Radix;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::share::Share;
use leaves::{asked_leaves, told_leaves};

/// One digit: which bits, and what is told of it beside `greater`.
///
/// Whether single bits are equal, and whether a bit is zero, are sums of both parties' bits:
/// the parties know shares of them without a table.
#[derive(Clone, Debug)]
struct Leaf {
    shift: u32,
    width: u32,
    equal: bool,
    zero: bool,
}

impl Leaf {
    fn job(&self, count: usize) -> Job {
        let told = u32::from(self.equal) + u32::from(self.zero);
        let bits = if self.is_linear() { 1 } else { 1 + told };
        Job { count, choice_bits: self.width, entry: Entry::Bits(bits) }
    }

    fn is_linear(&self) -> bool {
        self.width == 1
    }

    fn digit(&self, words: &[u64]) -> Vec<Bits> {
        (self.shift..self.shift + self.width).map(|bit| Bits::of_words(words, bit)).collect()
    }
}

/// A node of the tree while it is built.
struct Node {
    greater: Wire,
    equal: Option<Wire>,
    zero: Option<Wire>,
}

/// The public plan of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    asks: Role,
    bits: u32,
    low: u32,
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
        let mut plan = Self::empty(low, bits);
        let below = plan.digits(0..low - 1, interior, radix);
        let bit = plan.digits(low - 1..low, interior, radix).pop();
        let middle = plan.digits(low..bits, true, radix);
        let (below, depth) = plan.reduce(below);
        let (middle, middle_depth) = plan.reduce(middle);
        let (Some(below), Some(bit)) = (below, bit) else { return plan };
        let carried = plan.merge(depth, &below, &bit);
        let zero = carried.zero;
        let level = (depth + 1).max(middle_depth);
        plan.join(Some(carried), middle, level);
        if let (Some(covered), Some(operand)) = (plan.middle_zero, zero) {
            let output = plan.circuit.wire();
            let partners = vec![Partner { factor: vec![covered], base: vec![covered], output }];
            plan.circuit.push(level + 1, Gate { operand: vec![operand], partners });
            plan.interior = Some(output);
        }
        if let (Some(operand), Some(equal)) = (plan.middle_zero, bit.equal) {
            let output = plan.circuit.wire();
            // The bit of the sum: both parties' and the carry into it.
            let factor = vec![equal, below.greater];
            let partners = vec![Partner { factor, base: Vec::new(), output }];
            plan.circuit.push(level + 1, Gate { operand: vec![operand], partners });
            plan.upper_half = Some(output);
        }
        plan
    }

    fn empty(low: u32, bits: u32) -> Self {
        Self {
            asks: Role::Client,
            bits,
            low,
            leaves: Vec::new(),
            circuit: Circuit::default(),
            greater: 0,
            middle_zero: None,
            upper_half: None,
            interior: None,
        }
    }

    fn new(low: u32, bits: u32, radix: Radix) -> Self {
        let mut plan = Self::empty(low, bits);
        let low_nodes = plan.digits(0..low, false, radix);
        let middle_nodes = plan.digits(low..bits, true, radix);
        let (below, depth) = plan.reduce(low_nodes);
        let (middle, middle_depth) = plan.reduce(middle_nodes);
        plan.join(below, middle, depth.max(middle_depth));
        plan
    }

    fn digits(&mut self, range: std::ops::Range<u32>, middle: bool, radix: Radix) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut shift = range.start;
        while shift < range.end {
            let width = radix.bits().min(range.end - shift);
            let greater = self.circuit.wire();
            let equal = (shift > 0).then(|| self.circuit.wire());
            let zero = middle.then(|| self.circuit.wire());
            self.leaves.push(Leaf { shift, width, equal: equal.is_some(), zero: zero.is_some() });
            nodes.push(Node { greater, equal, zero });
            shift += width;
        }
        nodes
    }

    /// Joins neighbours level by level, lowest digit first.
    fn reduce(&mut self, mut nodes: Vec<Node>) -> (Option<Node>, usize) {
        let mut level = 0;
        while nodes.len() > 1 {
            let mut joined = Vec::with_capacity(nodes.len().div_ceil(2));
            let mut rest = nodes.into_iter();
            while let Some(low) = rest.next() {
                joined.push(match rest.next() {
                    Some(high) => self.merge(level, &low, &high),
                    None => low,
                });
            }
            nodes = joined;
            level += 1;
        }
        (nodes.pop(), level)
    }

    fn merge(&mut self, level: usize, low: &Node, high: &Node) -> Node {
        let circuit = &mut self.circuit;
        let mut product = |operand: Option<Wire>, factors: &[(Option<Wire>, Option<Wire>)]| {
            let mut outputs = Vec::new();
            let mut partners = Vec::new();
            for (factor, base) in factors {
                let output = factor.map(|_| circuit.wire());
                if let (Some(factor), Some(output)) = (*factor, output) {
                    let base = base.iter().copied().collect();
                    partners.push(Partner { factor: vec![factor], base, output });
                }
                outputs.push(output);
            }
            if let (Some(operand), false) = (operand, partners.is_empty()) {
                circuit.push(level, Gate { operand: vec![operand], partners });
            }
            outputs
        };
        let both =
            product(high.equal, &[(Some(low.greater), Some(high.greater)), (low.equal, None)]);
        let zero = product(high.zero, &[(low.zero, None)]);
        let output = |outputs: &[Option<Wire>], i: usize| outputs.get(i).copied().flatten();
        Node {
            greater: output(&both, 0).unwrap_or(high.greater),
            equal: output(&both, 1),
            zero: output(&zero, 0),
        }
    }

    /// Feeds the carry of the low part into the middle.
    fn join(&mut self, below: Option<Node>, middle: Option<Node>, level: usize) {
        let (Some(below), Some(middle)) = (&below, &middle) else {
            let only = below.or(middle);
            self.greater = only.as_ref().map_or(0, |node| node.greater);
            self.middle_zero = only.and_then(|node| node.zero);
            return;
        };
        let (Some(equal), Some(zero)) = (middle.equal, middle.zero) else { return };
        let (carry, found) = (self.circuit.wire(), self.circuit.wire());
        let partners = vec![
            Partner { factor: vec![equal], base: vec![middle.greater], output: carry },
            Partner { factor: vec![equal, zero], base: vec![zero], output: found },
        ];
        self.circuit.push(level, Gate { operand: vec![below.greater], partners });
        (self.greater, self.middle_zero) = (carry, Some(found));
    }

    /// Returns this party's operand for the carry of its shares into bit `bits`.
    pub fn operand(&self, role: Role, words: &[u64]) -> Zeroizing<Vec<u64>> {
        let all = mask(self.bits);
        let flip = if role == self.asks { 0 } else { all };
        Zeroizing::new(words.iter().map(|word| (word & all) ^ flip).collect())
    }

    fn jobs(&self, count: usize) -> Vec<Job> {
        self.leaves.iter().map(|leaf| leaf.job(count)).collect()
    }

    /// Returns the OTs for `count` comparisons.
    pub fn demand(&self, count: usize) -> Demand {
        Demand::from(!self.asks, self.jobs(count)) + self.circuit.demand(count)
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self, count: usize) -> Cost {
        let jobs = self.jobs(count);
        ot::one_of_n::choices_cost(self.asks, &jobs)
            .then(ot::one_of_n::masked_cost(!self.asks, &jobs))
            .then(self.circuit.cost(count, !self.asks))
    }

    /// Returns who sends the last message, and so may go on at once.
    pub fn last_sender(&self) -> Role {
        self.circuit.last_sender(!self.asks)
    }

    /// The table of one leaf, whose holder has the digits `own` and, where zero is tested,
    /// `next`: the digits of who asks for which the sum is zero.
    fn table(leaf: &Leaf, own: &[Bits], next: &[Bits], count: usize) -> Table {
        let equal = minterms(own, count);
        let zero = if leaf.zero { minterms(next, count) } else { Vec::new() };
        let mut greater = Bits::zeros(count);
        let mut columns = Vec::with_capacity(equal.len());
        for (digit, here) in equal.iter().enumerate() {
            let mut planes = vec![greater.clone()];
            if !leaf.is_linear() {
                planes.extend(leaf.equal.then(|| here.clone()));
                planes.extend(zero.get(digit).cloned());
            }
            columns.push(planes);
            greater.xor(here);
        }
        Table::bits(columns)
    }

    /// The digits for which the middle of the sum is zero, if the party that asks has them, and
    /// those for which all below is: the negatives of the other's shares, which are its operands
    /// plus one.
    fn next(&self, operands: &[u64]) -> Zeroizing<Vec<u64>> {
        let middle = mask(self.bits - self.low.min(self.bits - 1)) << self.low.min(63);
        let (one, below) = (1u64 << self.low.min(63), mask(self.low));
        let next = |a: &u64| {
            let above = (a & middle).wrapping_add(one) & middle;
            above | ((a & below).wrapping_add(1) & below)
        };
        Zeroizing::new(operands.iter().map(next).collect())
    }

    /// The wires of all leaves; `linear` tells what is known without a table.
    fn place(&self, shares: Vec<ot::Column>, linear: impl Fn(&Leaf) -> [Bits; 2]) -> Vec<Bits> {
        let mut wires = Vec::with_capacity(self.circuit.wires);
        for (leaf, mut share) in self.leaves.iter().zip(shares) {
            wires.append(&mut share.planes);
            if leaf.is_linear() {
                let [equal, zero] = linear(leaf);
                wires.extend(leaf.equal.then_some(equal));
                wires.extend(leaf.zero.then_some(zero));
            }
        }
        wires
    }
}

/// Says for each value of a digit whether the digit's bits give it.
fn minterms(digit: &[Bits], count: usize) -> Vec<Bits> {
    let mut terms = vec![Bits::zeros(count).not()];
    for bit in digit {
        let with: Vec<Bits> = terms.iter().map(|term| term.and(bit)).collect();
        terms.iter_mut().zip(&with).for_each(|(term, with)| term.xor(with));
        terms.extend(with);
    }
    terms
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
    let leaves = match channel.role() == plan.asks {
        true => asked_leaves(channel, plan, operands, &mut ots)?,
        false => told_leaves(channel, plan, operands, &mut ots)?,
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
