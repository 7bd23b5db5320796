//! What a session cost, in the words of the public JSON interface.

use serde::Serialize;
use wire::{Cost, Entry, Meter, Phase};

use crate::bench::Counts;
use crate::plan::{Plan, Settings};

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
    /// Traffic.
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
    /// Correlations.
    pub offline: Usage,
    /// With the input.
    pub online: Usage,
}

/// One step of the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerReport {
    /// The node's name.
    pub name: String,
    /// What it computes.
    pub operator: String,
    /// How.
    pub protocol: String,
    /// Which phase its traffic belongs to.
    pub phase: &'static str,
    /// Homomorphic operations of the server for one input, of layers on packed slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Counts>,
    /// What it cost over all inputs.
    #[serde(flatten)]
    pub usage: Usage,
}

/// A whole session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The model's name.
    pub model: String,
    /// The suite.
    pub suite: String,
    /// The settings both parties agreed on.
    #[serde(flatten)]
    pub settings: Settings,
    /// Inputs in the session.
    pub inputs: usize,
    /// Totals over all phases and inputs.
    #[serde(flatten)]
    pub total: Usage,
    /// The same by phase.
    pub phases: Phases,
    /// The same by step; setup and correlations come first.
    pub layers: Vec<LayerReport>,
    /// One line per set of cryptographic parameters in use.
    pub parameters: Vec<String>,
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
    /// What was metered.
    pub(crate) fn metered(plan: &Plan, inputs: usize, meter: &mut Meter) -> Self {
        let phases = Phases {
            setup: Usage::of(&meter.total(Some(Phase::Setup))),
            offline: Usage::of(&meter.total(Some(Phase::Offline))),
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
        let mut total = Cost::NONE;
        let mut entries: Vec<((Phase, Option<usize>), Cost)> = Vec::new();
        let mut add = |phase, index, cost: Cost| {
            let sum = total.then(cost);
            let turned = Cost { rounds: sum.rounds - total.rounds, ..cost };
            total = sum;
            match entries.iter_mut().find(|(key, _)| *key == (phase, index)) {
                Some((_, known)) => add_up(known, turned),
                None => entries.push(((phase, index), turned)),
            }
        };
        for (phase, index, cost) in plan.parts(inputs) {
            add(phase, index, cost);
        }
        let phase = |wanted| {
            let mut sum = Cost::NONE;
            let of_phase = entries.iter().filter(|((phase, _), _)| *phase == wanted);
            of_phase.for_each(|(_, cost)| add_up(&mut sum, *cost));
            Usage::new(sum, None)
        };
        let phases = Phases {
            setup: phase(Phase::Setup),
            offline: phase(Phase::Offline),
            online: phase(Phase::Online),
        };
        let layers = entries.iter().filter_map(|((phase, index), cost)| {
            layer(plan, *phase, *index, Usage::new(*cost, None))
        });
        let layers = layers.collect();
        Self::new(plan, inputs, Usage::new(total, None), phases, layers)
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
            settings: plan.settings(),
            inputs,
            total,
            phases,
            layers,
            parameters: crate::keys::describe(plan),
        }
    }
}

fn add_up(sum: &mut Cost, cost: Cost) {
    sum.client_to_server += cost.client_to_server;
    sum.server_to_client += cost.server_to_client;
    sum.rounds += cost.rounds;
}

fn layer(plan: &Plan, phase: Phase, index: Option<usize>, usage: Usage) -> Option<LayerReport> {
    let row = |name: &str, operator: &str, protocol: String| LayerReport {
        name: name.into(),
        operator: operator.into(),
        protocol,
        phase: phase.name(),
        operations: None,
        usage,
    };
    Some(match (phase, index) {
        (Phase::Setup, _) => row("session", "setup", "hello, plan, keys, base transfers".into()),
        (Phase::Offline, Some(index)) => {
            let step = plan.steps().get(index)?;
            row(&step.name, step.operator(), step.protocol())
        }
        (Phase::Offline, None) => {
            let transfers = plan.settings().ot.describe();
            match plan.settings().store() {
                0 => row("correlations", "oblivious transfer", transfers.into()),
                _ => row(
                    "preparation",
                    "transfers, linear layers",
                    format!("{transfers}; RLWE on masks"),
                ),
            }
        }
        (Phase::Online, None) => {
            return (usage.bytes != Traffic::default())
                .then(|| row("session", "other", "unattributed".into()));
        }
        (Phase::Online, Some(index)) => {
            let step = plan.steps().get(index)?;
            let operations = step.slots().map(|layer| layer.operations().into());
            LayerReport { operations, ..row(&step.name, step.operator(), step.protocol()) }
        }
    })
}
