//! The server's weights as plaintexts.

use std::fmt;

use graph::Conv;
use he::bfv::Plain;
use ring::Modulus;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use super::packing::Packing;
use super::transform::Transform;
use crate::linear::coefficient::misuse;

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub struct ServerWeights {
    filters: Filters,
    packing: Packing,
    prime: u64,
    /// The first plaintexts, by response and piece.
    ready: Vec<Plain>,
    bias: Zeroizing<Vec<i64>>,
}

/// A plaintext of weights.
pub(super) enum Kept<'a> {
    /// Kept.
    Ready(&'a Plain),
    /// Made for this use: there was no memory left.
    Made(Plain),
}

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`. Plaintexts take from
    /// `memory`, in bytes, what they need; once it is used up, the rest is encoded whenever it
    /// is used.
    ///
    /// # Errors
    /// [`Error::Misuse`] for wrong lengths, or integers that accumulators do not hold.
    pub fn new(layer: &Layer, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let filters = Filters::new(&layer.conv, weight, bias, layer.plain_bits())?;
        let mut weights = Self {
            filters,
            packing: layer.packing.clone(),
            prime: layer.prime(),
            ready: Vec::new(),
            bias: Zeroizing::new(bias.to_vec()),
        };
        weights.prepare(layer, memory).map(|()| weights)
    }

    fn prepare(&mut self, layer: &Layer, memory: &mut usize) -> Result<()> {
        let each = Plain::bytes(layer.params());
        for index in 0..self.packing.products() {
            let Some(left) = memory.checked_sub(each) else { return Ok(()) };
            *memory = left;
            let plain = self.encode(layer, index)?;
            self.ready.push(plain);
        }
        Ok(())
    }

    /// What a piece is multiplied with in a response.
    pub(super) fn at(&self, layer: &Layer, response: usize, piece: usize) -> Result<Kept<'_>> {
        let index = response * self.packing.pieces() + piece;
        match self.ready.get(index) {
            Some(plain) => Ok(Kept::Ready(plain)),
            None => self.encode(layer, index).map(Kept::Made),
        }
    }

    fn encode(&self, layer: &Layer, index: usize) -> Result<Plain> {
        let pieces = self.packing.pieces();
        let (response, piece) = (index / pieces, index % pieces);
        let slots = weight_slots(layer, &self.filters, response, piece);
        layer.encoder().plain(&slots).map_err(misuse)
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

/// Integer weights of a layer.
pub(in crate::linear) struct Filters {
    pub(in crate::linear) conv: Conv,
    weight: Zeroizing<Vec<i32>>,
}

impl Filters {
    /// Of `weight` `[O, I/g, kh, kw]`, with `bias` `[O]`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for wrong lengths, or integers above `plain_bits`.
    pub(in crate::linear) fn new(
        conv: &Conv,
        weight: &[i32],
        bias: &[i64],
        plain_bits: u32,
    ) -> Result<Self> {
        let area = conv.kernel[0].saturating_mul(conv.kernel[1]);
        let count = conv.group_channels().saturating_mul(conv.out_channels).saturating_mul(area);
        if weight.len() != count || bias.len() != conv.out_channels {
            return Err(Error::misuse("weights that do not fit their layer"));
        }
        let limit = 1u64 << (plain_bits - 1);
        let held = |magnitude: u64| magnitude <= limit;
        let fits = weight.iter().all(|w| held(u64::from(w.unsigned_abs())))
            && bias.iter().all(|b| held(b.unsigned_abs()));
        if !fits {
            return Err(Error::misuse("weights wider than the accumulators of their layer"));
        }
        Ok(Self { conv: conv.clone(), weight: Zeroizing::new(weight.to_vec()) })
    }

    /// Calls `add` for every weight from an input channel to an output, with its place in a
    /// plane of `lengths`, so that the cyclic convolution with it has the outputs at multiples
    /// of the stride. For channels that do not exist or are of other groups there are none.
    pub(in crate::linear) fn plane(
        &self,
        output: usize,
        input: usize,
        lengths: [usize; 2],
        mut add: impl FnMut(usize, i64),
    ) {
        let conv = &self.conv;
        let (each, area) = (conv.group_channels(), conv.kernel[0] * conv.kernel[1]);
        let group = output / (conv.out_channels / conv.groups);
        let Some(inside) = input.checked_sub(group * each).filter(|inside| *inside < each) else {
            return;
        };
        let taps = self.weight.chunks_exact(area).nth(output * each + inside).unwrap_or_default();
        let place = |axis: usize, tap: usize| {
            let back = (tap * conv.dilation[axis]) as isize - conv.padding[axis] as isize;
            (-back).rem_euclid(lengths[axis] as isize) as usize
        };
        for (tap, weight) in taps.iter().enumerate() {
            let (row, column) = (tap / conv.kernel[1], tap % conv.kernel[1]);
            add(place(0, row) * lengths[1] + place(1, column), i64::from(*weight));
        }
    }
}

impl Kept<'_> {
    pub(super) const fn plain(&self) -> &Plain {
        match self {
            Self::Ready(plain) => plain,
            Self::Made(plain) => plain,
        }
    }
}

impl fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.filters.weight.len();
        write!(f, "ServerWeights(<{count} values>, {} ready)", self.ready.len())
    }
}
