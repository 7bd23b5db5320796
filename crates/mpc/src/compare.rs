//! Comparison of two private integers: the carry of a shared sum.
//!
//! | | |
//! |---|---|
//! | In | `B` of the client and `A` of the server, `bits` wide; correlations |
//! | Out | xor shares of `[B > A]`; with a middle, also of `[the sum's middle bits are 0]` |
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

use ot::{Choices, Group, Job, Masked, choose, respond};
use ring::word::{bit, mask};
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::circuit::{self, Circuit, Gate, Partner, Wire};
use crate::cots::{Cots, Need};

/// Digit width of the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// One bit.
    Two,
    /// Two bits.
    Four,
    /// Four bits: fewer rounds, more bytes.
    Sixteen,
}

impl Radix {
    const fn bits(self) -> u32 {
        match self {
            Self::Two => 1,
            Self::Four => 2,
            Self::Sixteen => 4,
        }
    }
}

/// One digit: which bits, and what its table tells beside `greater`.
#[derive(Clone, Debug)]
struct Leaf {
    shift: u32,
    width: u32,
    equal: bool,
    zero: bool,
}

impl Leaf {
    fn outputs(&self) -> u32 {
        1 + u32::from(self.equal) + u32::from(self.zero)
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
    bits: u32,
    low: u32,
    leaves: Vec<Leaf>,
    circuit: Circuit,
    greater: Wire,
    middle_zero: Option<Wire>,
}

/// Xor shares of what a comparison found.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Compared {
    /// `[B > A]`.
    pub greater: Vec<u64>,
    /// Whether the sum's bits `low..bits` are all zero; empty without a middle.
    pub middle_zero: Vec<u64>,
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

    fn new(low: u32, bits: u32, radix: Radix) -> Self {
        let mut plan = Self {
            bits,
            low,
            leaves: Vec::new(),
            circuit: Circuit::default(),
            greater: 0,
            middle_zero: None,
        };
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
                    partners.push(Partner { factor: vec![factor], base: *base, output });
                }
                outputs.push(output);
            }
            if let (Some(operand), false) = (operand, partners.is_empty()) {
                circuit.push(level, Gate { operand, partners });
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
            Partner { factor: vec![equal], base: Some(middle.greater), output: carry },
            Partner { factor: vec![equal, zero], base: Some(zero), output: found },
        ];
        self.circuit.push(level, Gate { operand: below.greater, partners });
        (self.greater, self.middle_zero) = (carry, Some(found));
    }

    fn jobs(&self, count: usize) -> Vec<Job> {
        let job = |leaf: &Leaf| Job {
            count,
            choice_bits: leaf.width,
            value_bits: leaf.outputs(),
            group: Group::Xor,
        };
        self.leaves.iter().map(job).collect()
    }

    fn leaf_need(&self, count: usize) -> Need {
        Need::from(Role::Server, self.jobs(count).iter().map(Job::cots).sum())
    }

    /// Correlations for `count` comparisons.
    pub fn need(&self, count: usize) -> Need {
        self.leaf_need(count) + self.circuit.need(count)
    }

    /// What [`run`] costs.
    pub fn cost(&self, count: usize) -> Cost {
        let jobs = self.jobs(count);
        ot::transfer::choices_cost(Role::Client, &jobs)
            .then(ot::transfer::masked_cost(Role::Server, &jobs))
            .then(self.circuit.cost(count, Role::Server))
    }

    /// Who sends the last message, and so may go on at once.
    pub fn last_sender(&self) -> Role {
        self.circuit.last_sender(Role::Server)
    }

    /// The server's table of one leaf: for each element and digit of the client,
    /// the bits `greater | equal << 1 | zero << 2` (those the leaf has).
    fn table(&self, leaf: &Leaf, operands: &[u64]) -> Vec<u64> {
        let mut table = Vec::with_capacity(operands.len() << leaf.width);
        let middle = mask(self.bits - self.low.min(self.bits - 1));
        let zero_at = 1 + u32::from(leaf.equal);
        for operand in operands {
            let digit = (operand >> leaf.shift) & mask(leaf.width);
            let next = ((operand >> self.low.min(63)).wrapping_add(1)) & middle;
            let zero_digit = (next >> leaf.shift.saturating_sub(self.low)) & mask(leaf.width);
            for value in 0..1u64 << leaf.width {
                let greater = u64::from(value > digit);
                let equal = u64::from(value == digit) & u64::from(leaf.equal);
                let zero = u64::from(value == zero_digit) & u64::from(leaf.zero);
                table.push(greater | (equal << 1) | (zero << zero_at));
            }
        }
        table
    }

    fn place(&self, shares: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let mut wires = Vec::with_capacity(self.circuit.wires);
        for (leaf, rows) in self.leaves.iter().zip(shares) {
            for index in 0..leaf.outputs() {
                wires.push(rows.iter().map(|row| bit(*row, index)).collect());
            }
        }
        wires
    }
}

/// Compares `operands`: the client's are `B`, the server's `A`; each `bits` wide.
///
/// # Errors
/// [`Error::Misuse`] when correlations do not fit, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Comparison,
    operands: &[u64],
    mut cots: Cots,
) -> Result<Compared> {
    let count = operands.len();
    let role = channel.role();
    let jobs = plan.jobs(count);
    let leaf_cots = cots.split(role, plan.leaf_need(count))?;
    let shares = match role {
        Role::Client => {
            let digits = plan.leaves.iter().map(|leaf| {
                operands.iter().map(|b| (b >> leaf.shift) & mask(leaf.width)).collect()
            });
            let digits: Vec<Vec<u64>> = digits.collect();
            let (chooser, choices) = choose(&jobs, leaf_cots.receiving, &digits)?;
            channel.send(&choices)?;
            let masked: Masked = channel.receive(&ot::transfer::masked_layout(&jobs))?;
            Zeroizing::new(chooser.finish(&masked)?)
        }
        Role::Server => {
            let tables: Vec<_> = plan.leaves.iter().map(|l| plan.table(l, operands)).collect();
            let choices: Choices = channel.receive(&ot::transfer::choices_layout(&jobs))?;
            let (shares, masked) = respond(&jobs, leaf_cots.sending, &tables, &choices)?;
            channel.send(&masked)?;
            Zeroizing::new(shares)
        }
    };
    let mut wires = circuit::run(channel, &plan.circuit, plan.place(&shares), cots, Role::Server)?;
    let mut take = |wire: Wire| wires.get_mut(wire).map(std::mem::take);
    let middle_zero = plan.middle_zero.and_then(&mut take).unwrap_or_default();
    let greater = take(plan.greater).ok_or_else(|| Error::misuse("a comparison of no bits"))?;
    Ok(Compared { greater, middle_zero })
}

/// This party's operand for the carry of its shares into bit `bits`.
pub fn operand(role: Role, words: &[u64], bits: u32) -> Zeroizing<Vec<u64>> {
    let flip = match role {
        Role::Client => 0,
        Role::Server => mask(bits),
    };
    Zeroizing::new(words.iter().map(|word| (word & mask(bits)) ^ flip).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::both;
    use ring::Random;

    fn check(plan: &Comparison, client: &[u64], server: &[u64], rng: &mut Random) {
        let count = client.len();
        let operands = |role, words| operand(role, words, plan.bits);
        let (c, s) = both(
            rng,
            plan.need(count),
            |ch, cots| run(ch, plan, &operands(Role::Client, client), cots),
            |ch, cots| run(ch, plan, &operands(Role::Server, server), cots),
        );
        assert_eq!(c.cost, plan.cost(count));
        let (ours, theirs) = (c.value.unwrap(), s.value.unwrap());
        for (i, (x, y)) in client.iter().zip(server).enumerate() {
            let sum = x + y;
            assert_eq!(ours.greater[i] ^ theirs.greater[i], sum >> plan.bits, "{x} + {y}");
            if plan.middle_zero.is_some() {
                let middle = (sum & mask(plan.bits)) >> plan.low;
                assert_eq!(
                    ours.middle_zero[i] ^ theirs.middle_zero[i],
                    u64::from(middle == 0),
                    "{x} + {y}"
                );
            }
        }
    }

    #[test]
    fn all_small_pairs_compare() {
        let mut rng = Random::seeded(1);
        for radix in [Radix::Two, Radix::Four, Radix::Sixteen] {
            for bits in 1..=6u32 {
                let all: Vec<(u64, u64)> =
                    (0..1 << bits).flat_map(|x| (0..1 << bits).map(move |y| (x, y))).collect();
                let (x, y): (Vec<_>, Vec<_>) = all.into_iter().unzip();
                check(&Comparison::carry(bits, radix), &x, &y, &mut rng);
                for low in 1..bits {
                    check(&Comparison::with_middle(low, bits, radix), &x, &y, &mut rng);
                }
            }
        }
    }

    #[test]
    fn wide_pairs_compare() {
        let mut rng = Random::seeded(2);
        for (low, bits) in [(8, 12), (13, 29), (40, 62), (1, 31)] {
            let (mut x, mut y) = (rng.uniform(100, bits), rng.uniform(100, bits));
            let near: Vec<u64> = x.iter().map(|x| (mask(bits) - x + 1) & mask(bits)).collect();
            y.extend(near);
            x.extend(x.clone());
            check(&Comparison::with_middle(low, bits, Radix::Four), &x, &y, &mut rng);
            check(&Comparison::carry(bits, Radix::Four), &x, &y, &mut rng);
        }
    }
}
