//! Linear layers on packed slots: shares mod a prime go in, shares mod the same prime come out.
//! FALCON as published takes small shares and gives integers.

use graph::Conv;
use he::bfv::{Params, SecretKey};
use mpc::Share;
use mpc::garbled::Ring;
use mpc::linear::falcon::AcceptLeakage;
use mpc::linear::falcon::{self, ntt};
use mpc::linear::slots::{self, Operations, Protocol, ServerKeys, Worker};
use pricing::{Unit, Work};
use ring::Modulus;
use wire::{Channel, Cost, Error, Result};
use zeroize::Zeroizing;

use crate::step::context::{Context, Party, input};
use crate::step::keys::{KeyDemand, SlotKeyDemand};
use crate::step::linear::LinearProtocol;
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource};

/// The protocols on packed slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Rotations and products, in the order of GAZELLE or GALA.
    Rotated(Protocol),
    /// Products in the transform domain.
    Transformed,
    /// Products in the transform domain by complex transforms, which leak.
    Published(AcceptLeakage),
}

/// A linear layer under one of the protocols on packed slots.
#[derive(Clone, Debug)]
pub enum Packed {
    /// GAZELLE or GALA.
    Rotated(slots::Layer),
    /// FALCON by a number-theoretic transform.
    Transformed(ntt::Layer),
    /// FALCON as published.
    Published(falcon::Layer),
}

/// A linear layer on packed slots as a step: shares mod its prime in, shares mod its prime out;
/// small shares in, shares mod a power of two out.
#[derive(Debug)]
pub struct SlotLayer {
    /// The homomorphic part, which is all.
    pub layer: Packed,
    /// Width of the words that come out.
    pub bits: u32,
    /// The integer that rounding adds to the bias.
    pub half: i64,
}

/// The weights of a layer, encoded for its protocol.
#[derive(Debug)]
pub(crate) enum PackedWeights {
    Rotated(slots::ServerWeights),
    Transformed(ntt::ServerWeights),
    Published(falcon::ServerWeights),
}

impl Packing {
    /// The name of the suite that is made of it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rotated(protocol) => protocol.name(),
            Self::Transformed => "falcon-ntt",
            Self::Published(_) => "falcon",
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
            Self::Transformed => ntt::Layer::new(conv, held, plain_bits).map(Packed::Transformed),
            Self::Published(leakage) => {
                falcon::Layer::new(conv, held, plain_bits, leakage).map(Packed::Published)
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
            Packed::Published($layer) => $body,
        }
    };
}

impl Packed {
    /// Returns the encryption parameters of the layer.
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
            Self::Published(layer) => layer.with_params(params).map(Self::Published),
        }
    }

    /// Returns the prime modulus of the slots.
    pub fn prime(&self) -> u64 {
        each!(self, layer => layer.prime())
    }

    /// How the values that go in are shared, before shares are made small where they have to be.
    ///
    /// # Errors
    /// [`Error::Misuse`] when there is no such ring.
    pub(crate) fn ring(&self) -> Result<Ring> {
        match self {
            Self::Published(layer) => Ok(Ring::Power(layer.small()?.bits())),
            _ => {
                let prime = Modulus::new(self.prime());
                prime.map(Ring::Prime).ok_or_else(|| Error::misuse("a large prime"))
            }
        }
    }

    /// Returns the number of values of the input.
    pub fn inputs(&self) -> usize {
        each!(self, layer => layer.inputs())
    }

    /// Returns the number of values of the output.
    pub fn outputs(&self) -> usize {
        each!(self, layer => layer.outputs())
    }

    /// Rotations that the server needs keys for.
    pub(crate) fn rotations(&self) -> Vec<usize> {
        match self {
            Self::Rotated(layer) => layer.rotations(),
            Self::Transformed(_) | Self::Published(_) => Vec::new(),
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

    /// What both parties do, beside the messages.
    pub(crate) fn work(&self) -> Work {
        self.operations().work(self.params()).and(Unit::Packed, self.cost().bytes() as f64)
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
            Self::Transformed(layer) => {
                ntt::ServerWeights::new(layer, weight, bias, memory).map(PackedWeights::Transformed)
            }
            Self::Published(layer) => falcon::ServerWeights::new(layer, weight, bias, memory)
                .map(PackedWeights::Published),
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
            Self::Transformed(layer) => ntt::client(channel, layer, key, x, worker),
            Self::Published(layer) => {
                falcon::client(channel, layer, key, &integers(x), worker).map(words)
            }
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
                slots::server(channel, &slots::Server { layer, keys, weights }, x, worker)
            }
            (Self::Transformed(layer), PackedWeights::Transformed(weights)) => {
                ntt::server(channel, &slots::Server { layer, keys, weights }, x, worker)
            }
            (Self::Published(layer), PackedWeights::Published(weights)) => {
                falcon::server(channel, layer, keys, weights, &integers(x), worker).map(words)
            }
            _ => Err(Error::misuse("weights that were encoded for another protocol")),
        }
    }
}

impl LinearProtocol for SlotLayer {
    fn operator(&self) -> &'static str {
        if self.layer.is_fully_connected() { "fully connected" } else { "convolution" }
    }

    fn describe(&self) -> String {
        self.layer.describe()
    }

    fn keys(&self) -> KeyDemand {
        let (params, rotations) = (self.layer.params().clone(), self.layer.rotations());
        KeyDemand { slots: Some(SlotKeyDemand { params, rotations }), ..KeyDemand::default() }
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let weights = source.take()?;
        let bias: Vec<i64> = weights.bias.iter().map(|b| b + self.half).collect();
        let bias = Zeroizing::new(bias);
        let ready = self.layer.weights(&weights.weight, &bias, source.memory)?;
        Ok(Some(Encoded::new(ready)))
    }

    fn failure(&self) -> f64 {
        each!(&self.layer, layer => layer.failure())
    }

    fn spent(&self) -> Spent {
        Spent { cost: self.layer.cost(), work: self.layer.work() }
    }

    fn operations(&self) -> Option<Operations> {
        Some(self.layer.operations())
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let x = input(&inputs, 0)?.words();
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        let mut words = match cx.party {
            Party::Client { keys, .. } => {
                self.layer.client(cx.channel, keys.for_slots()?, x, worker)?
            }
            Party::Server { keys, weights, .. } => {
                let (keys, weights) = (keys.for_slots()?, weights.of(cx.node)?);
                self.layer.server(cx.channel, keys, weights, x, worker)?
            }
        };
        Ok(Share::new(std::mem::take(&mut *words), self.bits))
    }
}

/// Shares in two's complement of 64 bits.
fn integers(x: &[u64]) -> Zeroizing<Vec<i64>> {
    Zeroizing::new(x.iter().map(|word| *word as i64).collect())
}

fn words(x: Zeroizing<Vec<i64>>) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(x.iter().map(|value| *value as u64).collect())
}
