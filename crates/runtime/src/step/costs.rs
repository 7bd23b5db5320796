//! What steps take: correlations, messages, work, memory.

use mpc::{Demand, open};
use pricing::{Unit, Work};

use super::correlations::pad_bytes;
use super::linear::LinearProtocol;
use super::sliced::Sliced;
use super::spent::Spent;
use super::{Action, Step};

impl Step {
    /// What it takes online.
    pub(crate) fn spent(&self) -> Spent {
        self.parts().map(|(_, spent)| spent).collect()
    }

    /// What it takes online when it was preprocessed.
    pub(crate) fn prepared(&self) -> Spent {
        let first = match &self.action {
            Action::Linear(layer) => layer.spent_preprocessed(),
            _ => self.first(),
        };
        first.then(self.after())
    }

    /// What it takes after its products.
    pub(crate) fn after(&self) -> Spent {
        self.sliced().map(Sliced::spent).collect()
    }

    /// What it takes before or without correlations.
    pub(crate) fn first(&self) -> Spent {
        match &self.action {
            Action::Local(step) => {
                let work = Work::of(Unit::Local, step.elements() as f64);
                Spent { work, ..Spent::default() }
            }
            Action::Protocol(_) => Spent::default(),
            Action::Linear(layer) => layer.spent(),
            Action::Reveal(shown) => Spent::sending(open::cost(shown.count, shown.bits)),
        }
    }

    /// What it takes before its input exists, in an exchange with other steps; of one that is for several
    /// runs the share of one.
    pub(crate) fn before(&self) -> Spent {
        let several = |layer: &dyn LinearProtocol| layer.preprocess().is_some_and(|l| l.runs() > 1);
        let layer = self.linear().filter(|layer| layer.is_preprocessed() || several(*layer));
        let layer = layer.and_then(LinearProtocol::preprocess);
        let parts = layer.map(|layer| layer.parts()).unwrap_or_default();
        let all: Spent = parts.into_iter().flat_map(|(_, spent)| spent).collect();
        all.of_one(layer.map_or(1, |layer| layer.runs()))
    }

    /// In the order in which they run: correlations consumed, and what is taken online after
    /// they were made.
    pub fn parts(&self) -> impl Iterator<Item = (Demand, Spent)> {
        let first = (Demand::default(), self.first());
        std::iter::once(first).chain(self.sliced().flat_map(Sliced::parts))
    }

    /// A bound on the probability that a result of one run is not the functionality's.
    pub(crate) fn failure(&self) -> f64 {
        let products = self.linear().map_or(0.0, LinearProtocol::failure);
        products + self.sliced().map(Sliced::failure).sum::<f64>()
    }

    /// Bytes that the party with more of them holds at a time: ciphertexts, or pads and
    /// circuits; not weights.
    pub(crate) fn memory(&self) -> u64 {
        let pads =
            self.sliced().flat_map(Sliced::parts).map(|(demand, _)| pad_bytes(&demand) as u64);
        self.linear_memory() + pads.max().unwrap_or(0)
    }

    /// Bytes of [`Step::memory`] without pads and circuits.
    pub(crate) fn linear_memory(&self) -> u64 {
        match &self.action {
            Action::Linear(layer) => layer.memory(),
            _ => self.first().cost.bytes(),
        }
    }
}
