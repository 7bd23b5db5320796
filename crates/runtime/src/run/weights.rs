//! Encodes a server's weights, once for all sessions.

use graph::Model;
use wire::Result;

use crate::plan::Plan;
use crate::step::weights::{WeightSource, Weights};

/// Bytes of transformed weights that a server keeps; it transforms the rest whenever
/// they are used.
const WEIGHT_MEMORY: usize = 1 << 30;

/// Encodes the weights of `model` layer by layer, each of which is freed then.
///
/// # Errors
/// [`wire::Error::Misuse`] for a model without weights that the plan needs.
pub(crate) fn encode(plan: &Plan, mut model: Model) -> Result<Weights> {
    let mut weights = Weights::default();
    let mut memory = WEIGHT_MEMORY;
    for step in plan.steps() {
        let Some(layer) = step.linear() else { continue };
        let mut source = WeightSource {
            model: &mut model,
            graph: plan.graph(),
            node: step.node,
            name: &step.name,
            memory: &mut memory,
            preprocesses: plan.settings().store() > 0,
        };
        if let Some(encoded) = layer.encode_weights(&mut source)? {
            weights.insert(step.node, encoded);
        }
    }
    weights.keep_constants(std::mem::take(&mut model.weights));
    Ok(weights)
}
