//! The server's weights as plaintexts.

use std::fmt;

use he::bfv::Plain;
use wire::Result;
use zeroize::Zeroizing;

use super::layer::Layer;
use super::slots::Parts;
use crate::linear::coefficient::misuse;
use crate::linear::falcon::ntt::Filters;
use crate::linear::falcon::ntt::packing::Packing;

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub struct ServerWeights {
    filters: Filters,
    packing: Packing,
    prime: u64,
    /// Real and imaginary parts of the first plaintexts, by response and piece.
    ready: Vec<[Plain; 2]>,
    bias: Zeroizing<Vec<i64>>,
}

/// Plaintexts of weights.
pub(super) enum Kept<'a> {
    /// Kept.
    Ready(&'a [Plain; 2]),
    /// Made for this use: there was no memory left.
    Made([Plain; 2]),
}

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`, with at most `memory`
    /// bytes of plaintexts that are kept, which are taken from it.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for wrong lengths, or integers that accumulators do not hold.
    pub fn new(layer: &Layer, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let filters = Filters::new(&layer.conv, weight, bias, layer.plain_bits())?;
        let mut weights = Self {
            filters,
            packing: layer.packing.clone(),
            prime: layer.prime(),
            ready: Vec::new(),
            bias: Zeroizing::new(bias.to_vec()),
        };
        let each = 2 * Plain::bytes(layer.params());
        for index in 0..weights.packing.products() {
            let Some(left) = memory.checked_sub(each) else { break };
            *memory = left;
            let plains = weights.encode(layer, index)?;
            weights.ready.push(plains);
        }
        Ok(weights)
    }

    /// What a piece is multiplied with in a response.
    pub(super) fn at(&self, layer: &Layer, response: usize, piece: usize) -> Result<Kept<'_>> {
        let index = response * self.packing.pieces() + piece;
        match self.ready.get(index) {
            Some(plains) => Ok(Kept::Ready(plains)),
            None => self.encode(layer, index).map(Kept::Made),
        }
    }

    fn encode(&self, layer: &Layer, index: usize) -> Result<[Plain; 2]> {
        let pieces = self.packing.pieces();
        let [real, imaginary] = weight_slots(layer, &self.filters, index / pieces, index % pieces);
        let plain = |slots: &[u64]| layer.encoder().plain(slots).map_err(misuse);
        Ok([plain(&real)?, plain(&imaginary)?])
    }

    /// One per output channel.
    pub(super) fn bias(&self) -> &[i64] {
        &self.bias
    }

    /// Whether these weights were encoded for that layer.
    pub(super) fn fit(&self, layer: &Layer) -> bool {
        self.filters.conv == layer.conv
            && self.packing == layer.packing
            && self.prime == layer.prime()
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

impl Kept<'_> {
    pub(super) const fn plains(&self) -> &[Plain; 2] {
        match self {
            Self::Ready(plains) => plains,
            Self::Made(plains) => plains,
        }
    }
}

impl fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerWeights(<{} outputs>, {} ready)", self.bias.len(), self.ready.len())
    }
}
