//! Tables in few levels, of positions whose carries a chain has found.
//!
//! All bits of the position are there at once, so products of the lower ones, and of the upper
//! ones, are found by halves, in a level for each doubling of bits. A last level multiplies what
//! tells a part of the table by what this part has in place of the most frequent.

use std::collections::BTreeMap;

use super::{Builder, Chained, LOW, ONE, PARTNERS, Sum, Table, added, total};
use crate::boolean::gmw::{Circuit, Gate, Partner, Wire};
use wire::Role;

/// Values by a sum, in the order in which their sums came.
struct BySum<T> {
    places: BTreeMap<Sum, usize>,
    values: Vec<(Sum, T)>,
}

impl<T> BySum<T> {
    fn new() -> Self {
        Self { values: Vec::new(), places: BTreeMap::new() }
    }

    /// The value of a sum, which is `new` if there was none.
    fn entry(&mut self, sum: Sum, new: T) -> &mut T {
        let place = *self.places.entry(sum.clone()).or_insert(self.values.len());
        if place == self.values.len() {
            self.values.push((sum, new));
        }
        &mut self.values[place].1
    }
}

/// Sums, and the level from which on they are known.
struct Known {
    sums: Vec<Sum>,
    level: usize,
}

impl Table {
    /// Plans look-ups as [`Table::new`], in fewer levels and more bits: the fewest that there are,
    /// and of these the ones that take the fewest bits.
    pub(crate) fn shallow(entries: &[u64], width: u32) -> Self {
        let bits = entries.len().max(2).ilog2();
        let mut best = Self::split_at(entries, [bits, width], 1);
        for low in 2..=bits.min(LOW) {
            let plan = Self::split_at(entries, [bits, width], low);
            let rank = |plan: &Self| (plan.circuit.levels.len(), plan.weight());
            if rank(&plan) < rank(&best) {
                best = plan;
            }
        }
        best
    }

    fn split_at(entries: &[u64], [bits, width]: [u32; 2], low: u32) -> Self {
        let mut plan = Builder::with_carries(bits);
        let lower = plan.subsets(0, low);
        plan.products = lower.sums;
        let upper = plan.subsets(low, bits);
        let parts = minterms(&upper.sums);
        let level = lower.level.max(upper.level);
        let mut gates = BySum::new();
        let outputs = (0..width).map(|bit| {
            let part = |part: &[u64]| plan.sum_of(part, bit);
            let values: Vec<Sum> = entries.chunks(1 << low).map(part).collect();
            plan.output(&values, &parts, &mut gates)
        });
        let outputs: Vec<Sum> = outputs.collect();
        for (operand, partners) in gates.values {
            for chunk in partners.chunks(PARTNERS) {
                let gate = Gate { operand: operand.clone(), partners: chunk.to_vec() };
                plan.circuit.push(level, gate);
            }
        }
        plan.drop_unread(&outputs);
        let carries = (bits > 1).then(|| Chained::carries(bits - 1));
        let first = Role::Client;
        Self { bits, carries, circuit: plan.circuit, outputs, first }
    }
}

impl Builder {
    /// The wires are a one, the sums of both parties' bits and the carries into all but the lowest.
    fn with_carries(bits: u32) -> Self {
        let wires = 2 * bits as usize;
        let carry = |bit: usize| if bit == 0 { Vec::new() } else { vec![bits as usize + bit] };
        let carry = (0..bits as usize).map(carry).collect();
        let circuit = Circuit { wires, ..Circuit::default() };
        Self { bits, circuit, carry, products: vec![vec![ONE]] }
    }

    /// The products of all subsets of bits `from..to` of the position, that of none being one.
    fn subsets(&mut self, from: u32, to: u32) -> Known {
        match to - from {
            0 => return Known { sums: vec![vec![ONE]], level: 0 },
            1 => return Known { sums: vec![vec![ONE], self.position(from)], level: 0 },
            _ => (),
        }
        let middle = from + (to - from).div_ceil(2);
        let (low, high) = (self.subsets(from, middle), self.subsets(middle, to));
        let level = low.level.max(high.level);
        let mut sums = low.sums.clone();
        for operand in high.sums.iter().skip(1) {
            sums.push(operand.clone());
            for factors in low.sums.get(1..).unwrap_or_default().chunks(PARTNERS) {
                let mut partners = Vec::with_capacity(factors.len());
                for factor in factors {
                    let output = self.circuit.wire();
                    partners.push(Partner { factor: factor.clone(), base: Vec::new(), output });
                    sums.push(vec![output]);
                }
                self.circuit.push(level, Gate { operand: operand.clone(), partners });
            }
        }
        Known { sums, level: level + 1 }
    }

    /// A bit of the entry, from what it is in each part and what tells the part: the most frequent
    /// value, and for each other one a product. Adds these to `gates`, by operand.
    fn output(&mut self, values: &[Sum], parts: &[Sum], gates: &mut BySum<Vec<Partner>>) -> Sum {
        let mut often: BTreeMap<&Sum, usize> = BTreeMap::new();
        values.iter().for_each(|value| *often.entry(value).or_default() += 1);
        let base = values.iter().max_by_key(|value| often.get(value));
        let base = base.cloned().unwrap_or_default();
        let mut changes: BySum<Vec<&[Wire]>> = BySum::new();
        for (value, part) in values.iter().zip(parts) {
            let change = added(value, &base);
            changes.entry(change, Vec::new()).push(part);
        }
        let mut sum = base;
        for (change, told) in changes.values.into_iter().filter(|(change, _)| !change.is_empty()) {
            let told = total(told);
            if change == [ONE] {
                sum = added(&sum, &told);
                continue;
            }
            let output = self.circuit.wire();
            let partner = Partner { factor: change, base: Vec::new(), output };
            gates.entry(told, Vec::new()).push(partner);
            sum = added(&sum, &[output]);
        }
        sum
    }
}

/// What tells each value of some bits, from the products of all subsets of these: of those that have
/// all bits of the value.
fn minterms(products: &[Sum]) -> Vec<Sum> {
    let of = |value: usize| {
        let with = products.iter().enumerate().filter(|(subset, _)| subset & value == value);
        total(with.map(|(_, product)| product.as_slice()))
    };
    (0..products.len()).map(of).collect()
}
