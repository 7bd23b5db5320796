//! Runs that are prepared before their input exists.
//!
//! The key, what covers the check, tags of random phases and all garbled tables go ahead: most of the bytes and of
//! the server's work. The input is committed when it is there; then each layer takes its ciphertexts, by how much
//! its phases are off from the random ones ([`crate::auth::Shifted`]), and the labels of the server's bits.

use gc::tagged::{ALPHA_BITS, MacKeys};
use ot::{ReceiverBatch, SenderBatch};
use ring::word::mask;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::client::{self, planes};
use super::conduct::{Conduct, Honest};
use super::network::{Network, Stage, Tags};
use super::operand::{self, Held};
use super::server::{self, Leaves};
use crate::auth::{
    ClientShift, Keys, ServerShift, Values, accept, accept_key, commit, commit_key, commit_with,
    cover_planes, key_ots, tag_client, tag_server,
};
use crate::garbled::checked as circuits;
use crate::linear::coefficient::{ServerWeights, Worker};
use crate::share::Share;

/// What the client holds of a prepared run.
pub struct ClientAhead {
    run: client::Run,
    stages: Vec<(ClientShift, circuits::ClientAhead)>,
}

/// What the server holds of a prepared run.
pub struct ServerAhead {
    run: server::Run,
    stages: Vec<(ServerShift, circuits::ServerAhead)>,
}

/// Prepares a run of the client.
///
/// # Errors
/// [`Error::Misuse`] for another number of correlations, [`Error::Peer`], [`Error::Transport`].
pub fn prepare_client(
    ch: &mut Channel,
    network: &Network,
    mut ots: ReceiverBatch,
    worker: &mut Worker<'_>,
) -> Result<ClientAhead> {
    if ots.len() != network.ots() {
        return Err(Error::misuse("correlations that do not fit their network"));
    }
    let Tags { covers, masks, .. } = &network.tags;
    let key = commit_key(ch, ots.split_off(key_ots(network.params)), network.params, worker.rng)?;
    let samples = cover_planes(worker.rng);
    let samples = commit(ch, ots.split_off(covers.labels()), samples)?;
    let key = key.tag(ch)?;
    let covers = tag_client(ch, covers, &samples)?;
    let masks = client::opening_masks(ch, masks, &mut ots)?;
    let mut stages = Vec::with_capacity(network.stages.len());
    for stage in &network.stages {
        let shift = stage.shifts.client(ch, ots.split_off(stage.phases.labels()))?;
        stages.push((shift, circuits::client_ahead(ch, &stage.circuits)?));
    }
    let key = key.publish(ch)?;
    let relations = vec![key.relation().clone()];
    let (made, errors) = (Vec::new(), Vec::new());
    let run = client::Run { ots, key, made, relations, errors, masks, covers };
    Ok(ClientAhead { run, stages })
}

/// Prepares a run of the server, whose trees have these `leaves`, if it has any.
///
/// # Errors
/// [`Error::Misuse`] for another number of correlations or leaves, [`Error::Peer`], [`Error::Transport`].
pub fn prepare_server(
    ch: &mut Channel,
    network: &Network,
    mut ots: SenderBatch,
    leaves: Option<&Leaves>,
    worker: &mut Worker<'_>,
) -> Result<ServerAhead> {
    if ots.len() != network.ots() || leaves.is_some() != network.results.sums.is_some() {
        return Err(Error::misuse("leaves or correlations that do not fit their network"));
    }
    let Tags { covers, masks, .. } = &network.tags;
    let keys = MacKeys::new(*ots.delta(), worker.rng);
    let key = accept_key(ch, ots.split_off(key_ots(network.params)), network.params)?;
    let (planes, count) = (covers.bits() as usize, covers.count());
    let samples = accept(ch, ots.split_off(covers.labels()), planes, count)?;
    let key = key.tag(ch, &keys, worker.rng)?;
    let covers = tag_server(ch, covers, &keys, &samples, worker.rng)?;
    let masks = server::opening_masks(ch, masks, &mut ots, &keys, worker)?;
    let mut stages = Vec::with_capacity(network.stages.len());
    for (at, stage) in network.stages.iter().enumerate() {
        let of_phases = ots.split_off(stage.phases.labels());
        let shift = stage.shifts.server(ch, of_phases, &keys, worker.rng)?;
        let (plan, counted) = (&stage.circuits, network.counted(at, leaves));
        let made = circuits::server_ahead(ch, plan, &keys, shift.bits(), counted, worker.rng)?;
        stages.push((shift, made));
    }
    let key = key.receive(ch, &keys)?;
    let relations = vec![key.relation().clone()];
    let (made, errors) = (Vec::new(), Vec::new());
    let run = server::Run { ots, keys, key, made, relations, errors, masks, covers };
    Ok(ServerAhead { run, stages })
}

impl ClientAhead {
    /// Runs the network on `input`; returns the results as [`super::client`] does.
    ///
    /// # Errors
    /// As [`super::client`].
    pub fn run(
        self,
        ch: &mut Channel,
        network: &Network,
        input: &[i64],
        worker: &mut Worker<'_>,
    ) -> Result<Vec<u64>> {
        let (run, words) = self.upto_check(ch, network, input, worker, &Honest)?;
        run.checked(ch, network, &words, worker)
    }

    /// [`ClientAhead::run`] that does what `conduct` says, and goes on where an honest one would stop.
    #[cfg(any(test, feature = "testing"))]
    #[allow(clippy::missing_errors_doc)]
    pub fn run_as(
        self,
        ch: &mut Channel,
        network: &Network,
        input: &[i64],
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<Vec<u64>> {
        let (run, words) = self.upto_check(ch, network, input, worker, conduct)?;
        run.insisted(ch, network, &words, worker, conduct)
    }

    fn upto_check(
        self,
        ch: &mut Channel,
        network: &Network,
        input: &[i64],
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<(client::Run, Zeroizing<Vec<u64>>)> {
        let Self { mut run, stages } = self;
        let fits = (input.len(), stages.len()) == (network.inputs(), network.stages.len());
        if !fits || run.ots.len() != network.tags.inputs.labels() {
            return Err(Error::misuse("inputs that do not fit their network"));
        }
        let (low, bits) = (network.entered.low, network.entered.bits);
        let moved = |x: &i64| x.wrapping_sub(low) as u64 & mask(bits);
        let words: Zeroizing<Vec<u64>> = Zeroizing::new(input.iter().map(moved).collect());
        let ots = run.ots.split_off(network.tags.inputs.labels());
        let entered = commit_with(ch, ots, planes(&words, bits), |all| conduct.corrections(all))?;
        let x = tag_client(ch, &network.tags.inputs, &entered)?;
        run.made.push(x.plus(&vec![low as u128; input.len()]));
        for ((at, stage), ahead) in network.stages.iter().enumerate().zip(stages) {
            let made = run.prepared(ch, (at, stage), ahead, worker, conduct)?;
            run.made.push(made);
        }
        let words = run.results(network)?;
        Ok((run, words))
    }
}

impl client::Run {
    /// One layer and its circuits, which have been garbled.
    fn prepared(
        &mut self,
        ch: &mut Channel,
        (at, stage): (usize, &Stage),
        (mut shift, ahead): (ClientShift, circuits::ClientAhead),
        worker: &mut Worker<'_>,
        conduct: &dyn Conduct,
    ) -> Result<Values> {
        let (phases, words) = self.layer(ch, (at, stage), worker, conduct)?;
        self.relations.push(phases.less(&stage.shifts.tell(ch, &shift, &words)?)?);
        conduct.labels(at, shift.labels());
        ahead.evaluate(ch, &stage.circuits, shift.bits())
    }
}

impl ServerAhead {
    /// Runs the network with the `weights` and `leaves` of its layers, as [`super::server`] does.
    ///
    /// # Errors
    /// As [`super::server`].
    pub fn run(
        self,
        ch: &mut Channel,
        network: &Network,
        weights: &[ServerWeights],
        leaves: Option<&Leaves>,
        worker: &mut Worker<'_>,
    ) -> Result<()> {
        let Self { mut run, stages } = self;
        let layers = network.stages.len();
        let inputs = &network.tags.inputs;
        if (weights.len(), stages.len()) != (layers, layers) || run.ots.len() != inputs.labels() {
            return Err(Error::misuse("weights that do not fit their network"));
        }
        let ots = run.ots.split_off(inputs.labels());
        let entered = accept(ch, ots, inputs.bits() as usize, inputs.count())?;
        let of_x: Keys = tag_server(ch, inputs, &run.keys, &entered, worker.rng)?;
        let (low, bits) = (network.entered.low, inputs.modulus() - ALPHA_BITS);
        run.made.push(operand::entered(of_x, low, bits, &run.keys));
        for ((stage, weights), ahead) in network.stages.iter().zip(weights).zip(stages) {
            let made = run.prepared(ch, stage, weights, ahead, worker)?;
            run.made.push(made);
        }
        run.checked(ch, network, leaves, worker)
    }
}

impl server::Run {
    /// One layer and its circuits, which have been garbled.
    fn prepared(
        &mut self,
        ch: &mut Channel,
        stage: &Stage,
        weights: &ServerWeights,
        (shift, ahead): (ServerShift, circuits::ServerAhead),
        worker: &mut Worker<'_>,
    ) -> Result<Held> {
        let (share, phases) = self.layer(ch, stage, weights, worker)?;
        let (told, off) = stage.shifts.told(ch, &shift, &self.keys)?;
        self.relations.push(phases.less(&told)?);
        let own = stage.entered(&share);
        let sum = |(word, off): (&u64, &u64)| {
            word.wrapping_add(off << stage.skipped()) & mask(own.bits())
        };
        let words = own.words().iter().zip(&off).map(sum).collect();
        ahead.choose(ch, &stage.circuits, &self.keys, &Share::new(words, own.bits()))
    }
}
