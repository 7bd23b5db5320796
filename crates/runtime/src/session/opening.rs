//! The opening of a session: what a client says before the server admits it.

use ot::Kept;
use ring::Random;
use sha2::{Digest, Sha256};
use wire::fleet::{Amount, DoorRequest, Preface};
use wire::{
    Admission, Channel, Cost, Error, HEADER_LEN, Message, Result, Role, decode_frame, encode_frame,
    tags,
};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::plan::Plan;
use crate::provenance::Provenance;
use crate::session::expected::Expected;
use crate::session::input::random;
use crate::session::kept::KeptKeys;

/// Changes with every change of the bytes on the wire.
pub const PROTOCOL: u32 = 27;
/// Names the fixed parameters: RLWE table and deviations, SoftSpoken's fields, Ferret's
/// table of sets, hashes.
const PARAMETERS: &[u8; 16] = b"rlwe1-cw-frt5-b3";

const HELLO_LEN: usize = 4 + 16 + 32;
const REQUEST_LEN: usize = 32 + 32 + 1 + 32 + Expected::LEN;
/// Bytes that a client sends before it waits for the server: a hello and a request, with headers.
pub const OPENING: usize = HELLO_LEN + REQUEST_LEN + 2 * HEADER_LEN as usize;

pub(crate) struct Hello {
    protocol: u32,
    parameters: [u8; 16],
    pub(crate) nonce: [u8; 32],
}

impl Message for Hello {
    type Shape = ();
    const TAG: u8 = tags::HELLO;

    fn bounds((): &()) -> (u64, u64) {
        (HELLO_LEN as u64, HELLO_LEN as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.protocol.to_le_bytes());
        out.extend(self.parameters);
        out.extend(self.nonce);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let read = || {
            let (protocol, rest) = body.split_first_chunk::<4>()?;
            let (parameters, rest) = rest.split_first_chunk::<16>()?;
            let nonce = rest.try_into().ok()?;
            let protocol = u32::from_le_bytes(*protocol);
            Some(Self { protocol, parameters: *parameters, nonce })
        };
        read().ok_or_else(|| Error::peer("a hello", format!("{} bytes", body.len())))
    }
}

impl Hello {
    pub(crate) fn ours(rng: &mut Random) -> Self {
        let mut nonce = [0; 32];
        rng.fill(&mut nonce);
        Self { protocol: PROTOCOL, parameters: *PARAMETERS, nonce }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.protocol != PROTOCOL {
            let got = format!("version {}; install the same release on both sides", self.protocol);
            return Err(Error::peer(format!("protocol version {PROTOCOL}"), got));
        }
        if self.parameters != *PARAMETERS {
            return Err(Error::peer("this release's cryptographic parameters", "others"));
        }
        Ok(())
    }
}

/// What a client wants of a server: a hash of the model's name, its token, whether it keeps keys
/// for a later session, the name of those that it has kept, and what it expects to be offered.
/// Nobody sees the lengths.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SessionRequest {
    model: [u8; 32],
    token: [u8; 32],
    keeps: bool,
    kept: [u8; 32],
    expected: Option<Expected>,
}

impl SessionRequest {
    pub(crate) fn of(
        asking: &Asking<'_>,
        kept: Option<&Kept>,
        expected: Option<Expected>,
    ) -> Result<Self> {
        let token = asking.token.map(token_bytes).transpose()?;
        let model = asking.model.map_or([0; 32], model_name);
        Ok(Self {
            model,
            token: token.unwrap_or_default(),
            keeps: asking.keys.is_some(),
            kept: kept.map_or([0; 32], Kept::name),
            expected,
        })
    }
}

/// Returns what a client sends for the name of a model.
pub fn model_name(name: &str) -> [u8; 32] {
    Sha256::new().chain_update(b"tacit model v1").chain_update(name.as_bytes()).finalize().into()
}

/// The bytes of a token in hexadecimal digits.
fn token_bytes(token: &str) -> Result<[u8; 32]> {
    let digits = || token.bytes().map(|digit| char::from(digit).to_digit(16));
    let mut bytes = [0; 32];
    if token.len() != 64 || digits().any(|digit| digit.is_none()) {
        return Err(Error::misuse("a token has 64 hexadecimal digits, as `tacit token` makes it"));
    }
    for (place, digit) in digits().flatten().enumerate() {
        if let Some(byte) = bytes.get_mut(place / 2) {
            *byte = *byte << 4 | digit as u8;
        }
    }
    Ok(bytes)
}

impl Message for SessionRequest {
    type Shape = ();
    const TAG: u8 = tags::REQUEST;

    fn bounds((): &()) -> (u64, u64) {
        (REQUEST_LEN as u64, REQUEST_LEN as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.model);
        out.extend(self.token);
        out.push(self.keeps.into());
        out.extend(self.kept);
        Expected::encode(self.expected, out);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let read = || {
            let (model, rest) = body.split_first_chunk()?;
            let (token, rest) = rest.split_first_chunk()?;
            let ([keeps @ (0 | 1)], rest) = rest.split_first_chunk()? else { return None };
            let (kept, rest) = rest.split_first_chunk()?;
            let expected = Expected::decode(rest.try_into().ok()?)?;
            if expected.is_some() && *kept == [0; 32] {
                return None;
            }
            Some(Self { model: *model, token: *token, keeps: *keeps == 1, kept: *kept, expected })
        };
        read().ok_or_else(|| Error::peer("a request", format!("another {} bytes", body.len())))
    }
}

/// Returns what a client that wants this asks a door for, of so much.
///
/// # Errors
/// [`Error::Misuse`] for a token that is none.
pub fn door_request(asking: &Asking<'_>, amount: Amount) -> Result<DoorRequest> {
    let token = asking.token.map(token_bytes).transpose()?;
    Ok(DoorRequest {
        protocol: PROTOCOL,
        model: asking.model.map_or([0; 32], model_name),
        token: token.unwrap_or_default(),
        kept: asking.keys.and_then(KeptKeys::next).unwrap_or_default(),
        amount,
    })
}

/// Returns a token in 64 hexadecimal digits; `None` for zeros, which stand for none.
pub fn token_digits(token: &[u8; 32]) -> Option<Zeroizing<String>> {
    if *token == [0; 32] {
        return None;
    }
    let mut digits = Zeroizing::new(String::with_capacity(64));
    for byte in token {
        let both = [byte >> 4, byte & 15];
        digits.extend(both.map(|d| char::from_digit(d.into(), 16).unwrap_or('0')));
    }
    Some(digits)
}

/// Decides about an offer.
pub type Trusts<'a> = dyn Fn(&Plan, &Provenance) -> Result<()> + 'a;

/// What a client asks a server for.
#[derive(Clone, Copy, Default)]
pub struct Asking<'a> {
    /// The name of the model; the only one of the server where absent.
    pub model: Option<&'a str>,
    /// What proves who the client is, to servers that want it.
    pub token: Option<&'a str>,
    /// Keys that were kept from earlier sessions with the same server, and where those for later
    /// ones are put; a session that leaves and finds nothing where absent.
    pub keys: Option<&'a KeptKeys>,
    /// Told how many sessions begin before this one, while it waits for them.
    pub waiting: Option<&'a dyn Fn(u32)>,
    /// Asked about the verified plan and what the server says of its model, before anything about
    /// the input is sent: its error ends the session.
    pub trust: Option<&'a Trusts<'a>>,
}

/// A client that has said what it wants.
pub struct Visitor {
    pub(crate) theirs: [u8; 32],
    request: SessionRequest,
    ticket: Option<Vec<u8>>,
    /// Bytes before the opening.
    before: usize,
}

impl Visitor {
    /// Reads the client's opening, as far as it is there: `None` where more must come.
    ///
    /// # Errors
    /// The frame to answer with before the connection ends, and why: [`Error::Peer`] for a client
    /// of another release or bytes that are no opening.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, (Vec<u8>, Error)> {
        let alone = |error| (Vec::new(), error);
        let Some((preface, opening)) = Preface::read(bytes).map_err(alone)? else {
            return Ok(None);
        };
        let before = bytes.len() - opening.len();
        let bytes = opening;
        let Some((hello, rest)) = decode_frame::<Hello>(bytes, 0, &()).map_err(alone)? else {
            return Ok(None);
        };
        if let Err(error) = hello.check() {
            // A client of another release learns from the answer which one it needs.
            let ours = Hello { protocol: PROTOCOL, parameters: *PARAMETERS, nonce: [0; 32] };
            return Err((encode_frame(&ours, 0).unwrap_or_default(), error));
        }
        let request = decode_frame::<SessionRequest>(rest, 1, &()).map_err(alone)?;
        let ticket = match preface {
            Some(Preface::Shows(ticket)) => Some(ticket),
            // A server that is no door serves the client itself.
            Some(Preface::Follows(_)) | None => None,
        };
        Ok(request.map(|(request, _)| Self { theirs: hello.nonce, request, ticket, before }))
    }

    /// Returns how many bytes a server reads of a client that began with `bytes`, to have its
    /// whole opening at least.
    pub fn wanted(bytes: &[u8]) -> usize {
        Preface::most(bytes) + OPENING
    }

    /// Returns the ticket of a door that the client showed.
    pub fn ticket(&self) -> Option<&[u8]> {
        self.ticket.as_deref()
    }

    /// Returns the bytes that stood before the opening.
    pub const fn before(&self) -> usize {
        self.before
    }

    /// Returns the frames of a server that says `admission` and nothing else.
    ///
    /// # Errors
    /// [`Error::Transport`] when the operating system gives no randomness.
    pub fn answer(&self, admission: &Admission) -> Result<Vec<u8>> {
        let mut frames = encode_frame(&Hello::ours(&mut random()?), 0)?;
        frames.extend(encode_frame(admission, 1)?);
        Ok(frames)
    }

    /// Receives the client's opening and answers its hello, or does so later where the client has
    /// sent more ([`Met::greet`]).
    ///
    /// # Errors
    /// [`Error::Peer`] for a client of another release, [`Error::Transport`].
    pub fn meet(channel: &mut Channel) -> Result<Met> {
        let mut rng = random()?;
        Self::met(channel, &mut rng)
    }

    pub(crate) fn met(channel: &mut Channel, rng: &mut Random) -> Result<Met> {
        let theirs: Hello = channel.receive(&())?;
        let ours = Hello::ours(rng);
        if let Err(error) = theirs.check() {
            // A client of another release learns from the answer which one it needs.
            channel.send(&ours)?;
            return Err(error);
        }
        let request = channel.receive(&())?;
        let visitor = Self { theirs: theirs.nonce, request, ticket: None, before: 0 };
        let mut met = Met { visitor, nonce: ours.nonce, ours: Some(ours) };
        if met.visitor.expected().is_none() {
            met.greet(channel)?;
        }
        Ok(met)
    }

    /// What the client expects and has sent on for.
    pub(crate) fn expected(&self) -> Option<Expected> {
        self.request.expected
    }

    /// Whether the client named no model.
    pub fn names_no_model(&self) -> bool {
        self.request.model == [0; 32]
    }

    /// Whether the client named this model ([`model_name`]).
    pub fn names(&self, model: &[u8; 32]) -> bool {
        self.request.model == *model
    }

    /// Whether the client keeps keys for a later session.
    pub(crate) fn keeps(&self) -> bool {
        self.request.keeps
    }

    /// Returns the name of the keys that the client has kept from an earlier session, if any.
    pub fn kept(&self) -> Option<[u8; 32]> {
        Some(self.request.kept).filter(|name| *name != [0; 32])
    }

    /// Returns the token that the client showed, in 64 hexadecimal digits; `None` for none.
    pub fn token(&self) -> Option<Zeroizing<String>> {
        token_digits(&self.request.token)
    }
}

/// A client whose hello is answered, or will be once what it has sent ahead is read: all that
/// each party says at a time is one round.
pub struct Met {
    /// What the client wants.
    pub visitor: Visitor,
    pub(crate) nonce: [u8; 32],
    /// The server's hello, until it is sent.
    ours: Option<Hello>,
}

impl Met {
    /// Answers the client's hello, unless that is done.
    ///
    /// # Errors
    /// [`Error::Transport`] when the client is gone.
    pub fn greet(&mut self, channel: &mut Channel) -> Result<()> {
        self.ours.take().map_or(Ok(()), |ours| channel.send(&ours))
    }
}

/// What the opening and the server's hello cost.
pub(crate) fn cost() -> Cost {
    Cost::message(Role::Client, HELLO_LEN as u64)
        .then(request_cost())
        .then(hello_cost(Role::Server))
}

/// What a request costs.
pub(crate) fn request_cost() -> Cost {
    Cost::message(Role::Client, REQUEST_LEN as u64)
}

/// What a hello costs.
pub(crate) fn hello_cost(role: Role) -> Cost {
    Cost::message(role, HELLO_LEN as u64)
}
