//! The server's side.

use he::rlwe::PublicKey;
use wire::{Channel, Result};

use super::answers::{self, Server};
use super::layer::Layer;
use super::product::ServerWeights;
use super::shares::{check, server_share};
use crate::linear::transport::Worker;
use crate::share::Share;

/// Runs the server's side: adds its share, multiplies, masks.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when shares, key or weights do not fit the layer,
/// [`Error::Peer`](wire::Error::Peer), [`Error::Transport`](wire::Error::Transport).
pub fn server(
    channel: &mut Channel,
    layer: &Layer,
    key: &PublicKey,
    weights: &ServerWeights,
    x: &Share,
    addend: Option<&Share>,
    worker: &mut Worker<'_>,
) -> Result<Share> {
    let added = check(layer, x, addend)?;
    let server = Server { layer, key, weights };
    let mut masks = answers::stream(channel, server, x.words(), worker)?;
    server_share(layer, &mut masks, weights.bias(), &added)
}
