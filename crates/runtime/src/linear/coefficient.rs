//! Linear layers packed into coefficients, with their rescale.

use graph::{Conv, Embedding, Linear, Rounding};
use mpc::compare::Radix;
use mpc::linear::coefficient::{
    self, ClientAsked, Layer, PreprocessedClient, PreprocessedServer, ServerAsked, ServerWeights,
    Worker,
};
use mpc::{Demand, Share};
use pricing::equivalent::LOCAL_OF_CLEAR_MULTIPLICATION;
use pricing::{Unit, Work};
use wire::{Error, Result, Role};
use zeroize::Zeroizing;

use crate::step::context::{Context, Party, Preprocessing, input};
use crate::step::keys::KeyDemand;
use crate::step::linear::{Exchange, LinearProtocol, Preprocess, Sooner};
use crate::step::preprocessed::{Asked, Preprocessed};
use crate::step::sliced::{Sliced, reduction, truncation};
use crate::step::spent::Spent;
use crate::step::weights::{Encoded, WeightSource, rounding_term};

mod sooner;

/// A linear layer: products under encryption, then the exact truncation if asked.
#[derive(Debug)]
pub struct CoefficientLayer {
    /// Whether it runs on a mask before, in one exchange with all others that do.
    pub preprocessed: bool,
    /// For the lookup of a table: the number of its rows, and how many positions in it one input
    /// has. Each position stands for a vector of zeros with a one.
    pub positions: Option<[usize; 2]>,
    /// The homomorphic part.
    pub layer: Layer,
    /// The rest of an exact rescale.
    pub truncate: Option<Sliced>,
}

impl CoefficientLayer {
    /// Plans `linear` for outputs of `out_bits`, of `batch` inputs at a time.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold the precision.
    pub fn new(linear: &Linear, out_bits: u32, radix: Radix, batch: usize) -> Result<Self> {
        Self::of(Layer::new(linear, out_bits, batch)?, linear, out_bits, radix)
    }

    /// Plans `linear` for outputs of `out_bits`, of one input at a time, with its inputs folded as at
    /// `place` (see [`Layer::folded`]).
    ///
    /// # Errors
    /// [`Error::Misuse`] for a place that the layer does not have.
    pub fn folded(linear: &Linear, out_bits: u32, radix: Radix, place: usize) -> Result<Self> {
        Self::of(Layer::folded(linear, out_bits, 1, place)?, linear, out_bits, radix)
    }

    /// Plans `linear` in this `layer` of it.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that no truncation has.
    pub(crate) fn of(layer: Layer, linear: &Linear, out_bits: u32, radix: Radix) -> Result<Self> {
        let truncate = match linear.rounding {
            Rounding::Stochastic => None,
            Rounding::Exact => {
                let spare = he::rlwe::EXACT_BITS;
                let (width, drop) = (layer.result_bits(), linear.shift + spare);
                Some(truncation(layer.run_outputs(), width, drop, out_bits, radix)?)
            }
        };
        Ok(Self { preprocessed: false, positions: None, layer, truncate })
    }

    /// Bytes of the transforms of its weights, where a server has the memory to keep them.
    pub(crate) fn transform_bytes(&self) -> usize {
        coefficient::transform_bytes(&self.layer)
    }

    /// Plans the exact rescale of `linear` with one message each way.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a layer that is not rounded exactly, and for widths that no such truncation
    /// has.
    pub(crate) fn in_turns(self, linear: &Linear, out_bits: u32) -> Result<Self> {
        if self.truncate.is_none() {
            return Err(Error::misuse("turns of a layer that truncates nothing"));
        }
        let (width, drop) = (self.layer.result_bits(), linear.shift + he::rlwe::EXACT_BITS);
        let truncate = Some(reduction(self.layer.run_outputs(), width, drop, out_bits)?);
        Ok(Self { truncate, ..self })
    }

    /// The layer that takes rows of `table`, `[columns, length]`, on vectors that name a row.
    pub(crate) fn of_table(table: &Embedding, [columns, length]: [usize; 2]) -> Linear {
        Linear {
            conv: Conv { in_height: length, ..Conv::fully_connected(table.rows, columns) },
            accumulator_bits: table.weight_bits,
            weight_bits: table.weight_bits,
            shift: table.shift,
            rounding: table.rounding,
            addend: None,
            choice: None,
            square_bits: None,
        }
    }

    /// Products of what is there, without preprocessing.
    fn multiply(
        &self,
        cx: &mut Context<'_, '_>,
        x: &Share,
        addend: Option<&Share>,
    ) -> Result<Share> {
        let weights = match cx.party {
            Party::Client { .. } => None,
            Party::Server { weights, .. } => Some(weights.of(cx.node)?),
        };
        self.multiply_by(cx, weights, x, addend)
    }

    /// Products with `weights`, which the server has, without preprocessing.
    pub(super) fn multiply_by(
        &self,
        cx: &mut Context<'_, '_>,
        weights: Option<&ServerWeights>,
        x: &Share,
        addend: Option<&Share>,
    ) -> Result<Share> {
        let degree = self.layer.params().degree();
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        match cx.party {
            Party::Client { keys, .. } => {
                let key = keys.for_degree(degree)?;
                coefficient::client(cx.channel, &self.layer, key, x, addend, worker)
            }
            Party::Server { keys, .. } => {
                let missing =
                    || Error::Internal("a product without weights; please report it".into());
                let (keys, weights) = (keys.for_folded(degree)?, weights.ok_or_else(missing)?);
                coefficient::server(cx.channel, &self.layer, keys, weights, x, addend, worker)
            }
        }
    }

    /// Products that were preprocessed on a mask.
    fn unmask(
        &self,
        cx: &mut Context<'_, '_>,
        preprocessed: Preprocessed,
        x: &Share,
        addend: Option<&Share>,
    ) -> Result<Share> {
        match cx.party {
            Party::Client { .. } => {
                let preprocessed: PreprocessedClient = preprocessed.take()?;
                preprocessed.run(cx.channel, &self.layer, x, addend)
            }
            Party::Server { weights, .. } => {
                let preprocessed: PreprocessedServer = preprocessed.take()?;
                preprocessed.run(cx.channel, &self.layer, weights.of(cx.node)?, x, addend)
            }
        }
    }
}

impl LinearProtocol for CoefficientLayer {
    fn operator(&self) -> &'static str {
        match self.positions {
            Some(_) => "embedding",
            None if self.layer.is_fully_connected() => "fully connected",
            None => "convolution",
        }
    }

    fn describe(&self) -> String {
        let how = if self.truncate.is_some() { " + exact truncation" } else { "" };
        let when = match (self.preprocessed, self.layer.runs()) {
            (false, _) => String::new(),
            (true, 1) => "on a mask before, ".into(),
            (true, runs) => format!("on masks of {runs} runs before, "),
        };
        format!("{when}{}{how}", self.layer.describe())
    }

    fn keys(&self) -> KeyDemand {
        let (params, levels) = (self.layer.params(), self.layer.levels());
        let unfold = (levels > 0).then_some((params, levels));
        KeyDemand { coefficient: Some(params), unfold, slots: None }
    }

    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let keep = self.preprocessed || source.preprocesses;
        let op = source.op()?.clone();
        let (weight, bias) = match (op.get::<Linear>(), op.get::<Embedding>(), self.positions) {
            (_, Some(table), Some(_)) => {
                let entries = source.take()?;
                let weight = across(&entries.weight, table.rows);
                let columns = entries.weight.len() / table.rows.max(1);
                (weight, vec![rounding_term(table.rounding, table.shift); columns])
            }
            (Some(op), _, None) => {
                let mut weights = source.take()?;
                let half = rounding_term(op.rounding, op.shift);
                let bias = weights.bias.iter().map(|bias| bias + half).collect();
                (Zeroizing::new(std::mem::take(&mut weights.weight)), bias)
            }
            _ => {
                let why = "a linear step without a linear node; please report it";
                return Err(Error::Internal(why.into()));
            }
        };
        let bias = Zeroizing::new(bias);
        let none = &mut 0;
        let anew = source.scarce && coefficient::transforms_soon(&self.layer);
        let memory = if anew { none } else { &mut *source.memory };
        let ready = ServerWeights::new(&self.layer, &weight, &bias, memory)?;
        Ok(Some(Encoded::new(if keep { ready.keeping(&weight) } else { ready })))
    }

    fn is_preprocessed(&self) -> bool {
        self.preprocessed && self.layer.runs() == 1
    }

    fn preprocess(&self) -> Option<&dyn Preprocess> {
        Some(self)
    }

    fn sooner(&self) -> Option<&dyn Sooner> {
        (!self.preprocessed && self.layer.runs() == 1).then_some(self)
    }

    fn protocols(&self) -> Vec<&Sliced> {
        self.truncate.iter().collect()
    }

    fn failure(&self) -> f64 {
        self.layer.failure()
    }

    fn spent(&self) -> Spent {
        if self.preprocessed {
            return self.spent_preprocessed();
        }
        Spent { cost: self.layer.cost(), work: self.layer.work() }
    }

    fn spent_preprocessed(&self) -> Spent {
        // The server multiplies in the clear.
        let clear = LOCAL_OF_CLEAR_MULTIPLICATION * self.layer.clear_work() as f64;
        let work = self.layer.run_outputs() as f64 + clear;
        Spent { cost: self.layer.prepared_cost(), work: Work::of(Unit::Local, work) }
    }

    fn memory(&self) -> u64 {
        16 * (self.layer.ciphertexts() as u64) * self.layer.params().degree() as u64
    }

    fn ciphertexts(&self) -> usize {
        self.layer.ciphertexts()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let x = input(&inputs, 0)?;
        let expanded = self.expanded(cx.channel.role(), x);
        let x = expanded.as_ref().unwrap_or(x);
        let addend = inputs.get(1);
        let y = match cx.preprocessed.take() {
            Some(asked) if sooner::is_asked(&asked) => self.finish_sooner(cx, asked, x)?,
            Some(preprocessed) => self.unmask(cx, preprocessed, x, addend)?,
            None => self.multiply(cx, x, addend)?,
        };
        drop(inputs);
        Sliced::run_after(self.truncate.as_ref(), cx.channel, y, cx.feed)
    }
}

impl Preprocess for CoefficientLayer {
    fn exchange(&self) -> Exchange {
        Exchange::Encryption
    }

    fn runs(&self) -> usize {
        self.layer.runs()
    }

    fn split(&self, made: Preprocessed) -> Result<Vec<Preprocessed>> {
        if self.layer.runs() == 1 {
            return Ok(vec![made]);
        }
        match made.is::<PreprocessedClient>() {
            true => {
                let all: PreprocessedClient = made.take()?;
                Ok(all.split(&self.layer).into_iter().map(Preprocessed::new).collect())
            }
            false => {
                let all: PreprocessedServer = made.take()?;
                Ok(all.split(&self.layer).into_iter().map(Preprocessed::new).collect())
            }
        }
    }

    fn parts(&self) -> Vec<(Demand, [Spent; 2])> {
        let asks = Spent { cost: self.layer.asks(), work: self.layer.work() };
        vec![(Demand::default(), [asks, Spent::sending(self.layer.answers())])]
    }

    fn asked_bytes(&self) -> usize {
        self.layer.held_bytes()
    }

    fn held_bytes(&self) -> usize {
        8 * (self.layer.inputs() + self.layer.outputs())
    }

    fn ask(&self, cx: &mut Preprocessing<'_>) -> Result<Asked> {
        let degree = self.layer.params().degree();
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        match cx.party {
            Party::Client { keys, .. } => {
                let key = keys.for_degree(degree)?;
                ClientAsked::ask(cx.channel, &self.layer, key, worker).map(Asked::new)
            }
            Party::Server { keys, weights, .. } => {
                let (keys, weights) = (keys.shared(degree)?, weights.shared(cx.node)?);
                ServerAsked::read(cx.channel, &self.layer, keys, weights, worker).map(Asked::new)
            }
        }
    }

    fn finish(&self, cx: &mut Preprocessing<'_>, asked: Option<Asked>) -> Result<Preprocessed> {
        let unasked = || Error::Internal("a layer that did not ask; please report it".into());
        let asked = asked.ok_or_else(unasked)?;
        match cx.party {
            Party::Client { keys, .. } => {
                let key = keys.for_degree(self.layer.params().degree())?;
                let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
                let asked: ClientAsked = asked.take()?;
                asked.finish(cx.channel, &self.layer, key, worker).map(Preprocessed::new)
            }
            Party::Server { .. } => {
                let asked: ServerAsked = asked.take()?;
                asked.finish(cx.channel).map(Preprocessed::new)
            }
        }
    }
}

/// `[columns, rows]` of `[rows, columns]`.
fn across(entries: &[i32], rows: usize) -> Zeroizing<Vec<i32>> {
    let columns = entries.len() / rows.max(1);
    let column = |column: usize| entries.iter().skip(column).step_by(columns.max(1)).copied();
    Zeroizing::new((0..columns).flat_map(column).collect())
}

impl CoefficientLayer {
    /// The input that is multiplied: of a lookup, vectors that name rows.
    fn expanded(&self, role: Role, x: &Share) -> Option<Share> {
        self.positions.map(|sides| one_hot(role, sides, x, self.layer.plain_bits()))
    }
}

/// The client's positions in a table, `length` of each input, as vectors of zeros with a
/// one, `[rows, length]`. The server's share of positions is zero, and so are its vectors. The
/// time and the places written do not depend on the positions.
fn one_hot(role: Role, [rows, length]: [usize; 2], x: &Share, bits: u32) -> Share {
    let own = u64::from(role == Role::Client);
    let mut words = Vec::with_capacity(rows.saturating_mul(x.len()));
    for positions in x.words().chunks(length.max(1)) {
        for row in 0..rows as u64 {
            words.extend(positions.iter().map(|position| own & u64::from(*position == row)));
        }
    }
    Share::new(words, bits)
}
