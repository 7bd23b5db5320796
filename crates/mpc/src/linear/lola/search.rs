//! The cheapest parameters, representations and products for a network.
//!
//! For each ring degree all sequences of products are listed, a few spans for each; for each
//! modulus and number of plaintext primes the noise of a sequence is followed, dropping
//! primes of the modulus where that is free, and what is left after flooding is compared
//! with what is asked. Of those that hold the one of least estimated time is taken.

use std::sync::{Mutex, PoisonError};

use he::bfv::noise::{Estimate, FLOODING};
use he::bfv::{Encoder, Params, Switching};
use pricing::fixed::slots::{FRESH_SECONDS, rotation};
use wire::{Error, Result};

use super::layout::{Input, Layout, Representation, Windows};
use super::matrix::Matrix;
use super::plan::{Layer, Network, Plan, Planned, SPARE_BITS};
use super::product::{Columns, Product, Scalars, Weighted};
use super::stage::{Operations, Squares, Stage};

/// Degrees and numbers and bits of primes, and the way of key switching.
const CANDIDATES: [(usize, usize, u32, Switching); 26] = [
    (8192, 3, 50, Switching::Special(50)),
    (8192, 4, 42, Switching::Special(44)),
    (8192, 5, 42, Switching::Digits(14)),
    (8192, 5, 42, Switching::Digits(11)),
    (16384, 3, 50, Switching::Special(50)),
    (16384, 4, 46, Switching::Special(50)),
    (16384, 4, 50, Switching::Special(50)),
    (16384, 5, 46, Switching::Special(50)),
    (16384, 5, 48, Switching::Special(50)),
    (16384, 5, 50, Switching::Special(50)),
    (16384, 6, 46, Switching::Special(50)),
    (16384, 6, 48, Switching::Special(50)),
    (16384, 6, 50, Switching::Special(50)),
    (16384, 7, 48, Switching::Special(50)),
    (16384, 7, 50, Switching::Special(50)),
    (16384, 8, 47, Switching::Special(50)),
    (32768, 7, 50, Switching::Special(50)),
    (32768, 8, 50, Switching::Special(50)),
    (32768, 9, 50, Switching::Special(50)),
    (32768, 10, 50, Switching::Special(50)),
    (32768, 11, 50, Switching::Special(50)),
    (32768, 12, 50, Switching::Special(50)),
    (32768, 13, 50, Switching::Special(50)),
    (32768, 14, 50, Switching::Special(50)),
    (32768, 15, 50, Switching::Special(50)),
    (32768, 16, 50, Switching::Special(50)),
];

/// Most plaintext primes.
const MOST_PRIMES: usize = 8;
/// Most bits of one: words of a response have 62.
const MOST_PLAIN_BITS: u32 = 48;
/// Most messages between two layers, and of a request.
const MOST_MESSAGES: usize = 1024;
/// Most elements of a vector, and layers: a client searches for a server that it does not trust.
const MOST_ELEMENTS: usize = 1 << 16;
const MOST_LAYERS: usize = 16;
/// Sequences that are followed further: those of least work.
const MOST_SEQUENCES: usize = 128;
/// Most inputs of one request.
const MOST_BATCH: usize = 16384;
/// Bytes of evaluation keys that a party holds.
const MOST_KEY_BYTES: usize = 1 << 30;

/// A way to compute a network, without parameters.
#[derive(Clone, Debug)]
struct Sequence {
    input: Input,
    /// Layer, weight bits, stage.
    stages: Vec<(usize, u32, Stage)>,
    /// Whether all products are LoLa's own.
    published: bool,
}

/// # Errors
/// [`Error::Misuse`] for a network that nothing holds.
pub(super) fn cheapest(network: &Network) -> Result<Plan> {
    check(network)?;
    let (mut best, mut published): (Option<Plan>, Option<f64>) = (None, None);
    for degree in [8192, 16384, 32768].into_iter().filter(|degree| *degree >= network.batch) {
        let sequences = sequences(network, degree / 2);
        for (_, count, bits, switching) in CANDIDATES.into_iter().filter(|(d, ..)| *d == degree) {
            let params = params(degree, count, bits, switching)?;
            for primes in 1..=MOST_PRIMES {
                let Some(primes) = plain_primes(&params, network.output_bits, primes) else {
                    continue;
                };
                for sequence in &sequences {
                    let Some(priced) = sequence.priced(&params, &primes) else { continue };
                    let seconds = priced.seconds;
                    if sequence.published && published.is_none_or(|known| seconds < known) {
                        published = Some(seconds);
                    }
                    if best.as_ref().is_none_or(|known| seconds < known.seconds) {
                        let plan = sequence.plan(network, &params, &primes, priced);
                        best = plan.or(best);
                    }
                }
            }
        }
        if degree > 8192 && best.is_some() {
            break;
        }
    }
    let best = best.map(|plan| Plan { published, ..plan });
    best.ok_or_else(|| {
        Error::misuse(format!(
            "no secure parameters hold results of {} bits after {} layers; use fewer weight or \
             activation bits, or fewer layers",
            network.output_bits,
            network.layers.len()
        ))
    })
}

fn check(network: &Network) -> Result<()> {
    let mut count = network.inputs;
    if !(1..=MOST_BATCH).contains(&network.batch) {
        return Err(Error::misuse(format!("1 to {MOST_BATCH} inputs at once")));
    }
    if network.layers.len() > MOST_LAYERS || network.layers.is_empty() {
        return Err(Error::misuse(format!("1 to {MOST_LAYERS} layers can be evaluated")));
    }
    for layer in &network.layers {
        if let Layer::Linear { conv, weight_bits } = layer {
            let matrix = Matrix::new(conv.clone());
            if matrix.inputs() != count || !(1..=32).contains(weight_bits) {
                return Err(Error::misuse("layers that do not fit each other"));
            }
            count = matrix.outputs();
        }
        if !(1..=MOST_ELEMENTS).contains(&count) {
            return Err(Error::misuse(format!("layers of 1 to {MOST_ELEMENTS} elements")));
        }
    }
    Ok(())
}

/// Parameters of the list, which are made once.
fn params(degree: usize, count: usize, bits: u32, switching: Switching) -> Result<Params> {
    static KNOWN: Mutex<Vec<Params>> = Mutex::new(Vec::new());
    let moduli = vec![bits; count];
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |params: &&Params| {
        (params.degree(), params.switching()) == (degree, switching) && params.widths() == moduli
    };
    if let Some(found) = known.iter().find(same) {
        return Ok(found.clone());
    }
    let params = Params::new(degree, &moduli, switching);
    let params = params.map_err(|e| Error::misuse(e.to_string()))?;
    known.push(params.clone());
    Ok(params)
}

/// So many primes, of as few bits as hold the results.
fn plain_primes(params: &Params, output_bits: u32, count: usize) -> Option<Vec<u64>> {
    let bits = output_bits.div_ceil(count as u32).max(params.degree().ilog2() + 2);
    let useful = bits <= MOST_PLAIN_BITS && (count as u32 - 1) * bits < output_bits;
    if !useful {
        return None;
    }
    Encoder::primes_above(params, bits, count).ok()
}

/// All sequences for rows of so many slots.
fn sequences(network: &Network, row: usize) -> Vec<Sequence> {
    let mut open = Vec::new();
    if network.batch > 1 {
        let input = Input::Vector(Layout::batched(network.inputs, row));
        open.push(Sequence { input, stages: vec![], published: true });
        return through(network, open);
    }
    let wanted = |is: Representation| {
        // One message is dense, repeated or not.
        let is = if is == Representation::Stacked { Representation::Dense } else { is };
        network.input.is_none_or(|wanted| wanted == is)
    };
    if wanted(Representation::Convolution)
        && let Some(Layer::Linear { conv, weight_bits }) = network.layers.first()
        && let Some(scalars) = Scalars::new(Matrix::new(conv.clone()), row)
    {
        let windows = Windows::new(conv.clone(), row, scalars.to.period);
        if windows.messages() <= MOST_MESSAGES {
            let stages = vec![(0, *weight_bits, Stage::Scalars(scalars))];
            open.push(Sequence { input: Input::Windows(windows), stages, published: true });
        }
    }
    let count = network.inputs;
    let vectors = [
        Layout::stacked(count, row),
        Some(Layout::dense(count, row)),
        (count <= MOST_MESSAGES).then(|| Layout::sparse(count, row)),
    ];
    for vector in vectors.into_iter().flatten().filter(|v| wanted(v.representation)) {
        open.push(Sequence { input: Input::Vector(vector), stages: vec![], published: true });
    }
    through(network, open)
}

/// All sequences that begin with some.
fn through(network: &Network, mut open: Vec<Sequence>) -> Vec<Sequence> {
    for (index, layer) in network.layers.iter().enumerate() {
        open = open.into_iter().flat_map(|sequence| sequence.extended(index, layer)).collect();
        if open.len() > MOST_SEQUENCES {
            open.sort_by(|a: &Sequence, b| a.price().total_cmp(&b.price()));
            open.truncate(MOST_SEQUENCES);
        }
    }
    open
}

/// What a sequence takes under some parameters.
struct Priced {
    /// Estimated, for all plaintext primes.
    seconds: f64,
    /// The noise of the results.
    noise: Estimate,
    /// The parameters that are left at each stage.
    levels: Vec<Params>,
}

impl Sequence {
    /// About the work, in rotations.
    fn price(&self) -> f64 {
        let all = self.stages.iter().map(|(_, _, stage)| stage.operations());
        let all = all.fold(Operations::default(), |sum, some| sum + some);
        let products = rotation::PRODUCT * (all.plains + all.scalars) as f64;
        rotation::HOISTED * all.hoisted as f64
            + all.rotations as f64
            + products
            + rotation::SQUARE * all.squares as f64
    }

    /// All that compute one more layer.
    fn extended(self, index: usize, layer: &Layer) -> Vec<Self> {
        if self.stages.len() > index {
            return vec![self];
        }
        let from = match (self.stages.last(), &self.input) {
            (Some((_, _, stage)), _) => stage.to().clone(),
            (None, Input::Vector(layout)) => layout.clone(),
            (None, Input::Windows(_)) => return Vec::new(),
        };
        let with = |bits: u32, stage: Stage, own: bool| {
            let mut longer = self.clone();
            longer.stages.push((index, bits, stage));
            longer.published &= own;
            longer
        };
        match layer {
            Layer::Square { multipliers } => {
                let squares = Squares { multipliers: *multipliers, to: from };
                vec![with(0, Stage::Square(squares), true)]
            }
            Layer::Linear { conv, weight_bits } => products(&Matrix::new(conv.clone()), &from)
                .into_iter()
                .map(|(stage, own)| with(*weight_bits, stage, own))
                .collect(),
        }
    }

    /// Noise and time under parameters that hold it.
    fn priced(&self, params: &Params, primes: &[u64]) -> Option<Priced> {
        let largest = *primes.last()?;
        let plain_bits = largest.ilog2() + 1;
        let mut noise = Estimate::planned(params, largest);
        let mut levels = Vec::with_capacity(self.stages.len());
        let fresh = params.degree() * params.widths().len() * self.input.messages();
        let mut seconds = fresh as f64 * FRESH_SECONDS;
        for (_, weight_bits, stage) in &self.stages {
            noise = dropped(noise)?;
            levels.push(noise.params().clone());
            seconds += stage.operations().seconds(noise.params(), plain_bits);
            noise = stage.noise(noise, *weight_bits);
            if noise.budget() < f64::from(FLOODING) {
                return None;
            }
        }
        noise = dropped(noise)?;
        let enough = noise.budget() >= f64::from(FLOODING + SPARE_BITS) + 1.0;
        let seconds = seconds * primes.len() as f64;
        (enough && noise.flooding().is_ok()).then_some(Priced { seconds, noise, levels })
    }

    /// The plan under them; `None` when there are too many keys.
    fn plan(
        &self,
        network: &Network,
        params: &Params,
        primes: &[u64],
        priced: Priced,
    ) -> Option<Plan> {
        let stages = self.stages.iter().zip(priced.levels).map(|(stage, params)| {
            let (layer, weight_bits, stage) = stage.clone();
            Planned { stage, layer, weight_bits, params }
        });
        let plan = Plan {
            params: params.clone(),
            primes: primes.to_vec(),
            inputs: network.inputs,
            batch: network.batch,
            input: self.input.clone(),
            stages: stages.collect(),
            seconds: priced.seconds,
            published: None,
            noise: priced.noise,
        };
        (plan.key_bytes() <= MOST_KEY_BYTES).then_some(plan)
    }
}

/// With all primes dropped that cost nothing.
fn dropped(mut noise: Estimate) -> Option<Estimate> {
    while noise.drops_freely() {
        noise = noise.dropped().ok()?;
    }
    Some(noise)
}

/// The products of a matrix with a vector, and whether each is one of LoLa's.
fn products(matrix: &Matrix, from: &Layout) -> Vec<(Stage, bool)> {
    if let Some(weighted) = Weighted::new(matrix.clone(), from) {
        return vec![(Stage::Weighted(weighted), true)];
    }
    if from.representation == Representation::Sparse {
        let columns = Columns::new(matrix.clone(), from);
        return columns.map(|columns| (Stage::Columns(columns), true)).into_iter().collect();
    }
    let most = matrix.outputs().div_ceil(from.copies()).next_power_of_two().min(from.period);
    let mut spans = vec![most, most / 2, most / 4, 1];
    spans.retain(|span| *span > 0);
    spans.dedup();
    let mut found = Vec::new();
    for span in spans {
        if let Some(product) = Product::new(matrix.clone(), from, span, false) {
            found.push((Stage::Product(stepped(product)), span == 1));
        }
    }
    if let Some(product) = Product::new(matrix.clone(), from, 1, true) {
        found.push((Stage::Product(product), true));
    }
    found.retain(|(stage, _)| stage.to().messages <= MOST_MESSAGES);
    found
}

/// With the baby steps that take the least time: those are hoisted, but need a key each.
fn stepped(product: Product) -> Product {
    let (from, to) = (product.from.messages as f64, product.to.messages as f64);
    let price = |baby: usize| {
        let giants = product.span / baby;
        rotation::HOISTED * from * (baby - 1) as f64
            + to * (giants - 1) as f64
            + rotation::KEY * baby as f64
    };
    let steps = (0..=product.span.ilog2()).map(|bit| 1usize << bit);
    let best = steps.min_by(|a, b| price(*a).total_cmp(&price(*b))).unwrap_or(1);
    product.with_baby(best)
}
