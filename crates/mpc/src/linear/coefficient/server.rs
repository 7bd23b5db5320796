//! The server's side.

use wire::{Channel, Result};

use super::answers::{self, Server};
use super::layer::Layer;
use super::product::ServerWeights;
use super::shares::{check, server_share};
use crate::linear::transport::{ServerKeys, Worker};
use crate::share::Share;

/// Runs the server's side: adds its share, multiplies, masks.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when shares, key or weights do not fit the layer,
/// [`Error::Peer`](wire::Error::Peer), [`Error::Transport`](wire::Error::Transport).
pub fn server<'k>(
    channel: &mut Channel,
    layer: &Layer,
    keys: impl Into<ServerKeys<'k>>,
    weights: &ServerWeights,
    x: &Share,
    addend: Option<&Share>,
    worker: &mut Worker<'_>,
) -> Result<Share> {
    let added = check(layer, x, addend)?;
    let server = Server { layer, keys: keys.into(), weights };
    let mut masks = answers::stream(channel, server, x.words(), worker)?;
    server_share(layer, &mut masks, weights.bias(), &added)
}
