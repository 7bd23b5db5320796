//! What a client has pinned of a server's offer, and whether an offer is that.

use runtime::{Plan, Provenance, digest_of, hexadecimal};
use wire::{Error, Result, TransportKind};

use crate::card::Card;
use crate::session::PredictOptions;

/// Digests that an offer must have, each where one is given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pins {
    plan: Option<[u8; 32]>,
    graph: Option<[u8; 32]>,
    commitment: Option<[u8; 32]>,
    signer: Option<[u8; 32]>,
}

impl Pins {
    /// The pins among a client's options.
    ///
    /// # Errors
    /// [`Error::Misuse`] for digits that are no digest.
    pub(crate) fn of(options: &PredictOptions) -> Result<Self> {
        let read = |what: &str, given: &Option<String>| {
            let bad = || Error::misuse(format!("a {what} has 64 hexadecimal digits"));
            given.as_deref().map(|digits| digest_of(digits).ok_or_else(bad)).transpose()
        };
        Ok(Self {
            plan: read("plan digest", &options.plan_digest)?,
            graph: read("graph digest", &options.graph_digest)?,
            commitment: read("model commitment", &options.model_commitment)?,
            signer: read("signer's key", &options.card_key)?,
        })
    }

    /// Refuses an offer that is not as pinned.
    ///
    /// # Errors
    /// [`Error::Transport`] of kind [`TransportKind::NotAuthentic`] with both digests and what to
    /// do.
    pub(crate) fn check(&self, plan: &Plan, provenance: &Provenance) -> Result<()> {
        let graph = graph::digest(plan.graph());
        if self.graph.is_some_and(|pinned| pinned != graph) {
            let why = "the server has another graph; ask its operator for the current digest";
            return Err(other("graph digest", self.graph, Some(graph), why));
        }
        if self.commitment.is_some_and(|pinned| provenance.commitment != Some(pinned)) {
            let why = "the server has another model file; ask its operator for the current one";
            return Err(other("model commitment", self.commitment, provenance.commitment, why));
        }
        if self.plan.is_some_and(|pinned| pinned != plan.digest()) {
            let why = "the server's model, options, link or release changed; ask its operator, or \
                       pin the graph digest";
            return Err(other("plan digest", self.plan, Some(plan.digest()), why));
        }
        self.signer.map_or(Ok(()), |signer| signed(&signer, provenance))
    }
}

/// Refuses an offer without a card of `signer` for the file that the server commits to.
fn signed(signer: &[u8; 32], provenance: &Provenance) -> Result<()> {
    let refused = |why: String| {
        let what = format!("the server's model card is not to be trusted: {why}; ask its operator");
        Err(Error::connection(TransportKind::NotAuthentic, what))
    };
    let Some(card) = &provenance.card else { return refused("it shows none".into()) };
    let card = match Card::verified(card) {
        Ok(card) => card,
        Err(why) => return refused(why),
    };
    if card.key != hexadecimal(signer) {
        return refused(format!("{} signed it, not the signer that was named", card.key));
    }
    match &provenance.commitment {
        Some(commitment) if hexadecimal(commitment) == card.commitment => Ok(()),
        _ => refused("it is about another model file than the server's".into()),
    }
}

/// The refusal of an offer that is not as pinned.
fn other(what: &str, pinned: Option<[u8; 32]>, found: Option<[u8; 32]>, why: &str) -> Error {
    let digits = |digest: Option<[u8; 32]>| digest.as_ref().map_or("none".into(), hexadecimal);
    let (pinned, found) = (digits(pinned), digits(found));
    let what = format!("the {what} is {found}, not {pinned} as pinned: {why}");
    Error::connection(TransportKind::NotAuthentic, what)
}
