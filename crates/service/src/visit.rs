//! One client's visit: a place in the queue, a session, a goodbye.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring::cpu::CpuTime;
use runtime::{Progress, Report, Reveal, Served, Terms, Visitor, hexadecimal, model_name};
use wire::{Admission, Channel, Error, Incoming, Link, Result, TransportKind};

use crate::event::{AT_THE_DOOR, End, Event};
use crate::fleet::member::Pass;
use crate::fleet::talk::{ModelNews, short};
use crate::gate::{Place, Queued, Slot, Turn};
use crate::ledger::Budget;
use crate::policy::{Known, Policy};
use crate::shared::Shared;
use crate::watch::live::Session;

/// Longest wait for the client's goodbye after the last message.
const GOODBYE: Duration = Duration::from_secs(2);
/// What was set aside for one who waits is kept aside so often.
const EXTEND: Duration = Duration::from_secs(20);
/// A client that waits is told its place so often, and proves that it is still there.
const BEAT: Duration = Duration::from_millis(500);

/// A model as clients name it, ready to be run.
pub struct Model {
    /// Its name.
    pub name: String,
    /// What runs, for each of what clients may learn; the first where nothing is said of a client.
    served: Vec<(Reveal, Served)>,
    /// Bytes that a session of it holds at most, about.
    pub session_memory: u64,
    /// The budget of clients that have none of their own for it; the server's where absent.
    budget: Option<Budget>,
    named: [u8; 32],
}

impl Model {
    /// Gives a name to what is served; `others` are the same model for clients that may learn
    /// something else.
    ///
    /// # Errors
    /// [`Error::Internal`] without a plan; there always is one.
    pub fn new(name: impl Into<String>, served: Served, others: Vec<Served>) -> Result<Self> {
        let (name, mut all, mut session_memory) = (name.into(), Vec::new(), 0);
        for served in std::iter::once(served).chain(others) {
            let plan = served.plan()?;
            session_memory = served.session_memory()?.max(session_memory);
            all.push((plan.settings().reveal, served));
        }
        Ok(Self { named: model_name(&name), name, served: all, session_memory, budget: None })
    }

    /// Gives clients that have no budget of their own for it this one.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// What the door of a fleet is told of it.
    pub(crate) fn news(&self) -> Result<ModelNews> {
        let (_, first) =
            self.served.first().ok_or_else(|| Error::internal("a model without a plan"))?;
        let graph = first.plan()?.graph();
        let values = graph.tensors.get(graph.input).map_or(1, |tensor| tensor.len());
        Ok(ModelNews {
            name: self.name.clone(),
            graph_digest: hexadecimal(&graph::digest(graph)),
            values: values as u64,
            batch: self.batch()? as u64,
            reveals: self.served.iter().map(|(reveal, _)| *reveal).collect(),
            budget: self.budget,
        })
    }

    /// The largest batch of its plans.
    pub(crate) fn batch(&self) -> Result<usize> {
        let mut most = 1;
        for (_, served) in &self.served {
            most = served.plan()?.settings().batch().max(most);
        }
        Ok(most)
    }

    /// What runs for a client that may learn `reveal`, or what all may.
    fn served(&self, reveal: Option<Reveal>) -> Option<&Served> {
        let wanted = |all: &&(Reveal, Served)| reveal.is_none_or(|reveal| all.0 == reveal);
        self.served.iter().find(wanted).map(|(_, served)| served)
    }

    /// Whether a client asked for it.
    pub(crate) fn is_named(&self, visitor: &Visitor) -> bool {
        visitor.names(&self.named)
    }
}

/// What is known of a visit as it goes on.
pub(crate) struct Facts {
    pub(crate) session: u64,
    pub(crate) client: String,
    pub(crate) address: IpAddr,
    pub(crate) identity: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) refused: Option<&'static str>,
    pub(crate) reached: &'static str,
    pub(crate) inputs: usize,
    pub(crate) link: Option<Link>,
    pub(crate) waited: Duration,
}

impl Facts {
    pub(crate) fn new(session: u64, client: SocketAddr) -> Self {
        Self {
            session,
            client: client.to_string(),
            address: client.ip(),
            identity: None,
            model: None,
            refused: None,
            reached: AT_THE_DOOR,
            inputs: 0,
            link: None,
            waited: Duration::ZERO,
        }
    }

    /// What others see of it.
    pub(crate) fn seen(&self) -> Session {
        Session {
            session: self.session,
            client: self.client.clone(),
            identity: self.identity.clone(),
            model: self.model.clone(),
            reached: "queue",
            inputs: 0,
            answered: 0,
            prepared: 0,
            seconds: 0.0,
        }
    }

    pub(crate) fn event(self, outcome: Result<Report>, end: End, cpu: Duration) -> Event {
        Event {
            session: self.session,
            client: self.client,
            identity: self.identity,
            model: self.model,
            outcome,
            end,
            refused: self.refused.or((end == End::Refused).then_some("other")),
            reached: self.reached,
            inputs: self.inputs,
            link: self.link,
            waited: self.waited.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            untold: 0,
        }
    }
}

/// A visit from the opening to the goodbye, on a thread of its own.
pub(crate) fn run(
    shared: &Arc<Shared>,
    model: &Model,
    known: (Known, Option<Pass>, bool),
    incoming: Incoming,
    place: Place,
    mut facts: Facts,
) -> Event {
    let time = CpuTime::default();
    let counting = time.count();
    facts.model = Some(model.name.clone());
    let visit = || attend(shared, (model, &known), incoming, place, &mut facts);
    let (outcome, end) = match guarded(shared, visit) {
        Ok((report, end)) => (Ok(report), end),
        Err(error) => {
            let end = if is_refusal(&error) { End::Refused } else { End::Failed };
            (Err(shared.explained(error)), end)
        }
    };
    drop(counting);
    facts.event(outcome, end, time.spent())
}

/// Whether the server itself turned the client away.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Transport(error) if is_own(error.kind))
}

/// Whether a connection ended as the server wished.
pub(crate) fn is_own(kind: TransportKind) -> bool {
    matches!(kind, TransportKind::Busy { .. } | TransportKind::Denied)
}

/// Turns a panic into an error and counts it: it costs this session and no other.
fn guarded<T>(shared: &Shared, run: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the closure leaves behind is shared read-only or dropped with it.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|cause| {
        // The cause may quote values, so it goes to nobody but the panic hook.
        drop(cause);
        let count = shared.count_panic();
        Err(Error::Internal(format!("the session panicked ({count} so far); please report it")))
    })
}

fn attend(
    shared: &Shared,
    (model, (known, pass, promised)): (&Model, &(Known, Option<Pass>, bool)),
    incoming: Incoming,
    place: Place,
    facts: &mut Facts,
) -> Result<(Report, End)> {
    let options = &shared.options;
    let mut channel = incoming.into_channel(options.timeouts)?;
    if let Some(link) = options.link {
        channel.shape(link)?;
    }
    facts.reached = "queue";
    let mut met = Visitor::meet(&mut channel)?;
    let slot = match place {
        Place::Now(slot) => slot,
        Place::Later(queued) => {
            let since = Instant::now();
            met.greet(&mut channel)?;
            let slot = queue(shared, &queued, &mut channel, (pass.as_ref(), *promised));
            facts.waited = since.elapsed();
            slot.map_err(|(error, reason)| {
                facts.refused = reason;
                error
            })?
        }
    };
    facts.reached = "handshake";
    let session = facts.session;
    let seen = |change: &dyn Fn(&mut Session)| shared.sessions.update(session, change);
    seen(&|session| session.reached = "handshake");
    let served = model.served(known.reveal).ok_or_else(|| {
        Error::internal("a client that may learn what the server has no plan for; please report it")
    })?;
    // One identity may come over several links.
    let place = format!("{} {}", known.client.key(), facts.address);
    let known_link = served.measures().then(|| shared.links.get(&place)).flatten();
    let Facts { reached, inputs, link, refused, .. } = facts;
    *link = known_link;
    let progress = &mut |progress| {
        match progress {
            Progress::Measured(measured) => {
                *link = Some(measured);
                shared.links.put(place.clone(), measured);
            }
            Progress::Agreed(asked) => {
                *reached = "setup";
                seen(&|session| session.inputs = asked);
            }
            Progress::SetUp => *reached = "inputs",
            Progress::Prepared(runs) => seen(&|session| session.prepared = runs),
            Progress::Done(done) => {
                *inputs = done;
                seen(&|session| session.answered = done);
            }
        }
        let now = *reached;
        seen(&|session| session.reached = now);
    };
    let (policy, mut unusable) = (shared.policy(), None);
    let charge = &mut |inputs| {
        counted(shared, &policy, (model, known, pass.as_ref()), inputs).map_err(|(refusal, why)| {
            *refused = Some(if why.is_some() { "ledger" } else { "budget" });
            unusable = why;
            refusal
        })
    };
    let client = known.client.key();
    let kept = met.visitor.kept().and_then(|name| shared.kept.take(&client, &name));
    let terms = Terms {
        kept,
        keep: &mut |kept| keep(shared, &client, kept),
        most_inputs: options.most_inputs,
        threads: options.threads,
        link: known_link,
        charge,
        progress,
    };
    let report = served.serve(&mut channel, &mut met, terms);
    let report = report.map_err(|error| unusable.map_or(error, |why| Error::from(*why)))?;
    facts.reached = "goodbye";
    shared.sessions.update(session, |session| session.reached = "goodbye");
    // Nothing is left to compute: the next session may begin.
    drop(slot);
    let patience = GOODBYE.min(options.timeouts.idle);
    // Reading first: what is written to a client that is gone already can cost its goodbye.
    let ended = channel.closed(patience);
    let _ = channel.close();
    Ok((report, if ended.is_ok() { End::Finished } else { End::ClientGone }))
}

/// Counts inputs: those that were set aside for the client's ticket, or without one in the ledger of this server, or of the
/// door.
fn counted(
    shared: &Shared,
    policy: &Policy,
    (model, known, pass): (&Model, &Known, Option<&Pass>),
    inputs: usize,
) -> Result<(), (Admission, Option<Box<crate::error::Error>>)> {
    let wide = u64::try_from(inputs).unwrap_or(u64::MAX);
    if let Some(pass) = pass
        && pass.redeem(wide, model.budget, policy.budget)?
    {
        return Ok(());
    }
    match (&shared.fleet, &policy.ledger) {
        (Some(member), None) => member.charge(&known.client, &model.name, model.budget, wide),
        _ => policy.charge(&known.client, &model.name, model.budget, inputs),
    }
}

/// Keeps base OTs for a later session, of which the door of the fleet learns.
fn keep(shared: &Shared, client: &str, kept: runtime::Kept) {
    let name = short(&kept.name());
    shared.kept.keep(client, kept);
    if let Some(member) = &shared.fleet {
        member.tell(|news| news.kept.push(name));
    }
}

/// Waits in the queue, telling the client its place.
fn queue(
    shared: &Shared,
    queued: &Queued,
    channel: &mut Channel,
    (pass, promised): (Option<&Pass>, bool),
) -> Result<Slot, (Error, Option<&'static str>)> {
    let mut extended = Instant::now();
    loop {
        if let Some(pass) = pass
            && extended.elapsed() > EXTEND
        {
            extended = Instant::now();
            pass.extend();
        }
        if let Some(refusal) = shared.closing(promised) {
            if let Some(Turn::Come(slot)) = queued.wait(Duration::ZERO) {
                return Ok(slot);
            }
            return Err((turned_away(channel, &refusal), Some("stopping")));
        }
        let before = u32::try_from(queued.before()).unwrap_or(u32::MAX);
        channel.send(&Admission::Waiting { before }).map_err(|error| (error, None))?;
        match queued.wait(BEAT) {
            Some(Turn::Come(slot)) => return Ok(slot),
            Some(Turn::Displaced(full)) => {
                return Err((turned_away(channel, &full.refusal()), Some("busy")));
            }
            None => {}
        }
    }
}

fn turned_away(channel: &mut Channel, refusal: &Admission) -> Error {
    // The client may be gone; the refusal is what counts.
    let _ = channel.refuse(refusal, GOODBYE);
    refusal.outcome().err().unwrap_or_else(|| Error::internal("a refusal that admits"))
}
