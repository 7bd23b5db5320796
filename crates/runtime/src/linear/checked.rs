//! A whole network against a client that sends anything.

#[cfg(test)]
use std::sync::Arc;

use graph::Linear;
use graph::ops::Trees;
use mpc::Demand;
use mpc::Share;
use mpc::checked::{self, ClientAhead, Forest, Leaves, Network, ServerAhead};
use mpc::linear::coefficient::{ServerWeights, Worker};
use wire::{Cost, Error, Phase, Result};
use zeroize::Zeroizing;

use super::trees::selected;
use crate::step::context::{Context, Party, Preprocessing};
use crate::step::correlated::Correlated;
use crate::step::linear::{Exchange, LinearProtocol, Preprocess};
use crate::step::preprocessed::{Asked, Preprocessed};
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource, rounding_term};

/// A network whose client is held to what it has committed to, and gets its results when that was checked.
#[derive(Debug)]
pub struct CheckedNetwork {
    /// What both parties compute with.
    pub network: Network,
    /// For each layer the node that has its weights.
    pub nodes: Vec<usize>,
    /// The trees behind the only layer, which selects what they compare.
    pub forest: Option<Forest>,
    /// What a client of a test does otherwise.
    #[cfg(test)]
    pub conduct: Deviation,
}

/// What a client of a test does, if not what the protocol says.
#[cfg(test)]
#[derive(Clone, Default)]
pub struct Deviation(pub Option<Arc<dyn checked::Conduct>>);

#[cfg(test)]
impl std::fmt::Debug for Deviation {
    /// Nothing, since encoded weights are found by what their layer shows.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deviation")
    }
}

/// What the server has of a network.
struct Ready {
    layers: Vec<ServerWeights>,
    leaves: Option<Leaves>,
}

impl CheckedNetwork {
    /// A network, for each layer the node that has its weights, and the trees that it ends with, if any.
    pub fn new(network: Network, nodes: Vec<usize>, forest: Option<Forest>) -> Self {
        Self {
            network,
            nodes,
            forest,
            #[cfg(test)]
            conduct: Deviation::default(),
        }
    }

    /// The weights of trees: of the layer that selects, and of leaves.
    fn trees(&self, source: &mut WeightSource<'_>, forest: &Forest) -> Result<Ready> {
        let none = || Error::internal("trees of a node that has none");
        let (node, layer) =
            self.nodes.first().zip(self.network.layers().next()).ok_or_else(none)?;
        let found = source.graph.nodes.get(*node);
        let trees = found.and_then(|node| node.op.get::<Trees>()).ok_or_else(none)?;
        let weights = source.take_of(*node)?;
        let features = self.network.inputs() / forest.batch.max(1);
        let (matrix, thresholds) = selected(trees, features, &weights)?;
        let [_, leaves, base] = trees.constants(&weights.bias).map_err(Error::misuse)?;
        let leaves = Leaves::new(forest, leaves, base)?;
        let layer = ServerWeights::new(layer, &matrix, &thresholds, source.memory)?;
        Ok(Ready { layers: vec![layer], leaves: Some(leaves) })
    }

    /// Runs what was prepared.
    fn prepared(&self, cx: &mut Context<'_, '_>, ahead: Preprocessed) -> Result<Share> {
        let (network, bits) = (&self.network, self.network.result_bits());
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        let words = match cx.party {
            Party::Client { input, .. } => {
                let ahead = ahead.take::<ClientAhead>()?;
                #[cfg(test)]
                if let Some(conduct) = &self.conduct.0 {
                    let conduct = conduct.as_ref();
                    let words = ahead.run_as(cx.channel, network, input, worker, conduct)?;
                    return Ok(Share::new(words, bits));
                }
                ahead.run(cx.channel, network, input, worker)?
            }
            Party::Server { weights, .. } => {
                let Ready { layers, leaves } = weights.of::<Ready>(cx.node)?;
                let ahead = ahead.take::<ServerAhead>()?;
                ahead.run(cx.channel, network, layers, leaves.as_ref(), worker)?;
                Vec::new()
            }
        };
        Ok(Share::new(words, bits))
    }

    fn ask(&self, cx: &mut Context<'_, '_>, made: Correlated, input: &[i64]) -> Result<Share> {
        let Correlated::Received(ots) = made else { return Err(foreign()) };
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        #[cfg(test)]
        if let Some(conduct) = &self.conduct.0 {
            let conduct = conduct.as_ref();
            let words = checked::client_as(cx.channel, &self.network, ots, input, worker, conduct)?;
            return Ok(Share::new(words, self.network.result_bits()));
        }
        let words = checked::client(cx.channel, &self.network, ots, input, worker)?;
        Ok(Share::new(words, self.network.result_bits()))
    }
}

impl LinearProtocol for CheckedNetwork {
    fn operator(&self) -> &'static str {
        "network"
    }

    fn describe(&self) -> String {
        format!("against a client that sends anything: {}", self.network.describe())
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        if let Some(forest) = &self.forest {
            return Ok(Some(Encoded::new(self.trees(source, forest)?)));
        }
        let mut all: Vec<ServerWeights> = Vec::with_capacity(self.nodes.len());
        for (layer, node) in self.network.layers().zip(&self.nodes) {
            let op = source.graph.nodes.get(*node).and_then(|node| node.op.get::<Linear>());
            let linear = op.ok_or_else(|| Error::internal("a layer of a node that is none"))?;
            let half = rounding_term(linear.rounding, linear.shift);
            let mut weights = source.take_of(*node)?;
            let bias: Vec<i64> = weights.bias.iter().map(|bias| bias + half).collect();
            let weight = Zeroizing::new(std::mem::take(&mut weights.weight));
            let bias = Zeroizing::new(bias);
            all.push(ServerWeights::new(layer, &weight, &bias, source.memory)?);
        }
        Ok(Some(Encoded::new(Ready { layers: all, leaves: None })))
    }

    fn correlated(&self) -> usize {
        self.network.ots()
    }

    fn preprocess(&self) -> Option<&dyn Preprocess> {
        Some(self)
    }

    fn spent(&self) -> Spent {
        Spent { cost: self.network.cost(), work: self.network.work() }
    }

    fn spent_preprocessed(&self) -> Spent {
        let [_, work] = self.network.works();
        Spent { cost: self.network.prepared_cost(), work }
    }

    fn memory(&self) -> u64 {
        self.network.memory()
    }

    fn ciphertexts(&self) -> usize {
        self.network.layers().map(mpc::linear::coefficient::Layer::ciphertexts).sum()
    }

    fn failure(&self) -> f64 {
        self.network.failure()
    }

    fn reveals(&self) -> Option<u32> {
        Some(self.network.result_bits())
    }

    fn run(&self, cx: &mut Context<'_, '_>, _: Vec<Share>) -> Result<Share> {
        if let Some(ahead) = cx.preprocessed.take() {
            return self.prepared(cx, ahead);
        }
        let made = cx.feed.correlated(cx.channel, self.network.ots())?;
        let ready = match cx.party {
            Party::Client { input, .. } => return self.ask(cx, made, input),
            Party::Server { weights, .. } => weights.of::<Ready>(cx.node)?,
        };
        let Correlated::Sent(ots) = made else { return Err(foreign()) };
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        let Ready { layers, leaves } = ready;
        checked::server(cx.channel, &self.network, ots, layers, leaves.as_ref(), worker)?;
        Ok(Share::new(Vec::new(), self.network.result_bits()))
    }
}

impl Preprocess for CheckedNetwork {
    fn exchange(&self) -> Exchange {
        Exchange::ObliviousTransfer
    }

    fn asks_together(&self) -> bool {
        false
    }

    fn parts(&self) -> Vec<(Demand, [Spent; 2])> {
        let [work, _] = self.network.works();
        let spent = Spent { cost: self.network.ahead_cost(), work };
        vec![(Demand::default(), [Spent::sending(Cost::NONE), spent])]
    }

    fn correlated(&self) -> usize {
        self.network.ots()
    }

    fn held_bytes(&self) -> usize {
        self.network.ahead_bytes()
    }

    fn ask(&self, _: &mut Preprocessing<'_>) -> Result<Asked> {
        Err(Error::internal("a network asks for nothing before it is prepared"))
    }

    fn finish(&self, cx: &mut Preprocessing<'_>, _: Option<Asked>) -> Result<Preprocessed> {
        let (network, threads) = (&self.network, cx.party.threads());
        let made = cx.source.correlated(cx.channel, network.ots())?;
        cx.channel.enter(Phase::Preprocess, Some(cx.index));
        let worker = &mut Worker { rng: cx.rng, threads };
        match (cx.party, made) {
            (Party::Client { .. }, Correlated::Received(ots)) => {
                let ahead = checked::prepare_client(cx.channel, network, ots, worker)?;
                Ok(Preprocessed::new(ahead))
            }
            (Party::Server { weights, .. }, Correlated::Sent(ots)) => {
                let leaves = weights.of::<Ready>(cx.node)?.leaves.as_ref();
                let ahead = checked::prepare_server(cx.channel, network, ots, leaves, worker)?;
                Ok(Preprocessed::new(ahead))
            }
            _ => Err(foreign()),
        }
    }
}

fn foreign() -> Error {
    Error::internal("correlated OTs of the other party; please report it")
}
