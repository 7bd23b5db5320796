//! Linear layers that are preprocessed for several runs of a session at a time, so that the runs share
//! ciphertexts as a batch of inputs does: models that keep states take their inputs one by one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mpc::Correlations;
use wire::{Error, Result};

use super::costs::layer_costs;
use super::layers::{LayerAt, preprocess_layers};
use crate::step::Step;
use crate::step::context::Endpoint;
use crate::step::correlations::Schedules;
use crate::step::linear::{Exchange, LinearProtocol, Preprocess};
use crate::step::memory::Memory;
use crate::step::preprocessed::Preprocessed;
use crate::step::spent::Part;

/// The layers among `steps` that are preprocessed for several runs.
pub(crate) fn layers_for_several<'a>(steps: &'a [Arc<Step>]) -> Vec<LayerAt<'a>> {
    let layer = |(index, step): (usize, &'a Step)| {
        let layer = step.linear().and_then(LinearProtocol::preprocess)?;
        (layer.runs() > 1).then_some((index, step, layer))
    };
    steps.iter().map(Arc::as_ref).enumerate().filter_map(layer).collect()
}

/// These layers as they are preprocessed in a session that has so many runs left: those that are for more in a
/// form of their own, where they have one.
struct Suited<'a> {
    layers: Vec<LayerAt<'a>>,
    fewer: Vec<Option<Box<dyn Preprocess>>>,
}

impl<'a> Suited<'a> {
    fn to(layers: Vec<LayerAt<'a>>, runs: usize) -> Self {
        let fewer = |(.., layer): &LayerAt<'a>| match runs < layer.runs() {
            true => layer.for_fewer(runs),
            false => None,
        };
        Self { fewer: layers.iter().map(fewer).collect(), layers }
    }

    fn layers(&self) -> Vec<LayerAt<'_>> {
        let both = self.layers.iter().zip(&self.fewer);
        both.map(|((index, step, layer), fewer)| {
            (*index, *step, fewer.as_deref().unwrap_or(*layer))
        })
        .collect()
    }
}

/// What is left of the preprocessing for several runs, by step. Each part is moved into the run that
/// consumes it.
#[derive(Default)]
pub(crate) struct Together(BTreeMap<usize, VecDeque<Preprocessed>>);

impl Together {
    /// What the next run of `steps` takes; layers of which nothing is left are preprocessed first, for no more
    /// than the `runs` that are left where they can be.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn next(
        &mut self,
        end: &mut Endpoint<'_>,
        steps: &[Arc<Step>],
        runs: usize,
    ) -> Result<BTreeMap<usize, Preprocessed>> {
        let layers = layers_for_several(steps);
        let is_used = |(index, ..): &&LayerAt<'_>| self.0.get(index).is_none_or(VecDeque::is_empty);
        let suited = Suited::to(layers.iter().filter(is_used).copied().collect(), runs);
        let used = suited.layers();
        let (none, asked) = (&mut Correlations::default(), &mut BTreeMap::new());
        let mut made = preprocess_layers(end, &used, Exchange::Encryption, none, asked)?;
        for (index, _, layer) in used {
            let made = made.remove(&index).map(|made| layer.split(made)).transpose()?;
            self.0.insert(index, made.unwrap_or_default().into());
        }
        let missing = || Error::internal("a layer that was not prepared; please report it");
        let next = |(index, ..): &LayerAt<'_>| {
            let next = self.0.get_mut(index).and_then(VecDeque::pop_front);
            Ok((*index, next.ok_or_else(missing)?))
        };
        layers.iter().map(next).collect()
    }

    /// Drops what is left of layers that have to know the inputs of all runs, behind one that went without
    /// them.
    ///
    /// # Errors
    /// [`Error::Internal`] for what another layer kept.
    pub(crate) fn forget(&mut self, memory: &mut Memory, steps: &[Arc<Step>]) -> Result<()> {
        for (index, _, layer) in layers_for_several(steps) {
            if layer.missed().is_some() {
                layer.forget(memory, index)?;
                self.0.remove(&index);
            }
        }
        Ok(())
    }
}

/// For how many more runs layers are preprocessed, by step.
#[derive(Default)]
pub(crate) struct Left(BTreeMap<usize, usize>);

impl Left {
    /// What [`Together::next`] costs.
    pub(crate) fn next(
        &mut self,
        steps: &[Arc<Step>],
        runs: usize,
        schedules: &mut Schedules,
    ) -> Vec<Part> {
        let layers = layers_for_several(steps);
        let left = |index| self.0.get(index).copied().unwrap_or_default();
        let used = layers.iter().filter(|(index, ..)| left(index) == 0).copied().collect();
        let suited = Suited::to(used, runs);
        let used = suited.layers();
        self.0.extend(used.iter().map(|(index, _, layer)| (*index, layer.runs())));
        for (index, ..) in &layers {
            self.0.entry(*index).and_modify(|left| *left = left.saturating_sub(1));
        }
        layer_costs(&used, Exchange::Encryption, schedules, false)
    }

    /// As [`Together::forget`]; returns the layers, of which each run behind it takes another message.
    pub(crate) fn forget(&mut self, steps: &[Arc<Step>]) -> BTreeSet<usize> {
        let layers = layers_for_several(steps).into_iter();
        let missed = layers.filter(|(.., layer)| layer.missed().is_some());
        let missed: BTreeSet<usize> = missed.map(|(index, ..)| index).collect();
        self.0.retain(|index, _| !missed.contains(index));
        missed
    }
}
