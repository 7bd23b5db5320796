//! Linear layers on an input of the client, which it sends before anything else of a run.
//!
//! | | |
//! |---|---|
//! | In | the client's input, of which the server's share is zero; the server's weights and bias |
//! | Out | as of [`client`](super::client()) and [`server`](super::server()) |
//! | Reveals | as those |
//! | Security | as those: the same messages, sooner |
//! | Cost | the same bytes; the server multiplies while both make correlations, and its answers take one round |
//! | Paper | this project |

use std::sync::Arc;

use he::rlwe::SecretKey;
use wire::{Channel, Error, Result};

use super::client::{receive_phases, send_inputs};
use super::layer::Layer;
use super::preprocess::ServerAsked;
use super::product::ServerWeights;
use super::shares::{check, client_share, server_share};
use crate::linear::transport::Worker;
use crate::share::Share;

/// Sends the client's input encrypted.
///
/// # Errors
/// [`Error::Misuse`] when the input or the key does not fit the layer, [`Error::Transport`].
pub fn send_sooner(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &Share,
    worker: &mut Worker<'_>,
) -> Result<()> {
    check(layer, x, None)?;
    send_inputs(channel, layer, key, x.words(), worker)
}

/// Receives what the server answers to [`send_sooner`]; the client's share of the result. `threads` is at least 1.
///
/// # Errors
/// [`Error::Misuse`] when the input or the key does not fit the layer, [`Error::Peer`], [`Error::Transport`].
pub fn receive_answers(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &Share,
    threads: usize,
) -> Result<Share> {
    let added = check(layer, x, None)?;
    let phases = receive_phases(channel, layer, key, threads)?;
    client_share(layer, &phases, &added)
}

impl ServerAsked {
    /// Answers what [`send_sooner`] sent; the server's share of the result. `x` is its share of the input.
    ///
    /// # Errors
    /// [`Error::Misuse`] for weights that do not fit, [`Error::Internal`] for a share that is not zero,
    /// [`Error::Peer`] for ciphertexts that are none, [`Error::Transport`].
    pub fn answer(
        self,
        channel: &mut Channel,
        layer: &Layer,
        weights: &Arc<ServerWeights>,
        x: &Share,
    ) -> Result<Share> {
        let added = check(layer, x, None)?;
        if x.words().iter().fold(0, |all, word| all | word) != 0 {
            return Err(Error::internal(
                "a layer asked sooner of an input that is shared; please report it",
            ));
        }
        let mut masks = self.products.send(channel)?;
        server_share(layer, &mut masks, weights.bias(), &added)
    }
}
