//! Bookkeeping of random transfers: which ones a step consumes and who holds
//! which end.

use std::collections::VecDeque;
use std::ops::Add;

use ot::{Job, ReceiverPads, SenderPads};
use wire::{Error, Result, Role};

/// Random transfers that a step consumes, in order, by the party that sends in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Transfers in which the client is the sender.
    pub client_sends: Vec<Job>,
    /// Transfers in which the server is the sender.
    pub server_sends: Vec<Job>,
}

impl Need {
    /// `jobs` from `sender`.
    pub fn from(sender: Role, jobs: Vec<Job>) -> Self {
        match sender {
            Role::Client => Self { client_sends: jobs, server_sends: Vec::new() },
            Role::Server => Self { client_sends: Vec::new(), server_sends: jobs },
        }
    }

    /// `jobs` in each direction.
    pub fn both(jobs: Vec<Job>) -> Self {
        Self { client_sends: jobs.clone(), server_sends: jobs }
    }

    /// Those that `sender` sends.
    pub fn sent_by(&self, sender: Role) -> &[Job] {
        match sender {
            Role::Client => &self.client_sends,
            Role::Server => &self.server_sends,
        }
    }

    /// Correlations behind those that `sender` sends.
    pub fn cots(&self, sender: Role) -> usize {
        self.sent_by(sender).iter().map(Job::cots).sum()
    }
}

impl Add for Need {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.client_sends.extend(other.client_sends);
        self.server_sends.extend(other.server_sends);
        self
    }
}

impl std::iter::Sum for Need {
    fn sum<I: Iterator<Item = Self>>(needs: I) -> Self {
        needs.fold(Self::default(), Self::add)
    }
}

/// One party's ends of prepared transfers, first needed first. Consumed by value.
#[derive(Debug, Default)]
pub struct Pads {
    sending: VecDeque<SenderPads>,
    receiving: VecDeque<ReceiverPads>,
}

impl Pads {
    /// Those in which this party sends and those in which it receives.
    pub fn new(sending: Vec<SenderPads>, receiving: Vec<ReceiverPads>) -> Self {
        Self { sending: sending.into(), receiving: receiving.into() }
    }

    /// Transfers left.
    pub fn len(&self) -> usize {
        self.sending.len() + self.receiving.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes what `need` says off the front.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn split(&mut self, role: Role, need: &Need) -> Result<Self> {
        let sending = self.send(need.sent_by(role))?;
        let receiving = self.receive(need.sent_by(!role))?;
        Ok(Self::new(sending, receiving))
    }

    /// The next transfers that this party sends.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn send(&mut self, jobs: &[Job]) -> Result<Vec<SenderPads>> {
        let ready = self.sending.iter().take(jobs.len()).map(SenderPads::job);
        if !ready.eq(jobs.iter().copied()) {
            return Err(mismatch());
        }
        Ok(self.sending.drain(..jobs.len()).collect())
    }

    /// The next transfers that it receives.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn receive(&mut self, jobs: &[Job]) -> Result<Vec<ReceiverPads>> {
        let ready = self.receiving.iter().take(jobs.len()).map(ReceiverPads::job);
        if !ready.eq(jobs.iter().copied()) {
            return Err(mismatch());
        }
        Ok(self.receiving.drain(..jobs.len()).collect())
    }
}

fn mismatch() -> Error {
    Error::misuse("a step needs other transfers than were prepared")
}
