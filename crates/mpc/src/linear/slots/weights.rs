//! The server's weights as plaintexts.

use std::fmt;

use he::bfv::Plain;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::encode::WeightSlots;
use super::layer::Layer;
use super::machine::At;
use crate::defect::defect;
use crate::linear::transport::misuse;

/// The server's weights, encoded once for all runs as far as memory goes.
pub struct ServerWeights {
    slots: WeightSlots,
    /// Plaintexts of the first weights, by piece, response and diagonal, one for each shift.
    ready: Vec<Vec<Plain>>,
    /// Where the weights of each piece begin.
    starts: Vec<usize>,
    weight: Zeroizing<Vec<i32>>,
    bias: Zeroizing<Vec<i64>>,
}

/// Plaintexts of one place.
pub(super) enum Plains<'a> {
    /// Kept.
    Ready(&'a [Plain]),
    /// Made for this use: there was no memory left.
    Made(Vec<Plain>),
}

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`. Plaintexts take from
    /// `memory`, in bytes, what they need; once it is used up, the rest is encoded whenever it
    /// is used.
    ///
    /// # Errors
    /// [`Error::Misuse`] for wrong lengths, or integers that accumulators do not hold.
    pub fn new(layer: &Layer, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let conv = &layer.plan.conv;
        let per_output = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
        if weight.len() != conv.out_channels * per_output || bias.len() != conv.out_channels {
            return Err(Error::misuse("weights that do not fit their layer"));
        }
        let limit = 1u64 << (layer.plain_bits() - 1);
        let held = |magnitude: u64| magnitude <= limit;
        let fits = weight.iter().all(|w| held(u64::from(w.unsigned_abs())))
            && bias.iter().all(|b| held(b.unsigned_abs()));
        if !fits {
            return Err(Error::misuse("weights wider than the accumulators of their layer"));
        }
        let mut weights = Self {
            slots: WeightSlots::new(&layer.plan, layer.prime()),
            ready: Vec::new(),
            starts: starts(layer),
            weight: Zeroizing::new(weight.to_vec()),
            bias: Zeroizing::new(bias.to_vec()),
        };
        weights.prepare(layer, memory).map(|()| weights)
    }

    fn prepare(&mut self, layer: &Layer, memory: &mut usize) -> Result<()> {
        let plan = &layer.plan;
        let each = Plain::bytes(layer.params()) * plan.grid.shifts.len();
        for (piece, shape) in plan.pieces.iter().enumerate() {
            for response in 0..plan.responses() {
                for diagonal in 0..plan.diagonals(shape) {
                    let Some(left) = memory.checked_sub(each) else { return Ok(()) };
                    *memory = left;
                    let plains = self.encode(layer, At { response, piece, diagonal })?;
                    self.ready.push(plains);
                }
            }
        }
        Ok(())
    }

    /// The plaintexts at `at`, one for each shift.
    pub(super) fn at(&self, layer: &Layer, at: At) -> Result<Plains<'_>> {
        let plan = &layer.plan;
        let (start, piece) = self
            .starts
            .get(at.piece)
            .zip(plan.pieces.get(at.piece))
            .ok_or_else(|| defect("a layer on slots has no such weights"))?;
        let index = start + at.response * plan.diagonals(piece) + at.diagonal;
        match self.ready.get(index) {
            Some(plains) => Ok(Plains::Ready(plains)),
            None => self.encode(layer, at).map(Plains::Made),
        }
    }

    fn encode(&self, layer: &Layer, at: At) -> Result<Vec<Plain>> {
        let all = self.slots.at(&layer.plan, at, &self.weight);
        let plain = |slots: Zeroizing<Vec<u64>>| {
            layer.encoder().plain(&layer.rows_of(&slots)).map_err(misuse)
        };
        all.into_iter().map(plain).collect()
    }

    /// One per output channel.
    pub(super) fn bias(&self) -> &[i64] {
        &self.bias
    }

    /// Whether these weights were encoded for a layer of that shape.
    pub(super) fn fit(&self, layer: &Layer) -> bool {
        let conv = &layer.plan.conv;
        let area = conv.kernel[0] * conv.kernel[1];
        self.slots.prime() == layer.prime()
            && self.starts == starts(layer)
            && self.bias.len() == conv.out_channels
            && self.weight.len() == conv.out_channels * conv.group_channels() * area
    }
}

/// How many weights come before those of each piece.
fn starts(layer: &Layer) -> Vec<usize> {
    let plan = &layer.plan;
    let before = |sum: &mut usize, each: usize| {
        let start = *sum;
        *sum += each;
        Some(start)
    };
    let counts = plan.pieces.iter().map(|piece| plan.responses() * plan.diagonals(piece));
    counts.scan(0, before).collect()
}

impl Plains<'_> {
    pub(super) fn as_slice(&self) -> &[Plain] {
        match self {
            Self::Ready(plains) => plains,
            Self::Made(plains) => plains,
        }
    }
}

impl fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerWeights(<{} values>, {} ready)", self.weight.len(), self.ready.len())
    }
}
