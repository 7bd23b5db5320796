//! Runs of several inputs of a model that keeps states, one after another: passes. A language model
//! reads its prompt in few of them.
//!
//! All protocols run for the inputs of a pass as for those of a batch. What the graph keeps is the one thing that
//! an input needs of the one before it. Where the graph only moves values from a state to what the
//! state is after an input, each party follows the states of all inputs by itself, as soon as the new values of all of
//! them are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use graph::Graph;
use mpc::Share;
use wire::{Error, Result, Role};

use super::settings::Settings;
use crate::step::{Action, Party, Step, missing};

/// How the states of the inputs of a pass follow from each other.
#[derive(Debug, Default)]
pub(crate) struct Chain(BTreeMap<usize, Link>);

/// How a state follows from what it was before an input.
#[derive(Debug)]
struct Link {
    /// What it is after an input.
    after: usize,
    /// The local steps that lead from one to the other, in order.
    steps: Vec<usize>,
}

/// Whether `graph` can have the passes of `settings`.
///
/// # Errors
/// [`Error::Misuse`] that says why not.
pub(crate) fn check(graph: &Graph, settings: Settings) -> Result<()> {
    let why = match settings {
        _ if settings.batch.is_some() => "of a server that takes batches; serve without --batch",
        _ if graph.states.is_empty() => {
            "of a model that keeps no state between its inputs; leave --pass out"
        }
        _ if settings.pass() == Some(1) => "of which each has one input; take 2 or more",
        _ if settings.store() > 0 => "of a session that prepares runs; serve without --offline",
        _ => return Ok(()),
    };
    Err(Error::misuse(format!("passes {why}")))
}

impl Chain {
    /// Follows the states of `graph`, whose runs have these `steps`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a state that does not follow from the one before by moving values.
    pub(crate) fn of(graph: &Graph, steps: &[Arc<Step>]) -> Result<Self> {
        let link = |state: &graph::State| {
            let link = Link::of((state.before, state.after), steps);
            let name = graph.nodes.iter().find(|node| node.output == state.after);
            let name = name.map_or("a state", |node| node.name.as_str());
            let why = || {
                format!("passes of a model that computes a state (`{name}`) from the one before it")
            };
            Ok((state.before, link.ok_or_else(|| Error::misuse(why()))?))
        };
        graph.states.iter().map(link).collect::<Result<_>>().map(Self)
    }

    /// Whether a tensor is a state before the inputs of a pass.
    pub(crate) fn has(&self, tensor: usize) -> bool {
        self.0.contains_key(&tensor)
    }

    /// This party's share of a state before each of `inputs` inputs, one after another, of that before the
    /// `first`. `made` are its shares of what other steps wrote, of all inputs.
    ///
    /// # Errors
    /// [`Error::Internal`] for a tensor that no step has written yet.
    pub(crate) fn follow(
        &self,
        (party, role): (&Party<'_>, Role),
        steps: &[Arc<Step>],
        (state, first, inputs): (usize, Share, usize),
        made: &BTreeMap<usize, Share>,
    ) -> Result<Share> {
        let link = self.0.get(&state).ok_or_else(|| missing(state))?;
        let (each, bits) = (first.len(), first.bits());
        let mut words = Vec::with_capacity(each * inputs);
        let mut before = first;
        for input in 0..inputs {
            words.extend_from_slice(before.words());
            if input + 1 == inputs {
                break;
            }
            let mut own = BTreeMap::from([(state, before)]);
            let of_input = |tensor: usize, own: &BTreeMap<usize, Share>| {
                let share = own.get(&tensor).cloned();
                share.or_else(|| Some(one_of(made.get(&tensor)?, (input, inputs))))
            };
            for index in &link.steps {
                let step = steps.get(*index).ok_or_else(|| missing(state))?;
                let Action::Local(local) = &step.action else { return Err(missing(step.writes)) };
                let read = |tensor: &usize| of_input(*tensor, &own).ok_or_else(|| missing(*tensor));
                let reads = step.reads.iter().map(read).collect::<Result<Vec<_>>>()?;
                let share = local.run(role, &reads, party.constants(step.node))?;
                own.insert(step.writes, share);
            }
            before = of_input(link.after, &own).ok_or_else(|| missing(link.after))?;
            if before.len() != each {
                return Err(Error::internal("a state of another size; please report it"));
            }
            before = before.narrow(bits)?;
        }
        Ok(Share::new(words, bits))
    }
}

/// The share of one input, by place among so many.
pub(crate) fn one_of(share: &Share, (input, inputs): (usize, usize)) -> Share {
    let each = share.len() / inputs.max(1);
    share.gather(input * each..(input + 1) * each)
}

impl Link {
    /// The local steps from a state before an input to what it is after it, and those that add to it and come
    /// behind the first that reads the state; `None` where other steps are among them.
    fn of((before, after): (usize, usize), steps: &[Arc<Step>]) -> Option<Self> {
        let first = steps.iter().position(|step| step.reads.contains(&before));
        let mut moved = BTreeSet::from([before]);
        for step in steps {
            if step.reads.iter().any(|tensor| moved.contains(tensor)) {
                moved.insert(step.writes);
                moved.extend(also(step));
            }
        }
        let (mut wanted, mut path) = (BTreeSet::from([after]), Vec::new());
        for (index, step) in steps.iter().map(Arc::as_ref).enumerate().rev() {
            let mut writes = std::iter::once(step.writes).chain(also(step));
            let is_there = first.is_none_or(|first| index < first)
                && !writes.clone().any(|tensor| moved.contains(&tensor));
            if is_there || !writes.any(|tensor| wanted.contains(&tensor)) {
                continue;
            }
            let Action::Local(_) = step.action else { return None };
            wanted.extend(&step.reads);
            path.push(index);
        }
        path.reverse();
        Some(Self { after, steps: path })
    }
}

/// What a step writes beside its own tensor.
fn also(step: &Step) -> impl Iterator<Item = usize> + Clone + '_ {
    let composed = step.composed().map(|composed| composed.also.as_slice()).unwrap_or_default();
    composed.iter().map(|also| also.tensor)
}
