//! What steps take: correlations, messages, work, memory.

use mpc::linear::coefficient::Layer;
use mpc::linear::falcon::Small;
use mpc::{Effort, Kernel, Need, open};
use wire::Cost;

use crate::nonlinear::{Sliced, pad_bytes};
use crate::plan::Spent;
use crate::steps::{Action, LinearStep, Step};

/// A multiplication in the clear, in elements of a local step.
const CLEAR: f64 = 0.1;

impl Step {
    /// Pads of its preparation that are to be made before the stretch that it is in.
    pub(crate) fn mask_need(&self) -> Need {
        let step = self.transfer().filter(|step| !step.feeds_itself());
        step.map(|step| step.parts().map(|(need, _)| need).sum()).unwrap_or_default()
    }

    /// Whether it makes its correlations itself, slice by slice.
    pub(crate) fn feeds_itself(&self) -> bool {
        self.sliced().any(|sliced| sliced.len() > 1)
    }

    /// Transfers to be made before the stretch that it is in.
    pub(crate) fn need_ahead(&self) -> Need {
        if self.feeds_itself() { Need::default() } else { self.need() }
    }

    /// Transfers it consumes.
    pub fn need(&self) -> Need {
        self.sliced().map(Sliced::need).sum()
    }

    /// What it costs online.
    pub fn cost(&self) -> Cost {
        self.first_cost().then(self.sliced().map(Sliced::cost).collect())
    }

    /// What it takes online.
    pub(crate) fn spent(&self) -> Spent {
        self.parts().map(|(_, spent)| spent).collect()
    }

    /// What it takes online when it was prepared.
    pub(crate) fn prepared(&self) -> Spent {
        let first = match &self.action {
            Action::Linear(step) => prepared(&step.layer),
            _ => self.first(),
        };
        first.then(self.after())
    }

    /// What it takes after its products.
    pub(crate) fn after(&self) -> Spent {
        self.sliced().map(Sliced::spent).collect()
    }

    /// The linear layer under encryption, if it is one that runs ahead.
    pub(crate) fn runs_ahead(&self) -> Option<&LinearStep> {
        match &self.action {
            Action::Linear(step) if step.ahead => Some(step),
            _ => None,
        }
    }

    /// What it takes before or without transfers.
    pub(crate) fn first(&self) -> Spent {
        if let Some(step) = self.runs_ahead() {
            return prepared(&step.layer);
        }
        let local = |count: usize| Effort::of(Kernel::Local, count as f64);
        let effort = match &self.action {
            Action::Linear(step) => step.layer.effort(),
            Action::Transfer(step) => local(step.layer.inputs() + step.layer.product().outputs()),
            Action::Product(step) => step.layer.effort(),
            Action::Slots(step) => step.layer.effort(),
            Action::Evaluate(step) => step.plan.effort(),
            Action::Arrange { places, .. } => local(places.len()),
            Action::Concat { lengths } => local(lengths.iter().sum()),
            Action::SumPool { windows, .. } => local(windows.iter().map(Vec::len).sum()),
            _ => Effort::none(),
        };
        Spent { cost: self.first_cost(), effort }
    }

    /// What it costs before or without transfers.
    fn first_cost(&self) -> Cost {
        match &self.action {
            Action::Linear(step) if step.ahead => step.layer.prepared_cost(),
            Action::Linear(step) => step.layer.cost(),
            Action::Transfer(step) => step.layer.cost(),
            Action::Product(step) => step.layer.cost(),
            Action::Slots(step) => step.layer.cost(),
            Action::Evaluate(step) => step.plan.cost().unwrap_or(Cost::NONE),
            Action::Small(small) => small.as_ref().map_or(Cost::NONE, Small::cost),
            Action::Open { count, bits, .. } => open::cost(*count, *bits),
            _ => Cost::NONE,
        }
    }

    /// In the order in which they run: transfers consumed, and what is taken online after
    /// they were made.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Need, Spent)> {
        let first = (Need::default(), self.first());
        std::iter::once(first).chain(self.sliced().flat_map(Sliced::parts))
    }

    /// Bytes that the party with more of them holds at a time: ciphertexts, or pads and
    /// circuits; not weights.
    pub(crate) fn memory(&self) -> u64 {
        let pads = self.sliced().flat_map(Sliced::parts).map(|(need, _)| pad_bytes(&need) as u64);
        self.linear_memory() + pads.max().unwrap_or(0)
    }

    /// The same without pads and circuits.
    pub(crate) fn linear_memory(&self) -> u64 {
        let ciphertexts = |count: usize, degree: usize| 16 * (count as u64) * degree as u64;
        match &self.action {
            Action::Linear(step) => {
                ciphertexts(step.layer.ciphertexts(), step.layer.params().degree())
            }
            Action::Product(step) => {
                ciphertexts(step.layer.ciphertexts(), step.layer.params().degree())
            }
            Action::Transfer(step) => step.held_bytes() as u64,
            _ => self.first_cost().bytes(),
        }
    }
}

/// What a layer takes online when it was prepared: the server multiplies in the clear.
fn prepared(layer: &Layer) -> Spent {
    let work = layer.outputs() as f64 + CLEAR * layer.clear_work() as f64;
    Spent { cost: layer.prepared_cost(), effort: Effort::of(Kernel::Local, work) }
}
