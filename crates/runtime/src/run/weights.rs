//! Encodes a server's weights, once for all sessions.

use std::collections::BTreeMap;

use graph::Model;
use wire::Result;

use crate::linear::coefficient::CoefficientLayer;
use crate::plan::Plan;
use crate::step::weights::{Encoded, WeightSource, Weights};

/// Bytes of transformed weights that a server keeps; it transforms the rest whenever
/// they are used.
const WEIGHT_MEMORY: usize = 1 << 30;

/// Encodes the weights of `model` layer by layer, each of which is freed then.
///
/// # Errors
/// [`wire::Error::Misuse`] for a model without weights that the plan needs.
pub(crate) fn encode(plan: &Plan, model: Model) -> Result<Weights> {
    Encoder::default().encode(plan, model)
}

/// Encodes weights of one model for several plans, and what they have in common once.
pub(crate) struct Encoder {
    /// By what they are made of, encoded weights and the names of the nodes whose they were.
    known: BTreeMap<String, (Encoded, Vec<String>)>,
    memory: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { known: BTreeMap::new(), memory: WEIGHT_MEMORY }
    }
}

impl Encoder {
    /// Encodes the weights of `model`, which is the same for all plans but for share widths.
    ///
    /// # Errors
    /// As [`encode`].
    pub(crate) fn encode(&mut self, plan: &Plan, mut model: Model) -> Result<Weights> {
        let mut weights = Weights::default();
        let (graph, preprocesses) = (plan.graph(), plan.settings().store() > 0);
        let held = plan
            .steps()
            .iter()
            .filter_map(|step| step.linear()?.downcast().map(CoefficientLayer::transform_bytes));
        let scarce = held.fold(0, usize::saturating_add) > self.memory;
        for step in plan.steps() {
            let Some(layer) = step.linear() else { continue };
            let op = step.node.and_then(|node| graph.nodes.get(node)).map(|node| &node.op);
            let made_of = format!("{} {op:?} {layer:?} {preprocesses}", step.name);
            if let Some((encoded, nodes)) = self.known.get(&made_of) {
                weights.insert(step.node, encoded.clone());
                let is_used = |node: &usize| {
                    graph.nodes.get(*node).is_some_and(|node| nodes.contains(&node.name))
                };
                model.weights.retain(|node, _| !is_used(node));
                continue;
            }
            let before: Vec<usize> = model.weights.keys().copied().collect();
            let mut source = WeightSource {
                model: &mut model,
                graph,
                node: step.node,
                name: &step.name,
                memory: &mut self.memory,
                scarce,
                preprocesses,
            };
            let Some(encoded) = layer.encode_weights(&mut source)? else { continue };
            weights.insert(step.node, encoded.clone());
            let used = before.into_iter().filter(|node| !model.weights.contains_key(node));
            let named = |node: usize| graph.nodes.get(node).map(|node| node.name.clone());
            self.known.insert(made_of, (encoded, used.filter_map(named).collect()));
        }
        weights.keep_constants(std::mem::take(&mut model.weights));
        Ok(weights)
    }
}
