//! Paths of complete trees: one bit for each leaf by gates, then the leaf's values by OT.
//!
//! | | |
//! |---|---|
//! | In | xor shares of whether each test goes right; the server's values of leaves; random OTs |
//! | Out | shares mod 2^out_bits of the values of the leaf that each tree reaches |
//! | Reveals | masked operands and choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | for each test below the root one gate, a level after the other; for each value of a leaf one bit up and out_bits down |
//! | Paper | Kiss et al., SoK: private decision trees (PoPETs 2019), path by Boolean sharing; Rathee et al., CrypTFlow2 (CCS 2020), multiplexer |
//!
//! A test that is reached hands a one to its right child where it goes right, and what is left of
//! it to the other: `right = reached & goes`, `left = reached ^ right`. The bit e of a leaf, shared
//! as e_c and e_s, chooses `e*v` for each value v by OT between `e_s*v` and `(1 - e_s)*v`.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Result, Role};

use super::paths::Paths;
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::gmw::{self, Circuit, Gate, Partner, Wire};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;

/// Wires whose xor is a bit.
type Sum = Vec<Wire>;

/// The public plan of complete trees.
#[derive(Debug)]
pub(super) struct Complete {
    count: usize,
    values: usize,
    out_bits: u32,
    circuit: Circuit,
    /// For each leaf its bit.
    leaves: Vec<Sum>,
    first: Role,
}

impl Complete {
    /// Plans `count` trees of `values` a leaf; gates take OTs from `sender` or from both, and
    /// `first` sends first.
    pub(super) fn new(
        [count, values]: [usize; 2],
        depth: u32,
        out_bits: u32,
        (sender, first): (Option<Role>, Role),
    ) -> Self {
        let tests = (1usize << depth) - 1;
        // After the outcomes of tests a wire that holds a one.
        let mut circuit = Circuit { wires: tests + 1, sender, ..Circuit::default() };
        let mut reached: Vec<Sum> = vec![vec![0, tests], vec![0]];
        for level in 1..depth {
            let above = (1usize << level) - 1;
            let mut below = Vec::with_capacity(2 * reached.len());
            for (at, operand) in reached.into_iter().enumerate() {
                let output = circuit.wire();
                let partners = vec![Partner { factor: vec![above + at], base: Vec::new(), output }];
                let mut left = operand.clone();
                left.push(output);
                circuit.push(level as usize - 1, Gate { operand, partners });
                below.extend([left, vec![output]]);
            }
            reached = below;
        }
        Self { count, values, out_bits, circuit, leaves: reached, first }
    }

    /// The OTs of the leaves' values, all of which the client receives.
    fn switch(&self) -> Switch {
        let job = Job { count: self.count, choice_bits: 1, entry: Entry::Word(self.out_bits) };
        Switch::to(Role::Client, vec![job; self.leaves.len() * self.values])
    }

    /// The client's choices or the server's tables, for each leaf and value.
    fn side(&self, role: Role, reached: &[Bits], leaves: &[&[u64]]) -> Side {
        let mut side = Side { choices: Vec::new(), tables: Vec::new() };
        for (leaf, bit) in reached.iter().enumerate() {
            for at in 0..self.values {
                if role == Role::Client {
                    side.choices.push(vec![bit.clone()]);
                    continue;
                }
                let place = leaf * self.values + at;
                let value = |tree: &&[u64]| tree.get(place).copied().unwrap_or(0);
                let values = || leaves.iter().map(value).zip(bit.masks());
                let own = values().map(|(value, mask)| value & mask).collect();
                let other = values().map(|(value, mask)| value & !mask).collect();
                side.tables.push(Table::words(vec![own, other]));
            }
        }
        side
    }
}

impl Paths for Complete {
    fn planes(&self) -> usize {
        self.leaves.len() - 1
    }

    fn describe(&self) -> String {
        let depth = self.leaves.len().ilog2();
        format!("complete trees of depth {depth} by gates, leaves by OT")
    }

    fn demand(&self) -> Demand {
        self.circuit.demand(self.count) + self.switch().demand()
    }

    fn cost(&self) -> Cost {
        let gates = match self.circuit.levels.is_empty() {
            true => Cost::NONE,
            false => self.circuit.cost(self.count, self.first),
        };
        gates.then(self.switch().cost(Role::Client))
    }

    fn run(
        &self,
        channel: &mut Channel,
        mut right: Vec<Bits>,
        leaves: &[&[u64]],
        mut ots: Correlations,
    ) -> Result<Vec<u64>> {
        let role = channel.role();
        let none = Bits::zeros(self.count);
        right.push(if role == Role::Server { none.not() } else { none });
        let gates = ots.split(role, &self.circuit.demand(self.count))?;
        let wires = gmw::run(channel, &self.circuit, right, gates, self.first)?;
        let mut reached = Vec::with_capacity(self.leaves.len());
        for sum in &self.leaves {
            let mut bit = Bits::zeros(self.count);
            for wire in sum {
                bit.xor(wires.get(*wire).ok_or_else(|| defect("a leaf has no wire"))?);
            }
            reached.push(bit);
        }
        let side = self.side(role, &reached, leaves);
        let switched = mux::run(channel, &self.switch(), Role::Client, side, ots)?;
        let mut words = vec![0u64; self.count * self.values];
        let columns = switched.received.iter().chain(&switched.sent);
        for (job, column) in columns.enumerate() {
            let sums = words.iter_mut().skip(job % self.values).step_by(self.values);
            let terms = column.first_word().into_iter().flatten();
            sums.zip(terms).for_each(|(sum, term)| *sum = sum.wrapping_add(*term));
        }
        Ok(words)
    }
}
