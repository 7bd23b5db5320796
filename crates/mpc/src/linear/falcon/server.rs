//! The server's side.

use he::bfv::{Accumulator, Ciphertext};
use ring::Random;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::check::check;
use super::layer::Layer;
use super::slots::Mask;
use super::weights::ServerWeights;
use crate::linear::slots::ServerKeys;
use crate::linear::transport::Worker;
use crate::linear::transport::bfv::{self, Arrivals};
use crate::linear::transport::{misuse, send_chunks};

/// Runs the server's side: adds the transform of its share `x`, multiplies, masks.
///
/// # Errors
/// [`Error::Misuse`] when share, keys or weights do not fit the layer, [`Error::Peer`],
/// [`Error::Transport`].
pub fn server(
    channel: &mut Channel,
    layer: &Layer,
    keys: &ServerKeys,
    weights: &ServerWeights,
    x: &[i64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<i64>>> {
    check(layer, x, keys.public.params())?;
    if !weights.fit(layer) {
        return Err(Error::misuse("weights that do not fit their layer"));
    }
    let products = Products { layer, weights, inputs: receive_inputs(channel, layer, x)? };
    let each = layer.outputs() / weights.bias().len().max(1);
    let mut results = Zeroizing::new(vec![0; layer.outputs()]);
    let (mut next, mut waiting) = (0, None);
    let responses = std::iter::from_fn(|| {
        if let Some(imaginary) = waiting.take() {
            return Some(Ok(imaginary));
        }
        let mask = layer.mask(worker.rng);
        let answered = products.answer(next, keys, &mask, worker.rng);
        layer.collect_masks(next, &mask.planes, &mut results);
        next += 1;
        Some(answered.map(|[real, imaginary]| {
            waiting = Some(imaginary);
            real
        }))
    });
    send_chunks::<{ bfv::RESPONSES }>(channel, layer.response_layouts(), responses)?;
    let biases = weights.bias().iter().flat_map(|bias| std::iter::repeat_n(bias, each));
    results.iter_mut().zip(biases).for_each(|(share, bias)| *share += bias);
    Ok(results)
}

/// The client's ciphertexts with the server's share added, piece by piece.
fn receive_inputs(channel: &mut Channel, layer: &Layer, x: &[i64]) -> Result<Vec<Factors>> {
    let mut arrivals = Arrivals::new(layer.params(), layer.input_layouts());
    let own = (0..layer.packing.pieces()).flat_map(|piece| layer.input_slots(piece, x));
    let mut ciphers = Vec::new();
    for own in own {
        let mut cipher = arrivals.next(channel)?;
        cipher.add_slots(layer.encoder(), &own).map_err(misuse)?;
        ciphers.push(cipher);
    }
    let (pairs, _) = ciphers.as_chunks::<2>();
    Ok(pairs.to_vec())
}

/// Real and imaginary part of a piece.
pub(super) type Factors = [Ciphertext; 2];

/// What responses are made of.
pub(super) struct Products<'a> {
    pub(super) layer: &'a Layer,
    pub(super) weights: &'a ServerWeights,
    pub(super) inputs: Vec<Factors>,
}

impl Products<'_> {
    /// Both parts of a response, without masks: `xr*wr - xi*wi` and `xr*wi + xi*wr`.
    pub(super) fn response(&self, response: usize) -> Result<Factors> {
        let sum = || Accumulator::new(self.layer.params());
        let (mut real, mut minus, mut imaginary) = (sum(), sum(), sum());
        for (piece, [x_real, x_imaginary]) in self.inputs.iter().enumerate() {
            let kept = self.weights.at(self.layer, response, piece)?;
            let [w_real, w_imaginary] = kept.get();
            real.multiply_add(x_real, w_real).map_err(misuse)?;
            minus.multiply_add(x_imaginary, w_imaginary).map_err(misuse)?;
            imaginary.multiply_add(x_real, w_imaginary).map_err(misuse)?;
            imaginary.multiply_add(x_imaginary, w_real).map_err(misuse)?;
        }
        let mut real = real.finish();
        real.sub(&minus.finish()).map_err(misuse)?;
        Ok([real, imaginary.finish()])
    }

    /// Both parts of a response as they are sent.
    pub(super) fn answer(
        &self,
        response: usize,
        keys: &ServerKeys,
        mask: &Mask,
        rng: &mut Random,
    ) -> Result<[Vec<Vec<u64>>; 2]> {
        let (layer, load) = (self.layer, self.layer.load());
        let [real, imaginary] = self.response(response)?;
        let [first, second] = &mask.slots;
        let mut answer = |cipher: Ciphertext, mask: &[u64]| {
            let answered = cipher.respond(&keys.public, layer.encoder(), mask, &load, rng);
            answered.map_err(misuse).map(|response| vec![response.c1, response.c0])
        };
        Ok([answer(real, first)?, answer(imaginary, second)?])
    }
}
