//! The server's computation by itself, on random data and without a network.

use std::time::Duration;

use he::bfv::Ciphertext;
use ring::Random;
use ring::host::Instant;
use ring::word::signed;
use wire::Result;

use super::layer::Layer;
use super::server::{Factors, Products};
use super::weights::ServerWeights;
use crate::linear::slots::ServerKeys;
use crate::linear::timed::{Responding, Timed, keys};
use crate::linear::transport::misuse;

/// A layer with keys, weights and encrypted inputs, all random, ready to be computed.
pub struct Measurement {
    layer: Layer,
    weights: ServerWeights,
    keys: ServerKeys,
    inputs: Vec<Factors>,
    encoding: Duration,
}

impl Measurement {
    /// Prepares `layer` with `weight` `[O, I/g, kh, kw]`.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for weights of wrong lengths, or integers that accumulators do not
    /// hold.
    pub fn new(layer: &Layer, weight: &[i32], rng: &mut Random) -> Result<Self> {
        let (bias, mut memory) = (vec![0; layer.shape().output[0]], usize::MAX);
        let start = Instant::now();
        let weights = ServerWeights::new(layer, weight, &bias, &mut memory)?;
        let encoding = start.elapsed();
        let (key, keys) = keys(layer.params(), &[], rng)?;
        let words = rng.uniform(layer.inputs(), 8);
        let x: Vec<i64> = words.into_iter().map(|word| signed(word, 8)).collect();
        let slots = (0..layer.packing.pieces()).flat_map(|piece| layer.input_slots(piece, &x));
        let encrypted = slots.map(|slots| {
            let fresh = key.encrypt(layer.encoder(), &slots, rng).map_err(misuse)?;
            fresh.expand(layer.params()).map_err(misuse)
        });
        let ciphers = encrypted.collect::<Result<Vec<Ciphertext>>>()?;
        let (inputs, _) = ciphers.as_chunks::<2>();
        Ok(Self { layer: layer.clone(), weights, keys, inputs: inputs.to_vec(), encoding })
    }

    fn products(&self) -> Products<'_> {
        Products { layer: &self.layer, weights: &self.weights, inputs: self.inputs.clone() }
    }

    /// Computes all responses up to their masks, in one thread: how long it took.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when weights do not fit.
    pub fn run(&self) -> Result<Duration> {
        let products = self.products();
        let start = Instant::now();
        let mut responses = 0..self.layer.packing.responses();
        responses.try_for_each(|response| products.response(response).map(drop))?;
        Ok(start.elapsed())
    }

    /// Times all that the server does, masks and flooding included.
    ///
    /// # Errors
    /// The errors of [`Measurement::run`].
    pub fn timed(&self, rng: &mut Random) -> Result<Timed> {
        let (computing, products) = (self.run()?, self.products());
        let Self { layer, keys, encoding, .. } = self;
        let responding = Responding {
            key: &keys.public,
            encoder: layer.encoder(),
            load: layer.load(),
            layouts: layer.response_layouts(),
        };
        let mut imaginary = None;
        let mask = |rng: &mut Random| {
            imaginary.take().unwrap_or_else(|| {
                let [first, second] = layer.mask(rng).slots;
                imaginary = Some(second);
                first
            })
        };
        let timed = responding.time(rng, mask, |respond| {
            let mut responses = 0..layer.packing.responses();
            responses.try_for_each(|response| {
                let [real, imaginary] = products.response(response)?;
                respond(real)?;
                respond(imaginary)
            })
        })?;
        Ok(Timed { encoding: *encoding, computing, ..timed })
    }
}
