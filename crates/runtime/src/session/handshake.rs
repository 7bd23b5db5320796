//! The handshake: versions, the public plan, consent.
//!
//! The client asks, the server shows graph and settings, the client verifies them,
//! plans for itself and accepts with the digest of its own plan. Nothing secret has
//! been sent by then.

use ring::Random;
use wire::{Channel, Cost, Error, Link, Message, Result, Role, tags};

use crate::keys::Agreed;
use crate::plan::Plan;
use crate::session::probe;

/// Changes with every change of the bytes on the wire.
const PROTOCOL: u32 = 8;
/// Names the fixed parameters: RLWE table and deviations, SoftSpoken's fields, Ferret's
/// table of sets, hashes.
const PARAMETERS: &[u8; 16] = b"rlwe1-ss-frt1-m1";
/// Longest public graph that a client reads.
const MOST_JSON: u64 = 16 << 20;
/// The largest number of inputs of one session.
pub const MOST_INPUTS: u32 = 1_000_000;

const HELLO_LEN: usize = 4 + 16 + 32;
/// Bit of the version's word by which a server says that it measures the link.
const MEASURES: u32 = 1 << 31;

pub(crate) struct Hello {
    protocol: u32,
    parameters: [u8; 16],
    nonce: [u8; 32],
    /// Whether the sender is a server that measures the link before it offers a plan.
    measures: bool,
}

impl Message for Hello {
    type Shape = ();
    const TAG: u8 = tags::HELLO;

    fn bounds((): &()) -> (u64, u64) {
        (HELLO_LEN as u64, HELLO_LEN as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let flag = if self.measures { MEASURES } else { 0 };
        out.extend((self.protocol | flag).to_le_bytes());
        out.extend(self.parameters);
        out.extend(self.nonce);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let read = || {
            let (protocol, rest) = body.split_first_chunk::<4>()?;
            let (parameters, rest) = rest.split_first_chunk::<16>()?;
            let nonce = rest.try_into().ok()?;
            let word = u32::from_le_bytes(*protocol);
            let (protocol, measures) = (word & !MEASURES, word & MEASURES != 0);
            Some(Self { protocol, parameters: *parameters, nonce, measures })
        };
        read().ok_or_else(|| Error::peer("a hello", format!("{} bytes", body.len())))
    }
}

impl Hello {
    pub(crate) fn ours(rng: &mut Random) -> Self {
        let mut nonce = [0; 32];
        rng.fill(&mut nonce);
        Self { protocol: PROTOCOL, parameters: *PARAMETERS, nonce, measures: false }
    }

    fn check(&self) -> Result<()> {
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

/// What the server offers: public graph and settings as JSON.
pub(crate) struct Offer {
    pub(crate) json: String,
}

impl Message for Offer {
    type Shape = ();
    const TAG: u8 = tags::PLAN;

    fn bounds((): &()) -> (u64, u64) {
        (2, MOST_JSON)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.json.as_bytes());
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let json =
            std::str::from_utf8(body).map_err(|_| Error::peer("a plan in UTF-8", "bytes"))?;
        Ok(Self { json: json.into() })
    }
}

/// The client's consent: how many inputs, under which plan.
pub(crate) struct Accept {
    pub(crate) inputs: u32,
    pub(crate) digest: [u8; 32],
}

impl Message for Accept {
    type Shape = ();
    const TAG: u8 = tags::ACCEPT;

    fn bounds((): &()) -> (u64, u64) {
        (36, 36)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.inputs.to_le_bytes());
        out.extend(self.digest);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let (inputs, digest) = body
            .split_first_chunk::<4>()
            .and_then(|(inputs, rest)| Some((u32::from_le_bytes(*inputs), rest.try_into().ok()?)))
            .ok_or_else(|| Error::peer("an acceptance", format!("{} bytes", body.len())))?;
        if !(1..=MOST_INPUTS).contains(&inputs) {
            return Err(Error::peer(format!("1 to {MOST_INPUTS} inputs"), format!("{inputs}")));
        }
        Ok(Self { inputs, digest })
    }
}

/// The client's side. `inspect` sees the verified plan, may refuse it and says how
/// many inputs there will be.
pub(crate) fn client(
    channel: &mut Channel,
    rng: &mut Random,
    inspect: impl FnOnce(&Plan) -> Result<usize>,
) -> Result<(Plan, Agreed)> {
    let ours = Hello::ours(rng);
    channel.send(&ours)?;
    let theirs: Hello = channel.receive(&())?;
    theirs.check()?;
    if theirs.measures {
        probe::answer(channel)?;
    }
    let offer: Offer = channel.receive(&())?;
    let plan = Plan::from_offer(&offer.json)?;
    if plan.settings().measured != theirs.measures {
        return Err(Error::peer("a plan for the link that was measured, if any", "another"));
    }
    let inputs = u32::try_from(inspect(&plan)?).ok().filter(|n| (1..=MOST_INPUTS).contains(n));
    let inputs = inputs.ok_or_else(|| Error::misuse(format!("1 to {MOST_INPUTS} inputs")))?;
    let digest = plan.digest();
    channel.send(&Accept { inputs, digest })?;
    let agreed = Agreed::new(inputs, &ours.nonce, &theirs.nonce, &digest);
    Ok((plan, agreed))
}

/// The server's side. `choose` says what is offered, of a link if it `measures` that.
pub(crate) fn server<'a>(
    channel: &mut Channel,
    rng: &mut Random,
    measures: bool,
    choose: impl FnOnce(Option<Link>) -> Result<&'a Plan>,
) -> Result<(&'a Plan, Agreed)> {
    let theirs: Hello = channel.receive(&())?;
    let ours = Hello { measures, ..Hello::ours(rng) };
    channel.send(&ours)?;
    theirs.check()?;
    let link = measures.then(|| probe::measure(channel)).transpose()?;
    let plan = choose(link)?;
    channel.send(&Offer { json: plan.offer() })?;
    let accept: Accept = channel.receive(&())?;
    if accept.digest != plan.digest() {
        return Err(Error::peer("the digest of the offered plan", "another one"));
    }
    Ok((plan, Agreed::new(accept.inputs, &theirs.nonce, &ours.nonce, &accept.digest)))
}

/// What the handshake costs.
pub(crate) fn cost(plan: &Plan) -> Cost {
    let hello = |role| Cost::message(role, HELLO_LEN as u64);
    hello(Role::Client)
        .then(hello(Role::Server))
        .then(if plan.settings().measured { probe::cost() } else { Cost::NONE })
        .then(Cost::message(Role::Server, plan.offer().len() as u64))
        .then(Cost::message(Role::Client, 36))
}

/// Runs the client's side of the handshake of two parties that hold the same plan already, named
/// by `digest`.
///
/// # Errors
/// [`Error::Peer`] for a server of another release, [`Error::Transport`].
pub fn client_knows(channel: &mut Channel, rng: &mut Random, digest: &[u8; 32]) -> Result<Agreed> {
    let ours = Hello::ours(rng);
    channel.send(&ours)?;
    let theirs: Hello = channel.receive(&())?;
    theirs.check()?;
    channel.send(&Accept { inputs: 1, digest: *digest })?;
    Ok(Agreed::new(1, &ours.nonce, &theirs.nonce, digest))
}

/// Runs the server's side of the handshake of two parties that hold the same plan already, named
/// by `digest`.
///
/// # Errors
/// [`Error::Peer`] for a client of another release or with another plan, [`Error::Transport`].
pub fn server_knows(channel: &mut Channel, rng: &mut Random, digest: &[u8; 32]) -> Result<Agreed> {
    let theirs: Hello = channel.receive(&())?;
    let ours = Hello::ours(rng);
    channel.send(&ours)?;
    theirs.check()?;
    let accept: Accept = channel.receive(&())?;
    if accept.digest != *digest {
        return Err(Error::peer("the digest of the same plan", "another one"));
    }
    Ok(Agreed::new(accept.inputs, &theirs.nonce, &ours.nonce, digest))
}

/// What the handshake of two parties that hold the same plan already costs.
pub fn known_cost() -> Cost {
    let hello = |role| Cost::message(role, HELLO_LEN as u64);
    hello(Role::Client).then(hello(Role::Server)).then(Cost::message(Role::Client, 36))
}
