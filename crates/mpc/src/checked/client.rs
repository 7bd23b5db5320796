//! The client's end.

use gc::tagged::BitTags;
use he::rlwe::Fresh;
use ot::ReceiverBatch;
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::conduct::{Conduct, Honest};
use super::network::{Network, Stage, Tags};
use crate::auth::{
    ClientKey, SmallValues, Values, check_client, commit, commit_key, commit_with, cover_planes,
    key_ots, random, tag_client,
};
use crate::garbled::checked as circuits;
use crate::linear::coefficient::{Worker, checked as linear};
use crate::open;
use crate::share::Share;

/// What the client holds between layers.
pub(super) struct Run {
    pub(super) ots: ReceiverBatch,
    pub(super) key: ClientKey,
    /// What it entered, and the results of each layer.
    pub(super) made: Vec<Values>,
    /// The integers that the check finds to be zero.
    pub(super) relations: Vec<Values>,
    /// The integers that the check finds to be small.
    pub(super) errors: Vec<Values>,
    pub(super) masks: [Values; 2],
    pub(super) covers: Values,
}

/// Runs a network on `input`; returns the results mod 2^result_bits.
///
/// # Errors
/// [`Error::Misuse`] for another number of inputs or of correlations, [`Error::Peer`] also where the tags
/// that the server expects are not the client's: the session ends, and the input must not be sent again
/// under its keys; [`Error::Transport`].
pub fn client(
    ch: &mut Channel,
    network: &Network,
    ots: ReceiverBatch,
    input: &[i64],
    worker: &mut Worker<'_>,
) -> Result<Vec<u64>> {
    let (run, words) = upto_check(ch, network, ots, input, worker, &Honest)?;
    run.checked(ch, network, &words, worker)
}

/// [`client`] that does what `conduct` says, and goes on where an honest one would stop.
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::missing_errors_doc)]
pub fn client_as(
    ch: &mut Channel,
    network: &Network,
    ots: ReceiverBatch,
    input: &[i64],
    worker: &mut Worker<'_>,
    conduct: &dyn Conduct,
) -> Result<Vec<u64>> {
    let (run, words) = upto_check(ch, network, ots, input, worker, conduct)?;
    run.insisted(ch, network, &words, worker, conduct)
}

/// All layers: what the check is about, and the client's shares of the results.
fn upto_check(
    ch: &mut Channel,
    network: &Network,
    ots: ReceiverBatch,
    input: &[i64],
    worker: &mut Worker<'_>,
    conduct: &dyn Conduct,
) -> Result<(Run, Zeroizing<Vec<u64>>)> {
    if input.len() != network.inputs() || ots.len() != network.ots() {
        return Err(Error::misuse("inputs or correlations that do not fit their network"));
    }
    let mut run = Run::begin(ch, network, ots, input, worker, conduct)?;
    for (at, stage) in network.stages.iter().enumerate() {
        let made = run.stage(ch, (at, stage), worker, conduct)?;
        run.made.push(made);
    }
    let words = run.results(network)?;
    Ok((run, words))
}

impl Run {
    /// The client's shares of the results.
    pub(super) fn results(&self, network: &Network) -> Result<Zeroizing<Vec<u64>>> {
        let results = network.results.values(&self.made, network.result_bits)?;
        let low = |value: &u128| *value as u64 & mask(network.result_bits);
        Ok(Zeroizing::new(results.values().iter().map(low).collect()))
    }

    /// The check, and then the results.
    pub(super) fn checked(
        &self,
        ch: &mut Channel,
        network: &Network,
        words: &[u64],
        worker: &mut Worker<'_>,
    ) -> Result<Vec<u64>> {
        let small =
            SmallValues { errors: &self.errors, masks: &self.masks[1], covers: &self.covers };
        check_client(ch, &self.relations, &self.masks[0], Some(small), worker.rng)?;
        open::to_client(ch, &Share::new(words.to_vec(), network.result_bits))
    }

    /// [`Run::checked`] of a client that goes on whatever the server says.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn insisted(
        &self,
        ch: &mut Channel,
        network: &Network,
        words: &[u64],
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<Vec<u64>> {
        let small =
            SmallValues { errors: &self.errors, masks: &self.masks[1], covers: &self.covers };
        let change = |opened: &mut [Vec<u64>]| conduct.opening(opened);
        crate::auth::insist_client(
            ch,
            &self.relations,
            &self.masks[0],
            small,
            worker.rng,
            &change,
        )?;
        open::to_client(ch, &Share::new(words.to_vec(), network.result_bits))
    }

    /// Everything before the first layer.
    fn begin(
        ch: &mut Channel,
        network: &Network,
        mut ots: ReceiverBatch,
        input: &[i64],
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<Self> {
        let Tags { inputs, covers, masks } = &network.tags;
        let (low, bits) = (network.entered.low, network.entered.bits);
        let moved = |x: &i64| x.wrapping_sub(low) as u64 & mask(bits);
        let words: Zeroizing<Vec<u64>> = Zeroizing::new(input.iter().map(moved).collect());
        let key_ots = ots.split_off(key_ots(network.params));
        let key = commit_key(ch, key_ots, network.params, worker.rng)?;
        let (entered, change) = (planes(&words, bits), |all: &mut Bits| conduct.corrections(all));
        let committed = commit_with(ch, ots.split_off(inputs.labels()), entered, change)?;
        let samples = cover_planes(worker.rng);
        let samples = commit(ch, ots.split_off(covers.labels()), samples)?;
        let key = key.tag(ch)?;
        let x = tag_client(ch, inputs, &committed)?.plus(&vec![low as u128; input.len()]);
        let covers = tag_client(ch, covers, &samples)?;
        let masks = opening_masks(ch, masks, &mut ots)?;
        let key = key.publish(ch)?;
        let relations = vec![key.relation().clone()];
        Ok(Self { ots, key, made: vec![x], relations, errors: Vec::new(), masks, covers })
    }

    /// The phases of a layer, and their words.
    pub(super) fn layer(
        &mut self,
        ch: &mut Channel,
        (at, stage): (usize, &Stage),
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<(Values, Zeroizing<Vec<u64>>)> {
        let change = |fresh: &mut Fresh| conduct.ciphertext(at, fresh);
        let (layer, plain) = (&stage.layer, stage.layer.plain_bits());
        let z = stage.input.values(&self.made, plain)?;
        let (mut phases, errors) = linear::client_with(ch, layer, &self.key, &z, worker, change)?;
        self.errors.extend(errors);
        if let Some(addend) = &stage.addend {
            phases = addend.to_phases(&self.made, plain, &phases)?;
        }
        let bits = stage.layer.phase_bits();
        let low = |phase: &u128| *phase as u64 & mask(bits);
        let mut words: Zeroizing<Vec<u64>> =
            Zeroizing::new(phases.values().iter().map(low).collect());
        conduct.phases(at, &mut words);
        Ok((phases, words))
    }

    /// One layer and its circuits.
    fn stage(
        &mut self,
        ch: &mut Channel,
        (at, stage): (usize, &Stage),
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<Values> {
        let (phases, words) = self.layer(ch, (at, stage), worker, conduct)?;
        let bits = stage.layer.phase_bits();
        let ots = self.ots.split_off(stage.phases.labels());
        let mut committed = commit(ch, ots, planes(&words, bits))?;
        self.relations.push(phases.less(&tag_client(ch, &stage.phases, &committed)?)?);
        conduct.labels(at, committed.all_labels());
        circuits::client(ch, &stage.circuits, &committed)
    }
}

/// Random integers that mask what the check opens, of both kinds.
pub(super) fn opening_masks(
    ch: &mut Channel,
    plan: &BitTags,
    ots: &mut ReceiverBatch,
) -> Result<[Values; 2]> {
    let (planes, count) = (plan.bits() as usize, plan.count());
    let mut mask = || tag_client(ch, plan, &random(ots.split_off(plan.labels()), planes, count)?);
    Ok([mask()?, mask()?])
}

pub(super) fn planes(words: &[u64], bits: u32) -> Vec<Bits> {
    (0..bits).map(|bit| Bits::of_words(words, bit)).collect()
}
