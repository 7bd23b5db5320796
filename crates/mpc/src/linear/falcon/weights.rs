//! The server's weights as plaintexts.

use he::bfv::Plain;
use wire::Result;
use zeroize::Zeroizing;

use super::filters::{Encoded, Encoding, Filtered, Filters};
use super::layer::Layer;
use super::slots::Parts;
use crate::linear::transport::misuse;

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub type ServerWeights = Encoded<Layer>;

impl Filtered for Layer {
    /// Real and imaginary part.
    type Plains = [Plain; 2];

    fn plain_bytes(&self) -> usize {
        2 * Plain::bytes(self.params())
    }

    fn encoding(&self) -> Encoding<'_> {
        let (conv, packing) = (&self.conv, &self.packing);
        Encoding { conv, packing, prime: self.prime(), plain_bits: self.plain_bits() }
    }

    fn encode(&self, filters: &Filters, response: usize, piece: usize) -> Result<[Plain; 2]> {
        let [real, imaginary] = weight_slots(self, filters, response, piece);
        let plain = |slots: &[u64]| self.encoder().plain(slots).map_err(misuse);
        Ok([plain(&real)?, plain(&imaginary)?])
    }
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
