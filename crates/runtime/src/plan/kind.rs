//! What a client wants of a run: its result, or only what the graph keeps for the next one.
//!
//! A language model that reads its prompt token by token needs keys and values of each, and the next
//! token of the last alone. The client says which before each run, so that the server knows it too,
//! and what runs for the result only is left out.

use std::sync::Arc;

use graph::Graph;
use wire::{Channel, Cost, Error, Message, Phase, Result, Role, tags};

use super::Plan;
use super::settings::{Reveal, Settings};
use crate::step::Step;

/// Bytes of a message.
const LEN: u64 = 1;

/// What a run is for, and whether it is a pass: a run of several inputs that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The result of one input, or of a batch, and what the graph keeps.
    #[default]
    Whole,
    /// What the graph keeps: the client learns nothing.
    States,
    /// The results of all inputs of a pass, and what the graph keeps behind the last.
    WholePass,
    /// What the graph keeps behind the last input of a pass.
    StatesPass,
}

impl Message for Kind {
    type Shape = ();
    const TAG: u8 = tags::RUN_KIND;

    fn bounds((): &()) -> (u64, u64) {
        (LEN, LEN)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Whole => 0,
            Self::States => 1,
            Self::WholePass => 2,
            Self::StatesPass => 3,
        });
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        match body {
            [0] => Ok(Self::Whole),
            [1] => Ok(Self::States),
            [2] => Ok(Self::WholePass),
            [3] => Ok(Self::StatesPass),
            _ => Err(Error::peer("a kind of run, 0 to 3", "another")),
        }
    }
}

impl Kind {
    /// Lets the client say what it wants, where the `plan` leaves it the choice; else all runs are whole. What
    /// the server passes is of no account.
    ///
    /// # Errors
    /// [`Error::Peer`] for a kind that the plan does not have, [`Error::Transport`].
    pub(crate) fn agreed(self, channel: &mut Channel, plan: &Plan) -> Result<Self> {
        if !plan.has_kinds() {
            return Ok(Self::Whole);
        }
        channel.enter(Phase::Online, None);
        let kind = match channel.role() {
            Role::Client => channel.send(&self).map(|()| self)?,
            Role::Server => channel.receive(&())?,
        };
        if kind.is_pass() && plan.pass().is_none() {
            return Err(Error::peer("a run of one input", "one of several"));
        }
        Ok(kind)
    }

    /// Whether a run is for what the graph keeps alone.
    pub(crate) const fn is_for_states(self) -> bool {
        matches!(self, Self::States | Self::StatesPass)
    }

    /// Whether it has several inputs that follow each other.
    pub(crate) const fn is_pass(self) -> bool {
        matches!(self, Self::WholePass | Self::StatesPass)
    }

    /// The kind of a pass that is for the same.
    pub(crate) const fn pass(self) -> Self {
        if self.is_for_states() { Self::StatesPass } else { Self::WholePass }
    }

    /// What saying it costs.
    pub(crate) const fn cost() -> Cost {
        Cost::message(Role::Client, LEN)
    }
}

/// How many of the `steps` a run takes that is for what the graph keeps alone, where the client may
/// want such runs: there are states, the result is a label, and steps follow that only lead to it.
pub(crate) fn states_end(graph: &Graph, settings: Settings, steps: &[Arc<Step>]) -> Option<usize> {
    if graph.states.is_empty() || settings.reveal != Reveal::Label {
        return None;
    }
    let mut wanted: Vec<usize> = graph.states.iter().map(|state| state.after).collect();
    let mut end = 0;
    for (index, step) in steps.iter().map(Arc::as_ref).enumerate().rev() {
        let also = step.composed().map(|composed| composed.also.as_slice()).unwrap_or_default();
        if wanted.contains(&step.writes) || also.iter().any(|also| wanted.contains(&also.tensor)) {
            end = end.max(index + 1);
            wanted.extend(&step.reads);
        }
    }
    (end > 0 && end < steps.len()).then_some(end)
}
