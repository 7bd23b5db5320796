//! A linear layer on packed slots, whatever the order of the slots: shares mod a prime in,
//! shares mod the same prime out.

use graph::Conv;
use he::bfv::{Params, SecretKey};
use mpc::linear::falcon_ntt;
use mpc::linear::slots::{self, Operations, Protocol, ServerKeys, Worker};
use wire::{Channel, Cost, Error, Result};
use zeroize::Zeroizing;

/// The protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Rotations and products, in the order of GAZELLE or GALA.
    Rotated(Protocol),
    /// Products in the transform domain.
    Transformed,
}

/// One layer under one of them.
#[derive(Clone, Debug)]
pub enum Packed {
    /// GAZELLE or GALA.
    Rotated(slots::Layer),
    /// FALCON by a number-theoretic transform.
    Transformed(falcon_ntt::Layer),
}

/// Its weights, encoded.
#[derive(Debug)]
pub(crate) enum PackedWeights {
    Rotated(slots::ServerWeights),
    Transformed(falcon_ntt::ServerWeights),
}

impl Packing {
    /// The name of the suite that is made of it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rotated(protocol) => protocol.name(),
            Self::Transformed => "falcon-ntt",
        }
    }

    /// Plans `conv` on inputs of `held` bits and sums of `plain_bits`.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold the layer.
    pub(crate) fn layer(self, conv: &Conv, held: u32, plain_bits: u32) -> Result<Packed> {
        match self {
            Self::Rotated(protocol) => {
                slots::Layer::new(conv, protocol, held, plain_bits, None).map(Packed::Rotated)
            }
            Self::Transformed => {
                falcon_ntt::Layer::new(conv, held, plain_bits).map(Packed::Transformed)
            }
        }
    }
}

/// Runs `$body` on the layer inside.
macro_rules! each {
    ($self:expr, $layer:ident => $body:expr) => {
        match $self {
            Packed::Rotated($layer) => $body,
            Packed::Transformed($layer) => $body,
        }
    };
}

impl Packed {
    /// Encryption parameters.
    pub fn params(&self) -> &Params {
        each!(self, layer => layer.params())
    }

    /// The same layer under other parameters.
    ///
    /// # Errors
    /// [`Error::Misuse`] when they do not hold it.
    pub(crate) fn with_params(&self, params: &Params) -> Result<Self> {
        match self {
            Self::Rotated(layer) => layer.with_params(params).map(Self::Rotated),
            Self::Transformed(layer) => layer.with_params(params).map(Self::Transformed),
        }
    }

    /// Modulus of the shares.
    pub fn prime(&self) -> u64 {
        each!(self, layer => layer.prime())
    }

    /// Values that go in.
    pub fn inputs(&self) -> usize {
        each!(self, layer => layer.inputs())
    }

    /// Values that come out.
    pub fn outputs(&self) -> usize {
        each!(self, layer => layer.outputs())
    }

    /// Rotations that the server needs keys for.
    pub(crate) fn rotations(&self) -> Vec<usize> {
        match self {
            Self::Rotated(layer) => layer.rotations(),
            Self::Transformed(_) => Vec::new(),
        }
    }

    /// What the products cost.
    pub(crate) fn cost(&self) -> Cost {
        each!(self, layer => layer.cost())
    }

    /// The server's operations.
    pub(crate) fn operations(&self) -> Operations {
        each!(self, layer => layer.operations())
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        each!(self, layer => layer.describe())
    }

    /// Whether it is a product of a matrix and a vector.
    pub(crate) fn is_fully_connected(&self) -> bool {
        each!(self, layer => layer.is_fully_connected())
    }

    /// Encodes `weight` and `bias` within `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other lengths than the layer's.
    pub(crate) fn weights(
        &self,
        weight: &[i32],
        bias: &[i64],
        memory: &mut usize,
    ) -> Result<PackedWeights> {
        match self {
            Self::Rotated(layer) => {
                slots::ServerWeights::new(layer, weight, bias, memory).map(PackedWeights::Rotated)
            }
            Self::Transformed(layer) => falcon_ntt::ServerWeights::new(layer, weight, bias, memory)
                .map(PackedWeights::Transformed),
        }
    }

    /// The client's side.
    ///
    /// # Errors
    /// [`Error::Misuse`] when share or key do not fit, [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn client(
        &self,
        channel: &mut Channel,
        key: &SecretKey,
        x: &[u64],
        worker: &mut Worker<'_>,
    ) -> Result<Zeroizing<Vec<u64>>> {
        match self {
            Self::Rotated(layer) => slots::client(channel, layer, key, x, worker),
            Self::Transformed(layer) => falcon_ntt::client(channel, layer, key, x, worker),
        }
    }

    /// The server's side.
    ///
    /// # Errors
    /// As [`Packed::client`].
    pub(crate) fn server(
        &self,
        channel: &mut Channel,
        keys: &ServerKeys,
        weights: &PackedWeights,
        x: &[u64],
        worker: &mut Worker<'_>,
    ) -> Result<Zeroizing<Vec<u64>>> {
        match (self, weights) {
            (Self::Rotated(layer), PackedWeights::Rotated(weights)) => {
                slots::server(channel, layer, keys, weights, x, worker)
            }
            (Self::Transformed(layer), PackedWeights::Transformed(weights)) => {
                falcon_ntt::server(channel, layer, keys, weights, x, worker)
            }
            _ => Err(Error::misuse("weights that were encoded for another protocol")),
        }
    }
}
