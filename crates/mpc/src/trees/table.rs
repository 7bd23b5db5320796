//! Paths of trees of few tests: one table for each tree, read at the outcomes of its tests.
//!
//! | | |
//! |---|---|
//! | In | xor shares of whether each test goes right; for each tree the server's table of the leaf's values for all outcomes; random OTs |
//! | Out | shares mod 2^out_bits of the values of the leaf that each tree reaches |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | for each value of a tree as many bits up as it has tests, 2^tests - 1 words of out_bits down; 2 rounds |
//! | Paper | Dessouky et al., NDSS 2017, lookup tables; Rathee et al., SiRNN (S&P 2021) |
//!
//! The server moves each entry to the place that the client's share of the outcomes names, by
//! conditional swaps, one for each bit of its own share, so that no address depends on a share.

use ot::{Column, Entry, Job};
use ring::Bits;
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use super::paths::Paths;
use super::turned::turned;
use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};

/// The public plan of trees as tables.
#[derive(Debug)]
pub(super) struct Table {
    count: usize,
    values: usize,
    tests: u32,
    out_bits: u32,
}

impl Table {
    /// Plans `count` trees of `values` a leaf and so many tests.
    pub(super) fn new([count, values]: [usize; 2], tests: u32, out_bits: u32) -> Self {
        Self { count, values, tests, out_bits }
    }

    fn switch(&self) -> Switch {
        let entry = Entry::Word(self.out_bits);
        let job = Job { count: self.count, choice_bits: self.tests, entry };
        Switch::to(Role::Client, vec![job; self.values])
    }

    /// The columns of value `at` of all trees, one for each place, moved by the server's shares.
    fn turned(&self, at: usize, leaves: &[&[u64]], shares: &[Bits]) -> ot::Table {
        let entry = |place: usize| {
            let value = move |tree: &&[u64]| tree.get(place).copied().unwrap_or(0);
            leaves.iter().map(value).collect()
        };
        let column = |words| Column { planes: Vec::new(), words: vec![words] };
        let places = (0..1usize << self.tests).map(|leaf| entry(leaf * self.values + at));
        turned(places.map(column).collect(), shares)
    }
}

impl Paths for Table {
    fn planes(&self) -> usize {
        self.tests as usize
    }

    fn describe(&self) -> String {
        format!("tables of {} tests by OT", self.tests)
    }

    fn demand(&self) -> Demand {
        self.switch().demand()
    }

    fn cost(&self) -> Cost {
        self.switch().cost(Role::Client)
    }

    fn run(
        &self,
        channel: &mut Channel,
        right: Vec<Bits>,
        leaves: &[&[u64]],
        ots: Correlations,
    ) -> Result<Vec<u64>> {
        let right = Zeroizing::new(right);
        let mut side = Side { choices: Vec::new(), tables: Vec::new() };
        for at in 0..self.values {
            match channel.role() {
                Role::Client => side.choices.push(right.to_vec()),
                Role::Server => side.tables.push(self.turned(at, leaves, &right)),
            }
        }
        let switched = mux::run(channel, &self.switch(), Role::Client, side, ots)?;
        let mut words = vec![0u64; self.count * self.values];
        for (at, column) in switched.received.iter().chain(&switched.sent).enumerate() {
            let results = words.iter_mut().skip(at).step_by(self.values);
            let found = column.first_word().into_iter().flatten();
            results.zip(found).for_each(|(result, word)| *result = *word);
        }
        Ok(words)
    }
}
