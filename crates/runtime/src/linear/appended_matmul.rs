//! Products with a matrix that gets a new entry in each run, on masks of several runs.

use mpc::linear::appended_matmul::{Drawn, Layer, Memory, Prepared};
use mpc::linear::coefficient::Worker;
use mpc::linear::shared_matmul::{self, Answered};
use mpc::{Demand, Share};
use pricing::equivalent::LOCAL_OF_CLEAR_MULTIPLICATION;
use pricing::{Unit, Work};
use wire::{Cost, Error, Result};
use zeroize::Zeroizing;

use crate::step;
use crate::step::context::{Context, Party, Preprocessing, input};
use crate::step::keys::KeyDemand;
use crate::step::linear::{Exchange, LinearProtocol, Preprocess};
use crate::step::preprocessed::{Asked, Preprocessed};
use crate::step::spent::Spent;

/// A product of a left factor with one that keeps its entries from run to run.
#[derive(Debug)]
pub struct AppendedProduct {
    /// The products of several runs.
    pub layer: Layer,
    /// For each value of the entries that never change the node and the place of the constant that it
    /// is, or nothing for a zero.
    pub constants: Vec<Option<(usize, usize)>>,
}

/// What the server keeps until it answers.
type ServerAsked = (Drawn, Answered);

impl AppendedProduct {
    /// The entries that the server knows.
    fn fixed(&self, party: &Party<'_>) -> Result<Option<Zeroizing<Vec<u64>>>> {
        if let Party::Client { .. } = party {
            return Ok(None);
        }
        let missing = || Error::internal("a product without its constants; please report it");
        let value = |place: &Option<(usize, usize)>| match place {
            None => Ok(0),
            Some((node, at)) => {
                let constants = party.constants(Some(*node)).ok_or_else(missing)?;
                constants.get(*at).map(|constant| *constant as u64).ok_or_else(missing)
            }
        };
        let words: Result<Vec<u64>> = self.constants.iter().map(value).collect();
        words.map(|words| Some(Zeroizing::new(words)))
    }

    /// The parts of the runs, of masks and this party's share of their products.
    fn prepared(&self, drawn: Drawn, products: &Share) -> Preprocessed {
        Preprocessed::new(drawn.split(&self.layer, products))
    }
}

impl LinearProtocol for AppendedProduct {
    fn operator(&self) -> &'static str {
        "matrix product"
    }

    fn describe(&self) -> String {
        let (runs, products) = (self.layer.runs(), self.layer.products().describe());
        format!("on masks of {runs} runs before and of entries that are kept, {products}")
    }

    fn keys(&self) -> KeyDemand {
        let coefficient = Some(self.layer.products().params());
        KeyDemand { coefficient, unfold: None, slots: None }
    }

    fn preprocess(&self) -> Option<&dyn Preprocess> {
        Some(self)
    }

    fn failure(&self) -> f64 {
        self.layer.failure()
    }

    fn spent(&self) -> Spent {
        let clear = LOCAL_OF_CLEAR_MULTIPLICATION * self.layer.clear_work() as f64;
        let work = Work::of(Unit::Local, self.layer.outputs() as f64 + clear);
        Spent { cost: self.layer.cost(), work }
    }

    fn memory(&self) -> u64 {
        let products = self.layer.products();
        16 * (products.ciphertexts() as u64) * products.params().degree() as u64
    }

    fn ciphertexts(&self) -> usize {
        self.layer.products().ciphertexts()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let missing = || Error::internal("a product that was not prepared; please report it");
        let prepared: Prepared = cx.preprocessed.take().ok_or_else(missing)?.take()?;
        let memory: &mut Memory = cx.memory.of(cx.index)?;
        prepared.run(cx.channel, &self.layer, memory, input(&inputs, 0)?, input(&inputs, 1)?)
    }
}

impl Preprocess for AppendedProduct {
    fn exchange(&self) -> Exchange {
        Exchange::Encryption
    }

    fn runs(&self) -> usize {
        self.layer.runs()
    }

    fn for_fewer(&self, runs: usize) -> Option<Box<dyn Preprocess>> {
        let layer = self.layer.for_runs(runs).ok()?;
        let less = layer.products().cost().bytes() < self.layer.products().cost().bytes();
        less.then(|| {
            Box::new(Self { layer, constants: self.constants.clone() }) as Box<dyn Preprocess>
        })
    }

    fn split(&self, made: Preprocessed) -> Result<Vec<Preprocessed>> {
        let runs: Vec<Prepared> = made.take()?;
        Ok(runs.into_iter().map(Preprocessed::new).collect())
    }

    fn missed(&self) -> Option<Cost> {
        Some(self.layer.missed_cost())
    }

    fn forget(&self, memory: &mut step::Memory, index: usize) -> Result<()> {
        memory.of::<Memory>(index).map(Memory::forget)
    }

    fn parts(&self) -> Vec<(Demand, [Spent; 2])> {
        let products = self.layer.products();
        let asks = Spent { cost: products.asks(), work: products.work() };
        vec![(Demand::default(), [asks, Spent::sending(products.answers())])]
    }

    fn asked_bytes(&self) -> usize {
        self.layer.products().held_bytes()
    }

    fn held_bytes(&self) -> usize {
        self.layer.held_bytes()
    }

    fn ask(&self, cx: &mut Preprocessing<'_>) -> Result<Asked> {
        let products = self.layer.products();
        let degree = products.params().degree();
        let fixed = self.fixed(&cx.party)?;
        let fixed = fixed.as_ref().map(|words| words.as_slice());
        let memory: &mut Memory = cx.memory.of(cx.index)?;
        let drawn = memory.draw(&self.layer, fixed, cx.rng)?;
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        match cx.party {
            Party::Client { keys, .. } => {
                let key = keys.for_degree(degree)?;
                shared_matmul::ask(cx.channel, products, key, &drawn.a, &drawn.b, worker)?;
                Ok(Asked::new(drawn))
            }
            Party::Server { keys, .. } => {
                let keys = keys.for_folded(degree)?;
                let (a, b) = (&drawn.a, &drawn.b);
                let answered = shared_matmul::answer(cx.channel, products, keys, a, b, worker)?;
                Ok(Asked::new::<ServerAsked>((drawn, answered)))
            }
        }
    }

    fn finish(&self, cx: &mut Preprocessing<'_>, asked: Option<Asked>) -> Result<Preprocessed> {
        let unasked = || Error::internal("a product that did not ask; please report it");
        let (products, asked) = (self.layer.products(), asked.ok_or_else(unasked)?);
        match cx.party {
            Party::Client { keys, threads, .. } => {
                let (drawn, key) = (asked.take()?, keys.for_degree(products.params().degree())?);
                let Drawn { a, b, .. } = &drawn;
                let share = shared_matmul::finish(cx.channel, products, key, a, b, threads)?;
                Ok(self.prepared(drawn, &share))
            }
            Party::Server { .. } => {
                let (drawn, answered): ServerAsked = asked.take()?;
                let share = answered.send(cx.channel, products)?;
                Ok(self.prepared(drawn, &share))
            }
        }
    }
}
