//! Correlated OTs that a layer takes as they are, and does not hash.

use ot::{ReceiverBatch, SenderBatch};
use wire::{Channel, Phase, Result, Role};

use super::correlations::{CorrelationSource, Schedules};
use super::spent::Spent;

/// Correlated OTs that are taken as they are, by the party that holds them.
#[derive(Debug)]
pub(crate) enum Correlated {
    /// At the server.
    Sent(SenderBatch),
    /// At the client.
    Received(ReceiverBatch),
}

impl CorrelationSource {
    /// Makes `count` correlated OTs of which the server sends, to be taken as they are.
    pub(crate) fn correlated(&mut self, channel: &mut Channel, count: usize) -> Result<Correlated> {
        channel.enter(Phase::Preprocess, None);
        let role = channel.role();
        let (from, to) = self.sources()?;
        match role {
            Role::Server => {
                from.reserve(count);
                from.extend(channel, count)?;
                from.take(count).map(Correlated::Sent)
            }
            Role::Client => {
                to.reserve(count);
                to.extend(channel, count)?;
                to.take(count).map(Correlated::Received)
            }
        }
    }
}

impl Schedules {
    /// What [`CorrelationSource::correlated`] takes next.
    pub(crate) fn correlated(&mut self, count: usize) -> Spent {
        let [_, before] = self.made();
        self.server_sends.reserve(count);
        let cost = self.server_sends.extend(count);
        self.server_sends.take(count);
        let made = self.server_sends.made().since(before);
        Spent { cost, work: mpc::work::correlations(made.and(made.first())) }
    }
}
