//! The messages of products by OT.

use std::fmt;

use ring::pack::{is_canonical, packed_len};
use wire::{Error, Lanes, Message, Packed, Result, Segment, tags};

/// The server's choices, masked: a bit for each OT.
pub(super) type Choices = Lanes<{ tags::OT_MATMUL_CHOICES }>;
/// The client's share of an input, masked.
pub(in crate::linear) type Masked = Packed<{ tags::OT_MATMUL_MASKED }>;

/// The client's corrections, packed where they are made: vectors of one width after another,
/// every segment from a byte on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Corrections(pub(super) Vec<u8>);

impl Corrections {
    /// Returns the length of the body of a message with this layout, in bytes.
    pub(super) fn body_len(layout: &[Segment]) -> u64 {
        layout.iter().map(Segment::len).sum()
    }

    /// The bytes of each segment.
    pub(super) fn segments<'a>(
        &'a self,
        layout: &'a [Segment],
    ) -> impl Iterator<Item = &'a [u8]> + 'a {
        let mut rest = self.0.as_slice();
        layout.iter().map(move |segment| {
            let len = packed_len(segment.count, segment.bits);
            rest.split_off(..len).unwrap_or_default()
        })
    }
}

impl Message for Corrections {
    type Shape = Vec<Segment>;
    const TAG: u8 = tags::OT_MATMUL_CORRECTIONS;

    fn bounds(layout: &Vec<Segment>) -> (u64, u64) {
        let len = Self::body_len(layout);
        (len, len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(body: &[u8], layout: &Vec<Segment>) -> Result<Self> {
        let wanted = || Error::peer("packed corrections", "another length or padding");
        if body.len() as u64 != Self::body_len(layout) {
            return Err(wanted());
        }
        let message = Self(body.to_vec());
        let fits =
            |(bytes, segment): (&[u8], &Segment)| is_canonical(bytes, segment.count, segment.bits);
        if message.segments(layout).zip(layout).all(fits) { Ok(message) } else { Err(wanted()) }
    }
}

impl fmt::Debug for Corrections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Corrections(<{} bytes>)", self.0.len())
    }
}
