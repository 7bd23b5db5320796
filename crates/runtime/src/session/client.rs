//! The client's session.

use std::sync::Arc;

use ot::{Kept, SessionId, Setup};
use ring::Random;
use ring::word::signed;
use wire::{Channel, Error, Phase, Result};
use zeroize::Zeroizing;

use crate::keys::Agreed;
use crate::keys::files::KeyFiles;
use crate::plan::Plan;
use crate::plan::batch;
use crate::plan::kind::Kind;
use crate::provenance::Provenance;
use crate::report::{Offered, Report};
use crate::session::course::Course;
use crate::session::expected::Expected;
use crate::session::handshake;
use crate::session::input::{quantize, random};
use crate::session::kept::{Keeping, KeptKeys, Known};
use crate::session::opening::Asking;
use crate::step::context::{Endpoint, Party};
use crate::step::correlations::CorrelationSource;
use crate::step::keys::ClientKeys;
use crate::step::memory::Memory;
use crate::suites;

/// What a client wants: one real-valued input, or several with a leading axis.
pub struct Request<'a> {
    /// The values in row-major order, in model units.
    pub values: &'a [f32],
    /// The shape of the values: the model's input shape, or (N, *input shape).
    pub shape: &'a [usize],
    /// Threads of this party, at least 1.
    pub threads: usize,
    /// Whether a suite may run that leaks more than the result.
    pub accept_leakage: bool,
    /// Keys of suite `lola` that the server may have seen before; fresh ones when absent.
    pub keys: Option<&'a KeyFiles>,
    /// What the server is asked for.
    pub asking: Asking<'a>,
    /// Told how many inputs are done.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

/// What a client gets from a session.
#[derive(Debug)]
pub struct Answer {
    /// For each input the output integers, or a label, or a label and a denominator
    /// ([`Plan::certain`]), by the server's policy.
    pub results: Vec<Vec<i64>>,
    /// The plan that was verified and run.
    pub plan: Arc<Plan>,
    /// What the server says of its model.
    pub provenance: Provenance,
    /// The bytes, rounds and seconds of the session.
    pub report: Report,
}

/// Runs a session over `channel`.
///
/// # Errors
/// [`wire::Error::Misuse`] for inputs that do not fit the model and for a suite that leaks
/// unasked (nothing about them has been sent), [`wire::Error::Peer`],
/// [`wire::Error::Transport`], [`wire::Error::Unsupported`] for a plan this release cannot run.
pub fn predict(channel: &mut Channel, request: Request<'_>) -> Result<Answer> {
    let mut inputs = Zeroizing::new(Vec::new());
    let mut client =
        Client::open(channel, request.threads, request.keys, request.asking, |plan| {
            suites::consent(&plan.graph().suite, request.accept_leakage)?;
            *inputs = quantize(plan.graph(), request.values, request.shape)?;
            Ok(inputs.len())
        })?;
    let mut results = Vec::with_capacity(inputs.len());
    for some in inputs.chunks(client.plan.settings().batch()) {
        results.extend(client.run(channel, (some, &[]), Kind::Whole)?);
        (request.progress)(results.len(), inputs.len());
    }
    let report = client.finish(channel)?;
    Ok(Answer { results, plan: client.plan, provenance: client.provenance, report })
}

/// The client's half of a session after its setup. The channel is not part of it: after
/// an error both are dropped.
pub(crate) struct Client {
    pub(crate) plan: Arc<Plan>,
    pub(crate) provenance: Provenance,
    offered: Offered,
    keys: ClientKeys,
    source: CorrelationSource,
    rng: Random,
    memory: Memory,
    course: Course,
    /// Inputs whose results are here.
    done: usize,
    threads: usize,
    /// Whether base OTs of an earlier session were used.
    resumed: bool,
}

impl Client {
    /// From the hello to the base OTs; `count` sees the verified plan and says how
    /// many inputs there will be. It is asked of the plan that the client expects first.
    pub(crate) fn open(
        channel: &mut Channel,
        threads: usize,
        own: Option<&KeyFiles>,
        asking: Asking<'_>,
        mut count: impl FnMut(&Plan) -> Result<usize>,
    ) -> Result<Self> {
        let mut rng = random()?;
        // From here on they are used up, whatever becomes of the session.
        let mut kept = asking.keys.and_then(KeptKeys::take);
        let known = kept.is_some().then(|| asking.keys.and_then(KeptKeys::known)).flatten();
        let known = known.filter(|_| own.is_none());
        let expected = known.as_ref().and_then(|known| known.expected(&asking, &mut count));
        let ours = handshake::ask(channel, &mut rng, asking, kept.as_ref(), expected)?;
        let mut begun = None;
        if let (Some(known), Some(expected)) = (known, expected) {
            let Expected { inputs, digest, .. } = expected;
            let name = kept.as_ref().map_or([0; 32], Kept::name);
            let agreed = Agreed::resumed(inputs, &ours, &name, &digest);
            let keeping = Keeping { kept: kept.take(), keeps: true };
            let (plan, provenance) = (known.plan.clone(), known.provenance.clone());
            let offered = (plan, provenance, agreed, keeping);
            let sent = Self::begin(channel, (threads, own), offered, rng.child());
            channel.enter(Phase::Setup, None);
            begun = Some(sent.or_else(|error| refused(channel, asking, error))?);
        }
        let (theirs, admitted) = handshake::answer(channel, asking)?;
        if let (Some(begun), true) = (begun, admitted.follows) {
            if admitted.measures || !admitted.resumes {
                return Err(Error::peer("an admission that only follows", "another"));
            }
            return begun.finish_setup(channel, asking);
        }
        let nonces = (ours, theirs);
        let (plan, provenance, agreed, keeping) =
            handshake::accept(channel, asking, nonces, (admitted, kept), count)?;
        let offered = (Arc::new(plan), provenance, agreed, keeping);
        Self::begin(channel, (threads, own), offered, rng)?.finish_setup(channel, asking)
    }

    /// Sends all that the client says before the last flight of the setup.
    fn begin(
        channel: &mut Channel,
        (threads, own): (usize, Option<&KeyFiles>),
        (plan, provenance, agreed, keeping): (Arc<Plan>, Provenance, Agreed, Keeping),
        mut rng: Random,
    ) -> Result<Self> {
        let resumed = keeping.kept.is_some();
        let keys = ClientKeys::setup(channel, &plan, &agreed, own, &mut rng)?;
        let mut source = correlation_source(channel, &mut rng, &agreed, &plan, keeping)?;
        let mut course = Course::new(&plan, agreed.inputs)?;
        let party = Party::Client { keys: &keys, input: &[], added: &[], threads };
        let mut memory = Memory::default();
        let (source_of, rng_of) = (&mut source, &mut rng);
        let end =
            &mut Endpoint { channel, party, source: source_of, rng: rng_of, memory: &mut memory };
        course.send_ahead(end, &plan)?;
        let (offered, done) = (Offered::new(&plan, &provenance), 0);
        Ok(Self {
            plan,
            provenance,
            offered,
            keys,
            source,
            rng,
            memory,
            course,
            done,
            threads,
            resumed,
        })
    }

    /// Receives the last flight of the setup; what later sessions can use goes to the keys of
    /// `asking`.
    fn finish_setup(mut self, channel: &mut Channel, asking: Asking<'_>) -> Result<Self> {
        let kept = self.source.finish(channel)?;
        if let (Some(keys), Some(kept)) = (asking.keys, kept) {
            let again = self.resumed.then(|| keys.known()).flatten();
            let again = again.filter(|known| Arc::ptr_eq(&known.plan, &self.plan));
            let known = || Known::of(&asking, &self.plan, &self.provenance).map(Arc::new);
            keys.remember(again.or_else(known));
            keys.put(kept);
        }
        Ok(self)
    }

    /// Prepares the next run, unless the next turn is a run itself; says which.
    pub(crate) fn prepare(&mut self, channel: &mut Channel) -> Result<bool> {
        let Self { plan, keys, source, rng, memory, course, threads, .. } = self;
        let party = Party::Client { keys, input: &[], added: &[], threads: *threads };
        course.prepare(&mut Endpoint { channel, party, source, rng, memory }, plan)
    }

    /// Runs quantised inputs, at most a batch of them, or as many as a pass has of a `kind` that is one; a result
    /// for each, or none of a run that is only for what the graph keeps. What is `added` to the results, in their last
    /// places, is of the client alone.
    pub(crate) fn run(
        &mut self,
        channel: &mut Channel,
        (inputs, added): (&[Vec<i64>], &[i64]),
        kind: Kind,
    ) -> Result<Vec<Vec<i64>>> {
        let Self { plan, keys, source, rng, memory, course, done, threads, .. } = self;
        let input = plan.graph().tensors.get(plan.graph().input).map_or(0, |t| t.len());
        let input = batch::joined(inputs, input, plan.of(kind)?.settings().batch());
        let party = Party::Client { keys, input: &input, added, threads: *threads };
        let end = &mut Endpoint { channel, party, source, rng, memory };
        let words = course.run(end, plan, kind)?;
        *done += inputs.len();
        let rows = words.chunks(plan.result_len().max(1)).take(inputs.len());
        Ok(rows.map(|row| decode(plan, row)).collect())
    }

    /// Whether the next turn prepares a run.
    pub(crate) fn prepares(&self) -> bool {
        self.course.prepares()
    }

    /// EncodedModel runs that wait for their inputs.
    pub(crate) fn ready(&self) -> usize {
        self.course.ready()
    }

    /// What the session cost so far.
    pub(crate) fn report(&self, channel: &mut Channel) -> Report {
        let report = Report::metered(&self.plan, self.done, channel.meter());
        let (offered, key_exchange) = (Some(self.offered.clone()), channel.key_exchange());
        let door = channel.detour().map(Into::into);
        Report { resumed: self.resumed, offered, key_exchange, door, ..report }
    }

    /// Says goodbye.
    pub(crate) fn finish(&self, channel: &mut Channel) -> Result<Report> {
        channel.flush()?;
        channel.enter(Phase::Setup, None);
        let report = self.report(channel);
        // The results are here: a server that is gone by now takes nothing away from them.
        let _ = channel.close();
        Ok(report)
    }
}

/// The error of a client that could not send all: a server that refuses says why before it
/// closes.
fn refused<T>(channel: &mut Channel, asking: Asking<'_>, error: Error) -> Result<T> {
    let lost = matches!(error, Error::Transport(_));
    let answer = lost.then(|| handshake::answer(channel, asking).err()).flatten();
    Err(answer.unwrap_or(error))
}

/// Base oblivious transfers of a session but for the last flight, where the plan consumes
/// correlations at all.
pub(super) fn correlation_source(
    channel: &mut Channel,
    rng: &mut Random,
    agreed: &Agreed,
    plan: &Plan,
    keeping: Keeping,
) -> Result<CorrelationSource> {
    if plan.evaluated().is_some() {
        return Ok(CorrelationSource::none(rng));
    }
    let setup = Setup::new(SessionId(agreed.session), plan.settings().sourcing());
    let Keeping { kept, keeps } = keeping;
    CorrelationSource::begin(channel, rng, Setup { kept, keeps, ..setup })
}

fn decode(plan: &Plan, words: &[u64]) -> Vec<i64> {
    let shown = plan.steps().last().and_then(|step| step.reveals());
    let signed_bits = shown.filter(|(_, signed)| *signed).map(|(bits, _)| bits);
    words.iter().map(|word| signed_bits.map_or(*word as i64, |bits| signed(*word, bits))).collect()
}
