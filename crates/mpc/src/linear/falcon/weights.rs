//! The server's weights as plaintexts.

use std::fmt;

use he::bfv::Plain;
use wire::Result;
use zeroize::Zeroizing;

use super::filters::{Encoded, Filters, Kept};
use super::layer::Layer;
use super::slots::Parts;
use crate::linear::transport::misuse;

/// Real and imaginary part of what a piece is multiplied with.
type Plains = [Plain; 2];

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub struct ServerWeights(Encoded<Plains>);

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`, with at most `memory`
    /// bytes of plaintexts that are kept, which are taken from it.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for wrong lengths, or integers that accumulators do not hold.
    pub fn new(layer: &Layer, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let filters = Filters::new(&layer.conv, weight, bias, layer.plain_bits())?;
        let weights = Encoded::new(filters, &layer.packing, layer.prime(), bias);
        let each = 2 * Plain::bytes(layer.params());
        weights
            .prepare(each, memory, |filters, response, piece| {
                encode(layer, filters, response, piece)
            })
            .map(Self)
    }

    /// What a piece is multiplied with in a response.
    pub(super) fn at(
        &self,
        layer: &Layer,
        response: usize,
        piece: usize,
    ) -> Result<Kept<'_, Plains>> {
        self.0
            .at(response, piece, |filters, response, piece| encode(layer, filters, response, piece))
    }

    /// One bias for each output channel.
    pub(super) fn bias(&self) -> &[i64] {
        self.0.bias()
    }

    /// Whether these weights were encoded for that layer.
    pub(super) fn fit(&self, layer: &Layer) -> bool {
        self.0.fit(&layer.conv, &layer.packing, layer.prime())
    }
}

fn encode(layer: &Layer, filters: &Filters, response: usize, piece: usize) -> Result<Plains> {
    let [real, imaginary] = weight_slots(layer, filters, response, piece);
    let plain = |slots: &[u64]| layer.encoder().plain(slots).map_err(misuse);
    Ok([plain(&real)?, plain(&imaginary)?])
}

/// The slots that a piece is multiplied with in a response: transforms of filters.
pub(super) fn weight_slots(
    layer: &Layer,
    filters: &Filters,
    response: usize,
    piece: usize,
) -> Parts {
    let packing = &layer.packing;
    let (block, lengths) = (packing.shape.block(), packing.shape.lengths);
    let mut parts = layer.empty();
    for at in 0..packing.copies * packing.width {
        let output = response * packing.copies + at / packing.width;
        let input = piece * packing.width + at % packing.width;
        let mut plane = Zeroizing::new(vec![0.0; block]);
        filters.plane(output, input, lengths, |at, weight| plane[at] += weight as f64);
        layer.write(&mut parts, at * block, &plane, layer.fractions[1]);
    }
    parts
}

impl fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
