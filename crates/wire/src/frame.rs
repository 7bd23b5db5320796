//! Frames: a tag, the length of the body with the frame's number, and the body.
//!
//! A frame is `tag (1 byte) | length and number (4 bytes, little endian) | body`. The
//! low 28 bits of the word are the body's length, the high 4 the frame's position among
//! those of its direction, modulo 16: a frame that is lost, repeated or out of order is
//! noticed even where its neighbours look alike.

use crate::cost::HEADER_LEN;
use crate::error::{Error, Result};
use crate::message::Message;

/// Bits of the length in a frame header; the rest of the word is the frame's number.
const LEN_BITS: u32 = 28;
/// Longest body in bytes.
pub const MOST_BODY: u64 = (1 << LEN_BITS) - 1;

/// Appends the frame of `message`, number `position` of its direction; returns the length of its
/// body in bytes.
pub(crate) fn append_frame<M: Message>(
    frame: &mut Vec<u8>,
    message: &M,
    position: u64,
) -> Result<u64> {
    let start = frame.len();
    let header = usize::try_from(HEADER_LEN).unwrap_or(usize::MAX);
    frame.resize(start.saturating_add(header), 0);
    message.encode(frame);
    let len = frame.len().saturating_sub(start.saturating_add(header)) as u64;
    let word = header_word(len, position)?;
    if let Some([tag, rest @ ..]) = frame.get_mut(start..) {
        *tag = M::TAG;
        for (to, from) in rest.iter_mut().zip(word.to_le_bytes()) {
            *to = from;
        }
    }
    Ok(len)
}

/// The length of the body, if the header is that of an `M` of the given shape and number
/// `position` of its direction.
pub(crate) fn body_len<M: Message>(
    [tag, word @ ..]: [u8; HEADER_LEN as usize],
    position: u64,
    shape: &M::Shape,
) -> Result<u32> {
    if tag != M::TAG {
        let wanted = format!("message `{}` (tag {:#04x})", M::NAME, M::TAG);
        let got = format!("a message with tag {tag:#04x}");
        return Err(Error::peer(wanted, got).about(M::TAG));
    }
    let len = in_turn(u32::from_le_bytes(word), position).map_err(|e| e.about(M::TAG))?;
    let (least, most) = M::bounds(shape);
    if !(least..=most).contains(&u64::from(len)) {
        let wanted = format!("message `{}` of {least} to {most} bytes", M::NAME);
        return Err(Error::peer(wanted, format!("{len} bytes")).about(M::TAG));
    }
    Ok(len)
}

/// The length of the body of whatever frame has this header and is number `position` of its
/// direction.
pub(crate) fn any_len([_, word @ ..]: [u8; HEADER_LEN as usize], position: u64) -> Result<u32> {
    in_turn(u32::from_le_bytes(word), position)
}

/// The length in a header whose number is that of `position`.
fn in_turn(word: u32, position: u64) -> Result<u32> {
    let (wanted, got) = (number(position), word >> LEN_BITS);
    if got == wanted {
        return Ok(word & (u32::MAX >> (u32::BITS - LEN_BITS)));
    }
    let wanted = format!("frame {position} of this direction (number {wanted})");
    Err(Error::peer(wanted, format!("number {got}: a frame was lost, repeated or reordered")))
}

/// Returns the frame of `message`, number `position` of its direction, for a sender without a
/// channel.
///
/// # Errors
/// [`Error::Misuse`] for a body above [`MOST_BODY`].
pub fn encode_frame<M: Message>(message: &M, position: u64) -> Result<Vec<u8>> {
    let mut frame = Vec::new();
    append_frame(&mut frame, message, position)?;
    Ok(frame)
}

/// Returns the `M` whose frame, number `position` of its direction, `bytes` begin with, and the
/// bytes behind it; `None` while the frame is not whole.
///
/// # Errors
/// [`Error::Peer`] for bytes that no such frame begins with.
pub fn decode_frame<'a, M: Message>(
    bytes: &'a [u8],
    position: u64,
    shape: &M::Shape,
) -> Result<Option<(M, &'a [u8])>> {
    let Some((header, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let len = body_len::<M>(*header, position, shape)?;
    let len = usize::try_from(len).map_err(|_| Error::misuse("16-bit host"))?;
    let Some((body, rest)) = rest.split_at_checked(len) else { return Ok(None) };
    let message = M::decode(body, shape).map_err(|e| e.about(M::TAG))?;
    Ok(Some((message, rest)))
}

/// What the header says of the frame at `position` in its direction.
fn number(position: u64) -> u32 {
    (position % (1 << (u32::BITS - LEN_BITS))) as u32
}

fn header_word(len: u64, position: u64) -> Result<u32> {
    let len = u32::try_from(len).ok().filter(|len| u64::from(*len) <= MOST_BODY);
    let len = len.ok_or_else(|| Error::misuse(format!("a message above {MOST_BODY} bytes")))?;
    Ok(number(position) << LEN_BITS | len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_messages_than_the_header_can_say_are_refused() {
        assert_eq!(header_word(MOST_BODY, 0), Ok(0x0fff_ffff));
        assert_eq!(header_word(5, 31), Ok(0xf000_0005));
        assert!(matches!(header_word(MOST_BODY + 1, 0), Err(Error::Misuse(_))));
        assert!(matches!(header_word(1 << 40, 0), Err(Error::Misuse(_))));
    }
}
