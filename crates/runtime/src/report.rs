//! What a session cost, in the words of the public JSON interface.

use std::collections::BTreeMap;

use mpc::linear::slots::Operations;
use pricing::Work;
use serde::Serialize;
use wire::{Cost, Entry, Followed, Meter, Phase};

use crate::plan::{Plan, Settings};
use crate::planner::rates::Conditions;
use crate::provenance::{Provenance, hexadecimal};
use crate::session::estimate::Inputs;
use crate::step::linear::LinearProtocol;
use crate::step::spent::{Part, counted};

/// Bytes each way, with frame headers, before TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Sent by the client.
    pub client_to_server: u64,
    /// Sent by the server.
    pub server_to_client: u64,
}

/// Traffic, rounds and time of one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Bytes sent each way.
    pub bytes: Traffic,
    /// Changes of direction on the wire.
    pub rounds: u64,
    /// Wall-clock seconds, waiting included; absent in a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The three phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Once a session.
    pub setup: Usage,
    /// What preprocessing took.
    pub offline: Usage,
    /// What the runs on inputs took.
    pub online: Usage,
}

/// Numbers of homomorphic operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Rotations, each with a key switch.
    pub rotations: usize,
    /// Those among them that share the decomposition of their ciphertext.
    pub hoisted: usize,
    /// Products of a ciphertext and weights.
    pub multiplications: usize,
    /// Sums of two ciphertexts.
    pub additions: usize,
}

impl From<Operations> for Counts {
    fn from(done: Operations) -> Self {
        let Operations { rotations, hoisted, multiplications, additions, .. } = done;
        Self { rotations, hoisted, multiplications, additions }
    }
}

/// What one step of the plan took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerReport {
    /// The node's name.
    pub name: String,
    /// What it computes.
    pub operator: String,
    /// The protocol, in words.
    pub protocol: String,
    /// Which phase its traffic belongs to.
    pub phase: &'static str,
    /// Homomorphic operations of the server for one input, of layers on packed slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Counts>,
    /// Bytes that the party with more of them holds for it at a time, weights not included;
    /// of layers in a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What it cost over all inputs.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What the server of a session offered, as digests in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offered {
    /// SHA-256 of settings, step options and public graph.
    pub digest: String,
    /// SHA-256 of the public graph without share widths, whatever the link.
    pub graph_digest: String,
    /// The commitment to the file of the model; `None` where the server has none.
    pub commitment: Option<String>,
}

impl Offered {
    pub(crate) fn new(plan: &Plan, provenance: &Provenance) -> Self {
        Self {
            digest: hexadecimal(&plan.digest()),
            graph_digest: hexadecimal(&graph::digest(plan.graph())),
            commitment: provenance.commitment.as_ref().map(hexadecimal),
        }
    }
}

/// What it cost to ask the door of a fleet for a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detour {
    /// The server that it named, HOST:PORT.
    pub server: String,
    /// Bytes of frames from and to the door, and of the ticket to the server.
    pub bytes: Traffic,
    /// Messages that waited for an answer: one asks and one tells.
    pub rounds: u64,
    /// Seconds until the connection with the server.
    pub seconds: f64,
}

impl From<Followed> for Detour {
    fn from(followed: Followed) -> Self {
        let Followed { server, sent, received, seconds } = followed;
        let bytes = Traffic { client_to_server: sent, server_to_client: received };
        Self { server, bytes, rounds: 2, seconds }
    }
}

/// A whole session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The model's name.
    pub model: String,
    /// Name of the suite.
    pub suite: String,
    /// `client` where a client that sends anything learns no more than its results ([`crate::secure_against_client`]);
    /// absent where both parties are to follow the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_against: Option<&'static str>,
    /// The settings both parties agreed on.
    #[serde(flatten)]
    pub settings: Settings,
    /// What the server offered; nothing of a session that is only predicted.
    #[serde(flatten)]
    pub offered: Option<Offered>,
    /// Inputs in the session.
    pub inputs: usize,
    /// Whether base OTs of an earlier session were used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The group in which TLS exchanged keys; absent without TLS and in a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_exchange: Option<&'static str>,
    /// What it cost to ask the door of a fleet, which is part of no total; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub door: Option<Detour>,
    /// Totals over all phases and inputs.
    #[serde(flatten)]
    pub total: Usage,
    /// The totals of each phase.
    pub phases: Phases,
    /// The totals of each step; setup and correlations come first.
    pub layers: Vec<LayerReport>,
    /// One line per set of cryptographic parameters in use.
    pub parameters: Vec<String>,
    /// A run gives another result than its protocols define with probability below
    /// 2^-`failure_bits` ([`Plan::failure`]), rounded down to tenths; absent where that never
    /// happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_bits: Option<f64>,
}

impl Usage {
    fn new(cost: Cost, seconds: Option<f64>) -> Self {
        let bytes = Traffic {
            client_to_server: cost.client_to_server,
            server_to_client: cost.server_to_client,
        };
        Self { bytes, rounds: cost.rounds, seconds }
    }

    fn of(entry: &Entry) -> Self {
        Self::new(entry.cost, Some(entry.time.as_secs_f64()))
    }
}

impl Report {
    /// What `meter` counted so far in a session of `plan` with so many inputs.
    pub fn metered(plan: &Plan, inputs: usize, meter: &mut Meter) -> Self {
        let phases = Phases {
            setup: Usage::of(&meter.total(Some(Phase::Setup))),
            offline: Usage::of(&meter.total(Some(Phase::Preprocess))),
            online: Usage::of(&meter.total(Some(Phase::Online))),
        };
        let total = Usage::of(&meter.total(None));
        let layers = meter
            .entries()
            .iter()
            .filter_map(|entry| layer(plan, entry.phase, entry.layer, Usage::of(entry)));
        Self::new(plan, inputs, total, phases, layers.collect())
    }

    /// What `inputs` inputs will cost: exactly what the client's meter shows then.
    pub fn predicted(plan: &Plan, inputs: usize) -> Self {
        Self::foreseen(plan, Inputs::of(inputs), None)
    }

    /// Predicts as [`Report::predicted`] does, and estimates the seconds under `conditions`.
    pub fn predicted_under(plan: &Plan, inputs: Inputs, conditions: &Conditions) -> Self {
        Self::foreseen(plan, inputs, Some(conditions))
    }

    fn foreseen(plan: &Plan, inputs: Inputs, conditions: Option<&Conditions>) -> Self {
        type Key = (Phase, Option<usize>);
        let mut entries: Vec<(Key, Foreseen)> = Vec::new();
        let mut places: BTreeMap<Key, usize> = BTreeMap::new();
        let parts = counted(plan.parts_of(inputs));
        let timed = match conditions {
            Some(conditions) => conditions.timed(parts),
            None => parts.map(|part| (part, 0.0)).collect(),
        };
        for (part, seconds) in timed {
            let key = (part.phase, part.step);
            let place = *places.entry(key).or_insert_with(|| {
                entries.push((key, Foreseen::default()));
                entries.len() - 1
            });
            if let Some((_, known)) = entries.get_mut(place) {
                known.add(Foreseen { cost: part.spent.cost, seconds });
            }
        }
        let usage = |known: &Foreseen| {
            Usage::new(known.cost, conditions.is_some().then_some(known.seconds))
        };
        let sum = |wanted: &dyn Fn(Phase) -> bool| {
            let mut sum = Foreseen::default();
            for (_, known) in entries.iter().filter(|((phase, _), _)| wanted(*phase)) {
                sum.add(*known);
            }
            usage(&sum)
        };
        let phase = |wanted| sum(&|phase| phase == wanted);
        let phases = Phases {
            setup: phase(Phase::Setup),
            offline: phase(Phase::Preprocess),
            online: phase(Phase::Online),
        };
        let layers = entries.iter().filter_map(|((phase, index), known)| {
            let step = index.and_then(|index| plan.steps().get(index));
            let memory_bytes = step.filter(|_| *phase == Phase::Online).map(|step| step.memory());
            Some(LayerReport { memory_bytes, ..layer(plan, *phase, *index, usage(known))? })
        });
        let layers = layers.collect();
        Self::new(plan, inputs.all, sum(&|_| true), phases, layers)
    }

    fn new(
        plan: &Plan,
        inputs: usize,
        total: Usage,
        phases: Phases,
        layers: Vec<LayerReport>,
    ) -> Self {
        Self {
            model: plan.graph().name.clone(),
            suite: plan.graph().suite.clone(),
            secure_against: crate::secure_against_client(&plan.graph().suite).then_some("client"),
            settings: plan.settings(),
            offered: None,
            inputs,
            resumed: false,
            key_exchange: None,
            door: None,
            total,
            phases,
            layers,
            parameters: crate::keys::describe(plan),
            failure_bits: failure_bits(plan.failure()),
        }
    }
}

/// Minus the logarithm of a probability, in tenths, rounded down.
fn failure_bits(probability: f64) -> Option<f64> {
    (probability > 0.0).then(|| (-10.0 * probability.log2()).floor() / 10.0)
}

/// Returns the work of `plan` for one input part by part, messages included, with the phase that
/// each part belongs to.
pub fn work_by_phase(plan: &Plan) -> Vec<(Phase, Work)> {
    let of = |Part { phase, spent, later, .. }: Part| {
        let later = later.map(|(_, work)| work).unwrap_or_default();
        (phase, spent.work + later + mpc::work::messages(spent.cost))
    };
    counted(plan.parts(1)).map(of).collect()
}

/// What parts of a session cost, and the seconds of them.
#[derive(Clone, Copy, Default)]
struct Foreseen {
    cost: Cost,
    seconds: f64,
}

impl Foreseen {
    fn add(&mut self, other: Self) {
        self.cost.client_to_server += other.cost.client_to_server;
        self.cost.server_to_client += other.cost.server_to_client;
        self.cost.rounds += other.cost.rounds;
        self.seconds += other.seconds;
    }
}

fn layer(plan: &Plan, phase: Phase, index: Option<usize>, usage: Usage) -> Option<LayerReport> {
    let row = |name: &str, operator: &str, protocol: String| LayerReport {
        name: name.into(),
        operator: operator.into(),
        protocol,
        phase: phase.name(),
        operations: None,
        memory_bytes: None,
        usage,
    };
    Some(match (phase, index) {
        (Phase::Setup, _) => row("session", "setup", "hello, plan, keys, base transfers".into()),
        (Phase::Preprocess, Some(index)) => {
            let step = plan.steps().get(index)?;
            row(&step.name, step.operator(), step.protocol())
        }
        (Phase::Preprocess, None) => {
            row("correlations", "oblivious transfer", plan.settings().ot.describe().into())
        }
        (Phase::Online, None) => {
            return (usage.bytes != Traffic::default())
                .then(|| row("session", "other", "unattributed".into()));
        }
        (Phase::Online, Some(index)) => {
            let step = plan.steps().get(index)?;
            let operations = step.linear().and_then(LinearProtocol::operations).map(Counts::from);
            LayerReport { operations, ..row(&step.name, step.operator(), step.protocol()) }
        }
    })
}
