//! Bookkeeping of correlations: how many a step needs and who holds which end.

use std::ops::{Add, Mul};

use ot::{ReceiverBatch, SenderBatch};
use wire::{Error, Result, Role};

/// Correlated transfers that a step consumes, by the party that sends in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Transfers in which the client is the sender.
    pub client_sends: usize,
    /// Transfers in which the server is the sender.
    pub server_sends: usize,
}

impl Need {
    /// `count` transfers from `sender`.
    pub const fn from(sender: Role, count: usize) -> Self {
        match sender {
            Role::Client => Self { client_sends: count, server_sends: 0 },
            Role::Server => Self { client_sends: 0, server_sends: count },
        }
    }

    /// How many of them `sender` sends.
    pub const fn sent_by(&self, sender: Role) -> usize {
        match sender {
            Role::Client => self.client_sends,
            Role::Server => self.server_sends,
        }
    }
}

impl Add for Need {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            client_sends: self.client_sends + other.client_sends,
            server_sends: self.server_sends + other.server_sends,
        }
    }
}

impl Mul<usize> for Need {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        Self { client_sends: self.client_sends * times, server_sends: self.server_sends * times }
    }
}

impl std::iter::Sum for Need {
    fn sum<I: Iterator<Item = Self>>(needs: I) -> Self {
        needs.fold(Self::default(), Self::add)
    }
}

/// One party's ends of the correlations for one step. Consumed by value.
#[derive(Debug)]
pub struct Cots {
    /// Those in which this party sends.
    pub sending: SenderBatch,
    /// Those in which it receives.
    pub receiving: ReceiverBatch,
}

impl Cots {
    /// Takes what `need` says off the front.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when fewer are left.
    pub fn split(&mut self, role: Role, need: Need) -> Result<Self> {
        let (sent, received) = (need.sent_by(role), need.sent_by(!role));
        if self.sending.len() < sent || self.receiving.len() < received {
            return Err(Error::misuse("a step needs more correlations than were prepared"));
        }
        Ok(Self {
            sending: self.sending.split_off(sent),
            receiving: self.receiving.split_off(received),
        })
    }
}
