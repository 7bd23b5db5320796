//! Tables chosen by shared bits, in both directions at once: the multiplexers of
//! every non-linear layer.
//!
//! | | |
//! |---|---|
//! | In | each party's choices and tables; random OTs |
//! | Out | for each job, additive shares of the table entry chosen by its receiver |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | choices and answers both ways, starting with `first`: two runs of messages where every choice is between two, else three |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), multiplexer; ENGINE section 4 |
//!
//! A choice between two values is a product of a bit and a word. Both are opened under
//! masks, and no answer waits for a choice (`ot::opened`).

use ot::one_of_n::{choices_cost, choices_layout, masked_cost, masked_layout};
use ot::{Choices, Column, Job, Masked, Table, ask, choose, offer, respond};
use ring::Bits;
use wire::{Channel, Cost, Lanes, Message, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::correlations::{Correlations, Demand};
use crate::share::Share;

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
    /// A plane for each bit of the choices, for each job in which this party receives.
    pub choices: Vec<Vec<Bits>>,
    /// A table per job in which it sends.
    pub tables: Vec<Table>,
}

/// This party's shares.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Switched {
    /// Columns of the jobs in which this party received.
    pub received: Vec<Column>,
    /// Columns of the jobs in which this party sent.
    pub sent: Vec<Column>,
}

impl Switched {
    /// Returns the sums of the shares of all jobs: `count` words of `bits` bits.
    pub(crate) fn sum(&self, count: usize, bits: u32) -> Share {
        added(self.received.iter().chain(&self.sent), count, bits)
    }

    /// Returns the sums of the shares of the jobs at a place in both lists: `count` words of `bits` bits.
    pub(crate) fn sum_at(&self, place: usize, count: usize, bits: u32) -> Share {
        added(self.received.get(place).into_iter().chain(self.sent.get(place)), count, bits)
    }
}

/// The sums of the first words of columns.
fn added<'a>(columns: impl Iterator<Item = &'a Column>, count: usize, bits: u32) -> Share {
    let mut words = vec![0u64; count];
    for column in columns.filter_map(Column::first_word) {
        words.iter_mut().zip(column).for_each(|(sum, term)| *sum = sum.wrapping_add(*term));
    }
    Share::new(words, bits)
}

impl Switch {
    /// Plans `jobs` in which only `receiver` receives.
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

    /// Returns the OTs that a run consumes.
    pub fn demand(&self) -> Demand {
        Demand {
            client_sends: self.to_server.clone(),
            server_sends: self.to_client.clone(),
            ..Demand::default()
        }
    }

    /// Returns what [`run`] costs when `first` sends first.
    pub fn cost(&self, first: Role) -> Cost {
        let asks = |receiver| match self.received_by(receiver) {
            [] => Cost::NONE,
            jobs => choices_cost(receiver, jobs),
        };
        let answers = |sender: Role| match self.received_by(!sender) {
            [] => Cost::NONE,
            jobs => masked_cost(sender, jobs),
        };
        if self.opens_at_once() {
            let opens = |party| asks(party).then(answers(party));
            return opens(first).then(opens(!first));
        }
        asks(first).then(asks(!first)).then(answers(!first)).then(answers(first))
    }

    /// Whether no choice is between more than two.
    fn opens_at_once(&self) -> bool {
        self.to_client.iter().chain(&self.to_server).all(|job| job.choice_bits == 1)
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
    mut ots: Correlations,
) -> Result<Switched> {
    let role = channel.role();
    let (receives, sends) = (switch.received_by(role), switch.received_by(!role));
    let (receiving, sending) = (ots.receive(receives)?, ots.send(sends)?);
    let tables = std::mem::take(&mut side.tables);
    if switch.opens_at_once() {
        let (asked, choices) = ask(receiving, &side.choices)?;
        let (offered, masked) = offer(sending, tables)?;
        let ours = (!receives.is_empty()).then_some(&choices);
        let answers = (!sends.is_empty()).then_some(&masked);
        if role == first {
            tell(channel, ours)?;
            tell(channel, answers)?;
        }
        let theirs = hear_choices(channel, sends)?;
        let received = hear_answers(channel, receives)?;
        if role != first {
            tell(channel, ours)?;
            tell(channel, answers)?;
        }
        let sent = offered.finish(&theirs)?;
        return Ok(Switched { received: asked.finish(received)?, sent });
    }
    let (chooser, choices) = choose(receiving, &side.choices)?;
    let ours = (!receives.is_empty()).then_some(&choices);
    if role == first {
        tell(channel, ours)?;
    }
    let theirs = hear_choices(channel, sends)?;
    if role != first {
        tell(channel, ours)?;
    }
    let (sent, masked) = respond(sending, tables, &theirs)?;
    let answers = (!sends.is_empty()).then_some(&masked);
    if role != first {
        tell(channel, answers)?;
    }
    let received = hear_answers(channel, receives)?;
    if role == first {
        tell(channel, answers)?;
    }
    Ok(Switched { received: chooser.finish(received)?, sent })
}

fn tell<M: Message>(channel: &mut Channel, message: Option<&M>) -> Result<()> {
    message.map_or(Ok(()), |message| channel.send(message))
}

fn hear_choices(channel: &mut Channel, jobs: &[Job]) -> Result<Choices> {
    match jobs {
        [] => Ok(Lanes(Vec::new())),
        _ => channel.receive(&choices_layout(jobs)),
    }
}

fn hear_answers(channel: &mut Channel, jobs: &[Job]) -> Result<Masked> {
    match jobs {
        [] => Ok(Lanes(Vec::new())),
        _ => channel.receive(&masked_layout(jobs)),
    }
}
