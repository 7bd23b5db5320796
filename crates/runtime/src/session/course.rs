//! One party's way through a session: preprocessing and runs, in the order of the schedule.

use std::collections::VecDeque;

use mpc::Share;
use wire::{Error, Result};

use crate::plan::Plan;
use crate::plan::kind::Kind;
use crate::preprocess::ahead;
use crate::preprocess::layers::{Ahead, Inference, preprocess};
use crate::preprocess::schedule::{Turns, turns};
use crate::preprocess::together::Together;
use crate::run::{self, Before};
use crate::step::context::Endpoint;

/// One party's way through the turns of a session, and its store.
pub(crate) struct Course {
    turns: Turns,
    store: VecDeque<Inference>,
    /// What was sent ahead for the first run.
    ahead: Ahead,
    /// What is left of layers that are preprocessed for several runs.
    together: Together,
    /// This party's shares of what the graph keeps from one run to the next.
    states: Vec<Share>,
}

impl Course {
    /// The course of a session with `inputs` inputs.
    ///
    /// # Errors
    /// [`Error::Internal`] for a plan whose graph lacks a state.
    pub(crate) fn new(plan: &Plan, inputs: usize) -> Result<Self> {
        let turns = turns(plan.runs(inputs), plan.settings().store());
        let (store, ahead, together) = (VecDeque::new(), Ahead::default(), Together::default());
        Ok(Self { turns, store, ahead, together, states: run::first_states(plan)? })
    }

    /// Exchanges what the first run can send ahead of the last flight of the setup.
    pub(crate) fn send_ahead(&mut self, end: &mut Endpoint<'_>, plan: &Plan) -> Result<()> {
        if plan.evaluated().is_none() {
            self.ahead = ahead::exchange(end, plan.begins())?;
        }
        Ok(())
    }

    /// Runs that are over.
    pub(crate) fn done(&self) -> usize {
        self.turns.done
    }

    /// Whether all runs are over.
    pub(crate) fn is_over(&self) -> bool {
        self.turns.done == self.turns.runs
    }

    /// Whether the next turn prepares a run.
    pub(crate) fn prepares(&self) -> bool {
        self.turns.prepares()
    }

    /// The number of preprocessed runs that wait for their inputs.
    pub(crate) fn ready(&self) -> usize {
        self.store.len()
    }

    /// Prepares the next run, unless the next turn is a run itself; says which.
    pub(crate) fn prepare(&mut self, end: &mut Endpoint<'_>, plan: &Plan) -> Result<bool> {
        if !self.turns.prepares() {
            return Ok(false);
        }
        let ahead = std::mem::take(&mut self.ahead);
        self.store.push_back(preprocess(end, plan.steps(), ahead)?);
        self.turns.next();
        Ok(true)
    }

    /// Runs the next inputs, after what is to be prepared before them. The client says what `kind`
    /// of run it wants, where it may, and gets the opened words, the server nothing.
    ///
    /// # Errors
    /// [`Error::Internal`] when all runs are over: callers count their inputs.
    pub(crate) fn run(
        &mut self,
        end: &mut Endpoint<'_>,
        plan: &Plan,
        kind: Kind,
    ) -> Result<Vec<u64>> {
        while self.prepare(end, plan)? {}
        if self.is_over() {
            return Err(Error::internal("a run after the last of its session; please report it"));
        }
        let kind = kind.agreed(end.channel, plan)?;
        if kind.is_pass() {
            return self.run_pass(end, plan, kind);
        }
        let before = match self.store.pop_front() {
            Some(inference) => Before::Preprocessed(inference),
            None => {
                end.source.set_threads(end.party.threads());
                let left = self.turns.runs - self.turns.done;
                let together = self.together.next(end, plan.steps_of(kind), left)?;
                Before::Ahead(Ahead { together, ..std::mem::take(&mut self.ahead) })
            }
        };
        let words = run::run(end, (plan, kind), &mut self.states, before, &mut |_| {})?;
        self.turns.next();
        Ok(words)
    }

    /// Runs the next inputs in one run of several that follow each other.
    fn run_pass(&mut self, end: &mut Endpoint<'_>, plan: &Plan, kind: Kind) -> Result<Vec<u64>> {
        let pass = plan.of(kind)?;
        let (inputs, left) = (pass.settings().batch(), self.turns.runs - self.turns.done);
        if inputs > left {
            let why = format!("one of {inputs}");
            return Err(Error::peer(
                format!("a run of at most {left} inputs, which are left"),
                why,
            ));
        }
        let alone = end.party;
        end.party = alone.in_pass()?;
        let before = Before::Ahead(Ahead::default());
        let words = run::run(end, (pass, kind), &mut self.states, before, &mut |_| {});
        end.party = alone;
        self.together.forget(end.memory, plan.steps())?;
        self.turns.pass(inputs);
        words
    }
}
