//! What clients, the door of a fleet and its servers say to each other beside sessions.
//!
//! None of these messages is part of a session: its frames and its meter begin after them, as
//! they do after the handshake of TLS.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::frame::decode_frame;
use crate::message::Message;
use crate::tags;

/// The protocol that clients name in their TLS hello (ALPN, RFC 7301) when they follow doors.
pub const DOOR_PROTOCOL: &[u8] = b"tacit-door/1";
/// Longest ticket in bytes.
pub const MOST_TICKET: usize = 1024;
/// Longest address of a server in bytes.
const MOST_ADDRESS: usize = 300;
/// Longest text on a control connection in bytes.
const MOST_NEWS: u64 = 1 << 20;
/// Bytes of a request to a door.
const REQUEST_LEN: usize = 4 + 32 + 32 + 32 + 1 + 8;

/// What it cost to ask a door, and whom it named.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The server's address.
    pub server: String,
    /// Bytes of frames to the door, and the ticket to the server.
    pub sent: u64,
    /// Bytes of frames from the door.
    pub received: u64,
    /// Seconds from the first byte to the door to the connection with the server.
    pub seconds: f64,
}

/// How much a client will ask, as far as it knows before it has seen a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many numbers, which are the values of all inputs together.
    Values(u64),
    /// So many runs of a batch each.
    Runs(u64),
}

/// What a client asks the door of a fleet for; zeros stand for what it does not say.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct DoorRequest {
    /// The version of the protocol of sessions.
    pub protocol: u32,
    /// Hash of the model's name.
    pub model: [u8; 32],
    /// What proves who the client is.
    pub token: [u8; 32],
    /// The name of the keys that it has kept from an earlier session.
    pub kept: [u8; 32],
    /// How much it will ask.
    #[zeroize(skip)]
    pub amount: Amount,
}

impl Message for DoorRequest {
    type Shape = ();
    const TAG: u8 = tags::DOOR_REQUEST;

    fn bounds((): &()) -> (u64, u64) {
        (REQUEST_LEN as u64, REQUEST_LEN as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.protocol.to_le_bytes());
        out.extend(self.model);
        out.extend(self.token);
        out.extend(self.kept);
        let (kind, count) = match self.amount {
            Amount::Values(count) => (0, count),
            Amount::Runs(count) => (1, count),
        };
        out.push(kind);
        out.extend(count.to_le_bytes());
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let read = || {
            let (protocol, rest) = body.split_first_chunk::<4>()?;
            let (model, rest) = rest.split_first_chunk::<32>()?;
            let (token, rest) = rest.split_first_chunk::<32>()?;
            let (kept, rest) = rest.split_first_chunk::<32>()?;
            let ([kind], rest) = rest.split_first_chunk::<1>()?;
            let count = u64::from_le_bytes(rest.try_into().ok()?);
            let amount = match kind {
                0 => Amount::Values(count),
                1 => Amount::Runs(count),
                _ => return None,
            };
            let protocol = u32::from_le_bytes(*protocol);
            Some(Self { protocol, model: *model, token: *token, kept: *kept, amount })
        };
        read().ok_or_else(|| Error::peer("a request to a door", format!("{} bytes", body.len())))
    }
}

/// Where a client goes, and what it shows there.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Ticket {
    /// HOST:PORT of a server.
    pub address: String,
    /// What admits the client there, once; only the fleet reads it.
    pub ticket: Vec<u8>,
}

impl Message for Ticket {
    type Shape = ();
    const TAG: u8 = tags::TICKET;

    fn bounds((): &()) -> (u64, u64) {
        (4, (2 + MOST_ADDRESS + MOST_TICKET) as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(self.address.len()).unwrap_or(u16::MAX);
        out.extend(length.to_le_bytes());
        out.extend(self.address.as_bytes());
        out.extend(&self.ticket);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let read = || {
            let (length, rest) = body.split_first_chunk::<2>()?;
            let (address, ticket) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            let address = std::str::from_utf8(address).ok()?;
            let fits = (1..=MOST_ADDRESS).contains(&address.len())
                && address.bytes().all(|byte| byte.is_ascii_graphic())
                && (1..=MOST_TICKET).contains(&ticket.len());
            fits.then(|| Self { address: address.into(), ticket: ticket.into() })
        };
        read().ok_or_else(|| Error::peer("a ticket", format!("another {} bytes", body.len())))
    }
}

/// A ticket, as its holder shows it to the server.
pub struct ShownTicket(pub Vec<u8>);

impl Message for ShownTicket {
    type Shape = ();
    const TAG: u8 = tags::SHOWN_TICKET;

    fn bounds((): &()) -> (u64, u64) {
        (1, MOST_TICKET as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(&self.0);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        Ok(Self(body.into()))
    }
}

/// A message of 32 bytes on a control connection.
pub struct Code<const TAG: u8> {
    /// Random, or an HMAC-SHA-256.
    pub bytes: [u8; 32],
}

/// A nonce on a control connection.
pub type Challenge = Code<{ tags::FLEET_CHALLENGE }>;

/// A code that only those make who know the fleet's secret.
pub type Proof = Code<{ tags::FLEET_PROOF }>;

impl<const TAG: u8> Message for Code<TAG> {
    type Shape = ();
    const TAG: u8 = TAG;

    fn bounds((): &()) -> (u64, u64) {
        (32, 32)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.bytes);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let bytes = body.try_into();
        bytes.map(|bytes| Self { bytes }).map_err(|_| Error::peer("32 bytes", "another length"))
    }
}

/// A text in JSON on a control connection, of at most 1 MiB.
pub struct Text<const TAG: u8> {
    /// An object.
    pub json: String,
}

/// What a server says on a control connection.
pub type News = Text<{ tags::FLEET_NEWS }>;

/// What the door answers there.
pub type Order = Text<{ tags::FLEET_ORDER }>;

impl<const TAG: u8> Message for Text<TAG> {
    type Shape = ();
    const TAG: u8 = TAG;

    fn bounds((): &()) -> (u64, u64) {
        (2, MOST_NEWS)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.json.as_bytes());
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let text = std::str::from_utf8(body);
        text.map(|text| Self { json: text.into() }).map_err(|_| Error::peer("a text", "bytes"))
    }
}

/// What stands before a client's opening.
pub enum Preface {
    /// It asks for a server, should this be a door.
    Follows(DoorRequest),
    /// It shows a ticket.
    Shows(Vec<u8>),
}

impl Preface {
    /// Reads what stands before the opening, if something does, and returns the rest; `None` while
    /// more must come to tell.
    ///
    /// # Errors
    /// [`Error::Peer`] for bytes that begin like one and are none.
    pub fn read(bytes: &[u8]) -> Result<Option<(Option<Self>, &[u8])>> {
        match bytes.first() {
            None => Ok(None),
            Some(&tags::DOOR_REQUEST) => Ok(decode_frame::<DoorRequest>(bytes, 0, &())?
                .map(|(request, rest)| (Some(Self::Follows(request)), rest))),
            Some(&tags::SHOWN_TICKET) => Ok(decode_frame::<ShownTicket>(bytes, 0, &())?
                .map(|(shown, rest)| (Some(Self::Shows(shown.0)), rest))),
            Some(_) => Ok(Some((None, bytes))),
        }
    }

    /// Most bytes of what may stand before an opening that begins with `bytes`.
    pub fn most(bytes: &[u8]) -> usize {
        match bytes.first() {
            Some(&tags::DOOR_REQUEST) => REQUEST_LEN + 5,
            Some(&tags::SHOWN_TICKET) => MOST_TICKET + 5,
            _ => 0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::frame::encode_frame;

    fn request(amount: Amount) -> DoorRequest {
        DoorRequest { protocol: 14, model: [1; 32], token: [2; 32], kept: [3; 32], amount }
    }

    #[test]
    fn requests_and_tickets_come_back_and_nothing_else_is_one() {
        for amount in [Amount::Values(784), Amount::Runs(u64::MAX)] {
            let mut body = Vec::new();
            request(amount).encode(&mut body);
            let read = DoorRequest::decode(&body, &()).unwrap();
            assert_eq!((read.amount, read.token, read.protocol), (amount, [2; 32], 14));
            body[100] = 2;
            assert!(DoorRequest::decode(&body, &()).is_err());
        }
        let ticket = Ticket { address: "10.0.0.2:7000".into(), ticket: vec![5; 100] };
        let mut body = Vec::new();
        ticket.encode(&mut body);
        assert!(Ticket::decode(&body, &()).unwrap() == ticket);
        body[0] = 0;
        assert!(Ticket::decode(&body, &()).is_err(), "no address");
        body[0] = 200;
        assert!(Ticket::decode(&body, &()).is_err(), "an address beyond the end");
        body[0] = 13;
        body[4] = 0x1b;
        assert!(Ticket::decode(&body, &()).is_err(), "a control character");
    }

    #[test]
    fn what_stands_before_an_opening_is_told_from_it_a_byte_at_a_time() {
        let frames = [
            encode_frame(&request(Amount::Runs(1)), 0).unwrap(),
            encode_frame(&ShownTicket(vec![9; 70]), 0).unwrap(),
        ];
        for frame in frames {
            for length in 0..frame.len() {
                assert!(Preface::read(&frame[..length]).unwrap().is_none(), "{length}");
            }
            let all = [&frame[..], b"rest"].concat();
            let (preface, rest) = Preface::read(&all).unwrap().unwrap();
            assert!(preface.is_some() && rest == b"rest" && Preface::most(&all) >= frame.len());
        }
        assert!(matches!(Preface::read(&[1, 2, 3]), Ok(Some((None, [1, 2, 3])))));
        assert!(Preface::read(&[tags::SHOWN_TICKET, 0xff, 0xff, 0, 0]).is_err(), "too long");
    }
}
