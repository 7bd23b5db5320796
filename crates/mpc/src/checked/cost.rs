//! What a network costs, and the work that it takes.

use gc::tagged::{ALPHA_BITS, BitTags};
use pricing::{Unit, Work};
use wire::{Cost, Result};

use super::network::{Network, Stage};
use crate::auth::{check_cost, commit_cost, key_costs, tag_cost};
use crate::linear::coefficient::Layer;
use crate::open;

/// Words of digits that a product with a committed secret transforms, both ways: three public digits, and
/// three of values or tags of up to 104 bits, and what comes back of each.
const DIGITS: f64 = 12.0;

impl Network {
    /// Returns what a run costs, correlations not included.
    pub fn cost(&self) -> Cost {
        self.costs().unwrap_or(Cost::NONE)
    }

    fn costs(&self) -> Result<Cost> {
        let [commits, tags, body] = key_costs(self.params)?;
        let of = &self.tags;
        let mut all = commits
            .then(committed(&of.inputs))
            .then(committed(&of.covers))
            .then(tags)
            .then(
                [&of.inputs, &of.covers, &of.masks, &of.masks].map(tag_cost).into_iter().collect(),
            )
            .then(body);
        for stage in &self.stages {
            all = all
                .then(stage.layer.cost())
                .then(committed(&stage.phases))
                .then(tag_cost(&stage.phases))
                .then(stage.circuits.cost());
        }
        let modulus = self.params.modulus_bits() + ALPHA_BITS;
        let check = check_cost(modulus, Some(modulus));
        Ok(all.then(check).then(open::cost(self.outputs(), self.result_bits)))
    }

    /// Returns a bound on the probability that a result of one run is not the interpreter's.
    pub fn failure(&self) -> f64 {
        self.layers().map(Layer::failure).sum()
    }

    /// Returns what a run takes beside its messages and correlations.
    pub fn work(&self) -> Work {
        let degree = self.params.degree() as f64;
        let stages: Work = self.stages.iter().map(|stage| stage.work(degree)).sum();
        stages.and(Unit::Keyed, degree)
    }

    /// Returns the bytes that a party holds at most, about: tagged errors of all ciphertexts, tagged results of
    /// all layers, keys and tables.
    pub fn memory(&self) -> u64 {
        let ciphertexts: usize = self.layers().map(Layer::ciphertexts).sum();
        let results: usize = self.stages.iter().map(|stage| stage.circuits.count()).sum();
        let tagged = (ciphertexts as u64) * self.params.degree() as u64 + results as u64;
        32 * tagged + 32 * self.ots() as u64 + self.cost().bytes()
    }
}

impl Stage {
    fn work(&self, degree: f64) -> Work {
        // Phases of ciphertexts and of responses are products for values and for tags.
        let phases = 2.0 * self.layer.ciphertexts() as f64 * degree;
        self.layer
            .work()
            .and(Unit::Transformed, DIGITS * phases)
            .and(Unit::Garbled, self.and_gates() as f64)
            .and(Unit::Evaluated, self.and_gates() as f64)
    }
}

fn committed(tags: &BitTags) -> Cost {
    commit_cost(tags.bits() as usize, tags.count())
}
