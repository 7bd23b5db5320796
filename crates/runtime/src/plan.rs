//! The public plan: what runs, in which order, at which cost. Both parties derive
//! it from the public graph, so neither takes parameters on trust.

use std::num::{NonZeroU32, NonZeroU64};

use graph::{Graph, Op};
use mpc::linear::lola;
use mpc::{Effort, Kernel, Need, softmax};
use ot::{Source, Sourcing};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wire::{Cost, Error, Link, Phase, Result};

use crate::ahead::{self, Turn, turns};
use crate::batch;
use crate::choices::Choices;
use crate::exchange;
use crate::hello;
use crate::keys;
use crate::nonlinear::{Nonlinear, pad_bytes};
use crate::offline::{Stock, stretches};
use crate::spent::Peak;
pub(crate) use crate::spent::{Part, Spent};
use crate::steps::{Action, Step};
use crate::suites;

/// What the client learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reveal {
    /// Every output value.
    #[default]
    Output,
    /// Only the position of the largest.
    Label,
    /// That, and its probability by softmax.
    Probability,
}

/// The server's choices that the client must agree to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What the client learns.
    #[serde(default)]
    pub reveal: Reveal,
    /// Decimals that a revealed probability is right to, 1 to 6; 4 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<NonZeroU32>,
    /// Where correlated transfers come from.
    #[serde(default, with = "source")]
    pub ot: Source,
    /// Bits per second of the link that `auto` is planned for; 400 Mbit/s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<NonZeroU64>,
    /// Whether the plan was chosen for a link that was measured when the client connected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub measured: bool,
    /// Runs prepared before their inputs, linear layers too; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline: Option<NonZeroU32>,
    /// Inputs of one run, 1 to 64, which share rounds and ciphertexts; one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroU32>,
}

impl Settings {
    /// Runs that a session prepares ahead.
    pub(crate) fn store(self) -> usize {
        self.offline.map_or(0, |store| store.get() as usize)
    }

    /// Decimals of a probability.
    pub(crate) fn digits(self) -> u32 {
        self.digits.map_or(4, NonZeroU32::get)
    }

    /// Inputs of one run.
    pub fn batch(self) -> usize {
        self.batch.map_or(1, |batch| batch.get() as usize)
    }

    /// With the bandwidth of `link`, if there is one.
    pub fn planned_for(self, link: Option<Link>) -> Self {
        let bandwidth = link.and_then(|link| NonZeroU64::new(link.figures().1 as u64));
        Self { bandwidth: bandwidth.or(self.bandwidth), ..self }
    }

    /// What both parties' correlations follow from.
    pub(crate) fn sourcing(self) -> Sourcing {
        Sourcing { source: self.ot, bandwidth: self.bandwidth }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A [`Source`] by its name.
mod source {
    use ot::Source;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(source: &Source, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(source)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Source, D::Error> {
        let name = String::deserialize(from)?;
        name.parse().map_err(|_| D::Error::custom("an unknown source of transfers"))
    }
}

/// A verified graph with a protocol for every node.
#[derive(Debug)]
pub struct Plan {
    graph: Graph,
    settings: Settings,
    choices: Choices,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferJson {
    settings: Settings,
    #[serde(default)]
    choices: Choices,
    graph: Graph,
}

impl Plan {
    /// Plans `graph`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] naming the node that no protocol fits,
    /// [`Error::Misuse`] for a graph that breaks an invariant.
    pub fn new(graph: Graph, settings: Settings) -> Result<Self> {
        Self::chosen(graph, settings, Choices::default())
    }

    /// Plans `graph` with `choices` for some of its steps.
    ///
    /// # Errors
    /// As [`Plan::new`]; [`Error::Misuse`] for choices that a step does not have.
    pub fn chosen(graph: Graph, settings: Settings, choices: Choices) -> Result<Self> {
        graph::verify(&graph).map_err(|e| Error::misuse(e.to_string()))?;
        batch::check(&graph, settings.batch())?;
        let steps = suites::steps(&graph, settings, &choices)?;
        ahead::check(&steps, settings.store())?;
        Ok(Self { graph, settings, choices, steps })
    }

    /// A plan of given steps, to be measured on its own: nobody offers it.
    pub(crate) fn of_steps(graph: Graph, steps: Vec<Step>, settings: Settings) -> Self {
        Self { graph, settings, choices: Choices::default(), steps }
    }

    /// Plans what a server offered.
    pub(crate) fn from_offer(json: &str) -> Result<Self> {
        let bad = |why: String| Error::peer("a plan this client can verify", printable(&why));
        // The parser's own words may quote the peer's bytes.
        let unread = |e: serde_json::Error| bad(format!("other JSON in column {}", e.column()));
        let offer: OfferJson = serde_json::from_str(json).map_err(unread)?;
        let chooses = !offer.choices.is_empty();
        Self::chosen(offer.graph, offer.settings, offer.choices).map_err(|e| match e {
            Error::Misuse(why) => bad(why),
            // What the peer chose, not what the graph is.
            Error::Unsupported { node, instead } if chooses => bad(format!("{node}: {instead}")),
            other => other,
        })
    }

    /// Settings, choices and public graph, as the server offers them, in canonical JSON.
    pub fn offer(&self) -> String {
        hello::offer_json(&self.settings, &self.choices, &self.graph.public_json())
    }

    /// SHA-256 of settings, choices and public graph.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.offer()).into()
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The settings.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// What was chosen for single steps.
    pub fn choices(&self) -> &Choices {
        &self.choices
    }

    /// The steps in order; their indices are the meter's layers.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Values that the client learns per input.
    pub fn result_len(&self) -> usize {
        match self.settings.reveal {
            Reveal::Label => 1,
            Reveal::Probability => 2,
            Reveal::Output => self.graph.tensors.get(self.graph.output).map_or(0, |t| t.len()),
        }
    }

    /// What a revealed probability is computed by, if there is one.
    pub(crate) fn softmax(&self) -> Option<&softmax::Plan> {
        self.steps.iter().find_map(|step| match &step.action {
            Action::Nonlinear(sliced) => match sliced.kind() {
                Some(Nonlinear::Probability(plan)) => Some(plan.as_ref()),
                _ => None,
            },
            _ => None,
        })
    }

    /// The second value of a result is this by the probability, of [`Reveal::Probability`].
    pub fn certain(&self) -> Option<u64> {
        self.softmax().map(|plan| 1 << plan.fraction_bits())
    }

    /// Runs of a session with `inputs` inputs; the last may lack some.
    pub(crate) fn runs(&self, inputs: usize) -> usize {
        inputs.div_ceil(self.settings.batch())
    }

    /// Transfers for one run, those of layers that are prepared by them included.
    pub fn need(&self) -> Need {
        let layers = self.steps.iter().filter_map(Step::transfer);
        let masks: Need = layers.flat_map(|layer| layer.layer.needs()).sum();
        masks + self.steps.iter().map(Step::need).sum()
    }

    /// What is evaluated under encryption, where that is the whole network.
    pub(crate) fn evaluated(&self) -> Option<&lola::Plan> {
        self.steps.iter().find_map(|step| match &step.action {
            Action::Evaluate(step) => Some(&step.plan),
            _ => None,
        })
    }

    /// Handshake, keys and base transfers.
    pub fn setup_cost(&self) -> Cost {
        if self.evaluated().is_some() {
            return hello::cost(self).then(keys::cost(self));
        }
        hello::cost(self).then(keys::cost(self)).then(Stock::setup_cost())
    }

    /// What a session with `inputs` inputs takes, part by part in its order.
    pub(crate) fn parts(&self, inputs: usize) -> Vec<Part> {
        let effort = Effort::of(Kernel::Session, 1.0) + keys::effort(self);
        let setup = Spent { cost: self.setup_cost(), effort };
        let mut parts = vec![Part::new(Phase::Setup, None, setup)];
        self.run_parts(self.runs(inputs), &mut parts);
        if let Some(first) = parts.get_mut(1) {
            first.spent.effort += Effort::of(Kernel::Start, 1.0);
        }
        parts
    }

    /// Parts of so many runs.
    fn run_parts(&self, runs: usize, parts: &mut Vec<Part>) {
        let mut stock = Stock::new(self.settings.sourcing());
        let mut peak = Peak::default();
        if self.evaluated().is_some() {
            let step = self.steps.iter().map(Step::spent).enumerate();
            let run = step.map(|(i, spent)| Part::new(Phase::Online, Some(i), spent));
            let run: Vec<Part> = run.collect();
            parts.extend(std::iter::repeat_n(run, runs).flatten());
            return;
        }
        if self.settings.store() > 0 {
            let (one, mut ready) = (ahead::run_bytes(&self.steps) as u64, 0);
            let layers = self.steps.iter().map(Step::linear_memory).max().unwrap_or(0);
            for turn in turns(runs, self.settings.store()) {
                match turn {
                    Turn::Prepare => {
                        ready += 1;
                        let touched = peak.touch(ready * one + layers);
                        let spent = Spent::default().and(touched);
                        parts.push(Part::new(Phase::Offline, None, spent));
                        parts.extend(ahead::prepare_costs(self, &mut stock));
                    }
                    Turn::Run => {
                        ready -= 1;
                        let steps = self.steps.iter().map(Step::prepared).enumerate();
                        let online = |(i, spent)| Part::new(Phase::Online, Some(i), spent);
                        parts.extend(steps.map(online));
                    }
                }
            }
            return;
        }
        let stretches = stretches(&self.steps);
        for stretch in std::iter::repeat_n(&stretches, runs).flatten() {
            let steps = self.steps.iter().enumerate().skip(stretch.start).take(stretch.len());
            let need = ahead::need(steps.clone().map(|(_, step)| step), Step::need_ahead);
            let held = pad_bytes(&need) as u64;
            let prepared = stock.prepare(&need).and(peak.touch(held));
            parts.push(Part::new(Phase::Offline, None, prepared));
            parts.extend(ahead::transfer_costs(steps.clone(), &mut stock));
            parts.extend(exchange::encrypted_costs(&exchange::chosen(steps.clone())));
            for (index, step) in steps {
                let mut touched = peak.touch(held + step.linear_memory());
                for (need, spent) in step.parts() {
                    if step.feeds_itself() {
                        let made = stock.prepare(&need).and(peak.touch(pad_bytes(&need) as u64));
                        parts.push(Part::new(Phase::Offline, None, made));
                    }
                    let spent = spent.and(std::mem::take(&mut touched));
                    parts.push(Part::new(Phase::Online, Some(index), spent));
                }
            }
        }
    }

    /// Everything, for a session with `inputs` inputs.
    pub fn cost(&self, inputs: usize) -> Cost {
        self.parts(inputs).into_iter().map(|part| part.spent.cost).collect()
    }

    /// The node of a step, if it has one.
    pub(crate) fn op(&self, node: usize) -> Result<&Op> {
        let node = self.graph.nodes.get(node);
        node.map(|n| &n.op).ok_or_else(|| Error::misuse("a step without its node"))
    }
}

/// The start of what a parser said about the peer's text, fit for a terminal.
fn printable(why: &str) -> String {
    why.chars().take(256).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_a_link_only_where_there_is_one() {
        let plain = Settings::default();
        let json = |settings| serde_json::to_string(&settings).unwrap();
        assert_eq!(json(plain), r#"{"reveal":"output","ot":"auto"}"#);
        assert_eq!(plain.planned_for(None), plain);
        let wan = plain.planned_for(Some(Link::WAN));
        assert_eq!(json(wan), r#"{"reveal":"output","ot":"auto","bandwidth":400000000}"#);
        assert_eq!(serde_json::from_str::<Settings>(&json(wan)).unwrap(), wan);
        for bandwidth in ["0", "-1", "1.5", "18446744073709551616"] {
            let text = format!(r#"{{"bandwidth":{bandwidth}}}"#);
            assert!(serde_json::from_str::<Settings>(&text).is_err());
        }
    }
}
