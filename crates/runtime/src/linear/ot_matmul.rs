//! Linear layers on products by oblivious transfer, which are always preprocessed on a mask: the
//! plan of one step and what the parties do around the products.

use graph::{Rounding, WeightBits};
use he::rlwe::rescale;
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::linear::coefficient::Worker;
use mpc::linear::ot_matmul::{
    self, Asked as AskedProducts, Layer, PreprocessedClient, PreprocessedServer, Source, Weights,
};
use mpc::{Demand, Share};
use pricing::{Unit, Work};
use wire::{Channel, Error, Phase, Result, Role};
use zeroize::Zeroizing;

use crate::step::composed::Composed;
use crate::step::context::{Context, Party, Preprocessing, input};
use crate::step::keys::misuse;
use crate::step::linear::{Exchange, LinearProtocol, Preprocess};
use crate::step::preprocessed::{Asked, Preprocessed};
use crate::step::sliced::{Sliced, truncation};
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource};

/// A linear layer with its rescale.
#[derive(Debug)]
pub struct OtLayer {
    /// The products, which are preprocessed.
    pub layer: Layer,
    /// The bits of a weight.
    pub choice: WeightBits,
    /// The extensions that make products as wide as the sums of them, one after the other.
    pub extensions: Vec<Composed>,
    /// What becomes of the results.
    pub rescale: Rescale,
    /// The rest of an exact rescale.
    pub truncate: Option<Sliced>,
}

/// `(y + bias + addend*skip + 2^(shift-1)) >> shift`.
#[derive(Clone, Copy, Debug)]
pub struct Rescale {
    /// Number of low bits that are dropped.
    pub shift: u32,
    /// How the rescale rounds.
    pub rounding: Rounding,
    /// The multiplier of a second tensor that is added, if there is one.
    pub addend: Option<i64>,
    /// Width of the results, in bits.
    pub out_bits: u32,
}

/// The server's weights of a layer, encoded.
pub(crate) struct OtWeights {
    weights: Weights,
    /// The bias of each channel, with the half unit that turns a floor into rounding.
    bias: Zeroizing<Vec<i64>>,
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

impl OtLayer {
    /// `layer`, whose products are extended before they are summed up if they are narrower
    /// than the results, in one step or to the width of a `stage` first; `spare` says that they
    /// have a bit to spare then.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that no protocol has.
    pub fn new(
        layer: Layer,
        choice: WeightBits,
        rescale: Rescale,
        (headroom, stage): (bool, Option<u32>),
    ) -> Result<Self> {
        let (mut bits, wide) = (layer.product().bits(), rescale.bits());
        let count = layer.product().outputs();
        let mut extensions = Vec::new();
        for to in stage.into_iter().chain([wide]).filter(|to| *to <= wide) {
            if bits < to {
                extensions.push(extension(count, bits, to, headroom)?);
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

    /// The server's weights `[O, I, ..]` and biases.
    pub(crate) fn weights(&self, weight: &[i32], bias: &[i64]) -> Result<OtWeights> {
        let half = self.rescale.half();
        let bias = Zeroizing::new(bias.iter().map(|bias| bias + half).collect());
        Ok(OtWeights { weights: self.layer.weights(weight, &self.choice)?, bias })
    }

    /// How the layer runs, for people.
    fn described(&self) -> String {
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

    /// Products that were preprocessed, of an input.
    fn products(
        &self,
        cx: &mut Context<'_, '_>,
        preprocessed: Preprocessed,
        x: &Share,
    ) -> Result<Share> {
        match cx.party {
            Party::Client { .. } => {
                let preprocessed: PreprocessedClient = preprocessed.take()?;
                preprocessed.run(cx.channel, &self.layer, x)
            }
            Party::Server { weights, threads, .. } => {
                let weights: &OtWeights = weights.of(cx.node)?;
                let preprocessed: PreprocessedServer = preprocessed.take()?;
                preprocessed.run(cx.channel, &self.layer, &weights.weights, x, threads)
            }
        }
    }

    /// Results without their rescale: images, bias and addend; local.
    fn results(
        &self,
        cx: &Context<'_, '_>,
        products: &Share,
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
        if let Party::Server { weights, .. } = cx.party {
            let bias = &weights.of::<OtWeights>(cx.node)?.bias;
            let channels = self.layer.channels();
            let plane = self.layer.outputs() / (self.layer.images() * channels).max(1);
            let all = bias.iter().flat_map(|bias| std::iter::repeat_n(*bias as u64, plane));
            let sums = results.words().iter().zip(all.cycle());
            let sums = sums.map(|(word, bias)| word.wrapping_add(bias)).collect();
            results = Share::new(sums, bits);
        }
        Ok(results)
    }

    /// The rescale that needs no OTs.
    fn rescaled(&self, role: Role, results: Share) -> Result<Share> {
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

    /// Whether the correlations of the preprocessing are made part by part.
    pub(crate) fn feeds_itself(&self) -> bool {
        self.layer.demands().len() > 1
    }
}

impl LinearProtocol for OtLayer {
    fn operator(&self) -> &'static str {
        if self.layer.is_fully_connected() { "fully connected" } else { "convolution" }
    }

    fn describe(&self) -> String {
        self.described()
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let weights = source.take()?;
        self.weights(&weights.weight, &weights.bias).map(|ready| Some(Encoded::new(ready)))
    }

    fn is_preprocessed(&self) -> bool {
        true
    }

    fn preprocess(&self) -> Option<&dyn Preprocess> {
        Some(self)
    }

    fn protocols(&self) -> Vec<&Sliced> {
        self.extensions.iter().map(|composed| &composed.sliced).chain(&self.truncate).collect()
    }

    fn spent(&self) -> Spent {
        let elements = self.layer.inputs() + self.layer.product().outputs();
        let work = Work::of(Unit::Local, elements as f64);
        Spent { cost: self.layer.cost(), work }
    }

    fn memory(&self) -> u64 {
        self.held_bytes() as u64
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let missing =
            || Error::Internal("a layer that was not preprocessed; please report it".into());
        let preprocessed = cx.preprocessed.take().ok_or_else(missing)?;
        let mut products = self.products(cx, preprocessed, input(&inputs, 0)?)?;
        for extension in &self.extensions {
            products = extension.run(cx.channel, vec![products], cx.feed)?;
        }
        let y = self.results(cx, &products, inputs.get(1))?;
        let y = self.rescaled(cx.channel.role(), y)?;
        drop(inputs);
        Sliced::run_after(self.truncate.as_ref(), cx.channel, y, cx.feed)
    }
}

impl Preprocess for OtLayer {
    fn exchange(&self) -> Exchange {
        Exchange::ObliviousTransfer
    }

    fn asks_together(&self) -> bool {
        !self.feeds_itself()
    }

    fn parts(&self) -> Vec<(Demand, [Spent; 2])> {
        let costs = self.layer.preprocess_costs().into_iter().zip(self.layer.works());
        let spent = costs
            .map(|([asked, cost], work)| [Spent::sending(asked), Spent::sending(cost).and(work)]);
        self.layer.demands().into_iter().zip(spent).collect()
    }

    fn held_bytes(&self) -> usize {
        8 * (self.layer.inputs() + self.layer.product().outputs())
    }

    fn ask(&self, cx: &mut Preprocessing<'_>) -> Result<Asked> {
        let demand = self.layer.demands().into_iter().sum();
        let correlations = cx.correlations.split(cx.channel.role(), &demand)?;
        let weights = match cx.party {
            Party::Client { .. } => None,
            Party::Server { weights, .. } => Some(&weights.of::<OtWeights>(cx.node)?.weights),
        };
        let asked = ot_matmul::ask(cx.channel, self.layer.product(), 0, weights, correlations)?;
        Ok(Asked::new(asked))
    }

    fn finish(&self, cx: &mut Preprocessing<'_>, asked: Option<Asked>) -> Result<Preprocessed> {
        let index = cx.index;
        let source = &mut *cx.source;
        let feed = &mut |channel: &mut Channel, demand: &Demand| {
            let correlations = source.prepare(channel, demand)?;
            channel.enter(Phase::Preprocess, Some(index));
            Ok(correlations)
        };
        let source = match asked {
            None => Source::Correlations(feed),
            Some(asked) => Source::Asked(Some(asked.take::<AskedProducts>()?)),
        };
        match cx.party {
            Party::Client { threads, .. } => {
                let worker = &mut Worker { rng: cx.rng, threads };
                let preprocessed =
                    PreprocessedClient::prepare(cx.channel, &self.layer, source, worker)?;
                Ok(Preprocessed::new(preprocessed))
            }
            Party::Server { weights, threads, .. } => {
                let weights = &weights.of::<OtWeights>(cx.node)?.weights;
                let preprocessed =
                    PreprocessedServer::prepare(cx.channel, &self.layer, weights, source, threads)?;
                Ok(Preprocessed::new(preprocessed))
            }
        }
    }
}

/// With a bit to spare, half of the positive range makes every value positive.
fn extension(count: usize, bits: u32, out_bits: u32, headroom: bool) -> Result<Composed> {
    let raised = if headroom { 1i64 << bits.saturating_sub(2) } else { 0 };
    let sign = if headroom { Sign::NonNegative } else { Sign::Unknown };
    let radix = Radix::leanest(count, bits, out_bits);
    let sliced = Sliced::new(count, |count| Extend::new(count, bits, out_bits, sign, radix))?;
    Ok(Composed { before: raised, after: -raised, ..Composed::from(sliced) })
}
