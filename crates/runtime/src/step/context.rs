//! What a step finds when it runs: the channel, its party, randomness and correlations.

use mpc::{Correlations, Share};
use ring::Random;
use wire::{Channel, Error, Result};

use super::correlations::CorrelationSource;
use super::keys::{ClientKeys, ServerKeys};
use super::memory::Memory;
use super::preprocessed::Preprocessed;
use super::sliced::Feed;
use super::weights::Weights;

/// What a party brings to a run.
#[derive(Clone, Copy)]
pub enum Party<'a> {
    /// The client's keys and the quantised inputs of one run, one after another.
    Client {
        /// Secret keys.
        keys: &'a ClientKeys,
        /// Quantised inputs.
        input: &'a [i64],
        /// What the client adds to the results before they are shown, in their last places; nothing when empty.
        added: &'a [i64],
        /// Threads of this party, at least 1.
        threads: usize,
    },
    /// The client's public keys and the server's encoded weights.
    Server {
        /// Public keys.
        keys: &'a ServerKeys,
        /// Weights.
        weights: &'a Weights,
        /// Threads of this party, at least 1.
        threads: usize,
    },
}

impl<'a> Party<'a> {
    /// Threads that the party may use; the other party's may differ.
    pub fn threads(&self) -> usize {
        match self {
            Self::Client { threads, .. } | Self::Server { threads, .. } => *threads,
        }
    }

    /// The party in a run of several inputs that follow each other.
    ///
    /// # Errors
    /// [`Error::Internal`] for a server without weights for such runs.
    pub(crate) fn in_pass(self) -> Result<Self> {
        match self {
            Self::Client { .. } => Ok(self),
            Self::Server { keys, weights, threads } => {
                Ok(Self::Server { keys, weights: weights.of_pass()?, threads })
            }
        }
    }

    /// Returns the constants of a node, at the server.
    pub fn constants(&self, node: Option<usize>) -> Option<&'a [i64]> {
        match self {
            Self::Client { .. } => None,
            Self::Server { weights, .. } => weights.constants(node),
        }
    }
}

/// One party's end of a session: everything with which it preprocesses and runs.
pub struct Endpoint<'a> {
    /// The connection.
    pub channel: &'a mut Channel,
    /// What this party brings to the run.
    pub party: Party<'a>,
    /// The source of correlations, which both parties set up together.
    pub source: &'a mut CorrelationSource,
    /// Randomness of the operating system.
    pub rng: &'a mut Random,
    /// What layers keep between the runs of the session.
    pub memory: &'a mut Memory,
}

/// What a step finds when it runs.
pub struct Context<'a, 'f> {
    /// The connection, which counts messages in phase online.
    pub channel: &'a mut Channel,
    /// The inputs, weights and keys of this party.
    pub party: Party<'a>,
    /// Randomness of the operating system.
    pub rng: &'a mut Random,
    /// What layers keep between the runs of the session.
    pub memory: &'a mut Memory,
    /// Index of the step.
    pub index: usize,
    /// Node of the step, which has its weights.
    pub node: Option<usize>,
    /// What was preprocessed for the step, of a layer that is.
    pub preprocessed: Option<Preprocessed>,
    pub(crate) feed: &'a mut Feed<'f>,
}

/// What a layer finds while it is preprocessed.
pub struct Preprocessing<'a> {
    /// The connection, which counts messages in the phase of preprocessing.
    pub channel: &'a mut Channel,
    /// The inputs, weights and keys of this party.
    pub party: Party<'a>,
    /// Randomness of the operating system.
    pub rng: &'a mut Random,
    /// What layers keep between the runs of the session.
    pub memory: &'a mut Memory,
    /// Index of the step.
    pub index: usize,
    /// Node of the step, which has its weights.
    pub node: Option<usize>,
    /// Correlations that were made for this exchange.
    pub correlations: &'a mut Correlations,
    pub(crate) source: &'a mut CorrelationSource,
}

/// The input at position `index` of a step.
///
/// # Errors
/// [`Error::Internal`] where there are fewer.
pub(crate) fn input(inputs: &[Share], index: usize) -> Result<&Share> {
    inputs
        .get(index)
        .ok_or_else(|| Error::Internal("a step with too few inputs; please report it".into()))
}
