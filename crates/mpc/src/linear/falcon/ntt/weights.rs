//! The server's weights as plaintexts.

use std::fmt;

use he::bfv::Plain;
use ring::Modulus;
use wire::Result;
use zeroize::Zeroizing;

use super::layer::Layer;
use super::transform::Transform;
use crate::linear::falcon::filters::{Encoded, Filters, Kept};
use crate::linear::transport::misuse;

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub struct ServerWeights(Encoded<Plain>);

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`. Plaintexts take from
    /// `memory`, in bytes, what they need; once it is used up, the rest is encoded whenever it
    /// is used.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for wrong lengths, or integers that accumulators do not hold.
    pub fn new(layer: &Layer, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let filters = Filters::new(&layer.conv, weight, bias, layer.plain_bits())?;
        let weights = Encoded::new(filters, &layer.packing, layer.prime(), bias);
        let each = Plain::bytes(layer.params());
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
    ) -> Result<Kept<'_, Plain>> {
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

fn encode(layer: &Layer, filters: &Filters, response: usize, piece: usize) -> Result<Plain> {
    let slots = weight_slots(layer, filters, response, piece);
    layer.encoder().plain(&slots).map_err(misuse)
}

/// The slots that a piece is multiplied with in a response: transforms of filters.
pub(super) fn weight_slots(
    layer: &Layer,
    filters: &Filters,
    response: usize,
    piece: usize,
) -> Zeroizing<Vec<u64>> {
    let (packing, transform): (_, &Transform) = (&layer.packing, &layer.transform);
    let mut slots = Zeroizing::new(vec![0; packing.slots]);
    let units = slots.chunks_exact_mut(packing.unit()).take(packing.copies);
    for (copy, unit) in units.enumerate() {
        let output = response * packing.copies + copy;
        for (at, block) in unit.chunks_exact_mut(packing.shape.block()).enumerate() {
            let input = piece * packing.width + at;
            filters.plane(output, input, packing.shape.lengths, |at, weight| {
                let modulus: Modulus = transform.modulus();
                block[at] = modulus.add(block[at], modulus.of_signed(weight));
            });
            transform.forward(block);
        }
    }
    slots
}

impl fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
