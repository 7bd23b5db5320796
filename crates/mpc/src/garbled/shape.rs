//! The circuits: shares added up, then rounding, clamping, maxima.

use gc::{Builder, Ring, Wire, Word};
use ring::Modulus;
use ring::word::signed_width;
use wire::{Error, Result};

/// What becomes of a value: `(x + 2^(drop-1)) >> drop`, or `x >> drop` where it rounds down
/// (x itself for 0), then clipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Low bits dropped, rounding to the nearest and halves up, as the interpreter does.
    pub drop: u32,
    /// Rounds down: the half unit is in x already.
    pub floor: bool,
    /// Limits of the result.
    pub clip: Option<Clip>,
}

/// Clamps to `low ..= low + 2^saturate - 1`, as `graph::Op::Relu` does; a ReLU's low is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clip {
    /// The smallest result.
    pub low: i64,
    /// Bits of the distance from the smallest to the largest, 1 to 62.
    pub saturate: u32,
}

/// How shares become a word of wires: `x + offset` in two's complement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entrance {
    /// The ring that is added up in: of a power of two only the bits that matter.
    pub(super) ring: Ring,
    /// What the server adds to its shares before.
    pub(super) moved: i64,
    /// Bits of `x + offset`.
    width: u32,
    offset: i64,
}

/// Widest values.
const WIDEST: u32 = 61;

impl Function {
    /// What is added before bits are dropped, so that the clip's low end is 0 after.
    pub(super) fn offset(&self) -> Result<i64> {
        let legal = |clip: Clip| {
            (1..=62).contains(&clip.saturate) && signed_width(clip.low) + self.drop <= WIDEST
        };
        if self.drop > WIDEST || !self.clip.is_none_or(legal) {
            return Err(Error::misuse(format!("a garbled circuit for {self:?}")));
        }
        let half = if self.drop == 0 || self.floor { 0 } else { 1i64 << (self.drop - 1) };
        Ok(half - (self.low() << self.drop))
    }

    /// What the server adds to the results.
    pub(super) fn low(&self) -> i64 {
        self.clip.map_or(0, |clip| clip.low)
    }

    /// The word without the bits that are dropped.
    pub(super) fn dropped(&self, moved: &[Wire]) -> Word {
        moved.iter().copied().skip(self.drop as usize).collect()
    }

    /// Declares the clipped value as the output of a circuit whose outputs are tagged.
    pub(super) fn tagged(&self, builder: &mut Builder, value: &[Wire]) {
        match self.clip {
            Some(clip) => builder.output_clamped(value, clip.saturate as usize),
            None => builder.output(value, true),
        }
    }

    /// The clipped value, and whether it is signed.
    pub(super) fn clipped(&self, builder: &mut Builder, value: &[Wire]) -> (Word, bool) {
        match self.clip {
            Some(clip) => (builder.clamp(value, clip.saturate as usize), false),
            None => (value.to_vec(), true),
        }
    }
}

impl Entrance {
    /// The entrance of shares in `from` of values of a signed width,
    /// `-2^(width-1) <= x < 2^(width-1)`, to which `offset` is added; more than `drop` bits of
    /// the sum remain.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the ring has no room for them.
    pub(super) fn signed(from: Ring, width: u32, offset: i64, drop: u32) -> Result<Self> {
        if !(1..=WIDEST).contains(&width) || !from.is_legal() {
            return Err(Error::misuse(format!("a garbled circuit for values of {width} bits")));
        }
        let top = 1i64 << (width - 1);
        let ends = [offset - top, offset + (top - 1)].map(signed_width);
        let wide = ends[0].max(ends[1]);
        let (ring, moved) = match from {
            Ring::Power(bits) => {
                if wide > bits {
                    return Err(no_room(wide, from));
                }
                (Ring::Power(wide), offset)
            }
            Ring::Prime(modulus) => {
                let half = modulus.value() / 2;
                // The lowest value is one further from 0 than the highest.
                if half < top as u64 - 1 {
                    return Err(no_room(width, from));
                }
                (from, half.min(top as u64) as i64)
            }
        };
        if wide <= drop {
            return Err(Error::misuse(format!("{drop} bits dropped of {wide}")));
        }
        Ok(Self { ring, moved, width: wide, offset })
    }

    /// The entrance of shares of `0 <= x < 2^width`.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the ring has no room for them.
    pub(super) fn unsigned(from: Ring, width: u32) -> Result<Self> {
        let fits = match from {
            Ring::Power(bits) => width <= bits,
            Ring::Prime(modulus) => modulus.value() > 1 << width.min(62),
        };
        if !fits || !(1..=WIDEST).contains(&width) || !from.is_legal() {
            return Err(no_room(width, from));
        }
        let ring = match from {
            Ring::Power(_) => Ring::Power(width),
            prime => prime,
        };
        Ok(Self { ring, moved: 0, width, offset: 0 })
    }

    /// Two input words, added up.
    pub(super) fn reconstruct(&self, builder: &mut Builder) -> Word {
        let bits = self.ring.bits();
        let (ours, theirs) = (builder.garbler(bits), builder.evaluator(bits));
        match self.ring {
            Ring::Power(_) => builder.add(&ours, &theirs),
            Ring::Prime(modulus) => self.reduced(builder, modulus, &ours, &theirs),
        }
    }

    /// Mod p, the garbler's word being `c + 2^k - p` for its summand c: the carry out of k
    /// bits says that `c + s >= p`. Without it p is missing, which one sum puts right
    /// together with what the server has added and `offset`.
    fn reduced(&self, b: &mut Builder, modulus: Modulus, ours: &[Wire], theirs: &[Wire]) -> Word {
        let (mut sum, carry) = b.sum(ours, theirs, Wire::ZERO);
        let (width, back) = (self.width as usize, self.offset - self.moved);
        // Above its k bits the sum less 2^k is all ones without the carry.
        sum.resize(width.max(sum.len()), carry.negated());
        sum.truncate(width);
        b.add_either(&sum, carry, back, back.wrapping_add(modulus.value() as i64))
    }

    /// What the garbler enters for its summand.
    pub(super) fn entered(&self, summand: u64) -> u64 {
        match self.ring {
            Ring::Power(_) => summand,
            Ring::Prime(modulus) => summand + ((1 << modulus.bits()) - modulus.value()),
        }
    }
}

fn no_room(width: u32, ring: Ring) -> Error {
    let bits = ring.bits();
    Error::misuse(format!("values of {width} bits do not fit shares of {bits}; widen the shares"))
}
