//! Typed messages: the only thing that may cross the wire.

use ring::pack::{pack_into, packed_len, unpack};

use crate::error::{Error, Result};
use crate::tags;

/// A message type. A value that exists is valid: [`Message::decode`] is the only
/// door and refuses everything non-canonical.
pub trait Message: Sized {
    /// What the receiver knows about the message before it arrives.
    type Shape;
    /// Tells message types apart, so that a desynchronised peer is noticed. The numbers are
    /// those of [`tags`]; a message with another one cannot be sent.
    const TAG: u8;
    /// What the message is called in errors: the name in the registry.
    const NAME: &'static str = tags::name(Self::TAG);

    /// Shortest and longest legal body in bytes. Nothing longer is allocated.
    fn bounds(shape: &Self::Shape) -> (u64, u64);
    /// Appends the canonical bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// Parses and validates a body whose length is within [`Message::bounds`].
    ///
    /// # Errors
    /// [`Error::Peer`] for everything that [`Message::encode`] cannot produce.
    fn decode(body: &[u8], shape: &Self::Shape) -> Result<Self>;
}

/// `count` integers of `bits` bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How many.
    pub count: usize,
    /// How wide, 1 to 64.
    pub bits: u32,
}

impl Segment {
    /// Returns the number of bytes on the wire.
    pub const fn len(&self) -> u64 {
        packed_len(self.count, self.bits) as u64
    }

    /// Returns whether nothing is sent.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Packed integers in segments of possibly different widths; every segment
/// starts on a byte. The protocol that uses it gives the tag, one of [`tags`].
#[derive(Clone, PartialEq, Eq)]
pub struct Packed<const TAG: u8>(pub Vec<(Segment, Vec<u64>)>);

impl<const TAG: u8> Packed<TAG> {
    /// Segments and their values.
    pub fn new(segments: Vec<(Segment, Vec<u64>)>) -> Self {
        Self(segments)
    }

    /// Makes one segment of values below 2^bits.
    pub fn one(values: Vec<u64>, bits: u32) -> Self {
        Self(vec![(Segment { count: values.len(), bits }, values)])
    }

    /// Returns the length of the body of a message with this layout, in bytes.
    pub fn body_len(layout: &[Segment]) -> u64 {
        layout.iter().map(Segment::len).sum()
    }

    /// Returns the segments' values, in order.
    pub fn into_values(self) -> impl Iterator<Item = Vec<u64>> {
        self.0.into_iter().map(|(_, values)| values)
    }

    /// Returns the values of all segments in one list.
    pub fn concat(self) -> Vec<u64> {
        self.into_values().flatten().collect()
    }
}

impl<const TAG: u8> std::fmt::Debug for Packed<TAG> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(segment, _)| segment)).finish()
    }
}

impl<const TAG: u8> Message for Packed<TAG> {
    type Shape = Vec<Segment>;
    const TAG: u8 = TAG;

    fn bounds(layout: &Vec<Segment>) -> (u64, u64) {
        let len = Self::body_len(layout);
        (len, len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for (segment, values) in &self.0 {
            pack_into(out, values, segment.bits);
        }
    }

    fn decode(body: &[u8], layout: &Vec<Segment>) -> Result<Self> {
        let mut rest = body;
        let mut segments = Vec::with_capacity(layout.len());
        for segment in layout {
            let len = packed_len(segment.count, segment.bits);
            let values = rest.split_at_checked(len).and_then(|(now, later)| {
                rest = later;
                unpack(now, segment.count, segment.bits)
            });
            let values = values.ok_or_else(|| {
                let wanted = format!("{} integers of {} bits", segment.count, segment.bits);
                Error::peer(wanted, "non-canonical padding")
            })?;
            segments.push((*segment, values));
        }
        if rest.is_empty() {
            Ok(Self(segments))
        } else {
            Err(Error::peer("the end of the message", format!("{} more bytes", rest.len())))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Test = Packed<{ tags::TESTS }>;

    proptest! {
        #[test]
        fn decode_accepts_exactly_what_encode_makes(
            a: Vec<u64>, b: Vec<u64>, bits in 1u32..=64, flip: proptest::sample::Index
        ) {
            let cut = |v: Vec<u64>, bits| v.iter().map(|x| x & ring::word::mask(bits)).collect();
            let (a, b): (Vec<u64>, Vec<u64>) = (cut(a, bits), cut(b, 3));
            let layout =
                vec![Segment { count: a.len(), bits }, Segment { count: b.len(), bits: 3 }];
            let message = Test::new_pair(a, bits, b);
            let mut body = Vec::new();
            message.encode(&mut body);
            prop_assert_eq!(body.len() as u64, Test::body_len(&layout));
            prop_assert_eq!(&Test::decode(&body, &layout).unwrap(), &message);
            if !body.is_empty() {
                let at = flip.index(body.len());
                body[at] ^= 0x80;
                if let Ok(other) = Test::decode(&body, &layout) {
                    prop_assert_ne!(other, message);
                }
                body.pop();
                prop_assert!(Test::decode(&body, &layout).is_err());
            }
        }
    }

    impl Test {
        fn new_pair(a: Vec<u64>, bits: u32, b: Vec<u64>) -> Self {
            let mut message = Self::one(a, bits);
            message.0.extend(Self::one(b, 3).0);
            message
        }
    }
}
