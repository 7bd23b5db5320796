//! Linear layers that are preprocessed for several runs of a session at a time, so that the runs share
//! ciphertexts as a batch of inputs does: models that keep states take their inputs one by one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mpc::Correlations;
use wire::{Error, Result};

use super::costs::layer_costs;
use super::layers::{LayerAt, preprocess_layers};
use crate::step::Step;
use crate::step::context::Endpoint;
use crate::step::correlations::Schedules;
use crate::step::linear::{Exchange, LinearProtocol};
use crate::step::memory::Memory;
use crate::step::preprocessed::Preprocessed;
use crate::step::spent::Part;

/// The layers among `steps` that are preprocessed for several runs.
pub(crate) fn layers_for_several<'a>(steps: &'a [Step]) -> Vec<LayerAt<'a>> {
    let layer = |(index, step): (usize, &'a Step)| {
        let layer = step.linear().and_then(LinearProtocol::preprocess)?;
        (layer.runs() > 1).then_some((index, step, layer))
    };
    steps.iter().enumerate().filter_map(layer).collect()
}

/// What is left of the preprocessing for several runs, by step. Each part is moved into the run that
/// consumes it.
#[derive(Default)]
pub(crate) struct Together(BTreeMap<usize, VecDeque<Preprocessed>>);

impl Together {
    /// What the next run of `steps` takes; layers of which nothing is left are preprocessed first.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn next(
        &mut self,
        end: &mut Endpoint<'_>,
        steps: &[Step],
    ) -> Result<BTreeMap<usize, Preprocessed>> {
        let layers = layers_for_several(steps);
        let is_used = |(index, ..): &&LayerAt<'_>| self.0.get(index).is_none_or(VecDeque::is_empty);
        let used: Vec<LayerAt<'_>> = layers.iter().filter(is_used).copied().collect();
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
    pub(crate) fn forget(&mut self, memory: &mut Memory, steps: &[Step]) -> Result<()> {
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
    pub(crate) fn next(&mut self, steps: &[Step], schedules: &mut Schedules) -> Vec<Part> {
        let mut used = Vec::new();
        for at in layers_for_several(steps) {
            let (index, _, layer) = at;
            let left = self.0.entry(index).or_default();
            if *left == 0 {
                *left = layer.runs();
                used.push(at);
            }
            *left = left.saturating_sub(1);
        }
        layer_costs(&used, Exchange::Encryption, schedules, false)
    }

    /// As [`Together::forget`]; returns the layers, of which each run behind it takes another message.
    pub(crate) fn forget(&mut self, steps: &[Step]) -> BTreeSet<usize> {
        let layers = layers_for_several(steps).into_iter();
        let missed = layers.filter(|(.., layer)| layer.missed().is_some());
        let missed: BTreeSet<usize> = missed.map(|(index, ..)| index).collect();
        self.0.retain(|index, _| !missed.contains(index));
        missed
    }
}
