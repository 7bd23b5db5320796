//! Both parties of a bench.

use mpc::{Cots, Share, open};
use ring::{Random, Seed};
use serde::Serialize;
use wire::{Channel, Error, Packed, Phase, Result, Role, Segment};

use super::operation::Operation;
use super::task::Task;
use crate::client::random;
use crate::execute::{self, Party, Prepared};
use crate::hello::{self, Agreed};
use crate::keys::{ClientKeys, ServerKeys};
use crate::report::Report;

/// Transfers that are opened to be checked.
const SAMPLE: usize = 1 << 14;

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
        let mut cots = correlate(channel, task, &agreed, &mut rng)?;
        let mut party = Party::Client { keys: &keys, input: &[] };
        let result = evaluate(channel, task, &mut party, share, &mut cots, &mut rng)?;
        channel.enter(Phase::Setup, None);
        let report = Report::metered(&task.plan, 1, channel.meter());
        let errors = match result {
            Some(result) => {
                let words = open::to_client(channel, &result)?;
                differences(task, &words, &task.clear(&values)?)?
            }
            None => wrong_transfers(channel, cots)?,
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
        let mut cots = correlate(channel, task, &agreed, &mut rng)?;
        let none = Prepared::default();
        let prepared = self.prepared.as_ref().unwrap_or(&none);
        let mut party = Party::Server { keys: &keys, prepared };
        let result = evaluate(channel, task, &mut party, share, &mut cots, &mut rng)?;
        let report = Report::metered(&task.plan, 1, channel.meter());
        match result {
            Some(result) => drop(open::to_client(channel, &result)?),
            None => show_transfers(channel, cots)?,
        }
        channel.flush()?;
        Ok(report)
    }
}

fn correlate(
    channel: &mut Channel,
    task: &Task,
    agreed: &Agreed,
    rng: &mut Random,
) -> Result<Cots> {
    let (mut sender, mut receiver) =
        ot::setup_both(channel, rng, &ot::SessionId(agreed.session), ot::Source::SoftSpoken4)?;
    execute::correlations(channel, task.need(), &mut sender, &mut receiver)
}

/// Runs the one step, if there is one.
fn evaluate(
    channel: &mut Channel,
    task: &Task,
    party: &mut Party<'_>,
    share: Share,
    cots: &mut Cots,
    rng: &mut Random,
) -> Result<Option<Share>> {
    let Some(step) = task.plan.steps().first() else {
        return Ok(None);
    };
    channel.enter(Phase::Online, Some(0));
    let now = cots.split(channel.role(), step.need())?;
    execute::apply(channel, step, party, vec![share], now, rng).map(Some)
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

fn show_transfers(channel: &mut Channel, mut cots: Cots) -> Result<()> {
    let pairs = cots.sending.split_off(SAMPLE).random_pairs(64);
    channel.send(&Pads::one(pairs.into_iter().flatten().collect(), 64))
}

/// 1 for each transfer whose pad is not the one of the pair that was chosen.
fn wrong_transfers(channel: &mut Channel, mut cots: Cots) -> Result<Vec<u64>> {
    let (choices, pads) = cots.receiving.split_off(SAMPLE).random(64);
    let pairs: Pads = channel.receive(&vec![Segment { count: 2 * choices.len(), bits: 64 }])?;
    let pairs = pairs.concat();
    let (pairs, _) = pairs.as_chunks::<2>();
    let chosen = choices
        .iter()
        .zip(pairs)
        .map(|(choice, [zero, one])| ring::word::select(*choice, *one, *zero));
    Ok(chosen.zip(pads).map(|(want, got)| u64::from(want != got)).collect())
}
