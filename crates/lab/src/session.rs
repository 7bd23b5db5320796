//! Both parties of a bench.

use mpc::open;
use ot::{SessionId, Setup};
use pricing::Work;
use ring::{Random, Seed};
use runtime::parts::{
    self, Agreed, CorrelationSource, EncodedModel, KeyCache, client_knows, random, server_knows,
};
use runtime::{ClientKeys, Endpoint, Memory, Party, Report, ServerKeys, Settings};
use serde::Serialize;
use wire::{Channel, Error, Phase, Result, Role};

use crate::cots;
use crate::operation::Operation;
use crate::task::Task;

/// An operation, ready to be measured by a client.
pub struct Bench {
    task: Task,
    threads: usize,
}

/// An operation with what the server prepares once.
pub struct Host {
    task: Task,
    threads: usize,
    prepared: Option<EncodedModel>,
}

/// What the client saw.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// What was measured.
    #[serde(flatten)]
    pub operation: Operation,
    /// What it cost.
    #[serde(flatten)]
    pub report: Report,
    /// Results that were compared with the computation in the clear.
    pub checked: usize,
    /// Largest difference from it in the last place; of OTs the number that
    /// were wrong.
    pub max_error: u64,
    /// Largest difference of exact results from the real function, in last places; of
    /// functions of transformers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_error: Option<f64>,
}

impl Bench {
    /// Plans `operation`; of `settings` the source of OTs counts. To run in so many
    /// `threads`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes and widths that no protocol has.
    pub fn new(operation: Operation, settings: Settings, threads: usize) -> Result<Self> {
        Ok(Self { task: Task::new(operation, settings)?, threads })
    }

    /// Runs the client's side and checks the result.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn run(&self, channel: &mut Channel) -> Result<Measured> {
        let (task, threads) = (&self.task, self.threads);
        let mut rng = random()?;
        let agreed = client_knows(channel, &mut rng, &task.digest)?;
        let (values, shares) = task.draw(&input_seed(&agreed), Role::Client);
        let keys = ClientKeys::setup(channel, &task.plan, &agreed, None, &mut rng)?;
        let source = &mut self.task.correlation_source(channel, &mut rng, &agreed, threads)?;
        let (report, errors) = if let Some(count) = task.cots() {
            source.finish(channel)?;
            let (_, receiving) = source.sources()?;
            let sample = cots::receive(channel, receiving, count)?;
            (metered(channel, task), cots::wrong(channel, sample)?)
        } else {
            let party = Party::Client { keys: &keys, input: &[], added: &[], threads };
            let memory = &mut Memory::default();
            let end = &mut Endpoint { channel, party, source, rng: &mut rng, memory };
            let result = parts::run_shares(end, &task.plan, shares)?;
            let report = metered(channel, task);
            let words = open::to_client(channel, &result)?;
            (report, differences(task, &words, &task.clear(&values)?)?)
        };
        Ok(Measured {
            operation: task.operation.clone(),
            report,
            checked: errors.len(),
            max_error: errors.into_iter().max().unwrap_or(0),
            real_error: task.real_error(&values),
        })
    }
}

impl Host {
    /// Plans `operation` and transforms its weights, if it has any.
    ///
    /// # Errors
    /// As [`Bench::new`].
    pub fn new(operation: Operation, settings: Settings, threads: usize) -> Result<Self> {
        let task = Task::new(operation, settings)?;
        let prepared = task.model.clone().map(|model| EncodedModel::new(&task.plan, model));
        Ok(Self { prepared: prepared.transpose()?, task, threads })
    }

    /// Runs the server's side.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn run(&self, channel: &mut Channel) -> Result<Report> {
        let (task, threads) = (&self.task, self.threads);
        let mut rng = random()?;
        let agreed = server_knows(channel, &mut rng, &task.digest)?;
        let (_, shares) = task.draw(&input_seed(&agreed), Role::Server);
        let keys = ServerKeys::setup(channel, &task.plan, &agreed, &KeyCache::default())?;
        let source = &mut self.task.correlation_source(channel, &mut rng, &agreed, threads)?;
        let report = if let Some(count) = task.cots() {
            source.finish(channel)?;
            let (sending, _) = source.sources()?;
            let sample = cots::send(channel, sending, count)?;
            let report = metered(channel, task);
            cots::show(channel, sample)?;
            report
        } else {
            let none = EncodedModel::default();
            let prepared = self.prepared.as_ref().unwrap_or(&none);
            let party = Party::Server { keys: &keys, weights: prepared.weights(), threads };
            let memory = &mut Memory::default();
            let end = &mut Endpoint { channel, party, source, rng: &mut rng, memory };
            let result = parts::run_shares(end, &task.plan, shares)?;
            let report = metered(channel, task);
            open::to_client(channel, &result)?;
            report
        };
        channel.flush()?;
        Ok(report)
    }
}

impl Task {
    /// Base oblivious transfers of a measurement but for their last flight; correlations take so
    /// many threads.
    fn correlation_source(
        &self,
        channel: &mut Channel,
        rng: &mut Random,
        agreed: &Agreed,
        threads: usize,
    ) -> Result<CorrelationSource> {
        let sourcing = self.plan.settings().sourcing();
        let setup = Setup::new(SessionId(agreed.session), sourcing);
        let mut source = CorrelationSource::begin(channel, rng, setup)?;
        source.set_threads(threads);
        Ok(source)
    }
}

/// Returns the work of `operation` part by part, messages included, as a plan has it.
///
/// # Errors
/// As [`Bench::new`].
pub fn work_by_phase(operation: Operation, settings: Settings) -> Result<Vec<(Phase, Work)>> {
    let task = Task::new(operation, settings)?;
    Ok(parts::work_by_phase(&task.plan))
}

/// What was counted so far; what follows is not the operation's.
fn metered(channel: &mut Channel, task: &Task) -> Report {
    channel.enter(Phase::Setup, None);
    Report::metered(&task.plan, 1, channel.meter())
}

/// The public seed of the inputs and their shares. They are drawn in the setup, so that
/// the time for it is not the operation's.
fn input_seed(agreed: &Agreed) -> Seed {
    let mut seed = Seed([0; 16]);
    seed.0.iter_mut().zip(agreed.session).for_each(|(to, from)| *to = from);
    seed
}

fn differences(task: &Task, words: &[u64], wanted: &[i64]) -> Result<Vec<u64>> {
    if words.len() != wanted.len() {
        let (got, want) = (words.len(), wanted.len());
        return Err(Error::misuse(format!("{got} results where {want} were expected")));
    }
    let pairs = words.iter().zip(wanted);
    Ok(pairs.map(|(word, want)| task.output.read(*word).abs_diff(*want)).collect())
}
