//! A whole network under encryption: one request, one answer.

use graph::{Linear, Window, ops};
use mpc::Share;
use mpc::linear::coefficient::Worker;
use mpc::linear::lola::{self, LayerWeights, ServerWeights};
use wire::{Channel, Cost, Packed, Result, Segment};
use zeroize::Zeroizing;

use crate::step::context::{Context, Party};
use crate::step::linear::LinearProtocol;
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource};

/// A network that the server evaluates without a word in between.
#[derive(Debug)]
pub struct EvaluatedNetwork {
    /// What both parties compute with.
    pub plan: lola::Plan,
    /// For each layer the node that has its weights; `None` of squares, and of pools, whose
    /// weights are ones.
    pub nodes: Vec<Option<usize>>,
    /// Signed width of the results.
    pub bits: u32,
}

impl EvaluatedNetwork {
    /// The weights of the layers; those of pools are ones.
    fn layers(&self, source: &mut WeightSource<'_>) -> Result<Vec<Option<LayerWeights>>> {
        let graph = source.graph;
        let layers =
            graph.nodes.iter().map(|node| &node.op).filter(|op| {
                op.is::<ops::SumPool>() || op.is::<ops::Product>() || op.is::<Linear>()
            });
        let mut pools = layers.map(|op| op.get().map(|ops::SumPool(window)| window));
        let layer = |node: &Option<usize>| match (node, pools.next().flatten()) {
            (Some(node), _) => {
                let mut weights = source.take_of(*node)?;
                let weight = Zeroizing::new(std::mem::take(&mut weights.weight));
                let bias = Zeroizing::new(std::mem::take(&mut weights.bias));
                Ok(Some(LayerWeights { weight, bias }))
            }
            (None, Some(window)) => Ok(Some(ones(window))),
            (None, None) => Ok(None),
        };
        self.nodes.iter().map(layer).collect()
    }

    fn ask(&self, cx: &mut Context<'_, '_>, input: &[i64]) -> Result<Share> {
        let Party::Client { keys, .. } = cx.party else {
            return Ok(Share::new(Vec::new(), self.bits));
        };
        let (plan, keys) = (&self.plan, keys.for_evaluation()?);
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        for prime in 0..plan.primes().len() {
            let request = keys.codec.encrypt(plan, &keys.secret, input, prime, worker)?;
            for message in lola::request_messages(plan, request, prime)? {
                cx.channel.send(&message)?;
            }
        }
        // The server sends nothing before it has evaluated the whole network.
        cx.channel.expect_silence(true)?;
        let answer = receive_all(cx.channel, plan.answer_messages()?)?;
        cx.channel.expect_silence(false)?;
        let results = keys.codec.decrypt(&keys.secret, lola::answer_of(answer))?;
        Ok(Share::new(results.into_iter().map(|v| v as u64).collect(), self.bits))
    }
}

/// Weights of one and no bias.
fn ones(window: &Window) -> LayerWeights {
    let weight = Zeroizing::new(vec![1; window.channels * window.size()]);
    LayerWeights { weight, bias: Zeroizing::new(vec![0; window.channels]) }
}

/// Messages of these layouts.
fn receive_all<const TAG: u8>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
) -> Result<Vec<Packed<TAG>>> {
    layouts.iter().map(|layout| channel.receive(layout)).collect()
}

impl LinearProtocol for EvaluatedNetwork {
    fn operator(&self) -> &'static str {
        "network"
    }

    fn describe(&self) -> String {
        "evaluated under encryption".into()
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let layers = self.layers(source)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Some(Encoded::new(ServerWeights::new(&self.plan, &layers, threads)?)))
    }

    fn failure(&self) -> f64 {
        self.plan.failure().unwrap_or(1.0)
    }

    fn spent(&self) -> Spent {
        Spent { cost: self.plan.cost().unwrap_or(Cost::NONE), work: self.plan.work() }
    }

    fn reveals(&self) -> Option<u32> {
        Some(self.bits)
    }

    fn run(&self, cx: &mut Context<'_, '_>, _: Vec<Share>) -> Result<Share> {
        let (keys, weights) = match cx.party {
            Party::Client { input, .. } => return self.ask(cx, input),
            Party::Server { keys, weights, .. } => {
                (keys.for_evaluation()?, weights.of::<ServerWeights>(cx.node)?)
            }
        };
        let (plan, channel) = (&self.plan, &mut *cx.channel);
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        let mut layouts = plan.request_messages().into_iter();
        let mut request = |_| {
            let messages = receive_all(channel, layouts.next().unwrap_or_default())?;
            Ok(lola::request_of(plan, messages))
        };
        let answer = lola::answer(plan, keys, weights, &mut request, worker)?;
        for message in lola::answer_messages(plan, answer)? {
            cx.channel.send(&message)?;
        }
        Ok(Share::new(Vec::new(), self.bits))
    }
}
