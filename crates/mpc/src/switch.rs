//! Tables chosen by shared bits, in both directions at once: the multiplexers of
//! every non-linear layer.
//!
//! | | |
//! |---|---|
//! | In | each party's choices and tables; random transfers |
//! | Out | for each job, additive shares of the table entry chosen by its receiver |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | choices and answers both ways, three messages runs starting with `first` |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), multiplexer; ENGINE section 4 |

use ot::transfer::{choices_cost, choices_layout, masked_cost, masked_layout};
use ot::{Choices, Column, Job, Masked, Table, choose, respond};
use ring::Bits;
use wire::{Channel, Cost, Lanes, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::pads::{Need, Pads};

/// The jobs in which each party receives.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    /// Tables of the server, choices of the client.
    pub to_client: Vec<Job>,
    /// Tables of the client, choices of the server.
    pub to_server: Vec<Job>,
}

/// One party's side: its choices where it receives, its tables where it sends.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Side {
    /// For each job in which this party receives, a plane for each bit of its choices.
    pub choices: Vec<Vec<Bits>>,
    /// A table per job in which it sends.
    pub tables: Vec<Table>,
}

/// This party's shares.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Switched {
    /// Of the jobs in which it received.
    pub received: Vec<Column>,
    /// Of the jobs in which it sent.
    pub sent: Vec<Column>,
}

impl Switch {
    /// `jobs` in which only `receiver` receives.
    pub fn to(receiver: Role, jobs: Vec<Job>) -> Self {
        match receiver {
            Role::Client => Self { to_client: jobs, to_server: Vec::new() },
            Role::Server => Self { to_client: Vec::new(), to_server: jobs },
        }
    }

    fn received_by(&self, receiver: Role) -> &[Job] {
        match receiver {
            Role::Client => &self.to_client,
            Role::Server => &self.to_server,
        }
    }

    /// Transfers consumed.
    pub fn need(&self) -> Need {
        Need {
            client_sends: self.to_server.clone(),
            server_sends: self.to_client.clone(),
            ..Need::default()
        }
    }

    /// What [`run`] costs when `first` sends first.
    pub fn cost(&self, first: Role) -> Cost {
        let choices = |receiver| match self.received_by(receiver) {
            [] => Cost::NONE,
            jobs => choices_cost(receiver, jobs),
        };
        let answers = |receiver: Role| match self.received_by(receiver) {
            [] => Cost::NONE,
            jobs => masked_cost(!receiver, jobs),
        };
        choices(first).then(choices(!first)).then(answers(first)).then(answers(!first))
    }
}

/// Runs all jobs; `first` sends its choices first.
///
/// # Errors
/// [`wire::Error::Misuse`] when lists or correlations do not fit,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn run(
    channel: &mut Channel,
    switch: &Switch,
    first: Role,
    mut side: Side,
    mut pads: Pads,
) -> Result<Switched> {
    let role = channel.role();
    let (receives, sends) = (switch.received_by(role), switch.received_by(!role));
    let (chooser, choices) = choose(pads.receive(receives)?, &side.choices)?;
    let ask = |channel: &mut Channel| match receives {
        [] => Ok(()),
        _ => channel.send(&choices),
    };
    let hear = |channel: &mut Channel| -> Result<Choices> {
        match sends {
            [] => Ok(Lanes(Vec::new())),
            _ => channel.receive(&choices_layout(sends)),
        }
    };
    let asked = if role == first {
        ask(channel)?;
        hear(channel)?
    } else {
        let asked = hear(channel)?;
        ask(channel)?;
        asked
    };
    let (sent, answer) = respond(pads.send(sends)?, std::mem::take(&mut side.tables), &asked)?;
    let reply = |channel: &mut Channel| match sends {
        [] => Ok(()),
        _ => channel.send(&answer),
    };
    let read = |channel: &mut Channel| -> Result<Masked> {
        match receives {
            [] => Ok(Lanes(Vec::new())),
            _ => channel.receive(&masked_layout(receives)),
        }
    };
    let masked = if role == first {
        let masked = read(channel)?;
        reply(channel)?;
        masked
    } else {
        reply(channel)?;
        read(channel)?
    };
    Ok(Switched { received: chooser.finish(masked)?, sent })
}
