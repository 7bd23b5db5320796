//! The server's computation by itself, on random data and without a network.

use std::time::{Duration, Instant};

use he::bfv::{Ciphertext, SecretKey};
use ring::{Random, Seed};
use wire::{Message, Result};

use super::layer::Layer;
use super::server::{Products, answer};
use super::weights::ServerWeights;
use super::{Operations, ServerKeys};
use crate::linear::coefficient::misuse;
use crate::linear::slots::uniform;

/// A layer with keys, weights and encrypted inputs, all random, ready to be computed.
pub struct Measurement {
    layer: Layer,
    weights: ServerWeights,
    keys: ServerKeys,
    inputs: Vec<Ciphertext>,
}

impl Measurement {
    /// Of `layer`, with `weight` `[O, I/g, kh, kw]`.
    ///
    /// # Errors
    /// As [`ServerWeights::new`].
    pub fn new(layer: &Layer, weight: &[i32], rng: &mut Random) -> Result<Self> {
        let bias = vec![0; layer.shape().output[0]];
        let weights = ServerWeights::new(layer, weight, &bias, &mut usize::MAX.clone())?;
        let key = SecretKey::generate(layer.params(), rng).map_err(misuse)?;
        let seed = Seed([0; 16]);
        let public = key.public_key(&seed, rng).map_err(misuse)?;
        let rotations = key.rotation_keys(&[], false, &seed, rng).map_err(misuse)?;
        let x = uniform(rng, layer.inputs(), layer.prime());
        let encrypt = |piece| {
            let slots = layer.packing.input_slots(piece, &x, &layer.transform);
            let fresh = key.encrypt(layer.encoder(), &slots, rng).map_err(misuse)?;
            fresh.expand(layer.params()).map_err(misuse)
        };
        let inputs = (0..layer.packing.pieces()).map(encrypt).collect::<Result<_>>()?;
        let keys = ServerKeys { public, rotations };
        Ok(Self { layer: layer.clone(), weights, keys, inputs })
    }

    /// Computes all responses up to their masks, in one thread: how long it took, and what
    /// was done.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when weights do not fit.
    pub fn run(&self) -> Result<(Duration, Operations)> {
        let inputs = self.inputs.clone();
        let start = Instant::now();
        let (mut products, responses) = self.pushed(inputs)?;
        for (response, sum) in products.take().take(responses) {
            products.finish(response, sum)?;
        }
        Ok((start.elapsed(), products.operations()))
    }

    /// As [`Measurement::run`], with masks, flooding, and responses in the bytes that are sent.
    ///
    /// # Errors
    /// As there.
    pub fn answer(&self, rng: &mut Random) -> Result<Duration> {
        let inputs = self.inputs.clone();
        let start = Instant::now();
        let (mut products, responses) = self.pushed(inputs)?;
        let mut sent = Vec::new();
        let layouts = self.layer.response_layouts().into_iter();
        for ((response, sum), layout) in products.take().take(responses).zip(layouts) {
            let cipher = products.finish(response, sum)?;
            let (parts, _) = answer(&self.layer, &self.keys, cipher, rng)?;
            sent.clear();
            wire::Packed::<0x46>(layout.into_iter().zip(parts).collect()).encode(&mut sent);
        }
        Ok(start.elapsed())
    }

    fn pushed(&self, inputs: Vec<Ciphertext>) -> Result<(Products<'_>, usize)> {
        let mut products = Products::new(&self.layer, &self.weights, 1);
        let mut inputs = inputs.into_iter().enumerate();
        inputs.try_for_each(|(piece, input)| products.push(piece, input))?;
        Ok((products, self.layer.packing.responses()))
    }
}
