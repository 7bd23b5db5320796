//! The server's weights, encoded for every stage and plaintext prime.

use std::fmt;
use std::ops::Deref;

use he::bfv::{Encoder, Multiplier, Params, Plain, Scalar};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::layout::{Layout, NOTHING};
use super::matrix::Matrix;
use super::plan::{Plan, Planned};
use super::product::Product;
use super::stage::Stage;
use crate::linear::transport::misuse;
use crate::parallel;

/// Bytes of encoded plaintexts that a server keeps; it encodes others whenever they are used.
const MOST_BYTES: usize = 1 << 30;

/// Weights and biases of a linear layer, as [`graph::NodeWeights`] has them.
#[derive(Clone)]
pub struct LayerWeights {
    /// `[out, in / groups, rows, columns]`.
    pub weight: Zeroizing<Vec<i32>>,
    /// `[out]`.
    pub bias: Zeroizing<Vec<i64>>,
}

/// Everything that a server multiplies and adds.
pub struct ServerWeights {
    /// Weights by plaintext prime and stage.
    pub(super) primes: Vec<Vec<Ready>>,
    /// Encoders of the answers, by plaintext prime.
    pub(super) encoders: Vec<Encoder>,
}

/// A stage at one plaintext prime.
pub(super) struct Ready {
    encoder: Encoder,
    pub(super) work: Work,
    /// What is added to each message of the results, slot by slot.
    bias: Vec<Zeroizing<Vec<u64>>>,
}

pub(super) enum Work {
    /// Scalars by channel and tap.
    Scalars(Vec<Scalar>),
    /// Plaintexts in the order of use.
    Plains(Vec<Plain>),
    /// Weights that are encoded when they are used, and the owners of the slots of the vector.
    Later(Zeroizing<Vec<i32>>, Vec<Vec<u32>>),
    /// With the integers that square and vector are multiplied by.
    Square(Box<Multiplier>, [Scalar; 2]),
}

/// A plaintext that is kept, or was made for one use.
pub(super) enum Encoded<'a> {
    Kept(&'a Plain),
    Made(Plain),
}

impl Deref for Encoded<'_> {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        match self {
            Self::Kept(plain) => plain,
            Self::Made(plain) => plain,
        }
    }
}

/// The place of a plaintext of a product by diagonals.
#[derive(Clone, Copy)]
pub(super) struct Diagonal {
    pub(super) to: usize,
    pub(super) giant: usize,
    pub(super) from: usize,
    pub(super) baby: usize,
}

impl ServerWeights {
    /// Encodes the weights of each layer of the network, `None` for those that have none, on
    /// so many threads.
    ///
    /// # Errors
    /// [`Error::Misuse`] when they do not fit their layers.
    pub fn new(plan: &Plan, layers: &[Option<LayerWeights>], threads: usize) -> Result<Self> {
        let keep = plain_bytes(plan).saturating_mul(plan.primes.len()) <= MOST_BYTES;
        let all = |prime: u64| -> Result<(Vec<Ready>, Encoder)> {
            let ready = |planned: &Planned| {
                let weights = layers.get(planned.layer).and_then(Option::as_ref);
                Ready::new(planned, prime, weights, keep)
            };
            let stages = plan.stages.iter().map(ready).collect::<Result<_>>()?;
            Ok((stages, Encoder::new(plan.noise.params(), prime).map_err(misuse)?))
        };
        let made = parallel::map(threads, plan.primes.clone(), all);
        let (primes, encoders) = made.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Self { primes, encoders })
    }
}

/// Memory of all encoded plaintexts of one prime.
fn plain_bytes(plan: &Plan) -> usize {
    let each = plan.stages.iter().map(|planned| {
        let count = planned.stage.operations().plains;
        count.saturating_mul(Plain::bytes(&planned.params))
    });
    each.fold(0, usize::saturating_add)
}

impl Ready {
    fn new(
        planned: &Planned,
        prime: u64,
        weights: Option<&LayerWeights>,
        keep: bool,
    ) -> Result<Self> {
        let params = &planned.params;
        let encoder = Encoder::new(params, prime).map_err(misuse)?;
        let unfit = || Error::misuse("weights that do not fit their layer");
        let of = |matrix: &Matrix| {
            let conv = matrix.conv();
            let taps = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
            let fits = |weights: &&LayerWeights| {
                let limit = 1i64 << (planned.weight_bits - 1);
                weights.weight.len() == conv.out_channels * taps
                    && weights.bias.len() == conv.out_channels
                    && weights.weight.iter().all(|w| i64::from(*w).abs() < limit)
            };
            weights.filter(fits).ok_or_else(unfit)
        };
        let (work, bias) = match &planned.stage {
            Stage::Square(squares) => {
                let multiplier = Box::new(Multiplier::new(params, &encoder).map_err(misuse)?);
                let factors = squares.multipliers.map(|m| Scalar::new(params, m));
                let constants = weights.map(|weights| constants(&squares.to, weights, prime));
                let constants = constants.unwrap_or_else(|| Some(Vec::new())).ok_or_else(unfit)?;
                (Work::Square(multiplier, factors), constants)
            }
            Stage::Scalars(scalars) => {
                let weights = of(&scalars.matrix)?;
                let scalar = |weight: &i32| Scalar::new(params, i64::from(*weight));
                let all = weights.weight.iter().map(scalar).collect();
                (Work::Scalars(all), biases(&scalars.matrix, &scalars.to, &weights.bias, prime))
            }
            Stage::Weighted(weighted) => {
                let weights = of(&weighted.matrix)?;
                let scalar = |weight: &i32| Scalar::new(params, i64::from(*weight));
                let all = weights.weight.iter().map(scalar).collect();
                (Work::Scalars(all), biases(&weighted.matrix, &weighted.to, &weights.bias, prime))
            }
            Stage::Product(product) => {
                let weights = of(&product.matrix)?;
                let owners = product.from.owners();
                let work = if keep {
                    let plain = |at| diagonal(product, &encoder, &weights.weight, &owners, at);
                    Work::Plains(product.diagonals().map(plain).collect::<Result<_>>()?)
                } else {
                    Work::Later(weights.weight.clone(), owners)
                };
                (work, biases(&product.matrix, &product.to, &weights.bias, prime))
            }
            Stage::Columns(columns) => {
                let weights = of(&columns.matrix)?;
                let owners = columns.to.owners();
                let slots = owners.first().map_or(&[][..], Vec::as_slice);
                let plain = |input: usize| {
                    let entry = |owner: &u32| match *owner {
                        NOTHING => None,
                        output => columns.matrix.weight(output as usize, input),
                    };
                    encode(&encoder, &weights.weight, slots.iter().map(entry))
                };
                let plains = (0..columns.matrix.inputs()).map(plain).collect::<Result<_>>()?;
                let bias = biases(&columns.matrix, &columns.to, &weights.bias, prime);
                (Work::Plains(plains), bias)
            }
        };
        Ok(Self { encoder, work, bias })
    }

    pub(super) const fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    pub(super) fn params(&self) -> &Params {
        self.encoder.params()
    }

    /// What is added to a message of the results.
    pub(super) fn bias(&self, message: usize) -> Option<&[u64]> {
        self.bias.get(message).map(|slots| slots.as_slice())
    }

    /// A plaintext of a product by diagonals.
    pub(super) fn plain(&self, product: &Product, at: Diagonal) -> Result<Encoded<'_>> {
        match &self.work {
            Work::Plains(plains) => {
                let plain = plains.get(product.place(at));
                plain.map(Encoded::Kept).ok_or_else(|| Error::misuse("too few plaintexts"))
            }
            Work::Later(weight, owners) => {
                diagonal(product, &self.encoder, weight, owners, at).map(Encoded::Made)
            }
            _ => Err(Error::misuse("a stage without plaintexts")),
        }
    }
}

impl Product {
    /// All plaintexts in the order in which they are kept.
    fn diagonals(&self) -> impl Iterator<Item = Diagonal> + '_ {
        let (from, baby) = (self.from.messages, self.baby);
        let each = self.giants() * from * baby;
        (0..self.to.messages * each).map(move |i| Diagonal {
            to: i / each,
            giant: i % each / (from * baby),
            from: i / baby % from,
            baby: i % baby,
        })
    }

    fn place(&self, at: Diagonal) -> usize {
        ((at.to * self.giants() + at.giant) * self.from.messages + at.from) * self.baby + at.baby
    }
}

fn diagonal(
    product: &Product,
    encoder: &Encoder,
    weight: &[i32],
    owners: &[Vec<u32>],
    at: Diagonal,
) -> Result<Plain> {
    let owners = owners.get(at.from).map_or(&[][..], Vec::as_slice);
    let entries = product.diagonal(owners, at.to, at.giant, at.baby);
    encode(encoder, weight, entries.into_iter())
}

/// The plaintext with the weights at some positions, zero where there is none.
fn encode(
    encoder: &Encoder,
    weight: &[i32],
    entries: impl Iterator<Item = Option<usize>>,
) -> Result<Plain> {
    let prime = encoder.prime();
    let slot = |entry: Option<usize>| {
        let weight = entry.and_then(|at| weight.get(at)).copied().unwrap_or(0);
        i64::from(weight).rem_euclid(prime as i64) as u64
    };
    let slots = Zeroizing::new(entries.map(slot).collect::<Vec<u64>>());
    encoder.plain(&slots).map_err(misuse)
}

/// A constant for each element, slot by slot, message by message.
fn constants(to: &Layout, weights: &LayerWeights, prime: u64) -> Option<Vec<Zeroizing<Vec<u64>>>> {
    let slot = |owner: &u32| {
        let value = if *owner == NOTHING { None } else { weights.bias.get(*owner as usize) };
        value.map_or(0, |value| i128::from(*value).rem_euclid(i128::from(prime)) as u64)
    };
    let fits = weights.weight.is_empty() && weights.bias.len() == to.places.len();
    let owners = fits.then(|| to.owners())?;
    let slots = owners.iter().map(|owners| Zeroizing::new(owners.iter().map(slot).collect()));
    Some(slots.collect())
}

/// The biases where results are, slot by slot, message by message.
fn biases(matrix: &Matrix, to: &Layout, bias: &[i64], prime: u64) -> Vec<Zeroizing<Vec<u64>>> {
    let slot = |owner: &u32| {
        let channel = matrix.channel(*owner as usize);
        let value = if *owner == NOTHING { None } else { bias.get(channel) };
        value.map_or(0, |value| i128::from(*value).rem_euclid(i128::from(prime)) as u64)
    };
    let owners = to.owners();
    owners.iter().map(|owners| Zeroizing::new(owners.iter().map(slot).collect())).collect()
}

impl fmt::Debug for LayerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LayerWeights(<{} hidden weights>)", self.weight.len())
    }
}

impl fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerWeights(<{} primes>)", self.primes.len())
    }
}
