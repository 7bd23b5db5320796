//! Both parties of a bench.

use mpc::{Share, open};
use ot::{ReceiverBatch, SenderBatch};
use ring::{Random, Seed};
use serde::Serialize;
use wire::{Channel, Error, Packed, Phase, Result, Role, Segment};

use super::operation::Operation;
use super::task::Task;
use crate::client::random;
use crate::execute::{self, Party, Prepared};
use crate::hello::{self, Agreed};
use crate::keys::{ClientKeys, ServerKeys};
use crate::offline::Offline;
use crate::report::Report;

/// Transfers that are opened to be checked.
const SAMPLE: usize = 1 << 14;
/// Transfers that are held at a time.
const PIECE: usize = 1 << 16;

/// Server to client, after the measurement: both pads of some transfers.
type Pads = Packed<0x3e>;

/// An operation, ready to be measured by a client.
pub struct Bench(Task);

/// An operation with what the server prepares once.
pub struct Host {
    task: Task,
    prepared: Option<Prepared>,
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
    /// Largest difference from it in the last place; of transfers the number that
    /// were wrong.
    pub max_error: u64,
}

impl Bench {
    /// Plans `operation`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes and widths that no protocol has.
    pub fn new(operation: Operation) -> Result<Self> {
        Ok(Self(Task::new(operation)?))
    }

    /// Runs the client's side and checks the result.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn run(&self, channel: &mut Channel) -> Result<Measured> {
        let task = &self.0;
        let mut rng = random()?;
        let agreed = hello::client_knows(channel, &mut rng, &task.digest)?;
        let (values, share) = task.draw(&input_seed(&agreed), Role::Client);
        let keys = ClientKeys::setup(channel, &task.plan, &agreed, &mut rng)?;
        let mut offline = Offline::setup(channel, &mut rng, &agreed, task.plan.settings().ot)?;
        let mut party = Party::Client { keys: &keys, input: &[] };
        let result = evaluate(channel, task, &mut party, share, &mut offline, &mut rng)?;
        channel.enter(Phase::Setup, None);
        let report = Report::metered(&task.plan, 1, channel.meter());
        let errors = match result {
            Outcome::Values(result) => {
                let words = open::to_client(channel, &result)?;
                differences(task, &words, &task.clear(&values)?)?
            }
            Outcome::Received(batch) => wrong_transfers(channel, batch)?,
            Outcome::Sent(_) => return Err(Error::misuse("a client that sends transfers")),
        };
        Ok(Measured {
            operation: task.operation.clone(),
            report,
            checked: errors.len(),
            max_error: errors.into_iter().max().unwrap_or(0),
        })
    }
}

impl Host {
    /// Plans `operation` and transforms its weights, if it has any.
    ///
    /// # Errors
    /// As [`Bench::new`].
    pub fn new(operation: Operation) -> Result<Self> {
        let task = Task::new(operation)?;
        let prepared = task.model.as_ref().map(|model| Prepared::new(&task.plan, model));
        Ok(Self { prepared: prepared.transpose()?, task })
    }

    /// Runs the server's side.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn run(&self, channel: &mut Channel) -> Result<Report> {
        let task = &self.task;
        let mut rng = random()?;
        let agreed = hello::server_knows(channel, &mut rng, &task.digest)?;
        let (_, share) = task.draw(&input_seed(&agreed), Role::Server);
        let keys = ServerKeys::setup(channel, &task.plan, &agreed)?;
        let mut offline = Offline::setup(channel, &mut rng, &agreed, task.plan.settings().ot)?;
        let none = Prepared::default();
        let prepared = self.prepared.as_ref().unwrap_or(&none);
        let mut party = Party::Server { keys: &keys, prepared };
        let result = evaluate(channel, task, &mut party, share, &mut offline, &mut rng)?;
        let report = Report::metered(&task.plan, 1, channel.meter());
        match result {
            Outcome::Values(result) => drop(open::to_client(channel, &result)?),
            Outcome::Sent(batch) => show_transfers(channel, batch)?,
            Outcome::Received(_) => return Err(Error::misuse("a server that receives transfers")),
        }
        channel.flush()?;
        Ok(report)
    }
}

/// What an operation leaves to be checked.
enum Outcome {
    Values(Share),
    /// The first of the transfers, the ends that the server and the client hold.
    Sent(SenderBatch),
    Received(ReceiverBatch),
}

/// Runs the one step, or makes the transfers.
fn evaluate(
    channel: &mut Channel,
    task: &Task,
    party: &mut Party<'_>,
    share: Share,
    offline: &mut Offline,
    rng: &mut Random,
) -> Result<Outcome> {
    let Some(step) = task.plan.steps().first() else {
        return transfers(channel, task.transfers(), offline);
    };
    let mut pads = offline.prepare(channel, &step.need())?;
    channel.enter(Phase::Online, Some(0));
    let now = pads.split(channel.role(), &step.need())?;
    execute::apply(channel, step, party, vec![share], now, rng).map(Outcome::Values)
}

/// Makes `count` transfers and keeps the first of them.
fn transfers(channel: &mut Channel, count: usize, offline: &mut Offline) -> Result<Outcome> {
    channel.enter(Phase::Offline, None);
    let (sender, receiver) = offline.sources();
    match channel.role() {
        Role::Client => receiver.reserve(count),
        Role::Server => sender.reserve(count),
    }
    let mut sample = None;
    for piece in pieces(count) {
        let made = match channel.role() {
            Role::Client => {
                receiver.extend(channel, piece)?;
                Outcome::Received(receiver.take(piece)?.split_off(SAMPLE))
            }
            Role::Server => {
                sender.extend(channel, piece)?;
                Outcome::Sent(sender.take(piece)?.split_off(SAMPLE))
            }
        };
        sample.get_or_insert(made);
    }
    sample.ok_or_else(|| Error::misuse("a bench of no transfers"))
}

/// What `count` transfers cost.
#[cfg(test)]
pub(super) fn transfers_cost(source: ot::Source, count: usize) -> wire::Cost {
    let mut supply = ot::Supply::new(source, Role::Server);
    supply.reserve(count);
    let cost = |piece| {
        let cost = supply.extend(piece);
        supply.take(piece);
        cost
    };
    pieces(count).map(cost).collect()
}

fn pieces(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(PIECE).map(move |done| PIECE.min(count - done))
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

fn show_transfers(channel: &mut Channel, batch: SenderBatch) -> Result<()> {
    let pairs = batch.random_pairs(64);
    channel.send(&Pads::one(pairs.into_iter().flatten().collect(), 64))
}

/// 1 for each transfer whose pad is not the one of the pair that was chosen.
fn wrong_transfers(channel: &mut Channel, batch: ReceiverBatch) -> Result<Vec<u64>> {
    let (choices, pads) = batch.random(64);
    let pairs: Pads = channel.receive(&vec![Segment { count: 2 * choices.len(), bits: 64 }])?;
    let pairs = pairs.concat();
    let (pairs, _) = pairs.as_chunks::<2>();
    let chosen = choices
        .iter()
        .zip(pairs)
        .map(|(choice, [zero, one])| ring::word::select(*choice, *one, *zero));
    Ok(chosen.zip(pads).map(|(want, got)| u64::from(want != got)).collect())
}
