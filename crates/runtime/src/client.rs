//! The client's session.

use graph::Graph;
use ring::Random;
use ring::word::signed;
use wire::{Channel, Error, Phase, Result};
use zeroize::Zeroizing;

use crate::execute::{self, Party};
use crate::hello;
use crate::keys::ClientKeys;
use crate::offline::Offline;
use crate::plan::Plan;
use crate::report::Report;
use crate::steps::Action;

/// What a client wants: one real-valued input, or several with a leading axis.
pub struct Request<'a> {
    /// The values in row-major order, in model units.
    pub values: &'a [f32],
    /// Their shape: the model's input shape, or (N, *input shape).
    pub shape: &'a [usize],
    /// Threads of this party, at least 1.
    pub threads: usize,
    /// Told how many inputs are done.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

/// What it gets.
#[derive(Debug)]
pub struct Answer {
    /// For each input the output integers, or one label, by the server's policy.
    pub results: Vec<Vec<i64>>,
    /// The plan that was verified and run.
    pub plan: Plan,
    /// What it cost.
    pub report: Report,
}

/// Runs a session over `channel`.
///
/// # Errors
/// [`Error::Misuse`] for inputs that do not fit the model (nothing about them has
/// been sent), [`Error::Peer`], [`Error::Transport`], [`Error::Unsupported`] for a
/// plan this release cannot run.
pub fn predict(channel: &mut Channel, request: Request<'_>) -> Result<Answer> {
    let mut rng = random()?;
    let mut inputs = Zeroizing::new(Vec::new());
    let (plan, agreed) = hello::client(channel, &mut rng, |plan| {
        *inputs = quantize(plan.graph(), request.values, request.shape)?;
        Ok(inputs.len())
    })?;
    let keys = ClientKeys::setup(channel, &plan, &agreed, &mut rng)?;
    let mut offline = Offline::setup(channel, &mut rng, &agreed, plan.settings().sourcing())?;
    let mut results = Vec::with_capacity(inputs.len());
    let threads = request.threads;
    let party = |index: usize| {
        let input = inputs.get(index).map_or(&[][..], Vec::as_slice);
        Party::Client { keys: &keys, input, threads }
    };
    let count = inputs.len();
    execute::session(channel, &plan, count, party, &mut offline, &mut rng, |done, words| {
        results.push(decode(&plan, &words));
        (request.progress)(done + 1, count);
    })?;
    channel.flush()?;
    channel.enter(Phase::Setup, None);
    let report = Report::metered(&plan, inputs.len(), channel.meter());
    // The result is here: a server that is gone by now takes nothing away from it.
    let _ = channel.close();
    Ok(Answer { results, plan, report })
}

pub(crate) fn random() -> Result<Random> {
    Random::from_os().map_err(|e| Error::transport(format!("no entropy from the system: {e}")))
}

/// Quantises one input or a batch.
///
/// # Errors
/// [`Error::Misuse`] for another shape than the model's, or values that are not
/// finite.
pub fn quantize(graph: &Graph, values: &[f32], shape: &[usize]) -> Result<Vec<Vec<i64>>> {
    let input = graph.tensors.get(graph.input).ok_or_else(|| Error::misuse("no input"))?;
    let count = match shape.split_first() {
        _ if shape == input.shape => 1,
        Some((count, rest)) if rest == input.shape => *count,
        _ => 0,
    };
    let fits = input.len().checked_mul(count) == Some(values.len());
    if count == 0 || input.is_empty() || !fits {
        let wanted = &input.shape;
        return Err(Error::misuse(format!(
            "the model takes one input of shape {wanted:?}, or N of them with a leading axis; \
             this one has shape {shape:?}"
        )));
    }
    let each = values.chunks_exact(input.len()).map(|values| graph.quantize_input(values));
    each.collect::<graph::Result<_>>().map_err(|e| Error::misuse(e.to_string()))
}

fn decode(plan: &Plan, words: &[u64]) -> Vec<i64> {
    let last = plan.steps().last().map(|step| &step.action);
    let signed_bits = match last {
        Some(Action::Open { bits, signed: true, .. }) => Some(*bits),
        _ => None,
    };
    words.iter().map(|word| signed_bits.map_or(*word as i64, |bits| signed(*word, bits))).collect()
}
