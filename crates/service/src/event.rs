//! What a server reports of each client.

use runtime::Report;
use serde::Serialize;
use wire::{Link, Result};

/// How far a client came that has not yet got a thread.
pub(crate) const AT_THE_DOOR: &str = "door";

/// What happened to one client.
#[derive(Debug)]
pub struct Event {
    /// Number of the connection, from 1 in the order in which they came.
    pub session: u64,
    /// The client's address.
    pub client: String,
    /// Who the client is, as a ledger names it; none before it has said so.
    pub identity: Option<String>,
    /// The name of the model that the client asked for, once it did.
    pub model: Option<String>,
    /// What the session cost, or why it failed.
    pub outcome: Result<Report>,
    /// The way in which the session ended.
    pub end: End,
    /// Why the server turned the client away, in a word for programs: `busy`, `stopping`, `token`,
    /// `model`, `budget`, `ledger` (inputs cannot be counted), `other`.
    pub refused: Option<&'static str>,
    /// How far the session came.
    pub reached: &'static str,
    /// Inputs whose results the client has.
    pub inputs: usize,
    /// The link to the client, if it was measured.
    pub link: Option<Link>,
    /// Seconds that the session waited for others.
    pub waited: f64,
    /// Seconds that all threads which worked for it had the processor.
    pub cpu_seconds: f64,
    /// Clients before this one that got no event of their own, since there were too many that
    /// came to nothing.
    pub untold: u64,
}

/// How a session ended, as far as the server can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum End {
    /// The client had its result and closed the connection. Without TLS a client that
    /// dies looks the same.
    #[serde(rename = "finished")]
    Finished,
    /// The server had nothing left to do, but the connection broke off or the client
    /// stayed silent: it may not have read the result.
    #[serde(rename = "client gone")]
    ClientGone,
    /// The server refused the client before it cost anything: it was full, or the client may not
    /// have what it asked for.
    #[serde(rename = "refused")]
    Refused,
    /// There is an error.
    #[serde(rename = "failed")]
    Failed,
}
