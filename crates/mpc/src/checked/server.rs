//! The server's end.

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys, Weights};
use ot::SenderBatch;
use ring::word::mask;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::network::{Network, Stage, Tags};
use super::operand::{self, Held};
use crate::auth::{
    Keys, ServerKey, SmallKeys, accept, accept_key, accept_random, check_server, key_ots,
    tag_server,
};
use crate::garbled::checked::{self as circuits, Forest};
use crate::linear::coefficient::{ServerWeights, Worker, checked as linear};
use crate::open;
use crate::share::Share;

/// What the server holds between layers.
pub(super) struct Run {
    pub(super) ots: SenderBatch,
    pub(super) keys: MacKeys,
    pub(super) key: ServerKey,
    /// Nothing of what the client entered, the results of each layer, and the keys of the client's parts.
    pub(super) made: Vec<Held>,
    pub(super) relations: Vec<Keys>,
    pub(super) errors: Vec<Keys>,
    pub(super) masks: [Keys; 2],
    pub(super) covers: Keys,
}

/// What the server knows of the leaves of trees.
pub struct Leaves {
    /// What the bits of the circuits' outputs count.
    weights: Vec<Weights>,
    /// The numbers that are added to the results of each input.
    base: Zeroizing<Vec<u64>>,
}

impl Leaves {
    /// Takes the values of each leaf of each tree of an input, tree by tree, and what is added to each of its
    /// results.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other numbers of them.
    pub fn new(forest: &Forest, leaves: &[i64], base: &[i64]) -> Result<Self> {
        if base.len() != forest.outputs {
            return Err(Error::misuse("other results than the trees have"));
        }
        let base = Zeroizing::new(base.iter().map(|word| *word as u64).collect());
        Ok(Self { weights: forest.weights(leaves)?, base })
    }
}

/// Runs a network with the `weights` of its layers, and the `leaves` of one that ends with trees. The server's
/// share of the results leaves when the check has passed.
///
/// # Errors
/// [`Error::Misuse`] for another number of weights, leaves or correlations; [`Error::Peer`] for a client whose
/// values do not keep their relations, which gets no result; [`Error::Transport`].
pub fn server(
    ch: &mut Channel,
    network: &Network,
    ots: SenderBatch,
    weights: &[ServerWeights],
    leaves: Option<&Leaves>,
    worker: &mut Worker<'_>,
) -> Result<()> {
    let fits = leaves.is_some() == network.results.sums.is_some();
    if weights.len() != network.stages.len() || !fits || ots.len() != network.ots() {
        return Err(Error::misuse("weights or correlations that do not fit their network"));
    }
    let mut run = Run::begin(ch, network, ots, worker)?;
    for (at, (stage, weights)) in network.stages.iter().zip(weights).enumerate() {
        let made = run.stage(ch, stage, (weights, network.counted(at, leaves)), worker)?;
        run.made.push(made);
    }
    run.checked(ch, network, leaves, worker)
}

impl Network {
    /// What the bits of the circuits behind layer `at` count, where that is the server's secret.
    pub(super) fn counted<'a>(&self, at: usize, leaves: Option<&'a Leaves>) -> &'a [Weights] {
        let last = at + 1 == self.stages.len();
        leaves.filter(|_| last).map_or(&[][..], |leaves| &leaves.weights)
    }
}

impl Run {
    /// The check, and then the server's share of the results.
    pub(super) fn checked(
        &self,
        ch: &mut Channel,
        network: &Network,
        leaves: Option<&Leaves>,
        worker: &mut Worker<'_>,
    ) -> Result<()> {
        let Self { keys, made, relations, errors, masks: [zeros, smalls], covers, .. } = self;
        let small = SmallKeys { errors, masks: smalls, covers };
        check_server(ch, relations, zeros, Some(small), keys, worker.rng)?;
        let bits = network.result_bits;
        let (results, _) = network.results.held(made, bits)?;
        let base = leaves.map_or(&[][..], |leaves| &leaves.base);
        let nothing: &[u64] = &[0];
        let base = if base.is_empty() { nothing } else { base };
        let added = base.iter().cycle().zip(results.words());
        let words = added.map(|(base, word)| base.wrapping_add(*word) & mask(bits)).collect();
        open::to_client(ch, &Share::new(words, bits)).map(|_| ())
    }

    /// Everything before the first layer.
    fn begin(
        ch: &mut Channel,
        network: &Network,
        mut ots: SenderBatch,
        worker: &mut Worker<'_>,
    ) -> Result<Self> {
        let Tags { inputs, covers, masks } = &network.tags;
        let keys = MacKeys::new(*ots.delta(), worker.rng);
        let key = accept_key(ch, ots.split_off(key_ots(network.params)), network.params)?;
        let mut accepted = |plan: &BitTags| {
            accept(ch, ots.split_off(plan.labels()), plan.bits() as usize, plan.count())
        };
        let (entered, samples) = (accepted(inputs)?, accepted(covers)?);
        let key = key.tag(ch, &keys, worker.rng)?;
        let of_x = tag_server(ch, inputs, &keys, &entered, worker.rng)?;
        let x = operand::entered(of_x, network.entered.low, inputs.modulus() - ALPHA_BITS, &keys);
        let covers = tag_server(ch, covers, &keys, &samples, worker.rng)?;
        let masks = opening_masks(ch, masks, &mut ots, &keys, worker)?;
        let key = key.receive(ch, &keys)?;
        let relations = vec![key.relation().clone()];
        Ok(Self { ots, keys, key, made: vec![x], relations, errors: Vec::new(), masks, covers })
    }

    /// The server's shares of what a layer computes, and the keys of the client's phases.
    pub(super) fn layer(
        &mut self,
        ch: &mut Channel,
        stage: &Stage,
        weights: &ServerWeights,
        worker: &mut Worker<'_>,
    ) -> Result<Held> {
        let (layer, key, plain) = (&stage.layer, (&self.key, &self.keys), stage.layer.plain_bits());
        let (z, of_z) = stage.input.held(&self.made, plain)?;
        let (share, phases, errors) = linear::server(ch, layer, key, weights, &z, &of_z, worker)?;
        self.errors.extend(errors);
        match &stage.addend {
            None => Ok((share, phases)),
            Some(addend) => addend.to_held(&self.made, plain, &(share, phases)),
        }
    }

    /// One layer and its circuits: the server's shares and the keys of the client's.
    fn stage(
        &mut self,
        ch: &mut Channel,
        stage: &Stage,
        (weights, of_bits): (&ServerWeights, &[Weights]),
        worker: &mut Worker<'_>,
    ) -> Result<Held> {
        let (share, phases) = self.layer(ch, stage, weights, worker)?;
        let tags = &stage.phases;
        let ots = self.ots.split_off(tags.labels());
        let bits = accept(ch, ots, tags.bits() as usize, tags.count())?;
        let tagged = tag_server(ch, tags, &self.keys, &bits, worker.rng)?;
        self.relations.push(phases.less(&tagged)?);
        let own = (&stage.entered(&share), of_bits);
        circuits::server(ch, &stage.circuits, &self.keys, &bits, own, worker.rng)
    }
}

/// The keys of the random integers that mask what the client opens in the check, of both kinds.
pub(super) fn opening_masks(
    ch: &mut Channel,
    plan: &BitTags,
    ots: &mut SenderBatch,
    keys: &MacKeys,
    worker: &mut Worker<'_>,
) -> Result<[Keys; 2]> {
    let (planes, count) = (plan.bits() as usize, plan.count());
    let mut mask = || {
        let bits = accept_random(ots.split_off(plan.labels()), planes, count)?;
        tag_server(ch, plan, keys, &bits, worker.rng)
    };
    Ok([mask()?, mask()?])
}

impl Stage {
    /// The server's share as it enters the circuits, where phases have bits below it.
    pub(super) fn entered(&self, share: &Share) -> Share {
        let bits = self.layer.phase_bits();
        let moved = |word: &u64| word << self.skipped() & mask(bits);
        Share::new(share.words().iter().map(moved).collect(), bits)
    }
}
