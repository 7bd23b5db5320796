//! Messages of bit planes and columns of integers: what 1-of-n OTs and
//! boolean circuits exchange.

use ring::Bits;
use ring::pack::{pack_into, packed_len, unpack};

use crate::error::{Error, Result};
use crate::message::Message;

/// Layout of one part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// `planes` vectors of `count` bits, without gaps between them.
    Planes {
        /// How many vectors.
        planes: usize,
        /// Bits in each.
        count: usize,
    },
    /// `count` integers of `bits` bits.
    Words {
        /// How many.
        count: usize,
        /// How wide, 1 to 64.
        bits: u32,
    },
}

/// The values of one part.
#[derive(Clone, PartialEq, Eq)]
pub enum Values {
    /// The bit planes of [`Lane::Planes`].
    Planes(Vec<Bits>),
    /// The words of [`Lane::Words`].
    Words(Vec<u64>),
}

/// Parts of different layouts; every part starts on a byte. The protocol that
/// uses it gives the tag, one of [`crate::tags`].
#[derive(Clone, PartialEq, Eq)]
pub struct Lanes<const TAG: u8>(pub Vec<(Lane, Values)>);

impl Lane {
    /// Returns the number of bytes on the wire.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Planes { planes, count } => packed_len(planes.saturating_mul(*count), 1) as u64,
            Self::Words { count, bits } => packed_len(*count, *bits) as u64,
        }
    }

    /// Returns whether nothing is sent.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether `values` have this layout.
    pub fn fits(&self, values: &Values) -> bool {
        match (self, values) {
            (Self::Planes { planes, count }, Values::Planes(bits)) => {
                bits.len() == *planes && bits.iter().all(|plane| plane.len() == *count)
            }
            (Self::Words { count, .. }, Values::Words(words)) => words.len() == *count,
            _ => false,
        }
    }

    fn read(&self, bytes: &[u8]) -> Option<Values> {
        match self {
            Self::Words { count, bits } => unpack(bytes, *count, *bits).map(Values::Words),
            Self::Planes { planes, count } => read_planes(bytes, *planes, *count),
        }
    }
}

impl<const TAG: u8> Lanes<TAG> {
    /// Parts and their values.
    pub fn new(parts: Vec<(Lane, Values)>) -> Self {
        Self(parts)
    }

    /// Returns the length of the body of a message with this layout, in bytes.
    pub fn body_len(layout: &[Lane]) -> u64 {
        layout.iter().map(Lane::len).sum()
    }

    /// Returns the values have `layout`.
    ///
    /// # Errors
    /// [`Error::Peer`] when they do not.
    pub fn check(&self, layout: &[Lane]) -> Result<()> {
        let same = layout.iter().eq(self.0.iter().map(|(lane, _)| lane));
        if same && self.0.iter().all(|(lane, values)| lane.fits(values)) {
            return Ok(());
        }
        Err(Error::peer(format!("{layout:?}"), format!("{self:?}")))
    }
}

impl<const TAG: u8> std::fmt::Debug for Lanes<TAG> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(lane, _)| lane)).finish()
    }
}

impl<const TAG: u8> Message for Lanes<TAG> {
    type Shape = Vec<Lane>;
    const TAG: u8 = TAG;

    fn bounds(layout: &Vec<Lane>) -> (u64, u64) {
        let len = Self::body_len(layout);
        (len, len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for (lane, values) in &self.0 {
            match (lane, values) {
                (Lane::Words { bits, .. }, Values::Words(words)) => pack_into(out, words, *bits),
                (_, Values::Planes(planes)) => write_planes(out, planes),
                (Lane::Planes { .. }, Values::Words(_)) => {}
            }
        }
    }

    fn decode(body: &[u8], layout: &Vec<Lane>) -> Result<Self> {
        let mut rest = body;
        let mut parts = Vec::with_capacity(layout.len());
        for lane in layout {
            let len = usize::try_from(lane.len()).unwrap_or(usize::MAX);
            let values = rest.split_at_checked(len).and_then(|(now, later)| {
                rest = later;
                lane.read(now)
            });
            let values =
                values.ok_or_else(|| Error::peer(format!("{lane:?}"), "non-canonical padding"))?;
            parts.push((*lane, values));
        }
        if rest.is_empty() {
            Ok(Self(parts))
        } else {
            Err(Error::peer("the end of the message", format!("{} more bytes", rest.len())))
        }
    }
}

/// Appends `planes`, the next one's first bit right after the last one's last.
fn write_planes(out: &mut Vec<u8>, planes: &[Bits]) {
    let total: usize = planes.iter().map(Bits::len).sum();
    let end = out.len() + total.div_ceil(8);
    out.reserve(total.div_ceil(8) + 16);
    let (mut buffer, mut held) = (0u128, 0usize);
    for plane in planes {
        let mut left = plane.len();
        for word in plane.words() {
            buffer |= u128::from(*word) << held;
            held += left.min(64);
            left = left.saturating_sub(64);
            if held >= 64 {
                out.extend_from_slice(&(buffer as u64).to_le_bytes());
                buffer >>= 64;
                held -= 64;
            }
        }
    }
    out.extend_from_slice(&(buffer as u64).to_le_bytes());
    out.truncate(end);
}

/// The inverse; `None` when a padding bit is set. `bytes` has the right length.
fn read_planes(bytes: &[u8], planes: usize, count: usize) -> Option<Values> {
    let (mut buffer, mut held) = (0u128, 0usize);
    let mut input = bytes.chunks(8);
    let mut read = Vec::with_capacity(planes);
    for _ in 0..planes {
        let mut words = Vec::with_capacity(count.div_ceil(64));
        let mut left = count;
        while left > 0 {
            let take = left.min(64);
            if held < take {
                let chunk = input.next()?;
                let mut word = [0u8; 8];
                word.get_mut(..chunk.len())?.copy_from_slice(chunk);
                buffer |= u128::from(u64::from_le_bytes(word)) << held;
                held += 8 * chunk.len();
            }
            words.push(buffer as u64 & ring::word::mask(take as u32));
            buffer >>= take;
            held = held.checked_sub(take)?;
            left -= take;
        }
        read.push(Bits::new(words, count));
    }
    (buffer == 0).then_some(Values::Planes(read))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Test = Lanes<{ crate::tags::TESTS }>;

    proptest! {
        #[test]
        fn decode_accepts_exactly_what_encode_makes(
            words: Vec<u64>, bits in 1u32..=64, planes in 0usize..5, count in 0usize..200,
            flip: prop::sample::Index
        ) {
            let words: Vec<u64> = words.iter().map(|x| x & ring::word::mask(bits)).collect();
            let layout = vec![
                Lane::Planes { planes, count },
                Lane::Words { count: words.len(), bits },
                Lane::Planes { planes: 1, count },
            ];
            let plane = |at: usize| -> Bits { (0..count).map(|i| ((i * i + at) / 3) as u64).collect() };
            let values = [
                Values::Planes((0..planes).map(plane).collect()),
                Values::Words(words),
                Values::Planes(vec![plane(7)]),
            ];
            let message = Test::with(&layout, values);
            let mut body = Vec::new();
            message.encode(&mut body);
            prop_assert_eq!(body.len() as u64, Test::body_len(&layout));
            prop_assert!(Test::decode(&body, &layout).unwrap() == message);
            if !body.is_empty() {
                let at = flip.index(body.len());
                body[at] ^= 0x80;
                if let Ok(other) = Test::decode(&body, &layout) {
                    prop_assert!(other != message);
                }
                body.pop();
                prop_assert!(Test::decode(&body, &layout).is_err());
            }
        }
    }

    impl Test {
        fn with<const N: usize>(layout: &[Lane], values: [Values; N]) -> Self {
            Self(layout.iter().copied().zip(values).collect())
        }
    }
}
