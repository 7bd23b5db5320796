//! Linear layers under encryption on masks, before their inputs exist: those of a run share one
//! exchange, or a few where the answers of all would take too much memory.

use std::collections::BTreeMap;

use mpc::linear::coefficient::{ClientAsked, Layer, ServerAsked, Worker};
use ring::Random;
use wire::{Channel, Phase, Result};

use crate::ahead::LayerAhead;
use crate::execute::Party;
use crate::plan::{Part, Spent};
use crate::steps::{Action, Step};

/// Bytes of answers that a server holds back at a time.
const MOST_HELD: usize = 128 << 20;

/// A step that is a layer under encryption, and its index.
pub(crate) type LinearAt<'a> = (usize, &'a Step, &'a Layer);

/// All layers under encryption.
pub(crate) fn all_linear<'a>(steps: impl Iterator<Item = (usize, &'a Step)>) -> Vec<LinearAt<'a>> {
    let linear = steps.filter_map(|(index, step)| match &step.action {
        Action::Linear(linear) => Some((index, step, &linear.layer)),
        _ => None,
    });
    linear.collect()
}

/// Those that run ahead in every session.
pub(crate) fn chosen<'a>(steps: impl Iterator<Item = (usize, &'a Step)>) -> Vec<LinearAt<'a>> {
    let chosen = steps.filter_map(|(index, step)| Some((index, step, &step.runs_ahead()?.layer)));
    chosen.collect()
}

/// The layers that go in one exchange: as many as have answers of up to `most` bytes.
fn exchanges<'a, 's>(layers: &'a [LinearAt<'s>], most: usize) -> Vec<&'a [LinearAt<'s>]> {
    let (mut rest, mut all) = (layers, Vec::new());
    while !rest.is_empty() {
        let mut held = 0usize;
        let fitting = rest.iter().take_while(|(.., layer)| {
            held = held.saturating_add(layer.held_bytes());
            held <= most
        });
        let (some, others) = rest.split_at(fitting.count().clamp(1, rest.len()));
        all.push(some);
        rest = others;
    }
    all
}

/// Runs layers on masks: the client asks for all of an exchange before it hears any answer.
pub(crate) fn encrypted(
    channel: &mut Channel,
    layers: &[LinearAt<'_>],
    party: &Party<'_>,
    rng: &mut Random,
) -> Result<BTreeMap<usize, LayerAhead>> {
    let worker = &mut Worker { rng, threads: party.threads() };
    let mut prepared = BTreeMap::new();
    for exchange in exchanges(layers, MOST_HELD) {
        match party {
            Party::Client { keys, .. } => {
                let mut asked = Vec::with_capacity(exchange.len());
                for (index, _, layer) in exchange {
                    channel.enter(Phase::Offline, Some(*index));
                    let key = keys.for_degree(layer.params().degree())?;
                    asked.push(ClientAsked::ask(channel, layer, key, worker)?);
                }
                for ((index, _, layer), asked) in exchange.iter().zip(asked) {
                    channel.enter(Phase::Offline, Some(*index));
                    let key = keys.for_degree(layer.params().degree())?;
                    let ahead = asked.finish(channel, layer, key, worker)?;
                    prepared.insert(*index, LayerAhead::Client(ahead));
                }
            }
            Party::Server { keys, prepared: weights, .. } => {
                let mut asked = Vec::with_capacity(exchange.len());
                for (index, step, layer) in exchange {
                    channel.enter(Phase::Offline, Some(*index));
                    let key = keys.for_degree(layer.params().degree())?;
                    let weights = weights.weights(step)?;
                    asked.push(ServerAsked::read(channel, layer, key, weights, worker)?);
                }
                for ((index, _, layer), asked) in exchange.iter().zip(asked) {
                    channel.enter(Phase::Offline, Some(*index));
                    let ahead = asked.finish(channel, layer)?;
                    prepared.insert(*index, LayerAhead::Server(ahead));
                }
            }
        }
    }
    Ok(prepared)
}

/// What [`encrypted`] takes, part by part.
pub(crate) fn encrypted_costs(layers: &[LinearAt<'_>]) -> Vec<Part> {
    let mut costs = Vec::with_capacity(2 * layers.len());
    for exchange in exchanges(layers, MOST_HELD) {
        let part = |index: usize, spent| Part::new(Phase::Offline, Some(index), spent);
        for (index, _, layer) in exchange {
            costs.push(part(*index, Spent { cost: layer.asks(), effort: layer.effort() }));
        }
        for (index, _, layer) in exchange {
            costs.push(part(*index, Spent::sending(layer.answers())));
        }
    }
    costs
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::plan::{Plan, Settings};
    use graph::Rounding;
    use wire::Cost;

    #[test]
    fn layers_share_an_exchange_while_their_answers_fit() {
        let mut rng = Random::seeded(51);
        let model = crate::tests::network(&mut rng, Rounding::Stochastic);
        let plan = Plan::new(model.graph, Settings::default()).unwrap();
        let layers = all_linear(plan.steps().iter().enumerate());
        assert_eq!(layers.len(), 3);
        let sizes = |most| exchanges(&layers, most).iter().map(|some| some.len()).collect();
        let all: Vec<usize> = sizes(MOST_HELD);
        assert_eq!(all, [3]);
        let two = layers.iter().take(2).map(|(.., layer)| layer.held_bytes()).sum();
        for (most, want) in [(0, vec![1, 1, 1]), (two, vec![2, 1])] {
            let some: Vec<usize> = sizes(most);
            assert_eq!(some, want);
        }
        let cost: Cost = encrypted_costs(&layers).into_iter().map(|part| part.spent.cost).collect();
        assert_eq!(cost.rounds, 2);
        let alone = layers.iter().map(|(.., layer)| layer.cost().bytes()).sum::<u64>();
        assert_eq!(cost.bytes(), alone);
    }
}
