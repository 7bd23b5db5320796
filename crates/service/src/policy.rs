//! Who a client is, and what it may ask for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use runtime::Reveal;
use wire::Admission;

use crate::error::Error;
use crate::identity::Client;
use crate::ledger::{Budget, Ledger};
use crate::tokens::Tokens;

/// The longest wait for which a client is told to come back rather than refused.
const SOON: Duration = Duration::from_secs(120);
/// When to come back to a server that cannot count inputs.
const UNCOUNTED: Duration = Duration::from_secs(30);

/// What a server asks of its clients; by default nothing.
#[derive(Clone, Default)]
pub struct Policy {
    /// The tokens that it accepts. With them every client has to show one, unless it has shown a
    /// certificate that the server asked for.
    pub tokens: Option<Arc<Tokens>>,
    /// Where inputs are counted; they are not without it.
    pub ledger: Option<Arc<Ledger>>,
    /// The budget of a client for a model that has none of its own in the ledger.
    pub budget: Budget,
}

/// A client that is known, and what it may learn where the server does not say so for all.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) client: Client,
    pub(crate) reveal: Option<Reveal>,
}

impl Policy {
    /// Who connects from `address` with the certificate of this `subject` and shows this `token`.
    pub(crate) fn identify(
        &self,
        address: IpAddr,
        subject: Option<String>,
        token: Option<&str>,
    ) -> Result<Known, Admission> {
        if let Some(token) = token {
            let entry = self.tokens.as_ref().and_then(|known| known.identify(token.as_bytes()));
            let entry = entry.ok_or_else(|| {
                Admission::denied("the token is not one of this server's; ask its operator")
            })?;
            return Ok(Known { client: entry.client(), reveal: entry.reveal() });
        }
        if let Some(subject) = subject {
            return Ok(Known { client: Client::Certificate(subject), reveal: None });
        }
        if self.tokens.is_some() {
            return Err(Admission::denied("show a token of this server with --token"));
        }
        Ok(Known { client: Client::Anonymous(address), reveal: None })
    }

    /// Counts `inputs` of `client` for `model`, of which a client may ask `budget` or what the
    /// policy says for all, durably, or refuses them. Beside a refusal that is
    /// not the client's fault stands what the operator has to know.
    pub(crate) fn charge(
        &self,
        client: &Client,
        model: &str,
        budget: Option<Budget>,
        inputs: usize,
    ) -> Result<(), (Admission, Option<Box<Error>>)> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let inputs = u64::try_from(inputs).unwrap_or(u64::MAX);
        match ledger.charge(
            client,
            model,
            inputs,
            &budget.unwrap_or(self.budget),
            SystemTime::now(),
        ) {
            Ok(_) => Ok(()),
            Err(error) => Err(refusal_of(error)),
        }
    }
}

/// What a client is told whose inputs were not counted, and what the operator has to know where that is
/// not the client's fault.
pub(crate) fn refusal_of(error: Error) -> (Admission, Option<Box<Error>>) {
    match error {
        Error::Refused(refused) => (refusal(refused.to_string(), refused.wait), None),
        Error::Elsewhere { why, wait } => (refusal(why, wait), None),
        Error::Ticket(why) => (Admission::busy(Duration::from_secs(1), why), None),
        // Whether it was counted is not known, so nothing is answered.
        error => {
            let refusal = Admission::busy(UNCOUNTED, "the server cannot count inputs now");
            (refusal, Some(Box::new(error)))
        }
    }
}

/// The refusal of a client that may come back after `wait`, if it is worth it.
pub(crate) fn refusal(why: String, wait: Option<Duration>) -> Admission {
    match wait.filter(|wait| *wait <= SOON) {
        Some(wait) => Admission::busy(wait, why),
        None => Admission::denied(why),
    }
}
