//! What client and server compute with: derived from the public network by both.

use std::fmt;

use graph::Conv;
use he::bfv::noise::{self, Estimate, FLOODING};
use he::bfv::{Encoder, Fresh, Params, PublicKey, RelinearizationKey, RotationKeys};
use wire::{Cost, Error, Result, Role, Segment};

use super::layout::{Input, Layout, Representation};
use super::message::{Answer, Bodies, Request};
use super::search;
use super::stage::{Operations, Squares, Stage};
use crate::defect::defect;
use crate::linear::transport::{chunks, misuse};
use pricing::{Unit, Work};

/// Bits of the noise budget that a plan leaves beyond the least flooding; flooding takes them.
pub const SPARE_BITS: u32 = 10;

/// A layer of a network for this suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A convolution or matrix product, exact.
    Linear {
        /// The geometry of the layer.
        conv: Conv,
        /// Signed width that holds every weight.
        weight_bits: u32,
    },
    /// `m[0]*x^2 + m[1]*x`, plus a constant of the server where there is one, of each element.
    Square {
        /// The integers m.
        multipliers: [i64; 2],
    },
}

/// A network of integers, none of which is ever rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Elements of the input.
    pub inputs: usize,
    /// The layers, one after another.
    pub layers: Vec<Layer>,
    /// Signed width that holds every result.
    pub output_bits: u32,
    /// How the input is packed, where that is not left to the search.
    pub input: Option<Representation>,
    /// Inputs of one request; more than one are batched, one in each slot.
    pub batch: usize,
}

/// A stage, the layer that it computes, and at which parameters.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) stage: Stage,
    pub(crate) layer: usize,
    pub(crate) weight_bits: u32,
    pub(crate) params: Params,
}

/// The plan of a network.
#[derive(Clone)]
pub struct Plan {
    pub(crate) params: Params,
    pub(crate) primes: Vec<u64>,
    pub(crate) inputs: usize,
    pub(crate) batch: usize,
    pub(crate) input: Input,
    pub(crate) stages: Vec<Planned>,
    /// The noise of the results, at the largest prime.
    pub(crate) noise: Estimate,
    pub(crate) seconds: f64,
    /// Estimated seconds with LoLa's own products, where they fit.
    pub(crate) published: Option<f64>,
}

impl Plan {
    /// Makes the cheapest plan for a network.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold it.
    pub fn new(network: &Network) -> Result<Self> {
        search::cheapest(network)
    }

    /// Returns the parameters of fresh ciphertexts and keys.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the plaintext primes; results are integers mod their product.
    pub fn primes(&self) -> &[u64] {
        &self.primes
    }

    /// Returns the number of elements of an input.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of inputs of one request.
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// How the results are spread.
    pub(crate) fn result(&self) -> Result<&Layout> {
        let last = self.stages.last().map(|planned| planned.stage.to());
        last.ok_or_else(|| defect("a planned network has no layers"))
    }

    /// Results of one input.
    pub fn outputs(&self) -> usize {
        self.result().map_or(0, |layout| layout.places.len())
    }

    /// Returns the rotations that there must be keys for, ascending, and whether rows are
    /// exchanged.
    pub fn rotations(&self) -> (Vec<usize>, bool) {
        let turns = self.stages.iter().map(|planned| planned.stage.turns());
        let (mut steps, mut swap) = (Vec::new(), false);
        for (some, swaps) in turns {
            steps.extend(some);
            swap |= swaps;
        }
        steps.sort_unstable();
        steps.dedup();
        (steps, swap)
    }

    /// Returns whether ciphertexts are multiplied.
    pub fn squares(&self) -> bool {
        self.stages.iter().any(|planned| matches!(planned.stage, Stage::Square(_)))
    }

    /// Returns what the server does for each plaintext prime.
    pub fn operations(&self) -> Operations {
        let all = self.stages.iter().map(|planned| planned.stage.operations());
        all.fold(Operations::default(), |sum, some| sum + some)
    }

    /// Returns what both parties do in a run, beside the messages.
    pub fn work(&self) -> Work {
        let bytes = self.cost().map_or(0, |cost| cost.bytes());
        Work::of(Unit::Slotted, 1e12 * self.seconds).and(Unit::Packed, bytes as f64)
    }

    /// An encoder for each prime, for ciphertexts of these parameters.
    ///
    /// # Errors
    /// None for a plan's primes.
    pub(crate) fn encoders(&self, params: &Params) -> Result<Vec<Encoder>> {
        self.primes.iter().map(|prime| Encoder::new(params, *prime).map_err(misuse)).collect()
    }

    /// Returns the layouts of the messages with the keys: the public key, that for products, then a
    /// rotation each.
    pub fn key_layouts(&self) -> Result<Vec<Vec<Segment>>> {
        let mut layouts = vec![segments(PublicKey::layout(&self.params))];
        if self.squares() {
            layouts.push(segments(RelinearizationKey::layout(&self.params)));
        }
        let (steps, swap) = self.rotations();
        let all = segments(RotationKeys::layout(&self.params, &steps, swap).map_err(misuse)?);
        let each = all.len() / (steps.len() + usize::from(swap)).max(1);
        layouts.extend(all.chunks(each.max(1)).map(<[_]>::to_vec));
        Ok(layouts)
    }

    /// Layouts of the ciphertexts of a request, prime by prime: a seed, then a body.
    pub(crate) fn request_layouts(&self) -> Vec<Vec<Segment>> {
        let degree = self.params.degree();
        let body = self.params.widths().into_iter().map(|bits| Segment { count: degree, bits });
        let each: Vec<Segment> = std::iter::once(SEED).chain(body).collect();
        vec![each; self.input.messages() * self.primes.len()]
    }

    /// Layouts of the responses of an answer, prime by prime.
    pub(crate) fn answer_layouts(&self) -> Result<Vec<Vec<Segment>>> {
        let (each, count) = (self.result()?.messages, self.params.degree());
        let layout = |prime: &u64| {
            let bits = Estimate::planned(&self.params, *prime).response_bits();
            bits.map(|bits| Segment { count, bits }).to_vec()
        };
        let layouts = self.primes.iter().flat_map(|p| std::iter::repeat_n(layout(p), each));
        Ok(layouts.collect())
    }

    /// Returns the layouts of the messages of a request: of each plaintext prime a list.
    pub fn request_messages(&self) -> Vec<Vec<Vec<Segment>>> {
        let layouts = self.request_layouts();
        let primes = layouts.chunks(self.input.messages().max(1));
        primes.map(|layouts| chunks(layouts.to_vec())).collect()
    }

    /// Returns the layouts of the messages of an answer.
    ///
    /// # Errors
    /// None for a plan with layers.
    pub fn answer_messages(&self) -> Result<Vec<Vec<Segment>>> {
        Ok(chunks(self.answer_layouts()?))
    }

    /// Returns what sending the keys costs.
    ///
    /// # Errors
    /// None for a plan's rotations.
    pub fn key_cost(&self) -> Result<Cost> {
        let layouts = self.key_layouts()?;
        Ok(layouts.iter().map(|l| Cost::message(Role::Client, Bodies::body_len(l))).collect())
    }

    /// Returns a bound on the probability that a result of a run is wrong, over its coefficients and
    /// the client's key.
    ///
    /// # Errors
    /// None for a plan's primes.
    pub fn failure(&self) -> Result<f64> {
        let coefficients = self.answer_layouts()?.len() * self.params.degree();
        let key = noise::key_failure(self.params.degree());
        Ok(coefficients as f64 * noise::coefficient_failure() + key)
    }

    /// Returns what a run costs: request and answer.
    ///
    /// # Errors
    /// None for a plan's primes.
    pub fn cost(&self) -> Result<Cost> {
        let (up, down) = (self.request_messages(), self.answer_messages()?);
        let up = up.iter().flatten().map(|l| Cost::message(Role::Client, Request::body_len(l)));
        let down = down.iter().map(|l| Cost::message(Role::Server, Answer::body_len(l)));
        Ok(up.chain(down).collect())
    }

    /// Returns the memory that the evaluation keys take at the server, in bytes.
    pub fn key_bytes(&self) -> usize {
        let (steps, swap) = self.rotations();
        let keys = steps.len() + usize::from(swap) + usize::from(self.squares());
        RotationKeys::bytes(&self.params).saturating_mul(keys)
    }

    /// Returns the bits of the noise budget that the least flooding would leave.
    pub fn spare(&self) -> f64 {
        self.noise.budget() - f64::from(FLOODING) - 1.0
    }

    /// Returns the plan in words: parameters, then a line for each stage.
    pub fn describe(&self) -> Vec<String> {
        let (steps, swap) = self.rotations();
        let keys = steps.len() + usize::from(swap);
        let primes: Vec<String> = self.primes.iter().map(u64::to_string).collect();
        let mut lines = vec![
            format!("BFV: {}, {keys} rotation keys, ternary secret, sigma 3.2", self.params),
            format!("integers mod {}", primes.join(" * ")),
            format!(
                "answers flooded by {} bits; a result is wrong with probability below 2^-40",
                self.noise.flooded().unwrap_or_default()
            ),
            format!("input: {}, {} messages", self.input.representation(), self.input.messages()),
        ];
        lines.extend(self.stages.iter().map(ToString::to_string));
        lines.push(self.compared());
        lines
    }

    /// The sequence beside LoLa's own.
    fn compared(&self) -> String {
        let ratio = self.published.map(|published| published / self.seconds);
        match ratio {
            Some(ratio) if ratio > 1.001 => {
                format!("sequence cheaper than LoLa's own: by estimate {ratio:.1} times")
            }
            Some(_) => "sequence: LoLa's own".into(),
            None => "sequence: LoLa's own takes too many messages or too much noise".into(),
        }
    }
}

/// A seed as it is sent.
const SEED: Segment = Segment { count: 2, bits: 64 };

fn segments(layout: Vec<(usize, u32)>) -> Vec<Segment> {
    layout.into_iter().map(|(count, bits)| Segment { count, bits }).collect()
}

/// Whether there are as many ciphertexts as the plan says, of one prime.
pub(crate) fn check_request(plan: &Plan, request: &[Fresh]) -> Result<()> {
    let want = plan.input.messages();
    if request.len() == want {
        return Ok(());
    }
    Err(Error::misuse(format!("a request of {} messages, not {want}", request.len())))
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.stage.operations();
        let to = self.stage.to();
        let how = match &self.stage {
            Stage::Scalars(_) => "convolution, row-major".to_owned(),
            Stage::Columns(_) => "sparse, column-major".to_owned(),
            Stage::Weighted(_) => "batched".to_owned(),
            Stage::Square(Squares { multipliers: [1, 0], .. }) => "square".to_owned(),
            Stage::Square(_) => "polynomial of degree 2".to_owned(),
            Stage::Product(product) => {
                let diagonals = if product.span > 1 {
                    format!(", {} diagonals", product.span)
                } else {
                    String::new()
                };
                format!("{}, row-major{diagonals}", product.from.representation)
            }
        };
        write!(f, "{how} -> {}, {} message(s)", to.representation, to.messages)?;
        let rotations = operations.hoisted + operations.rotations;
        write!(f, "; {rotations} rotations, {} primes", self.params.widths().len())
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({}, {} stages)", self.params, self.stages.len())
    }
}
