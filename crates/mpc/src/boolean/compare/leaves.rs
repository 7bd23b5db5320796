//! The leaves of a comparison: one message of choices and one of masked table entries.

use std::ops::Range;

use ot::{Choices, Entry, Job, Masked, Table, choose, respond};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::Comparison;
use super::minterms::minterms;
use crate::boolean::gmw::Wire;
use crate::correlations::Correlations;

/// One digit: which bits, and what is told of it beside `greater`.
///
/// Whether single bits are equal, and whether a bit is zero, are sums of both parties' bits:
/// the parties know shares of them without a table.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) shift: u32,
    pub(super) width: u32,
    pub(super) equal: bool,
    pub(super) zero: bool,
}

impl Leaf {
    pub(super) fn job(&self, count: usize) -> Job {
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

/// Wires beside those of the leaf, where carries go from bit to bit: a one, then the sum of both
/// parties' bits and the bit of who asks, for each bit of the range.
#[derive(Clone, Debug)]
pub(super) struct Ripple {
    pub(super) one: Wire,
    pub(super) range: Range<u32>,
}

impl Ripple {
    /// This party's shares of the wires; `asks` is the party that asks, whose operands are its own
    /// bits, as the other's are flipped.
    pub(super) fn inputs(&self, operands: &[u64], asks: bool) -> impl Iterator<Item = Bits> {
        let zeros = Bits::zeros(operands.len());
        let one = if asks { zeros.clone() } else { zeros.not() };
        let pairs = self.range.clone().flat_map(move |bit| {
            let own = Bits::of_words(operands, bit);
            if asks { [own.clone(), own] } else { [own.not(), zeros.clone()] }
        });
        std::iter::once(one).chain(pairs)
    }

    /// The sum of both parties' bits, without what is carried into it.
    pub(super) fn sum(&self, bit: u32) -> Wire {
        self.one + 1 + 2 * (bit - self.range.start) as usize
    }

    /// The bit of who asks.
    pub(super) fn asked(&self, bit: u32) -> Wire {
        self.sum(bit) + 1
    }
}

impl Comparison {
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

    /// The wires of all leaves, and those beside them; `linear` tells what is known without a table.
    fn place(
        &self,
        shares: Vec<ot::Column>,
        (operands, asks): (&[u64], bool),
        linear: impl Fn(&Leaf) -> [Bits; 2],
    ) -> Vec<Bits> {
        let mut wires = Vec::with_capacity(self.circuit.wires);
        for (leaf, mut share) in self.leaves.iter().zip(shares) {
            wires.append(&mut share.planes);
            if leaf.is_linear() {
                let [equal, zero] = linear(leaf);
                wires.extend(leaf.equal.then_some(equal));
                wires.extend(leaf.zero.then_some(zero));
            }
        }
        wires.extend(self.ripple.iter().flat_map(|ripple| ripple.inputs(operands, asks)));
        wires
    }
}

/// The leaves at the party that asks.
pub(super) fn asked_leaves(
    channel: &mut Channel,
    plan: &Comparison,
    operands: &[u64],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let jobs = plan.jobs(operands.len());
    let digits: Vec<Vec<Bits>> = plan.leaves.iter().map(|leaf| leaf.digit(operands)).collect();
    let digits = Zeroizing::new(digits);
    let (chooser, choices) = choose(ots.receive(&jobs)?, &digits)?;
    channel.send(&choices)?;
    let masked: Masked = channel.receive(&ot::one_of_n::masked_layout(&jobs))?;
    let own = |leaf: &Leaf| [0, 1].map(|_| Bits::of_words(operands, leaf.shift));
    Ok(plan.place(chooser.finish(masked)?, (operands, true), own))
}

/// The leaves at the party that has the tables.
pub(super) fn told_leaves(
    channel: &mut Channel,
    plan: &Comparison,
    operands: &[u64],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let (count, jobs) = (operands.len(), plan.jobs(operands.len()));
    let next = plan.next(operands);
    let table = |leaf: &Leaf| {
        let (own, next) = (Zeroizing::new(leaf.digit(operands)), Zeroizing::new(leaf.digit(&next)));
        Comparison::table(leaf, &own, &next, count)
    };
    let tables = plan.leaves.iter().map(table).collect();
    let ots = ots.send(&jobs)?;
    let choices: Choices = channel.receive(&ot::one_of_n::choices_layout(&jobs))?;
    let (shares, masked) = respond(ots, tables, &choices)?;
    channel.send(&masked)?;
    let flipped = |words: &[u64], leaf: &Leaf| Bits::of_words(words, leaf.shift).not();
    let linear = |leaf: &Leaf| [flipped(operands, leaf), flipped(&next, leaf)];
    Ok(plan.place(shares, (operands, false), linear))
}
