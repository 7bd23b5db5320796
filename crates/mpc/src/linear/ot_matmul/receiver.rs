//! The server's end of the OTs.

use std::ops::Range;

use ot::{Keystream, ReceiverPads};
use ring::Bits;
use ring::lane::Lane;
use ring::pack::{packed_len, unpack_lanes};
use ring::word::spread;
use wire::Result;
use zeroize::Zeroizing;

use super::plan::{Piece, Product};
use super::sender::{block, other};

/// The pad of each OT that is the server's.
pub(super) type Opened = Zeroizing<Vec<[u128; 1]>>;

/// A part of the rows, with the pads for them.
pub(super) struct Receiver<'a> {
    pub(super) plan: &'a Product,
    pub(super) lines: &'a Range<usize>,
    pub(super) chosen: &'a Bits,
    pub(super) pads: &'a Opened,
}

/// What the server keeps of its pads, and its `chosen` bits, masked.
pub(super) fn mask(pads: ReceiverPads, chosen: &Bits) -> Result<(Opened, Bits)> {
    let (planes, opened) = pads.into_parts();
    let ([random], [low, high]) = (planes.as_slice(), opened.words.as_slice()) else {
        return Err(other());
    };
    if random.len() != chosen.len() {
        return Err(other());
    }
    let mut asked = random.clone();
    asked.xor(chosen);
    let pads = low.iter().zip(high);
    let pads = pads.map(|(low, high)| [u128::from(*low) | u128::from(*high) << 64]);
    Ok((Zeroizing::new(pads.collect()), asked))
}

impl Receiver<'_> {
    /// The sum of what a piece's OTs give, column by column.
    pub(super) fn piece<T: Lane>(&self, piece: &Piece, bytes: &[u8]) -> Zeroizing<Vec<T>> {
        let columns = self.plan.columns;
        let segment = self.plan.segment(piece);
        let mut sums = Zeroizing::new(vec![T::default(); columns]);
        let ots = self.plan.ots_of(piece, self.lines);
        let pads = &self.pads[ots.clone()];
        let block = block(columns).min(pads.len());
        let mut sent = vec![T::default(); block * columns];
        Keystream::new(columns * T::BYTES).each(pads, |at, [stream]| {
            let row = at % block;
            if row == 0 {
                let now = (pads.len() - at).min(block) * columns;
                let read = packed_len(at * columns, segment.bits);
                unpack_lanes(&bytes[read..], &mut sent[..now], segment.bits);
            }
            let keep = T::of(spread(self.chosen.get(ots.start + at)));
            let terms = T::read(stream).zip(&sent[row * columns..]);
            sums.iter_mut().zip(terms).for_each(|(sum, (pad, sent))| {
                *sum = sum.plus(pad).plus(sent.and(keep));
            });
        });
        sums
    }
}
