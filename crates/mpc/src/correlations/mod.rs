//! Bookkeeping of correlations: which random OTs and garbled circuits a step
//! consumes and who holds which end.

pub(crate) mod circuits;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Add;
use std::sync::Arc;

use ot::filling::{Filled, FillingReceiver, FillingSender};
use ot::{Job, ReceiverPads, SenderPads};
use wire::{Error, Result, Role};

pub use circuits::{Circuits, Prepared};

/// What a step consumes, in order: random OTs by the party that sends in them, and
/// garbled circuits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// OTs in which the client is the sender.
    pub client_sends: Vec<Job>,
    /// OTs in which the server is the sender.
    pub server_sends: Vec<Job>,
    /// Circuits that the client garbles and the server evaluates. Preparing them takes
    /// OTs of its own, [`Demand::circuit_jobs`].
    pub circuits: Vec<Circuits>,
}

impl Demand {
    /// Makes the demand of `jobs` that `sender` sends.
    pub fn from(sender: Role, jobs: Vec<Job>) -> Self {
        match sender {
            Role::Client => Self { client_sends: jobs, ..Self::default() },
            Role::Server => Self { server_sends: jobs, ..Self::default() },
        }
    }

    /// Makes the demand of `jobs` in each direction.
    pub fn both(jobs: Vec<Job>) -> Self {
        Self { client_sends: jobs.clone(), server_sends: jobs, ..Self::default() }
    }

    /// Makes the demand of one batch of garbled circuits.
    pub fn circuit(circuits: Circuits) -> Self {
        Self { circuits: vec![circuits], ..Self::default() }
    }

    /// Returns the OTs that `sender` sends.
    pub fn sent_by(&self, sender: Role) -> &[Job] {
        match sender {
            Role::Client => &self.client_sends,
            Role::Server => &self.server_sends,
        }
    }

    /// Returns the correlations behind those that `sender` sends.
    pub fn cots(&self, sender: Role) -> usize {
        self.sent_by(sender).iter().map(Job::cots).sum()
    }

    /// Returns the OTs that [`crate::garbled::prepare`] consumes; the client sends in them.
    pub fn circuit_jobs(&self) -> Vec<Job> {
        self.circuits.iter().map(Circuits::job).collect()
    }

    /// Returns the number of bytes that the server holds between preparing garbled circuits and
    /// evaluating them.
    pub fn table_bytes(&self) -> usize {
        self.circuits.iter().map(Circuits::held_bytes).fold(0, usize::saturating_add)
    }
}

impl Add for Demand {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.client_sends.extend(other.client_sends);
        self.server_sends.extend(other.server_sends);
        self.circuits.extend(other.circuits);
        self
    }
}

impl std::iter::Sum for Demand {
    fn sum<I: Iterator<Item = Self>>(demands: I) -> Self {
        demands.fold(Self::default(), Self::add)
    }
}

/// One party's ends of prepared correlations, first needed first. Consumed by value.
#[derive(Debug, Default)]
pub struct Correlations {
    sending: Pads<FillingSender>,
    receiving: Pads<FillingReceiver>,
    circuits: VecDeque<Prepared>,
}

/// The pads of OTs of one direction.
pub enum Pads<F: Filled> {
    /// All are there.
    Ready(VecDeque<F::Pads>),
    /// They are made while this party waits for the other, or when they are taken.
    Later(Arc<F>),
}

impl<F: Filled> Pads<F> {
    /// Returns what makes them, if they are made later.
    pub fn later(&self) -> Option<&Arc<F>> {
        match self {
            Self::Ready(_) => None,
            Self::Later(later) => Some(later),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ready(pads) => pads.len(),
            Self::Later(pads) => pads.left(),
        }
    }

    fn take(&mut self, jobs: &[Job]) -> Result<Vec<F::Pads>> {
        match self {
            Self::Ready(pads) => {
                let ready = pads.iter().take(jobs.len()).map(F::job);
                if !ready.eq(jobs.iter().copied()) {
                    let why = "a step needs other OTs than were prepared";
                    return Err(Error::misuse(why));
                }
                Ok(pads.drain(..jobs.len()).collect())
            }
            Self::Later(pads) => pads.next(jobs),
        }
    }

    fn take_last(&mut self, count: usize) -> Result<Vec<F::Pads>> {
        match self {
            Self::Ready(pads) => {
                let first = pads.len().checked_sub(count);
                let first = first.ok_or_else(|| Error::internal("fewer OTs than circuits"))?;
                Ok(pads.split_off(first).into())
            }
            Self::Later(pads) => pads.last(count),
        }
    }
}

impl<F: Filled> Default for Pads<F> {
    fn default() -> Self {
        Self::Ready(VecDeque::new())
    }
}

impl<F: Filled> From<Vec<F::Pads>> for Pads<F> {
    fn from(pads: Vec<F::Pads>) -> Self {
        Self::Ready(pads.into())
    }
}

impl<F: Filled> fmt::Debug for Pads<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pads(<of {} jobs>)", self.len())
    }
}

impl Correlations {
    /// Holds the pads of OTs that this party sends, and of those that it receives.
    pub fn new(sending: Vec<SenderPads>, receiving: Vec<ReceiverPads>) -> Self {
        Self::of(sending.into(), receiving.into())
    }

    /// Holds pads that are perhaps still to be made.
    pub fn of(sending: Pads<FillingSender>, receiving: Pads<FillingReceiver>) -> Self {
        Self { sending, receiving, circuits: VecDeque::new() }
    }

    /// Adds prepared circuits to the pads.
    #[must_use]
    pub fn with_circuits(self, circuits: Vec<Prepared>) -> Self {
        Self { circuits: circuits.into(), ..self }
    }

    /// Returns the number of OTs and batches of circuits left.
    pub fn len(&self) -> usize {
        self.sending.len() + self.receiving.len() + self.circuits.len()
    }

    /// Returns whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes what `need` says off the front.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn split(&mut self, role: Role, demand: &Demand) -> Result<Self> {
        let sending = self.send(demand.sent_by(role))?;
        let receiving = self.receive(demand.sent_by(!role))?;
        let circuits = self.circuits(&demand.circuits)?;
        Ok(Self::new(sending, receiving).with_circuits(circuits))
    }

    /// Takes the OTs of the last `count` jobs that the client sends, for garbled circuits.
    ///
    /// # Errors
    /// [`Error::Internal`] when fewer are there, [`Error::Peer`] when what the peer said of them is wrong.
    pub fn split_last(&mut self, role: Role, count: usize) -> Result<Self> {
        Ok(match role {
            Role::Client => Self::new(self.sending.take_last(count)?, Vec::new()),
            Role::Server => Self::new(Vec::new(), self.receiving.take_last(count)?),
        })
    }

    /// Returns the next garbled circuits.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn circuits(&mut self, demand: &[Circuits]) -> Result<Vec<Prepared>> {
        if !self.circuits.iter().take(demand.len()).map(Prepared::circuits).eq(demand) {
            return Err(Error::misuse("a step needs other garbled circuits than were prepared"));
        }
        Ok(self.circuits.drain(..demand.len()).collect())
    }

    /// Returns the next OTs that this party sends.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn send(&mut self, jobs: &[Job]) -> Result<Vec<SenderPads>> {
        self.sending.take(jobs)
    }

    /// Returns the next OTs that it receives.
    ///
    /// # Errors
    /// [`Error::Misuse`] when others or fewer are there.
    pub fn receive(&mut self, jobs: &[Job]) -> Result<Vec<ReceiverPads>> {
        self.receiving.take(jobs)
    }
}
