//! Decision trees on shared tests: the value of the leaf that each reaches.
//!
//! | | |
//! |---|---|
//! | In | for each tree shares of its comparisons' values y mod 2^bits, -2^(bits-1) <= y < 2^(bits-1), then the server's values of its leaves as shares of which the client's are zero; random OTs |
//! | Out | for each tree shares mod 2^out_bits of the values of the leaf that it reaches; a test goes right where y >= 0 in an odd number of its comparisons |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | for each test its comparisons of bits - 1, then what the layout of paths takes |
//! | Paper | Kiss et al., SoK: private decision trees (PoPETs 2019), comparison by OT; Rathee et al., CrypTFlow2 (CCS 2020) |
//!
//! All comparisons of all trees are made in one batch. What follows is a layout of paths, a value
//! behind [`Paths`]: a new one is a file here and a line in [`layout`].

mod complete;
mod outcomes;
mod paths;
mod rows;
mod shape;
mod stage;
mod staged;
mod table;
mod turned;
mod walk;

use graph::ops;
use wire::{Channel, Cost, Error, Result, Role};

use crate::boolean::compare::{Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::estimate;
use crate::protocol::{Protocol, input};
use crate::share::Share;
use outcomes::outcomes;
use paths::Paths;
pub use shape::Shape;
pub use staged::{Staged, Way};

/// The public plan of trees.
#[derive(Debug)]
pub struct Trees {
    count: usize,
    shape: Shape,
    comparison: Comparison,
    paths: Box<dyn Paths>,
}

impl Trees {
    /// Plans `count` trees of one shape.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths beside 2 to 64 bits, and shapes that are none.
    pub fn new(count: usize, shape: Shape, radix: Radix) -> Result<Self> {
        shape.check()?;
        if let ops::Paths::Walk(sizes) = shape.paths
            && !walk::fits(&sizes, &shape)
        {
            return Err(Error::misuse("walks of these sizes and widths"));
        }
        let plan = |sender| -> Result<Self> {
            let comparison = Comparison::carry(shape.bits - 1, radix).gates_from(sender);
            let paths = layout(count, shape, sender, comparison.last_sender());
            Ok(Self { count, shape, comparison, paths })
        };
        estimate::leaner(plan, |plan| (plan.demand(), plan.cost()))
    }

    fn compared(&self) -> usize {
        self.count * self.shape.tests()
    }
}

/// The protocol of a layout, which begins with `first`; gates take OTs from `sender` alone, or
/// from both parties.
fn layout(count: usize, shape: Shape, sender: Option<Role>, first: Role) -> Box<dyn Paths> {
    let sizes = [count, shape.values];
    match shape.paths {
        ops::Paths::Complete(depth) => {
            Box::new(complete::Complete::new(sizes, depth, shape.out_bits, (sender, first)))
        }
        ops::Paths::Table(tests) => Box::new(table::Table::new(sizes, tests, shape.out_bits)),
        ops::Paths::Walk(pool) => Box::new(walk::Walk::new(sizes, pool, shape.out_bits)),
    }
}

impl Protocol for Trees {
    fn operator(&self) -> &'static str {
        "trees"
    }

    fn describe(&self) -> String {
        let (count, bits) = (self.compared(), self.shape.bits);
        format!("{count} comparisons of {bits} bits by OT, {}", self.paths.describe())
    }

    fn demand(&self) -> Demand {
        self.comparison.demand(self.compared()) + self.paths.demand()
    }

    fn cost(&self) -> Cost {
        self.comparison.cost(self.compared()).then(self.paths.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], mut ots: Correlations) -> Result<Share> {
        let (rows, each) = (input(inputs, 0)?, self.shape.inputs());
        rows.check(self.count * each, self.shape.bits, "trees")?;
        let tests = self.shape.tests();
        let trees: Vec<(&[u64], &[u64])> =
            rows.words().chunks_exact(each).map(|row| row.split_at(tests)).collect();
        let (planes, each_test) = (self.paths.planes(), self.shape.comparisons);
        // Plane by plane, so that outcomes that lie together are of the same test of all trees, or
        // of all tests of all pools.
        let together = self.shape.paths.tests() / planes.max(1);
        let places = (0..planes * each_test).flat_map(|plane| {
            let first = plane / each_test * together * each_test + plane % each_test;
            let tests =
                move |tree| (0..together).map(move |at| tree * each + first + at * each_test);
            (0..self.count).flat_map(tests)
        });
        let y = rows.gather(places);
        let sizes = [self.count * together, each_test];
        let right = outcomes(channel, &self.comparison, &y, sizes, &mut ots)?;
        let leaves: Vec<&[u64]> = trees.iter().map(|(_, leaves)| *leaves).collect();
        let words = self.paths.run(channel, right, &leaves, ots)?;
        Ok(Share::new(words, self.shape.out_bits))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod walk_tests;
