//! The door's ledger from a server on another machine: requests over a control connection of their own.

use std::sync::Mutex;
use std::time::Duration;

use wire::{Channel, Timeouts};

use crate::error::{Error, Result};
use crate::fleet::dial;
use crate::fleet::membership::Membership;
use crate::fleet::secret::Secret;
use crate::fleet::talk::{Answers, Count, Counted, Says};
use crate::fleet::ticket::Id;
use crate::identity::Client;
use crate::ledger::Budget;
use crate::lock::locked;
use crate::tokens::hexadecimal;

/// How long the door may take to write to its ledger.
const PATIENCE: Duration = Duration::from_secs(12);

/// Where the door is, and what it shares with this server.
type Door<'a> = (&'a Membership, &'a Secret);

/// A connection by which is counted, made when it is first needed and again when it has failed.
#[derive(Default)]
pub(crate) struct Books(Mutex<Option<Channel>>);

impl Books {
    pub(crate) fn redeem(
        &self,
        door: Door<'_>,
        id: &Id,
        inputs: u64,
        budget: Option<Budget>,
    ) -> Result<()> {
        self.count(door, Count::Redeem { ticket: hexadecimal(id), inputs, budget })
    }

    pub(crate) fn charge(
        &self,
        door: Door<'_>,
        client: &Client,
        model: &str,
        budget: Option<Budget>,
        inputs: u64,
    ) -> Result<()> {
        let (client, model) = (client.key(), model.into());
        self.count(door, Count::Charge { client, model, inputs, budget })
    }

    pub(crate) fn extend(&self, door: Door<'_>, id: &Id) -> Result<()> {
        self.count(door, Count::Extend { ticket: hexadecimal(id) })
    }

    pub(crate) fn release(&self, door: Door<'_>, id: &Id) -> Result<()> {
        self.count(door, Count::Release { ticket: hexadecimal(id) })
    }

    /// Has something counted. After an error of the connection it is not known whether it was, so
    /// nothing is answered.
    fn count(&self, door: Door<'_>, what: Count) -> Result<()> {
        let mut held = locked(&self.0);
        // An idle connection may have died; nothing was asked on it then. One that fails after the
        // request was sent is not tried again.
        let mut channel = match held.take() {
            Some(channel) => channel,
            None => self.dial(door).map_err(|e| unusable(&e))?,
        };
        let answer = dial::ask(&mut channel, &Says::Count(what)).map_err(|e| unusable(&e))?;
        *held = Some(channel);
        match answer {
            Answers::Counted(Counted::Done) => Ok(()),
            Answers::Counted(Counted::Refused { why, wait }) => {
                Err(Error::Elsewhere { why, wait: wait.map(Duration::from_secs) })
            }
            Answers::Counted(Counted::Ticket { why }) => Err(Error::Ticket(why)),
            Answers::Counted(Counted::Unusable { why }) => Err(Error::Door(why)),
            _ => Err(Error::Door("the door answered something else".into())),
        }
    }

    fn dial(&self, door: Door<'_>) -> wire::Result<Channel> {
        let timeouts =
            Timeouts { connect: Duration::from_secs(2), idle: PATIENCE, total: dial::EVER };
        let mut channel = dial::dial(door.0, door.1, timeouts)?;
        let server = door.0.server.clone();
        match dial::ask(&mut channel, &Says::Ledger { server })? {
            Answers::Welcome { .. } => Ok(channel),
            other => Err(wire::Error::peer("a welcome", format!("{other:?}"))),
        }
    }
}

fn unusable(error: &wire::Error) -> Error {
    Error::Door(error.to_string())
}
