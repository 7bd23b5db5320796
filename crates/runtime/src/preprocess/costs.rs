//! What preprocessing costs, part by part, in the order in which it runs.

use std::sync::Arc;

use mpc::Demand;
use wire::Phase;

use super::layers::{LayerAt, groups, layers_of, run_demand};
use super::segments::segments;
use super::segments::steps_of;
use crate::step::Step;
use crate::step::correlations::Schedules;
use crate::step::linear::Exchange;
use crate::step::spent::{Part, Spent, parted};

/// What [`preprocess_layers`](super::layers::preprocess_layers) costs, of which the first
/// group has `asked` before.
pub(crate) fn layer_costs(
    layers: &[LayerAt<'_>],
    exchange: Exchange,
    schedules: &mut Schedules,
    asked: bool,
) -> Vec<Part> {
    let mut costs = Vec::new();
    for (place, group) in groups(layers, exchange).into_iter().enumerate() {
        if !asked || place > 0 {
            costs.extend(ask_costs(group));
        }
        for (index, _, layer) in group {
            if layer.correlated() > 0 {
                let made = schedules.correlated(layer.correlated());
                costs.push(Part::new(Phase::Preprocess, None, made));
            }
            for (demand, [asks, finishes]) in layer.parts() {
                if !layer.asks_together() {
                    costs.push(Part::new(Phase::Preprocess, None, schedules.prepare(&demand)));
                    costs.push(part(*index, asks));
                }
                costs.push(part(*index, finishes));
            }
        }
    }
    costs
}

fn part(index: usize, spent: Spent) -> Part {
    Part::new(Phase::Preprocess, Some(index), spent)
}

/// What the layers of the next window send that ask in the one of this number, which the server
/// multiplies while it waits in that.
pub(crate) fn early_costs(group: &[LayerAt<'_>], window: usize) -> Vec<Part> {
    let mut costs = ask_costs(group);
    for part in &mut costs {
        let later;
        (part.spent.work, later) = parted(part.spent.work);
        part.later = Some((window, later));
    }
    costs
}

/// What the layers of a group send that ask together.
pub(super) fn ask_costs(group: &[LayerAt<'_>]) -> Vec<Part> {
    let together = group.iter().filter(|(.., layer)| layer.asks_together());
    let asks = |(index, _, layer): &LayerAt<'_>| {
        let index = *index;
        layer.parts().into_iter().map(move |(_, [asks, _])| part(index, asks))
    };
    together.flat_map(asks).collect()
}

/// What [`preprocess`](super::layers::preprocess) costs next, after what was sent ahead if
/// layers have `asked` already.
pub(crate) fn run_costs(steps: &[Arc<Step>], schedules: &mut Schedules, asked: bool) -> Vec<Part> {
    let demand = run_demand(steps);
    let mut costs = vec![Part::new(Phase::Preprocess, None, schedules.prepare(&demand))];
    for segment in segments(steps) {
        let some = steps_of(steps, &segment);
        let demand: Demand = some.clone().map(|(_, step)| step.mask_demand()).sum();
        costs.push(Part::new(Phase::Preprocess, None, schedules.prepare(&demand)));
        let exchange = Exchange::ObliviousTransfer;
        costs.extend(layer_costs(&layers_of(some, exchange, true), exchange, schedules, false));
    }
    let exchange = Exchange::Encryption;
    let linear = layers_of(steps.iter().map(Arc::as_ref).enumerate(), exchange, true);
    costs.extend(layer_costs(&linear, exchange, schedules, asked));
    costs
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use graph::Rounding;
    use ring::Random;
    use wire::Cost;

    use super::*;
    use crate::plan::{Plan, Settings};
    use crate::preprocess::layers::exchanges;

    #[test]
    fn layers_share_an_exchange_while_their_answers_fit() {
        let mut rng = Random::seeded(51);
        let model = crate::tests::network(&mut rng, Rounding::Stochastic);
        let plan = Plan::new(model.graph, Settings::default()).unwrap();
        let layers =
            layers_of(plan.steps().iter().map(Arc::as_ref).enumerate(), Exchange::Encryption, true);
        assert_eq!(layers.len(), 3);
        let sizes = |most| exchanges(&layers, most).iter().map(|some| some.len()).collect();
        let all: Vec<usize> = sizes(128 << 20);
        assert_eq!(all, [3]);
        let two = layers.iter().take(2).map(|(.., layer)| layer.asked_bytes()).sum();
        for (most, want) in [(0, vec![1, 1, 1]), (two, vec![2, 1])] {
            let some: Vec<usize> = sizes(most);
            assert_eq!(some, want);
        }
        let mut schedules = Schedules::new(plan.settings().sourcing());
        let costs = layer_costs(&layers, Exchange::Encryption, &mut schedules, false);
        let cost: Cost = costs.into_iter().map(|part| part.spent.cost).collect();
        assert_eq!(cost.rounds, 2);
        let alone = plan.steps().iter().filter_map(|step| step.linear());
        assert_eq!(cost.bytes(), alone.map(|layer| layer.spent().cost.bytes()).sum::<u64>());
    }
}
