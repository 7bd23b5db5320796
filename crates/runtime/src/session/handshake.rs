//! The handshake: versions, admission, the public plan, consent.
//!
//! The client says what it wants, the server admits it and shows graph and settings, the client
//! verifies them, plans for itself and accepts with the digest of its own plan. Nothing secret has
//! been sent by then, but the client's token.

use ot::Kept;
use ring::Random;
use wire::{Admission, Admitted, Channel, Cost, Error, Link, Message, Result, Role, tags};

use crate::keys::Agreed;
use crate::plan::Plan;
use crate::provenance::Provenance;
use crate::session::expected::{Expected, MOST_INPUTS};
use crate::session::kept::Keeping;
use crate::session::opening::{self, Asking, Hello, Met, SessionRequest, hello_cost};
use crate::session::probe;

/// Longest public graph that a client reads.
const MOST_JSON: u64 = 16 << 20;
/// Bytes of an admission without a text.
pub(crate) const ADMITTED_LEN: u64 = 9;

/// What the server offers: public graph, settings and where the model comes from, as JSON.
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

/// The client's consent: how many inputs, under the offer of this digest.
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

/// The client's side where nothing is expected. `inspect` sees the verified plan, may refuse it
/// and says how many inputs there will be.
#[cfg(test)]
pub(crate) fn client(
    channel: &mut Channel,
    rng: &mut Random,
    asking: Asking<'_>,
    inspect: impl FnOnce(&Plan) -> Result<usize>,
) -> Result<(Plan, Provenance, Agreed, Keeping)> {
    let kept = asking.keys.and_then(super::kept::KeptKeys::take);
    let ours = ask(channel, rng, asking, kept.as_ref(), None)?;
    let (theirs, admitted) = answer(channel, asking)?;
    accept(channel, asking, (ours, theirs), (admitted, kept), inspect)
}

/// Sends what the client wants; returns its nonce.
pub(crate) fn ask(
    channel: &mut Channel,
    rng: &mut Random,
    asking: Asking<'_>,
    kept: Option<&Kept>,
    expected: Option<Expected>,
) -> Result<[u8; 32]> {
    let request = SessionRequest::of(&asking, kept, expected)?;
    let ours = Hello::ours(rng);
    channel.send(&ours)?;
    channel.send(&request)?;
    Ok(ours.nonce)
}

/// Receives the server's nonce and how the session begins.
pub(crate) fn answer(channel: &mut Channel, asking: Asking<'_>) -> Result<([u8; 32], Admitted)> {
    let theirs: Hello = channel.receive(&())?;
    theirs.check()?;
    Ok((theirs.nonce, admitted(channel, asking)?))
}

/// Receives the offer and accepts it. `inspect` sees the verified plan, may refuse it and says how
/// many inputs there will be.
pub(crate) fn accept(
    channel: &mut Channel,
    asking: Asking<'_>,
    (ours, theirs): ([u8; 32], [u8; 32]),
    (admitted, kept): (Admitted, Option<Kept>),
    inspect: impl FnOnce(&Plan) -> Result<usize>,
) -> Result<(Plan, Provenance, Agreed, Keeping)> {
    let Admitted { measures, resumes, follows } = admitted;
    if follows || (resumes && kept.is_none()) {
        return Err(Error::peer("an admission without kept keys", "one with some"));
    }
    if measures {
        probe::answer(channel)?;
    }
    let offer: Offer = channel.receive(&())?;
    let (plan, provenance) = Plan::offered(&offer.json)?;
    if plan.settings().measured != measures {
        return Err(Error::peer("a plan for the link that was measured, if any", "another"));
    }
    asking.trust.map_or(Ok(()), |trusts| trusts(&plan, &provenance))?;
    let inputs = u32::try_from(inspect(&plan)?).ok().filter(|n| (1..=MOST_INPUTS).contains(n));
    let inputs = inputs.ok_or_else(|| Error::misuse(format!("1 to {MOST_INPUTS} inputs")))?;
    let digest = provenance.digest(&plan.offer());
    channel.send(&Accept { inputs, digest })?;
    let agreed = Agreed::new(inputs, &ours, &theirs, &digest);
    let keeping = Keeping { kept: kept.filter(|_| resumes), keeps: asking.keys.is_some() };
    Ok((plan, provenance, agreed, keeping))
}

/// Waits until the server admits the client; returns how the session begins.
fn admitted(channel: &mut Channel, asking: Asking<'_>) -> Result<Admitted> {
    loop {
        let admission: Admission = channel.receive(&())?;
        if let Some(admitted) = admission.outcome()? {
            return Ok(admitted);
        }
        if let (Admission::Waiting { before }, Some(told)) = (admission, asking.waiting) {
            told(before);
        }
    }
}

/// The server's side, from the opening on, of a client that is admitted at once.
#[cfg(test)]
pub(crate) fn server<'a>(
    channel: &mut Channel,
    rng: &mut Random,
    measures: bool,
    choose: impl FnOnce(Option<Link>) -> Result<&'a Plan>,
) -> Result<(&'a Plan, Agreed)> {
    let met = &mut crate::session::opening::Visitor::met(channel, rng)?;
    let chosen = |link| choose(link).map(|plan| (plan, ()));
    let admitted = Admitted { measures, ..Admitted::default() };
    admit(channel, met, admitted, &Provenance::default(), chosen)
        .map(|(plan, (), agreed)| (plan, agreed))
}

/// The server's side after the opening. `choose` says what is offered, of a link if that is
/// measured, and what belongs to it.
pub(crate) fn admit<'a, E>(
    channel: &mut Channel,
    met: &mut Met,
    admitted: Admitted,
    provenance: &Provenance,
    choose: impl FnOnce(Option<Link>) -> Result<(&'a Plan, E)>,
) -> Result<(&'a Plan, E, Agreed)> {
    met.greet(channel)?;
    channel.send(&Admission::Admitted(admitted))?;
    let link = admitted.measures.then(|| probe::measure(channel)).transpose()?;
    let (plan, own) = choose(link)?;
    channel.send(&Offer { json: provenance.offer(&plan.offer()) })?;
    let accept: Accept = channel.receive(&())?;
    if accept.digest != provenance.digest(&plan.offer()) {
        return Err(Error::peer("the digest of the offered plan", "another one"));
    }
    let nonces = (&met.visitor.theirs, &met.nonce);
    Ok((plan, own, Agreed::new(accept.inputs, nonces.0, nonces.1, &accept.digest)))
}

/// What the handshake costs, of a server that shows no model card.
pub(crate) fn cost(plan: &Plan) -> Cost {
    opening::cost()
        .then(Cost::message(Role::Server, ADMITTED_LEN))
        .then(if plan.settings().measured { probe::cost() } else { Cost::NONE })
        .then(Cost::message(Role::Server, Provenance::default().offer(&plan.offer()).len() as u64))
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
    let hello = hello_cost;
    hello(Role::Client).then(hello(Role::Server)).then(Cost::message(Role::Client, 36))
}
