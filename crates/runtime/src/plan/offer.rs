//! The plan as a server offers it: settings, step options and public graph in canonical JSON.

use graph::Graph;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use wire::{Error, Result};

use super::Plan;
use super::options::OptionsByStep;
use super::settings::Settings;
use crate::provenance::Provenance;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferJson {
    #[serde(default)]
    commitment: Option<String>,
    #[serde(default)]
    card: Option<String>,
    settings: Settings,
    #[serde(default, rename = "choices")]
    options: OptionsByStep,
    #[serde(default, rename = "pass_choices")]
    of_passes: OptionsByStep,
    graph: Graph,
}

impl Plan {
    /// Plans what a server offered, or what stands in the file of a public plan.
    pub(crate) fn from_offer(json: &str) -> Result<Self> {
        Self::offered(json).map(|(plan, _)| plan)
    }

    /// Plans what a server offered, and returns what it says of its model.
    pub(crate) fn offered(json: &str) -> Result<(Self, Provenance)> {
        let bad = |why: String| Error::peer("a plan this client can verify", printable(&why));
        // The parser's own words may quote the peer's bytes.
        let unread = |e: serde_json::Error| bad(format!("other JSON in column {}", e.column()));
        let offer: OfferJson = serde_json::from_str(json).map_err(unread)?;
        let provenance = Provenance::read(offer.commitment.as_deref(), offer.card)?;
        let chooses = !offer.options.is_empty() || !offer.of_passes.is_empty();
        let (options, of_passes) = (offer.options, offer.of_passes);
        let plan = Self::with_passes(offer.graph, offer.settings, options, of_passes);
        let plan = plan.map_err(|e| match e {
            Error::Misuse(why) => bad(why),
            // What the peer chose, not what the graph is.
            Error::Unsupported { node, instead } if chooses => bad(format!("{node}: {instead}")),
            other => other,
        })?;
        Ok((plan, provenance))
    }

    /// Settings, step options and public graph, in canonical JSON: what the server offers beside
    /// where its model comes from.
    pub fn offer(&self) -> String {
        let of_passes = self.pass().map(Self::options);
        offer_json(&self.settings, (&self.options, of_passes), &self.graph.public_json())
    }

    /// Returns the SHA-256 of settings, step options and public graph.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.offer()).into()
    }
}

/// The start of what a parser said about the peer's text, fit for a terminal.
fn printable(why: &str) -> String {
    why.chars().take(256).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Canonical JSON of settings, step options where there are any, and public graph.
fn offer_json(
    settings: &Settings,
    (options, of_passes): (&OptionsByStep, Option<&OptionsByStep>),
    graph: &str,
) -> String {
    let settings = serde_json::to_string(settings).unwrap_or_default();
    let chosen = |name: &str, options: &OptionsByStep| match options.is_empty() {
        true => String::new(),
        false => format!("\"{name}\":{},", serde_json::to_string(options).unwrap_or_default()),
    };
    let passes = of_passes.map(|options| chosen("pass_choices", options)).unwrap_or_default();
    let chosen = chosen("choices", options);
    format!("{{\"settings\":{settings},{chosen}{passes}\"graph\":{graph}}}")
}
