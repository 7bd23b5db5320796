//! How many inputs of a session share a run, where nobody says.

use std::num::NonZeroU32;

use graph::Graph;

use super::rates::Conditions;
use crate::plan::batch::{MOST_INPUTS, most};
use crate::plan::{Plan, Settings};
use crate::step::spent::counted;

/// Bytes that the server may hold for a session of such runs.
const MOST_MEMORY: u64 = 512 << 20;

/// Returns the number of inputs of a run with which a session of `inputs` inputs is predicted to take
/// least time, of those whose memory is bounded by half a gigabyte: 1 for models that take
/// anything but rows of numbers. Runs are about equally full.
pub fn suited_batch(
    graph: &Graph,
    settings: Settings,
    conditions: &Conditions,
    inputs: usize,
) -> usize {
    let most = if graph.exact.is_some() { 1 } else { most(graph) };
    if most <= MOST_INPUTS {
        return 1;
    }
    let (mut best, mut least) = (1, f64::INFINITY);
    let sizes = std::iter::successors(Some(1usize), |size| Some(2 * size));
    for size in sizes.take_while(|size| *size <= most.min(inputs.max(1).next_power_of_two())) {
        let runs = inputs.max(1).div_ceil(size);
        let batch = inputs.max(1).div_ceil(runs);
        let batched = u32::try_from(batch).ok().and_then(NonZeroU32::new);
        let settings = Settings { batch: batched.filter(|batch| batch.get() > 1), ..settings };
        let Ok(plan) = Plan::new(graph.clone(), settings) else { break };
        if size > 1 && plan.session_memory() > MOST_MEMORY {
            break;
        }
        let seconds = |runs: usize| -> f64 {
            let parts = counted(plan.parts(runs * batch));
            conditions.timed(parts).iter().map(|(_, seconds)| seconds).sum()
        };
        // A session of two runs tells what each further run takes.
        let first = seconds(1);
        let all = first + (runs - 1) as f64 * (seconds(2) - first);
        if all < least {
            (best, least) = (batch, all);
        }
    }
    best
}
