//! Linear layers on masks, before their inputs exist. Those of a run share one exchange each
//! for oblivious transfers and for ciphertexts, or a few where the answers of all would take too
//! much memory.

use std::collections::BTreeMap;

use mpc::{Correlations, Demand};
use ring::Random;
use wire::{Channel, Phase, Result};

use super::correlations::CorrelationSource;
use super::segments::segments;
use crate::linear::context::{Party, Preprocessing};
use crate::linear::protocol::{Exchange, Preprocess, Preprocessed};
use crate::plan::step::Step;

/// Bytes of answers that a server holds back at a time.
const MOST_HELD: usize = 128 << 20;

/// A layer that can be preprocessed, with its step and the step's index.
pub(crate) type LayerAt<'a> = (usize, &'a Step, &'a dyn Preprocess);

/// One preprocessed run, consumed by the run of its inputs.
pub(crate) struct Inference {
    pub(crate) ots: Correlations,
    pub(crate) layers: BTreeMap<usize, Preprocessed>,
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

/// What a party preprocesses with.
pub(crate) struct Preprocessor<'a> {
    pub(crate) channel: &'a mut Channel,
    pub(crate) party: Party<'a>,
    pub(crate) source: &'a mut CorrelationSource,
    pub(crate) rng: &'a mut Random,
}

impl Preprocessor<'_> {
    /// Preprocesses `layers`, whose correlations come first in `ots`: all layers of a group ask
    /// before any is finished, so that a network takes as many rounds as a layer.
    pub(crate) fn layers(
        &mut self,
        layers: &[LayerAt<'_>],
        exchange: Exchange,
        ots: &mut Correlations,
    ) -> Result<BTreeMap<usize, Preprocessed>> {
        let mut prepared = BTreeMap::new();
        for group in groups(layers, exchange) {
            let mut asked = BTreeMap::new();
            for (index, step, layer) in group.iter().filter(|(.., layer)| layer.asks_together()) {
                asked.insert(*index, layer.ask(&mut self.context(*index, step, ots))?);
            }
            for (index, step, layer) in group {
                let asked = asked.remove(index);
                let ready = layer.finish(&mut self.context(*index, step, ots), asked)?;
                prepared.insert(*index, ready);
            }
        }
        Ok(prepared)
    }

    fn context<'s>(
        &'s mut self,
        index: usize,
        step: &Step,
        ots: &'s mut Correlations,
    ) -> Preprocessing<'s> {
        self.channel.enter(Phase::Preprocess, Some(index));
        Preprocessing {
            channel: self.channel,
            party: self.party,
            rng: self.rng,
            index,
            node: step.node,
            correlations: ots,
            source: self.source,
        }
    }

    /// Preprocesses one run.
    pub(crate) fn run(&mut self, steps: &[Step]) -> Result<Inference> {
        self.source.set_threads(self.party.threads());
        let ots = self.source.prepare(self.channel, &steps.iter().map(Step::demand).sum())?;
        let mut layers = BTreeMap::new();
        // The correlations of masks are not held, and there may be many.
        for segment in segments(steps) {
            let some = steps.iter().enumerate().skip(segment.start).take(segment.len());
            let demand: Demand = some.clone().map(|(_, step)| step.mask_demand()).sum();
            let mut ots = self.source.prepare(self.channel, &demand)?;
            let exchange = Exchange::ObliviousTransfer;
            layers.extend(self.layers(&layers_of(some, exchange, true), exchange, &mut ots)?);
        }
        let linear = layers_of(steps.iter().enumerate(), Exchange::Encryption, true);
        layers.extend(self.layers(&linear, Exchange::Encryption, &mut Correlations::default())?);
        Ok(Inference { ots, layers })
    }
}
