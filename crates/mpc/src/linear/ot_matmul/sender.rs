//! The client's end of the OTs.

use std::ops::Range;

use ot::{Keystream, SenderPads};
use ring::Bits;
use ring::lane::Lane;
use ring::pack::{pack_lanes, packed_len};
use ring::word::{mask, select};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::plan::{Piece, Product};
use super::right::place_of;

/// Elements that are packed at a time, or more where their vectors are longer.
const BLOCK: usize = 1 << 13;
/// Bytes beyond its end that packing takes.
const ROOM: usize = 8;

/// A part of the rows, with the pads for them.
pub(super) struct Sender<'a, T> {
    pub(super) plan: &'a Product,
    pub(super) lines: &'a Range<usize>,
    pub(super) x: &'a [T],
    /// For each OT the pad of a bit that is zero and of one that is one.
    pads: Zeroizing<Vec<[u128; 2]>>,
}

impl<'a, T: Lane> Sender<'a, T> {
    /// After the receiver `asked`.
    pub(super) fn new(
        plan: &'a Product,
        lines: &'a Range<usize>,
        x: &'a [T],
        pads: SenderPads,
        asked: &Bits,
    ) -> Result<Self> {
        let columns = pads.into_columns();
        let [zero, one] = columns.as_slice() else { return Err(other()) };
        let ([a, b], [c, d]) = (zero.words.as_slice(), one.words.as_slice()) else {
            return Err(other());
        };
        let pairs = a.iter().zip(b).zip(c.iter().zip(d)).zip(asked.iter());
        let pads = pairs.map(|(((a, b), (c, d)), asked)| {
            let block = |bit| {
                let (low, high) = (select(bit, *c, *a), select(bit, *d, *b));
                u128::from(low) | u128::from(high) << 64
            };
            [block(asked), block(asked ^ 1)]
        });
        Ok(Self { plan, lines, x, pads: Zeroizing::new(pads.collect()) })
    }

    /// What is sent for a piece, and the sum of its pads of zero, column by column.
    pub(super) fn piece(&self, piece: &Piece) -> (Vec<u8>, Zeroizing<Vec<T>>) {
        let columns = self.plan.columns;
        let segment = self.plan.segment(piece);
        let low = T::of(mask(segment.bits));
        let x = &place_of(self.plan, piece.line, self.x)[piece.inner.start * columns..];
        let mut sums = Zeroizing::new(vec![T::default(); columns]);
        let mut bytes = Vec::with_capacity(packed_len(segment.count, segment.bits) + ROOM);
        let block = block(columns).min(piece.inner.len());
        let mut sent = vec![T::default(); block * columns];
        let pads = &self.pads[self.plan.ots_of(piece, self.lines)];
        Keystream::new(columns * T::BYTES).each(pads, |at, streams| {
            let row = at % block;
            let now = &mut sent[row * columns..][..columns];
            correct(now, &mut sums, &x[at * columns..][..columns], streams, low);
            if row + 1 == block || at + 1 == pads.len() {
                pack_lanes(&mut bytes, &sent[..(row + 1) * columns], segment.bits);
            }
        });
        (bytes, sums)
    }
}

/// Vectors that are packed at a time: little enough for the nearest caches, and full bytes.
pub(super) fn block(columns: usize) -> usize {
    let full = 8 >> columns.trailing_zeros().min(3);
    full * (BLOCK / (full * columns).max(1)).max(1)
}

/// Sends `zero + x - one` and adds up `zero`.
fn correct<T: Lane>(sent: &mut [T], sums: &mut [T], x: &[T], [zero, one]: [&[u8]; 2], low: T) {
    let streams = T::read(zero).zip(T::read(one));
    for (((sent, sum), x), (zero, one)) in sent.iter_mut().zip(sums).zip(x).zip(streams) {
        *sum = sum.plus(zero);
        *sent = zero.plus(*x).minus(one).and(low);
    }
}

pub(super) fn other() -> Error {
    Error::misuse("pads of other OTs than a product's")
}
