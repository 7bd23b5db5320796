//! The server's end.

use gc::tagged::{ALPHA_BITS, MacKeys};
use he::rlwe::EXACT_BITS;
use ot::SenderBatch;
use ring::word::mask;
use wire::{Channel, Error, Result};

use super::network::{Network, Stage, Tags};
use super::operand::{self, Held};
use crate::auth::{
    Keys, ServerKey, SmallKeys, accept, accept_key, accept_random, check_server, key_ots,
    tag_server,
};
use crate::defect::defect;
use crate::garbled::checked as circuits;
use crate::linear::coefficient::{ServerWeights, Worker, checked as linear};
use crate::open;
use crate::share::Share;

/// What the server holds between layers.
struct Run {
    ots: SenderBatch,
    keys: MacKeys,
    key: ServerKey,
    /// Nothing of what the client entered, the results of each layer, and the keys of the client's parts.
    made: Vec<Held>,
    relations: Vec<Keys>,
    errors: Vec<Keys>,
    masks: [Keys; 2],
    covers: Keys,
}

/// Runs a network with the `weights` of its layers. The server's share of the results leaves when the check
/// has passed.
///
/// # Errors
/// [`Error::Misuse`] for another number of weights or of correlations; [`Error::Peer`] for a client whose
/// values do not keep their relations, which gets no result; [`Error::Transport`].
pub fn server(
    ch: &mut Channel,
    network: &Network,
    ots: SenderBatch,
    weights: &[ServerWeights],
    worker: &mut Worker<'_>,
) -> Result<()> {
    if weights.len() != network.stages.len() || ots.len() != network.ots() {
        return Err(Error::misuse("weights or correlations that do not fit their network"));
    }
    let mut run = Run::begin(ch, network, ots, worker)?;
    for (stage, weights) in network.stages.iter().zip(weights) {
        let made = run.stage(ch, stage, weights, worker)?;
        run.made.push(made);
    }
    let Run { keys, made, relations, errors, masks: [zeros, smalls], covers, .. } = &run;
    let small = SmallKeys { errors, masks: smalls, covers };
    check_server(ch, relations, zeros, Some(small), keys, worker.rng)?;
    let (results, _) = made.last().ok_or_else(|| defect("a network without layers"))?;
    open::to_client(ch, results).map(|_| ())
}

impl Run {
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
        let mut accepted = |plan: &gc::tagged::BitTags| {
            accept(ch, ots.split_off(plan.labels()), plan.bits() as usize, plan.count())
        };
        let (entered, samples) = (accepted(inputs)?, accepted(covers)?);
        let key = key.tag(ch, &keys, worker.rng)?;
        let of_x = tag_server(ch, inputs, &keys, &entered, worker.rng)?;
        let x = operand::entered(of_x, network.entered.low, inputs.modulus() - ALPHA_BITS, &keys);
        let covers = tag_server(ch, covers, &keys, &samples, worker.rng)?;
        let mut mask_of = || {
            let (planes, count) = (masks.bits() as usize, masks.count());
            let bits = accept_random(ots.split_off(masks.labels()), planes, count)?;
            tag_server(ch, masks, &keys, &bits, worker.rng)
        };
        let masks = [mask_of()?, mask_of()?];
        let key = key.receive(ch, &keys)?;
        let relations = vec![key.relation().clone()];
        Ok(Self { ots, keys, key, made: vec![x], relations, errors: Vec::new(), masks, covers })
    }

    /// One layer and its circuits: the server's shares and the keys of the client's.
    fn stage(
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
        let (share, phases) = match &stage.addend {
            None => (share, phases),
            Some(addend) => addend.to_held(&self.made, plain, &(share, phases))?,
        };
        let tags = &stage.phases;
        let ots = self.ots.split_off(tags.labels());
        let bits = accept(ch, ots, tags.bits() as usize, tags.count())?;
        let tagged = tag_server(ch, tags, &self.keys, &bits, worker.rng)?;
        self.relations.push(phases.less(&tagged)?);
        circuits::server(ch, &stage.circuits, &self.keys, &bits, &stage.entered(&share), worker.rng)
    }
}

impl Stage {
    /// The server's share as it enters the circuits, where phases have bits below it: with the margin that
    /// makes exact sums positive.
    fn entered(&self, share: &Share) -> Share {
        let (bits, margin) = (self.layer.phase_bits(), 1 << (EXACT_BITS - 1));
        let moved = |word: &u64| word.wrapping_add(margin) << self.skipped() & mask(bits);
        Share::new(share.words().iter().map(moved).collect(), bits)
    }
}
