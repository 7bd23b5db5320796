//! A client's session that stays open between runs and prepares while it waits.
//!
//! After the setup and after each result a thread takes the client and its channel,
//! prepares what the store has room for and hands both back. The turns are those of
//! every session, so the server cannot tell this client from one with a batch. Where there are
//! no threads, the caller asks for it between its inputs ([`Session::prepare`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use ring::host;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use crate::keys::files::KeyFiles;
use crate::plan::kind::Kind;
use crate::plan::{Plan, Reveal};
use crate::provenance::Provenance;
use crate::report::Report;
use crate::session::client::Client;
use crate::session::expected::MOST_INPUTS;
use crate::session::input::quantize;
use crate::session::opening::Asking;
use crate::suites;

/// An open session. Dropped without [`Session::finish`] it breaks off.
pub struct Session {
    plan: Arc<Plan>,
    provenance: Provenance,
    state: State,
    idle: Arc<Idle>,
    report: Report,
    inputs: usize,
    done: usize,
}

enum State {
    /// Waits for an input.
    Ready(Box<Open>),
    /// A thread prepares.
    Preparing(JoinHandle<Result<Box<Open>>>),
    /// Finished or failed; what a further input is told.
    Ended(Error),
}

struct Open {
    client: Client,
    channel: Channel,
}

/// What the session and its thread tell each other.
#[derive(Default)]
struct Idle {
    ready: AtomicUsize,
    stop: AtomicBool,
}

impl Session {
    /// Sets up a session of at most `inputs` inputs (1 to [`MOST_INPUTS`]) over `channel`
    /// and begins to prepare, if the server offers a store. `threads` is at least 1.
    /// Where the server takes batches, `inputs` counts batches, full or not, and the
    /// server counts them as full.
    ///
    /// # Errors
    /// [`Error::Misuse`] for another number of inputs (nothing has been sent),
    /// [`Error::Peer`], [`Error::Transport`], [`Error::Unsupported`] for a plan this
    /// release cannot run.
    pub fn open(
        mut channel: Channel,
        inputs: usize,
        threads: usize,
        accept_leakage: bool,
        keys: Option<&KeyFiles>,
        asking: Asking<'_>,
    ) -> Result<Self> {
        if !(1..=MOST_INPUTS as usize).contains(&inputs) {
            return Err(Error::misuse(format!("1 to {MOST_INPUTS} inputs, not {inputs}")));
        }
        let count = |plan: &Plan| {
            suites::consent(&plan.graph().suite, accept_leakage)?;
            Ok(inputs.saturating_mul(plan.settings().batch()))
        };
        let client = Client::open(&mut channel, threads, keys, asking, count)?;
        let (plan, report) = (client.plan.clone(), client.report(&mut channel));
        let mut session = Self {
            plan,
            provenance: client.provenance.clone(),
            state: State::Ended(Error::misuse("the session is not open yet")),
            idle: Arc::default(),
            report,
            inputs,
            done: 0,
        };
        session.wait_for_input(Box::new(Open { client, channel }));
        Ok(session)
    }

    /// Runs one input in model units, of the model's input shape, in row-major order, or
    /// as many as the server's batch with a leading axis; a result for each. Of a model that keeps
    /// states as many as a pass of the plan has run as they would one after another. Waits for
    /// what is being prepared.
    ///
    /// # Errors
    /// [`Error::Misuse`] for inputs that do not fit, or too many: nothing has been
    /// sent and the session stays open. [`Error::Peer`] and [`Error::Transport`], also
    /// those of the preparation since the last call: the session has failed, and further
    /// inputs get the same error.
    pub fn predict(&mut self, values: &[f32], shape: &[usize]) -> Result<Vec<Vec<i64>>> {
        self.run(values, shape, (Kind::Whole, &[]))
    }

    /// As [`Session::predict`], with real numbers `added` to the results, in their units, before a label is
    /// found among them. The client adds them to its shares, so that the server sees nothing of it: with
    /// samples of a Gumbel distribution times T the label is a sample of the softmax of the results over T
    /// (Gumbel, "Statistical theory of extreme values", 1954).
    ///
    /// # Errors
    /// It has the errors of [`Session::predict`], and [`Error::Misuse`] for another number of them than of results, for
    /// some that are more than a quarter of what the shares of results hold, and where no label is revealed or the
    /// results are no shares mod a power of two.
    pub fn predict_with(
        &mut self,
        values: &[f32],
        shape: &[usize],
        added: &[f32],
    ) -> Result<Vec<Vec<i64>>> {
        let added = Zeroizing::new(last_places(&self.plan, added)?);
        self.run(values, shape, (Kind::Whole, &added))
    }

    /// Runs inputs as [`Session::predict`] does, but only for what the model's states become: where
    /// the result would be a label, what leads to it alone is not computed, and the server learns
    /// that nobody wanted it. Else the run is a whole one, whose results are dropped.
    ///
    /// # Errors
    /// The errors of [`Session::predict`].
    pub fn remember(&mut self, values: &[f32], shape: &[usize]) -> Result<()> {
        self.run(values, shape, (Kind::States, &[])).map(drop)
    }

    fn run(
        &mut self,
        values: &[f32],
        shape: &[usize],
        (kind, added): (Kind, &[i64]),
    ) -> Result<Vec<Vec<i64>>> {
        let inputs = Zeroizing::new(quantize(self.plan.graph(), values, shape)?);
        let (count, most) = (inputs.len(), self.plan.settings().batch());
        let pass = self.plan.settings().pass();
        let kind = if count > 1 && pass == Some(count) { kind.pass() } else { kind };
        if count > most && !kind.is_pass() {
            let pass = pass.map(|pass| format!(" or {pass}")).unwrap_or_default();
            let why = format!("this session takes {most}{pass} input(s) at a time, not {count}");
            return Err(Error::misuse(why));
        }
        let outputs =
            self.plan.graph().tensors.get(self.plan.graph().output).map_or(0, |t| t.len());
        if !added.is_empty() && added.len() != outputs * if kind.is_pass() { count } else { most } {
            let why = format!("{} numbers to add to {outputs} results of each input", added.len());
            return Err(Error::misuse(why));
        }
        if let State::Ended(error) = &self.state {
            return Err(error.clone());
        }
        let taken = if kind.is_pass() { count } else { 1 };
        if self.done + taken > self.inputs {
            let (most, done) = (self.inputs, self.done);
            return Err(Error::misuse(format!(
                "this session was opened for {most} inputs, of which {done} are done"
            )));
        }
        let mut open = self.take()?;
        self.idle.ready.store(open.client.ready().saturating_sub(1), Ordering::SeqCst);
        let Open { client, channel } = &mut *open;
        let results =
            client.run(channel, (&inputs, added), kind).inspect_err(|error| self.fail(error))?;
        self.done += taken;
        self.report = client.report(channel);
        self.wait_for_input(open);
        Ok(results)
    }

    /// Prepares one run where there are no threads, and says whether one more can follow before the next input; does nothing, and
    /// says so, where a thread prepares.
    ///
    /// # Errors
    /// [`Error::Peer`] and [`Error::Transport`]: the session has failed.
    pub fn prepare(&mut self) -> Result<bool> {
        let State::Ready(open) = &mut self.state else { return Ok(false) };
        let Open { client, channel } = &mut **open;
        let prepared = client.prepare(channel);
        channel.meter().pause();
        let (ready, more) = (client.ready(), client.prepares());
        prepared.inspect_err(|error| self.fail(error))?;
        self.idle.ready.store(ready, Ordering::SeqCst);
        Ok(more)
    }

    /// Returns the number of runs that are prepared and wait for their inputs.
    pub fn ready(&self) -> usize {
        self.idle.ready.load(Ordering::SeqCst)
    }

    /// Returns a counter that shows [`Session::ready`] without access to the session.
    pub fn watch(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let idle = self.idle.clone();
        move || idle.ready.load(Ordering::SeqCst)
    }

    /// Returns the plan that was verified.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns what the server says of its model.
    pub const fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// What the session cost up to the last result, or all of it once finished. Pauses
    /// between inputs take no time in it.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Says goodbye, with or without inputs left; a run that is being prepared is
    /// completed first. Of a session that has ended it gives the report once more.
    ///
    /// # Errors
    /// [`Error::Peer`] and [`Error::Transport`], of the preparation since the last call
    /// too.
    pub fn finish(&mut self) -> Result<&Report> {
        self.idle.stop.store(true, Ordering::SeqCst);
        if !matches!(self.state, State::Ended(_)) {
            let mut open = self.take()?;
            let Open { client, channel } = &mut *open;
            self.report = client.finish(channel).inspect_err(|error| self.fail(error))?;
            self.fail(&Error::misuse("the session is finished"));
        }
        Ok(&self.report)
    }

    /// Breaks off at once, unless the session has ended.
    pub fn abandon(&mut self) {
        self.idle.stop.store(true, Ordering::SeqCst);
        if !matches!(self.state, State::Ended(_)) {
            // A thread that still prepares ends by itself and drops the connection.
            self.fail(&Error::misuse("the session was given up"));
        }
    }

    /// The client and its channel, once they are back. Until they are returned the
    /// session counts as ended.
    fn take(&mut self) -> Result<Box<Open>> {
        let ended = State::Ended(Error::misuse("the session has ended"));
        let open = match std::mem::replace(&mut self.state, ended) {
            State::Ready(open) => Ok(open),
            State::Preparing(thread) => thread.join().unwrap_or_else(|_| {
                Err(Error::Internal("the preparation panicked; please report it".into()))
            }),
            State::Ended(error) => Err(error),
        };
        open.inspect_err(|error| self.fail(error))
    }

    fn fail(&mut self, error: &Error) {
        self.idle.ready.store(0, Ordering::SeqCst);
        self.state = State::Ended(error.clone());
    }

    /// Fills the store in the background, if there is something to prepare and a thread for it.
    fn wait_for_input(&mut self, mut open: Box<Open>) {
        if host::threads() == 0 || !open.client.prepares() {
            open.channel.meter().pause();
            self.state = State::Ready(open);
            return;
        }
        let idle = self.idle.clone();
        let spawned =
            thread::Builder::new().name("tacit-prepare".into()).spawn(move || open.fill(&idle));
        self.state = match spawned {
            Ok(thread) => State::Preparing(thread),
            Err(e) => State::Ended(Error::transport(format!("cannot start a thread: {e}"))),
        };
    }
}

/// Real numbers in last places of the results of a plan.
fn last_places(plan: &Plan, added: &[f32]) -> Result<Vec<i64>> {
    if plan.settings().reveal != Reveal::Label || !suites::chooses(&plan.graph().suite) {
        let why = "numbers are added to results of which the label is revealed, under suite auto, ufo or comet";
        return Err(Error::misuse(why));
    }
    let output = plan.graph().tensors.get(plan.graph().output);
    let format = output.map(|output| output.format);
    let (scale, bits) = format.map_or((1.0, 1), |format| (format.scale, format.bits));
    let most = 2f64.powi(bits as i32 - 3);
    let place = |real: &f32| {
        let place = (f64::from(*real) / scale).round();
        (place.abs() <= most).then_some(place as i64)
    };
    let places: Option<Vec<i64>> = added.iter().map(place).collect();
    let why = || {
        let most = most * scale;
        format!(
            "numbers to add to results of more than {most:.4}, a quarter of what their shares hold"
        )
    };
    places.ok_or_else(|| Error::misuse(why()))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.idle.stop.store(true, Ordering::SeqCst);
    }
}

impl Open {
    /// Prepares until the next turn is an input's.
    fn fill(mut self: Box<Self>, idle: &Idle) -> Result<Box<Self>> {
        while !idle.stop.load(Ordering::SeqCst) && self.client.prepare(&mut self.channel)? {
            idle.ready.store(self.client.ready(), Ordering::SeqCst);
        }
        self.channel.meter().pause();
        Ok(self)
    }
}
