//! Bodies of the fuzz targets of this crate. Each panics when an invariant breaks.

use crate::admission::Admission;
use crate::channel::{Channel, Transport};
use crate::cost::Role;
use crate::error::{Error, Result, TransportKind};
#[cfg(not(target_arch = "wasm32"))]
use crate::fleet::{Preface, ShownTicket, Ticket};
#[cfg(not(target_arch = "wasm32"))]
use crate::frame::encode_frame;
use crate::message::{Message, Packed, Segment};
use crate::tags;
#[cfg(not(target_arch = "wasm32"))]
use crate::transport::pin::Pin;
#[cfg(not(target_arch = "wasm32"))]
use crate::transport::proxy::Preamble;

type Test = Packed<{ tags::TESTS }>;

/// A layout from the first bytes: a count of segments, then two bytes of count and
/// one of width for each.
fn layout(data: &[u8]) -> Option<(Vec<Segment>, &[u8])> {
    let (segments, mut rest) = data.split_first()?;
    let mut layout = Vec::new();
    for _ in 0..segments % 5 {
        let ([low, high, bits], later) = rest.split_first_chunk::<3>()?;
        let count = usize::from(u16::from_le_bytes([*low, *high]) % 2048);
        layout.push(Segment { count, bits: u32::from(bits % 64) + 1 });
        rest = later;
    }
    Some((layout, rest))
}

/// [`Packed`]: what decodes has exactly one encoding, of the announced length.
///
/// # Panics
/// When it does not.
pub fn packed(data: &[u8]) {
    let Some((layout, body)) = layout(data) else { return };
    if let Ok(message) = Test::decode(body, &layout) {
        let mut again = Vec::new();
        message.encode(&mut again);
        assert_eq!(again, body);
        assert_eq!(Test::bounds(&layout), (body.len() as u64, body.len() as u64));
    }
}

/// [`Channel::receive`] on arbitrary bytes: a message of the layout or an error, and
/// never a request for more bytes than the layout has.
///
/// # Panics
/// When more is asked for.
pub fn frames(data: &[u8]) {
    let Some((layout, stream)) = layout(data) else { return };
    let most = usize::try_from(Test::body_len(&layout)).unwrap_or(usize::MAX).max(5);
    let mut channel = fed(Role::Client, stream, most);
    while channel.receive::<Test>(&layout).is_ok() {}
}

/// Returns a channel whose peer says `bytes` and is gone, and hears everything.
///
/// # Panics
/// When more than `most` bytes are asked for at once.
pub fn fed(role: Role, bytes: &[u8], most: usize) -> Channel {
    Channel::new(role, Box::new(Feed { bytes: bytes.to_vec(), at: 0, most }))
}

/// Bytes that run out.
struct Feed {
    bytes: Vec<u8>,
    at: usize,
    most: usize,
}

impl Transport for Feed {
    fn send(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        assert!(buffer.len() <= self.most, "{} bytes asked for", buffer.len());
        let end = self.at + buffer.len();
        let bytes = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| Error::connection(TransportKind::Closed, "the end"))?;
        buffer.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// [`Pin`]: what parses prints as it was read, but for case.
///
/// # Panics
/// When it does not.
#[cfg(not(target_arch = "wasm32"))]
pub fn pin(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(pin) = text.parse::<Pin>() {
        assert_eq!(pin.to_string(), text.to_ascii_lowercase());
    }
}

/// [`Admission`]: what decodes has exactly one encoding, and nothing in it steers a terminal.
///
/// # Panics
/// When it has another.
pub fn admission(data: &[u8]) {
    let Ok(admission) = Admission::decode(data, &()) else { return };
    let mut again = Vec::new();
    admission.encode(&mut again);
    assert_eq!(again, data);
    if let Err(error) = admission.outcome() {
        assert!(!error.to_string().chars().any(char::is_control));
    }
}

/// What stands before an opening, and what a door answers: what decodes has exactly one encoding, the
/// address in a ticket steers no terminal, and vouchers are found or not.
///
/// # Panics
/// When it has another.
#[cfg(not(target_arch = "wasm32"))]
pub fn fleet(data: &[u8]) {
    if let Ok(Some((preface, rest))) = Preface::read(data) {
        let read = data.len() - rest.len();
        let again = match &preface {
            Some(Preface::Follows(request)) => encode_frame(request, 0),
            Some(Preface::Shows(ticket)) => encode_frame(&ShownTicket(ticket.clone()), 0),
            None => Ok(Vec::new()),
        };
        assert_eq!(again.ok().as_deref(), data.get(..read));
        assert!(read <= Preface::most(data));
    }
    if let Ok(ticket) = Ticket::decode(data, &()) {
        let mut again = Vec::new();
        ticket.encode(&mut again);
        assert_eq!(again, data);
        assert!(!ticket.address.chars().any(char::is_control));
    }
    let mut preamble = Preamble::default();
    preamble.extend(data);
    assert!(preamble.voucher().is_none_or(|voucher| voucher.len() < data.len()));
}

/// The header of a load balancer, as it arrives: an address, none, or an error, after no more bytes
/// than it says it has.
///
/// # Panics
/// When it asks for more.
#[cfg(not(target_arch = "wasm32"))]
pub fn preamble(data: &[u8]) {
    let mut preamble = Preamble::default();
    let mut rest = data;
    while let Ok(missing) = preamble.missing() {
        if missing == 0 {
            // Any answer will do.
            let _ = preamble.source();
            return;
        }
        assert!(missing <= 2064, "{missing} bytes asked for");
        let Some((part, later)) = rest.split_at_checked(missing) else { return };
        preamble.extend(part);
        rest = later;
    }
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn packed_integers_stand_their_corpus() {
        replay(&format!("{CORPUS}/wire_packed"), 100_000, super::packed);
    }

    #[test]
    fn frames_stand_their_corpus() {
        replay(&format!("{CORPUS}/wire_frames"), 100_000, super::frames);
    }

    #[test]
    fn admissions_stand_their_corpus() {
        replay(&format!("{CORPUS}/wire_admission"), 100_000, super::admission);
    }

    #[test]
    fn headers_of_load_balancers_stand_their_corpus() {
        replay(&format!("{CORPUS}/wire_preamble"), 100_000, super::preamble);
    }

    #[test]
    fn pins_stand_their_corpus() {
        replay(&format!("{CORPUS}/wire_pin"), 100_000, super::pin);
    }
}
