//! The public plan: what runs, in which order. Both parties derive it from the public graph, so
//! neither takes parameters on trust.

pub mod batch;
mod offer;
pub mod options;
pub mod settings;

use graph::Graph;
use mpc::linear::lola;
use mpc::{Demand, softmax};
use wire::{Error, Result};

use crate::linear::lola::EvaluatedNetwork;
use crate::preprocess::schedule;
use crate::step::Step;
use crate::suites;
use options::OptionsByStep;
pub use settings::{Reveal, Settings};

/// A verified graph with a protocol for every node.
#[derive(Debug)]
pub struct Plan {
    graph: Graph,
    settings: Settings,
    options: OptionsByStep,
    steps: Vec<Step>,
}

impl Plan {
    /// Plans `graph` with the default options of its suite.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the node that no protocol fits,
    /// [`Error::Misuse`] for a graph that breaks an invariant.
    pub fn new(graph: Graph, settings: Settings) -> Result<Self> {
        Self::chosen(graph, settings, OptionsByStep::default())
    }

    /// Plans `graph` with `options` for some of its steps.
    ///
    /// # Errors
    /// As [`Plan::new`]; [`Error::Misuse`] for options that a step does not have.
    pub fn chosen(graph: Graph, settings: Settings, options: OptionsByStep) -> Result<Self> {
        graph::verify(&graph).map_err(|e| Error::misuse(e.to_string()))?;
        batch::check(&graph, settings.batch())?;
        let steps = suites::steps(&graph, settings, &options)?;
        schedule::check(&steps, settings.store())?;
        Ok(Self { graph, settings, options, steps })
    }

    /// A plan of given steps, to be measured on its own: nobody offers it.
    pub fn of_steps(graph: Graph, steps: Vec<Step>, settings: Settings) -> Self {
        Self { graph, settings, options: OptionsByStep::default(), steps }
    }

    /// Returns the graph that the plan runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the settings that both parties agreed to.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns the options that were chosen for single steps.
    pub fn options(&self) -> &OptionsByStep {
        &self.options
    }

    /// Returns the steps in order; their indices are the meter's layers.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the number of values that the client learns per input.
    pub fn result_len(&self) -> usize {
        match self.settings.reveal {
            Reveal::Label | Reveal::Bucket => 1,
            Reveal::Probability => 2,
            Reveal::Output => self.graph.tensors.get(self.graph.output).map_or(0, |t| t.len()),
        }
    }

    /// What a revealed probability is computed by, if there is one.
    pub(crate) fn softmax(&self) -> Option<&softmax::Plan> {
        self.steps.iter().find_map(|step| step.composed()?.sliced.kind()?.downcast())
    }

    /// Returns the second value of a result is this by the probability, of [`Reveal::Probability`].
    pub fn certain(&self) -> Option<u64> {
        self.softmax().map(|plan| 1 << plan.fraction_bits())
    }

    /// Returns the correlations for one run, those of preprocessed layers included.
    pub fn demand(&self) -> Demand {
        let masks: Demand = self.steps.iter().map(Step::preprocessing_demand).sum();
        masks + self.steps.iter().map(Step::demand).sum()
    }

    /// What is evaluated under encryption, where that is the whole network.
    pub(crate) fn evaluated(&self) -> Option<&lola::Plan> {
        let mut layers = self.steps.iter().filter_map(Step::linear);
        layers.find_map(|layer| Some(&layer.downcast::<EvaluatedNetwork>()?.plan))
    }
}
