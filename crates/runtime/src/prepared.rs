//! The server's weights, as its layers multiply with them.

use std::collections::BTreeMap;

use graph::{Embedding, Model, NodeWeights, Op, Rounding};
use mpc::linear::coefficient::{Layer, ServerWeights};
use mpc::linear::lola::{self, LayerWeights};
use wire::{Error, Result};
use zeroize::Zeroizing;

use crate::evaluation::Cache;
use crate::packed::PackedWeights;
use crate::plan::Plan;
use crate::steps::{Action, EvaluateStep, SlotsStep, Step};
use crate::transferred::TransferWeights;

/// Bytes of transformed weights that a server keeps; it transforms the rest whenever
/// they are used.
const WEIGHT_MEMORY: usize = 1 << 30;

/// The server's weights, transformed once for all sessions.
#[derive(Default)]
pub(crate) struct Prepared {
    weights: BTreeMap<usize, ServerWeights>,
    slots: BTreeMap<usize, PackedWeights>,
    transferred: BTreeMap<usize, TransferWeights>,
    /// Of a network under encryption.
    network: Option<lola::ServerWeights>,
    /// Of its clients.
    cache: Cache,
    /// Constants of offsets.
    constants: BTreeMap<usize, NodeWeights>,
}

impl Prepared {
    /// The weights of a linear step.
    pub(crate) fn weights(&self, step: &Step) -> Result<&ServerWeights> {
        let weights = step.node.and_then(|node| self.weights.get(&node));
        weights.ok_or_else(|| Error::misuse("a layer without weights"))
    }

    /// The weights of a linear step on packed slots.
    pub(crate) fn slot_weights(&self, step: &Step) -> Result<&PackedWeights> {
        let weights = step.node.and_then(|node| self.slots.get(&node));
        weights.ok_or_else(|| Error::misuse("a layer without weights"))
    }

    /// The weights of a linear step by transfers.
    pub(crate) fn transfer_weights(&self, step: &Step) -> Result<&TransferWeights> {
        let weights = step.node.and_then(|node| self.transferred.get(&node));
        weights.ok_or_else(|| Error::misuse("a layer without weights"))
    }

    /// The weights of a network under encryption.
    pub(crate) fn network(&self) -> Result<&lola::ServerWeights> {
        self.network.as_ref().ok_or_else(|| Error::misuse("a network without weights"))
    }

    /// With a cache of so many bytes.
    pub(crate) fn with_key_cache(self, quota: usize) -> Self {
        Self { cache: Cache::new(quota), ..self }
    }

    /// Evaluation keys of clients who may come back.
    pub(crate) const fn key_cache(&self) -> &Cache {
        &self.cache
    }

    /// The constants of an offset.
    pub(crate) fn constants(&self, step: &Step) -> Result<&[i64]> {
        let constants = step.node.and_then(|node| self.constants.get(&node));
        let constants = constants.ok_or_else(|| Error::misuse("an offset without constants"))?;
        Ok(&constants.bias)
    }

    /// Encodes the weights of `model` layer by layer, each of which is freed then.
    pub(crate) fn new(plan: &Plan, mut model: Model) -> Result<Self> {
        let mut prepared = Self::default();
        let mut memory = WEIGHT_MEMORY;
        for step in plan.steps() {
            if let Action::Evaluate(evaluate) = &step.action {
                let layers = layers(&mut model, step, evaluate, plan)?;
                let threads = std::thread::available_parallelism().map_or(1, usize::from);
                let weights = lola::ServerWeights::new(&evaluate.plan, &layers, threads)?;
                prepared.network = Some(weights);
            }
            let Some(node) = step.node else { continue };
            match &step.action {
                Action::Linear(linear) if linear.positions.is_some() => {
                    let Op::Embedding(table) = plan.op(node)? else {
                        return Err(Error::misuse("positions without a table"));
                    };
                    let table = table.clone();
                    let weights = take(&mut model, step, node)?;
                    let ready = embedded(&linear.layer, &table, &weights.weight, &mut memory)?;
                    let keep = linear.ahead || plan.settings().store() > 0;
                    let ready = if keep {
                        ready.keeping(&across(&weights.weight, table.rows))
                    } else {
                        ready
                    };
                    prepared.weights.insert(node, ready);
                }
                Action::Linear(linear) => {
                    let Op::Linear(op) = plan.op(node)? else {
                        return Err(Error::misuse("a linear step without a linear node"));
                    };
                    let weights = take(&mut model, step, node)?;
                    let (weight, bias) = (&weights.weight, rounded(&weights.bias, op));
                    let mut ready = ServerWeights::new(&linear.layer, weight, &bias, &mut memory)?;
                    if linear.ahead || plan.settings().store() > 0 {
                        ready = ready.keeping(weight);
                    }
                    prepared.weights.insert(node, ready);
                }
                Action::Transfer(transfer) => {
                    let weights = take(&mut model, step, node)?;
                    let ready = transfer.weights(&weights.weight, &weights.bias)?;
                    prepared.transferred.insert(node, ready);
                }
                Action::Slots(packed) => {
                    let SlotsStep { layer, half, .. } = packed.as_ref();
                    let weights = take(&mut model, step, node)?;
                    let bias: Vec<i64> = weights.bias.iter().map(|b| b + half).collect();
                    let bias = Zeroizing::new(bias);
                    let weight = &weights.weight;
                    let ready = layer.weights(weight, &bias, &mut memory)?;
                    prepared.slots.insert(node, ready);
                }
                _ => {}
            }
        }
        prepared.constants = std::mem::take(&mut model.weights);
        Ok(prepared)
    }
}

/// The weights of the layers of a network under encryption; those of pools are ones.
fn layers(
    model: &mut Model,
    step: &Step,
    evaluate: &EvaluateStep,
    plan: &Plan,
) -> Result<Vec<Option<LayerWeights>>> {
    let mut pools = plan.graph().nodes.iter().filter_map(|node| match &node.op {
        Op::SumPool(window) => Some(Some(window)),
        Op::Product { .. } | Op::Linear(_) => Some(None),
        _ => None,
    });
    let layer = |node: &Option<usize>| match (node, pools.next().flatten()) {
        (Some(node), _) => {
            let mut weights = take(model, step, *node)?;
            let weight = Zeroizing::new(std::mem::take(&mut weights.weight));
            let bias = Zeroizing::new(std::mem::take(&mut weights.bias));
            Ok(Some(LayerWeights { weight, bias }))
        }
        (None, Some(window)) => {
            let weight = Zeroizing::new(vec![1; window.channels * window.size()]);
            let bias = Zeroizing::new(vec![0; window.channels]);
            Ok(Some(LayerWeights { weight, bias }))
        }
        (None, None) => Ok(None),
    };
    evaluate.nodes.iter().map(layer).collect()
}

/// A table as the weights of a layer on vectors that name a row.
fn embedded(
    layer: &Layer,
    table: &Embedding,
    entries: &[i32],
    memory: &mut usize,
) -> Result<ServerWeights> {
    let weight = across(entries, table.rows);
    let columns = entries.len() / table.rows.max(1);
    let half = rounding_term(table.rounding, table.shift);
    ServerWeights::new(layer, &weight, &vec![half; columns], memory)
}

/// `[columns, rows]` of `[rows, columns]`.
fn across(entries: &[i32], rows: usize) -> Zeroizing<Vec<i32>> {
    let columns = entries.len() / rows.max(1);
    let column = |column: usize| entries.iter().skip(column).step_by(columns.max(1)).copied();
    Zeroizing::new((0..columns).flat_map(column).collect())
}

/// The weights of a step's node.
fn take(model: &mut Model, step: &Step, node: usize) -> Result<NodeWeights> {
    let weights = model.weights.remove(&node);
    weights.ok_or_else(|| Error::misuse(format!("node `{}` has no weights", step.name)))
}

/// The bias, with the half unit that turns the exact floor into rounding. The
/// stochastic rescale rounds by itself.
fn rounded(bias: &[i64], op: &graph::Linear) -> Vec<i64> {
    let half = rounding_term(op.rounding, op.shift);
    bias.iter().map(|b| b + half).collect()
}

fn rounding_term(rounding: Rounding, shift: u32) -> i64 {
    match (rounding, shift) {
        (Rounding::Stochastic, _) | (_, 0) => 0,
        (Rounding::Exact, shift) => 1i64 << (shift - 1),
    }
}
