//! Integer weights of a layer, and plaintexts of them as far as memory goes.

use std::fmt;

use graph::Conv;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::ntt::packing::Packing;

/// Integer weights of a layer.
pub struct Filters {
    pub(super) conv: Conv,
    weight: Zeroizing<Vec<i32>>,
}

impl Filters {
    /// Takes `weight` `[O, I/g, kh, kw]`, and checks `bias` `[O]` with it.
    ///
    /// # Errors
    /// [`Error::Misuse`] for wrong lengths, or integers above `plain_bits`.
    pub(super) fn new(conv: &Conv, weight: &[i32], bias: &[i64], plain_bits: u32) -> Result<Self> {
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
    pub(super) fn plane(
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

/// A layer that multiplies each piece of its input by an encoding of filters, for each response.
pub trait Filtered {
    /// What a piece is multiplied with in a response.
    type Plains;

    /// Bytes of such plaintexts.
    fn plain_bytes(&self) -> usize;

    /// What a layer's weights are encoded for.
    fn encoding(&self) -> Encoding<'_>;

    /// Encodes what a piece is multiplied with in a response.
    ///
    /// # Errors
    /// [`Error::Misuse`] for slots that no plaintext holds.
    fn encode(&self, filters: &Filters, response: usize, piece: usize) -> Result<Self::Plains>;
}

/// What weights are encoded for.
pub struct Encoding<'a> {
    pub(super) conv: &'a Conv,
    pub(super) packing: &'a Packing,
    pub(super) prime: u64,
    /// Signed width that holds weights, biases and accumulators.
    pub(super) plain_bits: u32,
}

/// The server's weights, transformed and encoded once for all runs as far as memory goes.
pub struct Encoded<L: Filtered> {
    pub(super) filters: Filters,
    packing: Packing,
    prime: u64,
    /// The first plaintexts, by response and piece.
    ready: Vec<L::Plains>,
    bias: Zeroizing<Vec<i64>>,
}

/// Plaintexts of one response and piece.
pub(super) enum Kept<'a, P> {
    /// Encoded once for all runs.
    Ready(&'a P),
    /// Encoded for this use, because no memory was left.
    Made(P),
}

impl<L: Filtered> Encoded<L> {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`. Plaintexts take from
    /// `memory`, in bytes, what they need; once it is used up, the rest is encoded whenever it
    /// is used.
    ///
    /// # Errors
    /// [`Error::Misuse`] for wrong lengths, or integers that accumulators do not hold.
    pub fn new(layer: &L, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let Encoding { conv, packing, prime, plain_bits } = layer.encoding();
        let filters = Filters::new(conv, weight, bias, plain_bits)?;
        let (pieces, mut ready) = (packing.pieces(), Vec::new());
        for index in 0..packing.products() {
            let Some(left) = memory.checked_sub(layer.plain_bytes()) else { break };
            *memory = left;
            ready.push(layer.encode(&filters, index / pieces, index % pieces)?);
        }
        let bias = Zeroizing::new(bias.to_vec());
        Ok(Self { filters, packing: packing.clone(), prime, ready, bias })
    }

    /// What a piece is multiplied with in a response of `layer`.
    ///
    /// # Errors
    /// The errors of [`Filtered::encode`], where no plaintext was kept.
    pub(super) fn at(
        &self,
        layer: &L,
        response: usize,
        piece: usize,
    ) -> Result<Kept<'_, L::Plains>> {
        match self.ready.get(response * self.packing.pieces() + piece) {
            Some(plain) => Ok(Kept::Ready(plain)),
            None => layer.encode(&self.filters, response, piece).map(Kept::Made),
        }
    }

    /// One bias for each output channel.
    pub(super) fn bias(&self) -> &[i64] {
        &self.bias
    }

    /// Whether these weights were encoded for a layer of this convolution, packing and prime.
    pub(super) fn fit(&self, layer: &L) -> bool {
        let Encoding { conv, packing, prime, .. } = layer.encoding();
        self.filters.conv == *conv && self.packing == *packing && self.prime == prime
    }
}

impl<P> Kept<'_, P> {
    pub(super) const fn get(&self) -> &P {
        match self {
            Self::Ready(plain) => plain,
            Self::Made(plain) => plain,
        }
    }
}

impl<L: Filtered> fmt::Debug for Encoded<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.filters.weight.len();
        write!(f, "ServerWeights(<{count} values>, {} ready)", self.ready.len())
    }
}
