//! The server's computation by itself, on random data and without a network: what the
//! papers' tables of operations are about.

use std::time::Duration;

use he::bfv::Ciphertext;
use ring::Random;
use ring::host::Instant;
use wire::Result;

use super::encrypted::Encrypted;
use super::evaluate::Evaluation;
use super::keys::ServerKeys;
use super::layer::Layer;
use super::machine::{Machine, Operations};
use super::weights::ServerWeights;
use crate::linear::residues::uniform;
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
        let bias = vec![0; layer.plan.conv.out_channels];
        let mut memory = usize::MAX;
        let start = Instant::now();
        let weights = ServerWeights::new(layer, weight, &bias, &mut memory)?;
        let encoding = start.elapsed();
        let (key, keys) = keys(layer.params(), &layer.rotations(), rng)?;
        let x = uniform(rng, layer.inputs(), layer.prime());
        let encrypt = |piece| {
            let slots = layer.rows_of(&layer.plan.input_slots(piece, &x));
            let fresh = key.encrypt(layer.encoder(), &slots, rng).map_err(misuse)?;
            fresh.expand(layer.params()).map_err(misuse)
        };
        let inputs = layer.plan.pieces.iter().map(encrypt).collect::<Result<_>>()?;
        Ok(Self { layer: layer.clone(), weights, keys, inputs, encoding })
    }

    /// Computes all responses up to their masks, in one thread: how long it took, and what
    /// was done.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when a number of rotations or products does not fit.
    pub fn run(&self) -> Result<(Duration, Operations)> {
        let inputs = self.inputs.clone();
        let Self { layer, weights, keys, .. } = self;
        let machine = Machine::new(Encrypted { layer, keys: &keys.rotations, weights });
        let start = Instant::now();
        let mut evaluation = Evaluation::new(&layer.plan, &machine, 1)?;
        inputs.into_iter().try_for_each(|input| evaluation.push(input))?;
        let (products, parts) = evaluation.finish()?;
        parts.into_iter().try_for_each(|part| products.response(part).map(drop))?;
        Ok((start.elapsed(), machine.operations()))
    }

    /// Times all that the server does, masks and flooding included.
    ///
    /// # Errors
    /// The errors of [`Measurement::run`].
    pub fn timed(&self, rng: &mut Random) -> Result<Timed> {
        let (computing, inputs) = (self.run()?.0, self.inputs.clone());
        let Self { layer, weights, keys, encoding, .. } = self;
        let machine = Machine::new(Encrypted { layer, keys: &keys.rotations, weights });
        let responding = Responding {
            key: &keys.public,
            encoder: layer.encoder(),
            load: layer.load(),
            layouts: layer.response_layouts(),
        };
        let mask = |rng: &mut Random| uniform(rng, layer.params().degree(), layer.prime());
        let timed = responding.time(rng, mask, |respond| {
            let mut evaluation = Evaluation::new(&layer.plan, &machine, 1)?;
            inputs.into_iter().try_for_each(|input| evaluation.push(input))?;
            let (products, parts) = evaluation.finish()?;
            parts.into_iter().try_for_each(|part| respond(products.response(part)?))
        })?;
        Ok(Timed { encoding: *encoding, computing, ..timed })
    }
}
