//! The server's weights as plaintexts.

use he::bfv::Plain;
use ring::Modulus;
use wire::Result;
use zeroize::Zeroizing;

use super::layer::Layer;
use super::transform::Transform;
use crate::linear::falcon::filters::{Encoded, Encoding, Filtered, Filters};
use crate::linear::transport::misuse;

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub type ServerWeights = Encoded<Layer>;

impl Filtered for Layer {
    type Plains = Plain;

    fn plain_bytes(&self) -> usize {
        Plain::bytes(self.params())
    }

    fn encoding(&self) -> Encoding<'_> {
        let (conv, packing) = (&self.conv, &self.packing);
        Encoding { conv, packing, prime: self.prime(), plain_bits: self.plain_bits() }
    }

    fn encode(&self, filters: &Filters, response: usize, piece: usize) -> Result<Plain> {
        let slots = weight_slots(self, filters, response, piece);
        self.encoder().plain(&slots).map_err(misuse)
    }
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
