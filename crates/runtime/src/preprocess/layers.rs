//! Linear layers on masks, before their inputs exist. Those of a run share one exchange each
//! for oblivious transfers and for ciphertexts, or a few where the answers of all would take too
//! much memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mpc::{Correlations, Demand};
use wire::{Phase, Result};

use super::segments::segments;
use super::segments::steps_of;
use crate::step::Step;
use crate::step::context::{Endpoint, Preprocessing};
use crate::step::correlations::{FirstOts, When};
use crate::step::linear::{Exchange, Preprocess};
use crate::step::preprocessed::{Asked, Preprocessed};

/// Bytes of answers that a server holds back at a time.
const MOST_HELD: usize = 128 << 20;

/// A layer that can be preprocessed, with its step and the step's index.
pub(crate) type LayerAt<'a> = (usize, &'a Step, &'a dyn Preprocess);

/// One preprocessed run, consumed by the run of its inputs.
pub(crate) struct Inference {
    pub(crate) correlations: Correlations,
    pub(crate) layers: BTreeMap<usize, Preprocessed>,
}

/// What was sent ahead of the last flight of the setup, for the first run.
#[derive(Default)]
pub(crate) struct Ahead {
    /// What layers keep that have asked, by step.
    pub(crate) asked: BTreeMap<usize, Asked>,
    /// The OTs that the server sends.
    pub(crate) ots: Option<FirstOts>,
    /// What the run takes of layers that were preprocessed for several, by step.
    pub(crate) together: BTreeMap<usize, Preprocessed>,
}

/// The layers among `steps` that take part in `exchange`: all that can, or those that do in
/// every session.
pub(crate) fn layers_of<'a>(
    steps: impl Iterator<Item = (usize, &'a Step)>,
    exchange: Exchange,
    all: bool,
) -> Vec<LayerAt<'a>> {
    let layer = |(index, step): (usize, &'a Step)| {
        let layer = step.linear().filter(|layer| all || layer.is_preprocessed())?;
        let layer = layer.preprocess().filter(|layer| layer.exchange() == exchange)?;
        Some((index, step, layer))
    };
    steps.filter_map(layer).collect()
}

/// The demand of some steps whose correlations are made together: first those of preprocessed
/// layers, then those that each step needs `online`.
pub(crate) fn demand<'a>(
    steps: impl Iterator<Item = &'a Step> + Clone,
    online: impl Fn(&Step) -> Demand,
) -> Demand {
    let masks: Demand = steps.clone().map(Step::mask_demand).sum();
    masks + steps.map(online).sum()
}

/// The layers that go in one exchange of ciphertexts: as many as have answers of up to `most`
/// bytes.
pub(crate) fn exchanges<'a, 's>(layers: &'a [LayerAt<'s>], most: usize) -> Vec<&'a [LayerAt<'s>]> {
    let (mut rest, mut all) = (layers, Vec::new());
    while !rest.is_empty() {
        let mut held = 0usize;
        let fitting = rest.iter().take_while(|(.., layer)| {
            held = held.saturating_add(layer.asked_bytes());
            held <= most
        });
        let (some, others) = rest.split_at(fitting.count().clamp(1, rest.len()));
        all.push(some);
        rest = others;
    }
    all
}

/// Groups of layers that ask before any of them is finished.
pub(crate) fn groups<'a, 's>(
    layers: &'a [LayerAt<'s>],
    exchange: Exchange,
) -> Vec<&'a [LayerAt<'s>]> {
    match exchange {
        Exchange::ObliviousTransfer if layers.is_empty() => Vec::new(),
        Exchange::ObliviousTransfer => vec![layers],
        Exchange::Encryption => exchanges(layers, MOST_HELD),
    }
}

/// The layers among `steps` that can ask before the steps begin: those of the first group of ciphertexts.
pub(crate) fn first_asked<'a>(steps: impl Iterator<Item = (usize, &'a Step)>) -> Vec<LayerAt<'a>> {
    let mut layers = layers_of(steps, Exchange::Encryption, false);
    layers.truncate(first_of(&layers));
    layers
}

/// The segments whose layers ask first when the segment at `place` begins: before correlations are exchanged
/// for the next one, and after that. Each but the first asks two segments ahead, as far as there are as many.
pub(crate) const fn early_asks(place: usize) -> [Range<usize>; 2] {
    let sooner = if place == 0 { 1..2 } else { 0..0 };
    [sooner, place + 2..place + 3]
}

/// How many of these layers are in the first group of ciphertexts.
pub(super) fn first_of(layers: &[LayerAt<'_>]) -> usize {
    groups(layers, Exchange::Encryption).first().map_or(0, |group| group.len())
}

/// Lets a group of layers ask, of those that need nothing for it; the layers keep what is returned.
pub(crate) fn ask_first(
    end: &mut Endpoint<'_>,
    group: &[LayerAt<'_>],
) -> Result<BTreeMap<usize, Asked>> {
    let mut asked = BTreeMap::new();
    ask(end, group, &mut Correlations::default(), &mut asked)?;
    Ok(asked)
}

/// Preprocesses `layers`, whose correlations come first in `correlations`: all layers of a group
/// ask before any is finished, so that a network takes as many rounds as a layer. Those in `asked`
/// have asked before.
pub(crate) fn preprocess_layers(
    end: &mut Endpoint<'_>,
    layers: &[LayerAt<'_>],
    exchange: Exchange,
    correlations: &mut Correlations,
    asked: &mut BTreeMap<usize, Asked>,
) -> Result<BTreeMap<usize, Preprocessed>> {
    let mut preprocessed = BTreeMap::new();
    for group in groups(layers, exchange) {
        ask(end, group, correlations, asked)?;
        for (index, step, layer) in group {
            let cx = &mut context(end, (*index, step), correlations);
            preprocessed.insert(*index, layer.finish(cx, asked.remove(index))?);
        }
    }
    Ok(preprocessed)
}

/// Lets those layers of a group ask that ask together and have not `asked` yet.
fn ask(
    end: &mut Endpoint<'_>,
    group: &[LayerAt<'_>],
    correlations: &mut Correlations,
    asked: &mut BTreeMap<usize, Asked>,
) -> Result<()> {
    for (index, step, layer) in group.iter().filter(|(.., layer)| layer.asks_together()) {
        if !asked.contains_key(index) {
            let cx = &mut context(end, (*index, step), correlations);
            asked.insert(*index, layer.ask(cx)?);
        }
    }
    Ok(())
}

fn context<'s>(
    end: &'s mut Endpoint<'_>,
    (index, step): (usize, &Step),
    correlations: &'s mut Correlations,
) -> Preprocessing<'s> {
    end.channel.enter(Phase::Preprocess, Some(index));
    Preprocessing {
        channel: end.channel,
        party: end.party,
        rng: end.rng,
        memory: end.memory,
        index,
        node: step.node,
        correlations,
        source: end.source,
    }
}

/// Preprocesses one run, after what was sent `ahead` for it.
pub(crate) fn preprocess(
    end: &mut Endpoint<'_>,
    steps: &[Arc<Step>],
    ahead: Ahead,
) -> Result<Inference> {
    end.source.set_threads(end.party.threads());
    let Ahead { mut asked, ots, .. } = ahead;
    let demand = run_demand(steps);
    let ots = end.source.exchange(end.channel, &demand, ots, When::Now)?;
    let correlations = end.source.complete(end.channel, &demand, ots)?;
    let mut layers = BTreeMap::new();
    // The correlations of masks are not held, and there may be many.
    for segment in segments(steps) {
        let some = steps_of(steps, &segment);
        let demand: Demand = some.clone().map(|(_, step)| step.mask_demand()).sum();
        let mut masks = end.source.prepare(end.channel, &demand)?;
        let exchange = Exchange::ObliviousTransfer;
        let some = layers_of(some, exchange, true);
        layers.extend(preprocess_layers(end, &some, exchange, &mut masks, &mut BTreeMap::new())?);
    }
    let exchange = Exchange::Encryption;
    let linear = layers_of(steps.iter().map(Arc::as_ref).enumerate(), exchange, true);
    let none = &mut Correlations::default();
    layers.extend(preprocess_layers(end, &linear, exchange, none, &mut asked)?);
    Ok(Inference { correlations, layers })
}

/// What the steps of a run take that is preprocessed.
pub(crate) fn run_demand(steps: &[Arc<Step>]) -> Demand {
    steps.iter().map(|step| step.demand()).sum()
}
