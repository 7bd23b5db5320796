//! The server's computation by itself, on random data and without a network.

use std::time::Duration;

use he::bfv::Ciphertext;
use ring::Random;
use ring::host::Instant;
use wire::Result;

use super::layer::Layer;
use super::server::Products;
use super::weights::ServerWeights;
use crate::linear::residues::uniform;
use crate::linear::slots::{Operations, ServerKeys};
use crate::linear::timed::{Responding, Timed, keys};
use crate::linear::transport::misuse;

/// A layer with keys, weights and encrypted inputs, all random, ready to be computed.
pub struct Measurement {
    layer: Layer,
    weights: ServerWeights,
    keys: ServerKeys,
    inputs: Vec<Ciphertext>,
    encoding: Duration,
}

impl Measurement {
    /// Prepares `layer` with `weight` `[O, I/g, kh, kw]`.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for weights of wrong lengths, or integers that accumulators do not
    /// hold.
    pub fn new(layer: &Layer, weight: &[i32], rng: &mut Random) -> Result<Self> {
        let bias = vec![0; layer.shape().output[0]];
        let (start, mut memory) = (Instant::now(), usize::MAX);
        let weights = ServerWeights::new(layer, weight, &bias, &mut memory)?;
        let encoding = start.elapsed();
        let (key, keys) = keys(layer.params(), &[], rng)?;
        let x = uniform(rng, layer.inputs(), layer.prime());
        let encrypt = |piece| {
            let slots = layer.packing.input_slots(piece, &x, &layer.transform);
            let fresh = key.encrypt(layer.encoder(), &slots, rng).map_err(misuse)?;
            fresh.expand(layer.params()).map_err(misuse)
        };
        let inputs = (0..layer.packing.pieces()).map(encrypt).collect::<Result<_>>()?;
        Ok(Self { layer: layer.clone(), weights, keys, inputs, encoding })
    }

    /// Computes all responses up to their masks, in one thread: how long it took, and what
    /// was done.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when weights do not fit.
    pub fn run(&self) -> Result<(Duration, Operations)> {
        let inputs = self.inputs.clone();
        let start = Instant::now();
        let mut products = self.pushed(inputs)?;
        for (response, sum) in products.take() {
            products.finish(response, sum)?;
        }
        Ok((start.elapsed(), products.operations()))
    }

    /// Times all that the server does, masks and flooding included.
    ///
    /// # Errors
    /// The errors of [`Measurement::run`].
    pub fn timed(&self, rng: &mut Random) -> Result<Timed> {
        let (computing, inputs) = (self.run()?.0, self.inputs.clone());
        let Self { layer, keys, encoding, .. } = self;
        let responding = Responding {
            key: &keys.public,
            encoder: layer.encoder(),
            load: layer.load(),
            layouts: layer.response_layouts(),
        };
        let mask = |rng: &mut Random| uniform(rng, layer.slots(), layer.prime());
        let timed = responding.time(rng, mask, |respond| {
            let mut products = self.pushed(inputs)?;
            let mut sums = products.take();
            sums.try_for_each(|(response, sum)| respond(products.finish(response, sum)?))
        })?;
        Ok(Timed { encoding: *encoding, computing, ..timed })
    }

    fn pushed(&self, inputs: Vec<Ciphertext>) -> Result<Products<'_>> {
        let mut products = Products::new(&self.layer, &self.weights, 1);
        let mut inputs = inputs.into_iter().enumerate();
        inputs.try_for_each(|(piece, input)| products.push(piece, input))?;
        Ok(products)
    }
}
