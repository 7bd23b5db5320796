//! The server's side of a session: a model that is ready to be run, and one run of it for a client
//! that has been admitted.

use graph::Model;
use ot::Kept;
use wire::{Admission, Admitted, Channel, Error, Link, Phase, Result};

use crate::keys::Agreed;
use crate::plan::kind::Kind;
use crate::plan::{Plan, Settings};
use crate::planner::Planning;
use crate::planner::at_widths;
use crate::planner::offers::Offers;
use crate::provenance::{MOST_CARD, Provenance};
use crate::report::{Offered, Report};
use crate::session::client::correlation_source;
use crate::session::course::Course;
use crate::session::encoded::EncodedModel;
use crate::session::expected::Expected;
use crate::session::handshake;
use crate::session::input::random;
use crate::session::kept::Keeping;
use crate::session::opening::Met;
use crate::step::context::{Endpoint, Party};
use crate::step::keys::ServerKeys;
use crate::step::memory::Memory;
use crate::suites;

/// How long a client that is refused may go on sending, in seconds.
const REFUSED: std::time::Duration = std::time::Duration::from_secs(2);

/// A model with its plans and encoded weights, ready for any number of sessions at a time.
pub struct Served {
    offers: Offers,
    /// By plan.
    encoded: Vec<EncodedModel>,
    provenance: Provenance,
}

/// What one session may use, and what its server wants to know of it.
pub struct Terms<'a> {
    /// Most inputs of the client.
    pub most_inputs: usize,
    /// Threads, at least 1.
    pub threads: usize,
    /// The link to the client where it is known, as it was measured before; only of use to a
    /// server that measures.
    pub link: Option<Link>,
    /// Base OTs that both parties kept from an earlier session, of the name that the client says.
    pub kept: Option<Kept>,
    /// Given base OTs for a later session, where the client keeps them.
    pub keep: &'a mut dyn FnMut(Kept),
    /// Asked once, when the number of inputs is known and before anything about the result can
    /// leave: a refusal ends the session.
    pub charge: &'a mut dyn FnMut(usize) -> Result<(), Admission>,
    /// Told how far the session has come.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// The link to the client was measured.
    Measured(Link),
    /// Both parties agreed on a plan and this number of inputs.
    Agreed(usize),
    /// Keys and base OTs are there.
    SetUp,
    /// So many runs are preprocessed and wait for their inputs.
    Prepared(usize),
    /// So many inputs are done.
    Done(usize),
}

impl Served {
    /// Plans `model` and encodes its weights, with a cache of `key_cache` bytes for evaluation
    /// keys of clients who may come back.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a model that does not verify and for a suite that leaks unless
    /// `accept_leakage`, [`Error::Unsupported`] for a model without a plan.
    pub fn new(
        model: Model,
        settings: Settings,
        planning: &Planning,
        accept_leakage: bool,
        key_cache: usize,
    ) -> Result<Self> {
        graph::verify_model(&model).map_err(|e| Error::misuse(e.to_string()))?;
        suites::consent(&model.graph.suite, accept_leakage)?;
        let offers = planning.offers(&model, settings)?;
        let encoded = if let (plan, 1) = (offers.plan(0, false)?, offers.count()) {
            let model = at_widths(model, plan.graph())?;
            vec![EncodedModel::new(plan, model)?.with_key_cache(key_cache)]
        } else {
            let plans = (0..offers.count()).map(|place| offers.plan(place, false));
            EncodedModel::several(&plans.collect::<Result<Vec<_>>>()?, &model, key_cache)?
        };
        Ok(Self { offers, encoded, provenance: Provenance::default() })
    }

    /// Tells clients where the model comes from.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a card of more than [`MOST_CARD`] bytes.
    pub fn of(self, provenance: Provenance) -> Result<Self> {
        match provenance.card.as_ref().map_or(0, String::len) {
            0..=MOST_CARD => Ok(Self { provenance, ..self }),
            long => Err(Error::misuse(format!("a card of {long} bytes; at most {MOST_CARD}"))),
        }
    }

    /// Returns what clients are told of where the model comes from.
    pub const fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Returns the digests of all plans that it may offer, each once.
    ///
    /// # Errors
    /// [`Error::Internal`] without a plan; there always is one.
    pub fn plan_digests(&self) -> Result<Vec<[u8; 32]>> {
        let mut digests = Vec::new();
        for place in 0..self.offers.count() {
            // A client whose link is known gets the same plan as one whose link is measured first,
            // but for the word that says so.
            for measured in [false, true].into_iter().take(1 + usize::from(self.measures())) {
                digests.push(self.offers.plan(place, measured)?.digest());
            }
        }
        Ok(digests)
    }

    /// Returns the plan that is offered when nothing is known of the link.
    ///
    /// # Errors
    /// [`Error::Internal`] without a plan; there always is one.
    pub fn plan(&self) -> Result<&Plan> {
        self.offers.plan(0, false)
    }

    /// Returns the bytes that a session of any of its plans holds at most, about.
    ///
    /// # Errors
    /// [`Error::Internal`] without a plan; there always is one.
    pub fn session_memory(&self) -> Result<u64> {
        let plans = (0..self.offers.count()).map(|place| self.offers.plan(place, false));
        plans.map(|plan| plan.map(Plan::session_memory)).try_fold(0, |most, one| Ok(one?.max(most)))
    }

    /// Whether it measures the links to its clients.
    pub fn measures(&self) -> bool {
        self.offers.is_measured()
    }

    /// Serves a client that has been met and is now admitted, to the end of its results.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`]; of a client that is refused the refusal.
    pub fn serve(&self, channel: &mut Channel, met: &mut Met, terms: Terms<'_>) -> Result<Report> {
        let known = terms.link;
        let measures = self.measures() && known.is_none();
        let choose = |measured: Option<Link>| {
            let place = self.offers.suited(measured.or(known));
            let plan = self.offers.plan(place, measures)?;
            let encoded = self.encoded.get(place);
            let missing = || Error::internal("a plan without weights; please report it");
            Ok((plan, encoded.ok_or_else(missing)?))
        };
        attend(measures, &self.provenance, choose, channel, met, terms)
    }
}

/// One session of the plan that is chosen for its link.
fn attend<'a>(
    measures: bool,
    provenance: &Provenance,
    choose: impl Fn(Option<Link>) -> Result<(&'a Plan, &'a EncodedModel)>,
    channel: &mut Channel,
    met: &mut Met,
    terms: Terms<'_>,
) -> Result<Report> {
    let Terms { most_inputs, threads, kept, keep, charge, progress, .. } = terms;
    let keeps = met.visitor.keeps();
    let followed =
        if measures || kept.is_none() { None } else { follow(met, choose(None)?, provenance) };
    let follows = followed.is_some();
    let (plan, encoded, agreed, kept) = match followed {
        Some((plan, encoded, agreed)) => (plan, encoded, agreed, kept),
        None => {
            // Base OTs with which the client has gone on are used up.
            let kept = kept.filter(|_| met.visitor.expected().is_none());
            met.visitor.expected().map_or(Ok(()), |sent| channel.skip(sent.ahead.into()))?;
            let admitted = Admitted { measures, resumes: kept.is_some(), follows };
            let (plan, encoded, agreed) =
                handshake::admit(channel, met, admitted, provenance, |measured| {
                    measured.map(Progress::Measured).into_iter().for_each(&mut *progress);
                    choose(measured)
                })?;
            (plan, encoded, agreed, kept)
        }
    };
    let resumed = kept.is_some();
    let keeping = Keeping { kept, keeps };
    let batch = plan.settings().batch();
    // What a client leaves out of its last batch counts, since nobody sees it.
    let most = most_inputs / batch * batch;
    let charged = match agreed.inputs {
        inputs if inputs > most => {
            Err(Admission::denied(format!("at most {most} inputs in a session, not {inputs}")))
        }
        inputs => charge(inputs.div_ceil(batch).saturating_mul(batch)),
    };
    if let Err(refusal) = charged {
        let refused = refusal.outcome().err();
        // The client may be gone; the refusal is what counts.
        let _ = channel.refuse(&refusal, REFUSED);
        return Err(refused.unwrap_or_else(|| Error::internal("a refusal that admits")));
    }
    progress(Progress::Agreed(agreed.inputs));
    let mut rng = random()?;
    let keys = ServerKeys::setup(channel, plan, &agreed, encoded.key_cache())?;
    let source = &mut correlation_source(channel, &mut rng, &agreed, plan, keeping)?;
    let party = Party::Server { keys: &keys, weights: encoded.weights(), threads };
    let mut course = Course::new(plan, agreed.inputs)?;
    let memory = &mut Memory::default();
    let end = &mut Endpoint { channel, party, source, rng: &mut rng, memory };
    course.send_ahead(end, plan)?;
    if follows {
        end.channel.enter(Phase::Setup, None);
        met.greet(end.channel)?;
        let admitted = Admitted { measures, resumes: resumed, follows };
        end.channel.send(&Admission::Admitted(admitted))?;
    }
    end.source.finish(end.channel)?.into_iter().for_each(keep);
    progress(Progress::SetUp);
    while !course.is_over() {
        let done = |course: &Course| (course.done() * batch).min(agreed.inputs);
        let turn = loop {
            match course.prepare(end, plan) {
                Ok(true) => progress(Progress::Prepared(course.ready())),
                Ok(false) => break course.run(end, plan, Kind::default()).map(drop),
                Err(error) => break Err(error),
            }
        };
        turn.map_err(|error| after(done(&course), agreed.inputs, error))?;
        progress(Progress::Done(done(&course)));
        progress(Progress::Prepared(course.ready()));
    }
    channel.flush()?;
    let report = Report::metered(plan, agreed.inputs, channel.meter());
    let (offered, key_exchange) = (Some(Offered::new(plan, provenance)), channel.key_exchange());
    Ok(Report { resumed, offered, key_exchange, ..report })
}

/// What both parties hold of a session that the client expects, if it is what the server offers
/// and what the client has sent on fits that.
fn follow<'a>(
    met: &Met,
    (plan, encoded): (&'a Plan, &'a EncodedModel),
    provenance: &Provenance,
) -> Option<(&'a Plan, &'a EncodedModel, Agreed)> {
    let Expected { digest, inputs, ahead } = met.visitor.expected()?;
    let fits = digest == provenance.digest(&plan.offer())
        && plan.sends_ahead(met.visitor.keeps()) == Some(ahead);
    let agreed = Agreed::resumed(inputs, &met.visitor.theirs, &met.visitor.kept()?, &digest);
    fits.then_some((plan, encoded, agreed))
}

/// One session over `channel`, of a single plan, from the opening on.
#[cfg(test)]
pub(crate) fn session(
    plan: &Plan,
    encoded: &EncodedModel,
    most_inputs: usize,
    channel: &mut Channel,
) -> Result<Report> {
    session_keeping(plan, encoded, most_inputs, channel, &mut None)
}

/// As [`session`], of a server that keeps base OTs for one session.
#[cfg(test)]
pub(crate) fn session_keeping(
    plan: &Plan,
    encoded: &EncodedModel,
    most_inputs: usize,
    channel: &mut Channel,
    store: &mut Option<Kept>,
) -> Result<Report> {
    let met = &mut crate::session::opening::Visitor::meet(channel)?;
    let (charge, progress) = (&mut |_| Ok(()), &mut |_| ());
    let kept = store.take().filter(|kept| Some(kept.name()) == met.visitor.kept());
    let keep = &mut |kept| *store = Some(kept);
    let terms = Terms { most_inputs, threads: 1, link: None, kept, keep, charge, progress };
    let nowhere = &Provenance::default();
    attend(plan.settings().measured, nowhere, |_| Ok((plan, encoded)), channel, met, terms)
}

/// Says how far a session had come whose connection ended.
fn after(done: usize, inputs: usize, error: Error) -> Error {
    match error {
        Error::Transport(why) if inputs > 1 => {
            Error::connection(why.kind, format!("after {done} of {inputs} inputs: {why}"))
        }
        other => other,
    }
}
