//! The public plan: what runs, in which order. Both parties derive it from the public graph, so
//! neither takes parameters on trust.

pub mod batch;
pub(crate) mod kind;
mod offer;
pub mod options;
pub(crate) mod pass;
pub mod settings;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use graph::Graph;
use mpc::linear::lola;
use mpc::{Demand, softmax};
use wire::{Error, Result};

use crate::linear::lola::EvaluatedNetwork;
use crate::preprocess::ahead::Begins;
use crate::preprocess::schedule;
use crate::preprocess::segments::segments;
use crate::step::Step;
use crate::suites;
use crate::suites::known::Known;
use kind::{Kind, states_end};
use options::OptionsByStep;
use pass::Chain;
pub use settings::{Reveal, Settings};

/// A verified graph with a protocol for every node.
#[derive(Debug)]
pub struct Plan {
    graph: Graph,
    settings: Settings,
    options: OptionsByStep,
    steps: Vec<Arc<Step>>,
    /// Steps of a run that is only for what the graph keeps.
    states_end: Option<usize>,
    segments: OnceLock<Vec<Range<usize>>>,
    /// The plan of runs of several inputs that follow each other.
    pass: Option<Box<Self>>,
    /// How the states of the inputs of such a run follow from each other, of the plan of one.
    chain: Chain,
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
        Self::with_passes(graph, settings, options, OptionsByStep::default())
    }

    /// Plans `graph` with `options` for some steps of its runs, and others `of_passes` for those of runs of
    /// several inputs that follow each other, where the settings have such runs.
    ///
    /// # Errors
    /// As [`Plan::chosen`]; [`Error::Misuse`] for such runs of a model that keeps no states, keeps them in
    /// another way than by moving values, or prepares runs.
    pub fn with_passes(
        graph: Graph,
        settings: Settings,
        options: OptionsByStep,
        of_passes: OptionsByStep,
    ) -> Result<Self> {
        let Some(several) = settings.of_pass() else {
            if !of_passes.is_empty() {
                return Err(Error::misuse("options for runs that there are not"));
            }
            return Self::among(&Known::default(), graph, settings, options);
        };
        pass::check(&graph, settings)?;
        let several = Self::among(&Known::default(), graph.clone(), several, of_passes)?;
        let one = Self::among(&Known::default(), graph, settings, options)?;
        Ok(Self { pass: Some(Box::new(several)), ..one })
    }

    /// Plans the graph with the same options under other settings.
    ///
    /// # Errors
    /// The errors of [`Plan::with_passes`].
    pub(crate) fn with_settings(&self, settings: Settings) -> Result<Self> {
        let of_passes = self.pass().map(|pass| pass.options.clone()).unwrap_or_default();
        Self::with_passes(self.graph.clone(), settings, self.options.clone(), of_passes)
    }

    /// Plans runs of one kind alone, of steps that are `known` where other plans of the same graph have them.
    ///
    /// # Errors
    /// The errors of [`Plan::chosen`].
    pub(crate) fn among(
        known: &Known,
        graph: Graph,
        settings: Settings,
        options: OptionsByStep,
    ) -> Result<Self> {
        graph::verify(&graph).map_err(|e| Error::misuse(e.to_string()))?;
        batch::check(&graph, settings)?;
        let steps = suites::steps_among(known, &graph, settings, &options)?;
        if options.most_runs() > 1 && (graph.states.is_empty() || settings.store() > 0) {
            let why = "layers for several runs of a session that prepares runs, or keeps no states";
            return Err(Error::misuse(why));
        }
        schedule::check(&steps, settings.store())?;
        let states_end = states_end(&graph, settings, &steps);
        let chain = match settings.passing {
            true => Chain::of(&graph, &steps)?,
            false => Chain::default(),
        };
        let segments = OnceLock::new();
        Ok(Self { graph, settings, options, steps, states_end, segments, pass: None, chain })
    }

    /// A plan of given steps, to be measured on its own: nobody offers it.
    pub fn of_steps(graph: Graph, steps: Vec<Step>, settings: Settings) -> Self {
        let options = OptionsByStep::default();
        let steps = steps.into_iter().map(Arc::new).collect();
        let (states_end, pass, chain) = (None, None, Chain::default());
        let segments = OnceLock::new();
        Self { graph, settings, options, steps, states_end, segments, pass, chain }
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
    pub fn steps(&self) -> &[Arc<Step>] {
        &self.steps
    }

    /// The plan of runs of several inputs that follow each other, where there are such runs.
    pub(crate) fn pass(&self) -> Option<&Self> {
        self.pass.as_deref()
    }

    /// The plan of runs of this kind.
    ///
    /// # Errors
    /// [`Error::Internal`] for a kind that the plan does not have.
    pub(crate) fn of(&self, kind: Kind) -> Result<&Self> {
        if !kind.is_pass() {
            return Ok(self);
        }
        self.pass().ok_or_else(|| Error::internal("a run of several inputs without a plan"))
    }

    /// How the states of the inputs of a run follow from each other, of a plan of runs of several.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Whether the client says what each run is for.
    pub(crate) fn has_kinds(&self) -> bool {
        self.states_end.is_some() || self.pass.is_some()
    }

    /// The steps of all kinds of runs.
    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(self.pass().into_iter().flat_map(Self::steps)).map(Arc::as_ref)
    }

    /// How many steps a run takes that is only for what the graph keeps, where the client may want
    /// such runs.
    #[cfg(test)]
    pub(crate) const fn states_end(&self) -> Option<usize> {
        self.states_end
    }

    /// The steps of a run of this kind.
    pub(crate) fn steps_of(&self, kind: Kind) -> &[Arc<Step>] {
        let end = self.states_end.filter(|_| kind.is_for_states());
        self.steps.get(..end.unwrap_or(self.steps.len())).unwrap_or_default()
    }

    /// Segments of the steps of a run that is not preprocessed as a whole; those of a run that is
    /// only for what the graph keeps are the first of them.
    pub(crate) fn segments(&self) -> &[Range<usize>] {
        self.segments.get_or_init(|| self.cut())
    }

    fn cut(&self) -> Vec<Range<usize>> {
        let end = self.states_end.unwrap_or(self.steps.len());
        let (first, rest) = self.steps.split_at(end.min(self.steps.len()));
        let mut all = segments(first);
        if !rest.is_empty() {
            all.extend(segments(rest).into_iter().map(|some| some.start + end..some.end + end));
        }
        all
    }

    /// The steps of the first run, and the first segment of them where runs are not prepared as a whole; `None`
    /// where nobody knows yet which kind of run it will be.
    pub(crate) fn begins(&self) -> Begins<'_> {
        let first = || self.segments().first().cloned().unwrap_or_default();
        let first = (self.settings.store() == 0).then(first);
        self.pass.is_none().then_some((self.steps.as_slice(), first))
    }

    /// The segments of a run of this kind.
    pub(crate) fn segments_of(&self, kind: Kind) -> Vec<Range<usize>> {
        let len = self.steps_of(kind).len();
        self.segments().iter().filter(|some| some.end <= len).cloned().collect()
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
        let masks: Demand = self.steps.iter().map(|step| step.preprocessing_demand()).sum();
        masks + self.steps.iter().map(|step| step.demand()).sum()
    }

    /// What is evaluated under encryption, where that is the whole network.
    pub(crate) fn evaluated(&self) -> Option<&lola::Plan> {
        let mut layers = self.steps.iter().filter_map(|step| step.linear());
        layers.find_map(|layer| Some(&layer.downcast::<EvaluatedNetwork>()?.plan))
    }
}
