//! Linear layers on products by transfers, always prepared on a mask: one step's plan and
//! what the parties do around the products.

use graph::{Rounding, WeightBits};
use he::rlwe::rescale;
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::linear::coefficient::Worker;
use mpc::linear::oblivious::{self, Asked, ClientAhead, Layer, ServerAhead, Source, Weights};
use mpc::{Need, Pads, Share};
use ring::Random;
use wire::{Channel, Error, Phase, Result, Role};
use zeroize::Zeroizing;

use crate::execute::Party;
use crate::keys::misuse;
use crate::nonlinear::{Nonlinear, Sliced};
use crate::offline::Offline;
use crate::spent::Spent;
use crate::steps::{Fitted, Step, truncation};

/// A linear layer with its rescale.
#[derive(Debug)]
pub struct TransferStep {
    /// The products, which is what is prepared.
    pub layer: Layer,
    /// The bits of a weight.
    pub choice: WeightBits,
    /// Make products as wide as the sums of them that follow, one after the other.
    pub extensions: Vec<Fitted>,
    /// What becomes of the results.
    pub rescale: Rescale,
    /// The rest of an exact rescale.
    pub truncate: Option<Sliced>,
}

/// `(y + bias + addend*skip + 2^(shift-1)) >> shift`.
#[derive(Clone, Copy, Debug)]
pub struct Rescale {
    /// Low bits dropped.
    pub shift: u32,
    /// How.
    pub rounding: Rounding,
    /// Multiplier of a second tensor.
    pub addend: Option<i64>,
    /// Width of what is left.
    pub out_bits: u32,
}

/// What the server has of a layer.
pub(crate) struct TransferWeights {
    weights: Weights,
    /// For each channel, with the half unit that turns a floor into rounding.
    bias: Zeroizing<Vec<i64>>,
}

/// One prepared layer.
pub(crate) enum TransferAhead {
    Client(ClientAhead),
    Server(ServerAhead),
}

impl Rescale {
    /// Width of the results that it is right for.
    pub(crate) fn bits(&self) -> u32 {
        self.out_bits + self.shift
    }

    fn half(&self) -> i64 {
        match (self.rounding, self.shift) {
            (Rounding::Stochastic, _) | (_, 0) => 0,
            (Rounding::Exact, shift) => 1 << (shift - 1),
        }
    }
}

impl TransferStep {
    /// `layer`, whose products are extended before they are summed up if they are narrower
    /// than the results, in one step or to the width of a `stage` first; `spare` says that they
    /// have a bit to spare then.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that no protocol has.
    pub(crate) fn new(
        layer: Layer,
        choice: WeightBits,
        rescale: Rescale,
        (spare, stage): (bool, Option<u32>),
    ) -> Result<Self> {
        let (mut bits, wide) = (layer.product().bits(), rescale.bits());
        let count = layer.product().outputs();
        let mut extensions = Vec::new();
        for to in stage.into_iter().chain([wide]).filter(|to| *to <= wide) {
            if bits < to {
                extensions.push(extension(count, bits, to, spare)?);
                bits = to;
            }
        }
        let truncate = match (rescale.rounding, rescale.shift) {
            (Rounding::Stochastic, _) | (_, 0) => None,
            (Rounding::Exact, drop) => {
                let (count, out) = (layer.outputs(), rescale.out_bits);
                Some(truncation(count, wide, drop, out, Radix::fastest(count, drop))?)
            }
        };
        Ok(Self { layer, choice, extensions, rescale, truncate })
    }

    /// The protocols that run online on transfers of their own, in order.
    pub(crate) fn sliced(&self) -> impl Iterator<Item = &Sliced> {
        self.extensions.iter().map(|fitted| &fitted.sliced).chain(&self.truncate)
    }

    /// The pads of each part of the preparation, and what choices and corrections take.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Need, [Spent; 2])> {
        let costs = self.layer.ahead_costs().into_iter().zip(self.layer.efforts());
        let spent = costs.map(|([asked, cost], effort)| {
            [Spent::sending(asked), Spent::sending(cost).and(effort)]
        });
        self.layer.needs().into_iter().zip(spent)
    }

    /// The server's weights `[O, I, ..]` and biases.
    pub(crate) fn weights(&self, weight: &[i32], bias: &[i64]) -> Result<TransferWeights> {
        let half = self.rescale.half();
        let bias = Zeroizing::new(bias.iter().map(|bias| bias + half).collect());
        Ok(TransferWeights { weights: self.layer.weights(weight, &self.choice)?, bias })
    }

    /// The protocol, for people.
    pub(crate) fn describe(&self) -> String {
        let product = self.layer.product();
        let domain = match self.layer.tile() {
            Some(tile) => format!("Winograd F({tile}x{tile}, 3x3), "),
            None => String::new(),
        };
        let bits = self.choice.importance.len();
        let mut all = format!("{domain}{bits}-bit weights by OT mod 2^{}", product.bits());
        if let Some(extension) = self.extensions.first() {
            let known = if extension.before == 0 { "" } else { ", sign known" };
            let steps = if self.extensions.len() > 1 { " in two steps" } else { "" };
            all += &format!(" + extension to {}{steps}{known}", self.rescale.bits());
        }
        if self.truncate.is_some() {
            all += " + exact truncation";
        }
        all
    }

    /// Products that were prepared, of an input.
    pub(crate) fn products(
        &self,
        channel: &mut Channel,
        ahead: TransferAhead,
        party: &Party<'_>,
        step: &Step,
        x: &Share,
    ) -> Result<Share> {
        match (ahead, party) {
            (TransferAhead::Client(ahead), Party::Client { .. }) => {
                ahead.run(channel, &self.layer, x)
            }
            (TransferAhead::Server(ahead), Party::Server { prepared, threads, .. }) => {
                let weights = &prepared.transfer_weights(step)?.weights;
                ahead.run(channel, &self.layer, weights, x, *threads)
            }
            _ => Err(Error::misuse("a layer prepared for the other party")),
        }
    }

    /// Results without their rescale: images, bias and addend; local.
    pub(crate) fn results(
        &self,
        products: &Share,
        party: &Party<'_>,
        step: &Step,
        addend: Option<&Share>,
    ) -> Result<Share> {
        let bits = self.rescale.bits();
        let mut results = self.layer.results(products)?.narrow(bits)?;
        match (self.rescale.addend, addend) {
            (None, None) => {}
            (Some(factor), Some(addend)) if addend.len() == results.len() => {
                results = results.add_scaled(&addend.narrow(bits)?, factor);
            }
            _ => return Err(Error::misuse("an addend that does not fit its layer")),
        }
        if let Party::Server { prepared, .. } = party {
            let bias = &prepared.transfer_weights(step)?.bias;
            let channels = self.layer.channels();
            let plane = self.layer.outputs() / (self.layer.images() * channels).max(1);
            let all = bias.iter().flat_map(|bias| std::iter::repeat_n(*bias as u64, plane));
            let sums = results.words().iter().zip(all.cycle());
            let sums = sums.map(|(word, bias)| word.wrapping_add(bias)).collect();
            results = Share::new(sums, bits);
        }
        Ok(results)
    }

    /// The rescale that needs no transfers.
    pub(crate) fn rescaled(&self, role: Role, results: Share) -> Result<Share> {
        let Rescale { rounding, shift, out_bits, .. } = self.rescale;
        if rounding == Rounding::Exact || shift == 0 {
            return Ok(results);
        }
        let words = match role {
            Role::Client => rescale::client(results.words(), results.bits(), out_bits),
            Role::Server => {
                // As a mask: what it is taken off.
                let masks = results.words().iter().map(|word| word.wrapping_neg());
                let masks = Zeroizing::new(masks.collect::<Vec<_>>());
                rescale::server(&masks, results.bits(), out_bits)
            }
        };
        Ok(Share::new(words.map_err(misuse)?, out_bits))
    }

    /// Sends or receives the choices of a preparation in one part.
    pub(crate) fn ask(
        &self,
        channel: &mut Channel,
        (step, index): (&Step, usize),
        party: &Party<'_>,
        pads: &mut Pads,
    ) -> Result<Asked> {
        channel.enter(Phase::Offline, Some(index));
        let pads = pads.split(channel.role(), &step.mask_need())?;
        let weights = match party {
            Party::Client { .. } => None,
            Party::Server { prepared, .. } => Some(&prepared.transfer_weights(step)?.weights),
        };
        oblivious::ask(channel, self.layer.product(), 0, weights, pads)
    }

    /// Prepares the layer after its choices, which are made here where there are none yet.
    pub(crate) fn prepare(
        &self,
        channel: &mut Channel,
        (step, index): (&Step, usize),
        party: &Party<'_>,
        (asked, offline): (Option<Asked>, &mut Offline),
        rng: &mut Random,
    ) -> Result<TransferAhead> {
        let feed = &mut |channel: &mut Channel, need: &Need| {
            let pads = offline.prepare(channel, need)?;
            channel.enter(Phase::Offline, Some(index));
            Ok(pads)
        };
        channel.enter(Phase::Offline, Some(index));
        let source = match self.feeds_itself() {
            true => Source::Pads(feed),
            false => Source::Asked(asked),
        };
        match party {
            Party::Client { threads, .. } => {
                let worker = &mut Worker { rng, threads: *threads };
                let ahead = ClientAhead::prepare(channel, &self.layer, source, worker)?;
                Ok(TransferAhead::Client(ahead))
            }
            Party::Server { prepared, threads, .. } => {
                let weights = &prepared.transfer_weights(step)?.weights;
                let ahead = ServerAhead::prepare(channel, &self.layer, weights, source, *threads)?;
                Ok(TransferAhead::Server(ahead))
            }
        }
    }

    /// Whether the pads of the preparation are made part by part.
    pub(crate) fn feeds_itself(&self) -> bool {
        self.layer.needs().len() > 1
    }

    /// Bytes that a party holds of a prepared layer.
    pub(crate) fn held_bytes(&self) -> usize {
        8 * (self.layer.inputs() + self.layer.product().outputs())
    }
}

/// With a bit to spare, half of the positive range makes every value positive.
fn extension(count: usize, bits: u32, out_bits: u32, spare: bool) -> Result<Fitted> {
    let raised = if spare { 1i64 << bits.saturating_sub(2) } else { 0 };
    let sign = if spare { Sign::NonNegative } else { Sign::Unknown };
    let radix = Radix::leanest(count, bits, out_bits);
    let sliced = Sliced::new(count, |count| {
        Extend::new(count, bits, out_bits, sign, radix).map(Nonlinear::Extend)
    })?;
    Ok(Fitted { narrow: None, before: raised, sliced, after: -raised, transpose: None })
}
