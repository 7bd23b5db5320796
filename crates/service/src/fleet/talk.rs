//! What a server and the door of its fleet say on their control connection, in JSON.

use runtime::Reveal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wire::fleet::{Challenge, Proof};
use wire::{Channel, Error, Result};

use crate::fleet::secret::Secret;
use crate::ledger::Budget;
use crate::refused::Refused;
use crate::tokens::{bytes, hexadecimal};

/// A model of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelNews {
    pub(crate) name: String,
    pub(crate) graph_digest: String,
    /// Numbers of one input.
    pub(crate) values: u64,
    /// Inputs of one run.
    pub(crate) batch: u64,
    /// What clients may learn, the first where nothing is said of one.
    pub(crate) reveals: Vec<Reveal>,
    /// The budget of clients that have none of their own for it.
    pub(crate) budget: Option<Budget>,
}

/// What a server says first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Join {
    /// The server's name.
    pub(crate) server: String,
    /// This run of it, in hexadecimal digits.
    pub(crate) run: String,
    /// Where clients reach it.
    pub(crate) address: String,
    /// Where browsers reach it, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) websocket: Option<String>,
    pub(crate) models: Vec<ModelNews>,
    /// Sessions at the same time, at most.
    pub(crate) limit: usize,
    /// The base OTs that it keeps, by [`short`] hashes of their names.
    pub(crate) kept: Vec<String>,
}

/// What a server does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) allowed: usize,
    pub(crate) prepared: usize,
    /// Mean seconds of a session, once one has ended.
    pub(crate) mean: Option<f64>,
    pub(crate) memory: u64,
    pub(crate) sessions: u64,
    pub(crate) draining: bool,
    /// Base OTs that it keeps since it last said so.
    pub(crate) kept: Vec<String>,
    /// How many it keeps.
    pub(crate) keeps: usize,
    /// Tickets that were shown since it last said so.
    pub(crate) shown: Vec<String>,
    /// Tickets that were redeemed since it last said so.
    pub(crate) redeemed: Vec<String>,
    /// Tickets that were shown and not redeemed by sessions that have ended since.
    pub(crate) unused: Vec<String>,
    /// Its metrics, now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// Its sessions, with the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) list: Option<serde_json::Value>,
    /// Its models, where they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) models: Option<Vec<ModelNews>>,
}

/// What is to be counted in the door's ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Count {
    Redeem { ticket: String, inputs: u64, budget: Option<Budget> },
    Charge { client: String, model: String, inputs: u64, budget: Option<Budget> },
    Extend { ticket: String },
    Release { ticket: String },
}

/// A message of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Says {
    /// The server comes, and beats follow.
    Join(Join),
    /// It is there already, and something is to be counted now and then on this connection.
    Ledger {
        server: String,
    },
    Beat(Beat),
    Count(Count),
}

/// How counting ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Counted {
    Done,
    /// A budget has too little left; why, and seconds after which the same would fit.
    Refused {
        why: String,
        wait: Option<u64>,
    },
    /// The ticket admits nobody.
    Ticket {
        why: String,
    },
    /// The ledger cannot be used.
    Unusable {
        why: String,
    },
}

impl Counted {
    pub(crate) fn refused(refused: &Refused) -> Self {
        let wait = refused.wait.map(|wait| wait.as_secs());
        Self::Refused { why: refused.to_string(), wait }
    }
}

/// A message of the door.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answers {
    /// The server is one of the fleet now.
    Welcome {
        /// Whether the door counts inputs.
        counts: bool,
        /// Whether it asks clients who they are.
        asks: bool,
    },
    /// To a beat: what to do.
    Heard {
        /// Take no new sessions, and end those that run within so many seconds.
        drain: Option<f64>,
        /// Tickets for this server that are out.
        out: usize,
    },
    Counted(Counted),
    /// The server cannot be one of the fleet.
    Sent {
        why: String,
    },
}

/// A short hash of the name of base OTs, by which the door finds the server that keeps them.
pub(crate) fn short(name: &[u8; 32]) -> String {
    let digest = Sha256::new().chain_update(b"tacit kept v1").chain_update(name).finalize();
    hexadecimal(digest.get(..8).unwrap_or_default())
}

/// 16 bytes from hexadecimal digits.
pub(crate) fn number(digits: &str) -> Option<[u8; 16]> {
    // The reader takes 32 bytes.
    let all = (digits.len() == 32).then(|| format!("{digits}{}", "0".repeat(32)))?;
    bytes(&all)?.first_chunk().copied()
}

const SERVER: &str = "tacit fleet server v1";
const DOOR: &str = "tacit fleet door v1";

/// Shows the other end of a control connection that this one knows the secret, and sees that it
/// does; the door shows first. Both codes hold for this connection only.
///
/// # Errors
/// [`Error::Peer`] for an end that does not know the secret, [`Error::Transport`].
pub(crate) fn prove(channel: &mut Channel, secret: &Secret, is_door: bool) -> Result<()> {
    let mut own = [0; 32];
    getrandom::fill(&mut own).map_err(|e| Error::transport(e.to_string()))?;
    channel.send(&Challenge { bytes: own })?;
    let Challenge { bytes: theirs } = channel.receive(&())?;
    let binding = channel.binding().unwrap_or_default();
    let (server, door) = if is_door { (theirs, own) } else { (own, theirs) };
    let parts: [&[u8]; 3] = [&server, &door, &binding];
    let check = |channel: &mut Channel, purpose: &str| {
        let Proof { bytes: shown } = channel.receive(&())?;
        let known = secret.verifies(purpose, &parts, &shown);
        known.then_some(()).ok_or_else(|| {
            Error::peer("one who knows the secret of this fleet", "another (see --fleet-secret)")
        })
    };
    if is_door {
        channel.send(&Proof { bytes: secret.code(DOOR, &parts) })?;
        check(channel, SERVER)
    } else {
        check(channel, DOOR)?;
        channel.send(&Proof { bytes: secret.code(SERVER, &parts) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;
    use wire::memory_pair;

    #[test]
    fn only_those_who_know_the_secret_get_in() {
        for (theirs, good) in [([1; 32], true), ([2; 32], false)] {
            let (mut client, mut channel) = memory_pair();
            let server =
                thread::spawn(move || prove(&mut client, &Secret::of(theirs), false).is_ok());
            let door = prove(&mut channel, &Secret::of([1; 32]), true);
            drop(channel);
            assert_eq!((server.join().unwrap(), door.is_ok()), (good, good));
        }
    }

    #[test]
    fn numbers_come_back() {
        let id = [7; 16];
        assert_eq!(number(&hexadecimal(&id)), Some(id));
        assert_eq!(number("zz"), None);
        assert_eq!(number(&"g".repeat(32)), None);
    }
}
