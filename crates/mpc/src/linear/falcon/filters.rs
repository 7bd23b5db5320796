//! Integer weights of a layer, and plaintexts of them as far as memory goes.

use std::fmt;

use graph::Conv;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::ntt::packing::Packing;

/// Integer weights of a layer.
pub(super) struct Filters {
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

/// Plaintexts of weights: `P` is what a piece is multiplied with in a response.
pub(super) struct Encoded<P> {
    pub(super) filters: Filters,
    packing: Packing,
    prime: u64,
    /// The first plaintexts, by response and piece.
    ready: Vec<P>,
    bias: Zeroizing<Vec<i64>>,
}

/// Plaintexts of one response and piece.
pub(super) enum Kept<'a, P> {
    /// Encoded once for all runs.
    Ready(&'a P),
    /// Encoded for this use, because no memory was left.
    Made(P),
}

impl<P> Encoded<P> {
    /// Nothing is encoded yet.
    pub(super) fn new(filters: Filters, packing: &Packing, prime: u64, bias: &[i64]) -> Self {
        let bias = Zeroizing::new(bias.to_vec());
        Self { filters, packing: packing.clone(), prime, ready: Vec::new(), bias }
    }

    /// Encodes plaintexts of `each` bytes until `memory`, which they are taken from, is used
    /// up. `encode` takes the filters, a response and a piece.
    ///
    /// # Errors
    /// What `encode` returns.
    pub(super) fn prepare(
        mut self,
        each: usize,
        memory: &mut usize,
        encode: impl Fn(&Filters, usize, usize) -> Result<P>,
    ) -> Result<Self> {
        let pieces = self.packing.pieces();
        for index in 0..self.packing.products() {
            let Some(left) = memory.checked_sub(each) else { break };
            *memory = left;
            self.ready.push(encode(&self.filters, index / pieces, index % pieces)?);
        }
        Ok(self)
    }

    /// What a piece is multiplied with in a response.
    ///
    /// # Errors
    /// What `encode` returns, which is called where no plaintext was kept.
    pub(super) fn at(
        &self,
        response: usize,
        piece: usize,
        encode: impl Fn(&Filters, usize, usize) -> Result<P>,
    ) -> Result<Kept<'_, P>> {
        match self.ready.get(response * self.packing.pieces() + piece) {
            Some(plain) => Ok(Kept::Ready(plain)),
            None => encode(&self.filters, response, piece).map(Kept::Made),
        }
    }

    /// One bias for each output channel.
    pub(super) fn bias(&self) -> &[i64] {
        &self.bias
    }

    /// Whether these weights were encoded for a layer of this convolution, packing and prime.
    pub(super) fn fit(&self, conv: &Conv, packing: &Packing, prime: u64) -> bool {
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

impl<P> fmt::Debug for Encoded<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.filters.weight.len();
        write!(f, "ServerWeights(<{count} values>, {} ready)", self.ready.len())
    }
}
