//! The server's products of a tile: ciphertexts in, one sum per output block out.

use he::rlwe::direct::{self, TOGETHER};
use he::rlwe::{Accumulator, Ciphertext, Direct, Operand, Weights};
use pricing::fixed::lattice::direct::{POINTWISE, TRANSFORMED};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use crate::defect::defect;
use crate::linear::transport::misuse;
use crate::parallel;

/// Ciphertexts that are multiplied together, so that sums are read and written once
/// for all of them.
pub(super) const BATCH: usize = 8;

/// How products are computed; follows from the layer's shape alone.
#[derive(Debug)]
pub(super) enum Kernel {
    /// Products weight by weight.
    Direct(Box<Direct>),
    /// Products in the evaluation basis.
    Transform,
}

impl Kernel {
    /// Multiplications of a ciphertext and a weight polynomial, of the direct kernel.
    pub(super) fn direct_work(&self) -> Option<usize> {
        match self {
            Self::Direct(plan) => Some(plan.work()),
            Self::Transform => None,
        }
    }

    /// The kernel in words, for reports.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Direct(_) => "direct products",
            Self::Transform => "transforms",
        }
    }
}

/// The server's weights, encoded once for all runs.
pub struct ServerWeights {
    kernel: Kernel,
    /// Weights for the direct kernel, by group, [`TOGETHER`] output blocks, input block, power
    /// and output block.
    plain: Zeroizing<Vec<i32>>,
    /// Weights for the transforms, by group, output block and input block.
    polynomials: Vec<Polynomial>,
    /// One per output channel, at accumulator scale.
    bias: Zeroizing<Vec<i64>>,
    /// The weights as they came, for products in the clear; empty unless these were asked for.
    weight: Zeroizing<Vec<i32>>,
}

/// A polynomial of weights for the evaluation basis.
enum Polynomial {
    Ready(Weights),
    /// Transformed whenever it is used: there was no memory left.
    Plain(Zeroizing<Vec<i32>>),
}

/// The kernel of the least work for `layer`.
pub(super) fn kernel(layer: &Layer) -> Kernel {
    let packing = &layer.packing;
    let powers = packing.powers();
    let first = packing.places().next();
    let useful = first.map(|place| packing.outputs(place)).unwrap_or_default();
    let useful: Vec<usize> = useful.into_iter().map(|(place, _)| place).collect();
    let total = packing.weights_per_response();
    let Ok(plan) = Direct::new(layer.params, &powers, layer.largest, total, &useful) else {
        return Kernel::Transform;
    };
    let degree = layer.params.degree();
    let products = packing.pairs();
    let evaluated = transformed(degree, products, packing.polynomials() + packing.responses());
    if products.saturating_mul(plan.work()) <= evaluated {
        Kernel::Direct(Box::new(plan))
    } else {
        Kernel::Transform
    }
}

/// Work of `products` in the evaluation basis and of the transforms of all ciphertexts, in
/// multiplications of the direct kernel.
pub(super) fn transformed(degree: usize, products: usize, ciphertexts: usize) -> usize {
    let transforms = (2 * degree * TRANSFORMED).saturating_mul(ciphertexts);
    products.saturating_mul(2 * degree * POINTWISE).saturating_add(transforms)
}

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`. Transformed
    /// weights take from `memory`, in bytes, what they need; once it is used up, the
    /// rest is transformed whenever it is used.
    ///
    /// # Errors
    /// [`Error::Misuse`] for wrong lengths or weights too large for the layer.
    pub fn new(layer: &Layer, weight: &[i32], bias: &[i64], memory: &mut usize) -> Result<Self> {
        let conv = &layer.conv;
        let per_output = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
        if weight.len() != conv.out_channels * per_output || bias.len() != conv.out_channels {
            return Err(Error::misuse("weights that do not fit their layer"));
        }
        if weight.iter().any(|w| u64::from(w.unsigned_abs()) > layer.largest) {
            return Err(Error::misuse("weights wider than their layer says"));
        }
        let kernel = kernel(layer);
        let (plain, polynomials) = match &kernel {
            Kernel::Direct(plan) => (interleave(layer, plan, weight), Vec::new()),
            Kernel::Transform => (Zeroizing::default(), transform(layer, weight, memory)?),
        };
        let (bias, weight) = (Zeroizing::new(bias.to_vec()), Zeroizing::default());
        Ok(Self { kernel, plain, polynomials, bias, weight })
    }

    /// Keeps `weight` as it is too, which preprocessed layers need.
    #[must_use]
    pub fn keeping(self, weight: &[i32]) -> Self {
        Self { weight: Zeroizing::new(weight.to_vec()), ..self }
    }

    /// One per output channel.
    pub(super) fn bias(&self) -> &[i64] {
        &self.bias
    }

    /// Multiplications of ciphertext coefficients, or products in the evaluation basis,
    /// with what is stored.
    #[cfg(test)]
    pub(super) fn work(&self) -> usize {
        match &self.kernel {
            Kernel::Direct(plan) => self.plain.len() / plan.terms() * plan.work(),
            Kernel::Transform => self.polynomials.len(),
        }
    }

    /// The weights as they came.
    ///
    /// # Errors
    /// [`Error::Misuse`] when they were not kept.
    pub(super) fn weight(&self) -> Result<&[i32]> {
        match self.weight.as_slice() {
            [] => Err(Error::misuse("weights that were not kept for preprocessed layers")),
            weight => Ok(weight),
        }
    }

    /// The sums of one tile of `group`.
    pub(super) fn tile<'a>(
        &'a self,
        layer: &'a Layer,
        group: usize,
        threads: usize,
    ) -> Result<Tile<'a>> {
        let blocks = layer.packing.output_blocks();
        let sums = match &self.kernel {
            Kernel::Direct(plan) => {
                let sums = (0..blocks.div_ceil(TOGETHER)).map(|_| plan.zero()).collect();
                TileSums::Direct { plan, sums }
            }
            Kernel::Transform => {
                let zero = |_| Accumulator::new(layer.params).map_err(misuse);
                TileSums::Transform((0..blocks).map(zero).collect::<Result<_>>()?)
            }
        };
        let weights = self;
        let (batch, done) = (Vec::new(), Vec::new());
        Ok(Tile { layer, weights, group, threads, sums, next: 0, batch, done })
    }
}

impl std::fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerWeights(<hidden>, {:?})", self.kernel)
    }
}

fn interleave(layer: &Layer, plan: &Direct, weight: &[i32]) -> Zeroizing<Vec<i32>> {
    let packing = &layer.packing;
    let (outputs, inputs) = (packing.output_blocks(), packing.input_blocks());
    let (terms, quads) = (plan.terms(), outputs.div_ceil(TOGETHER));
    let one = terms * TOGETHER;
    let mut plain = Zeroizing::new(vec![0; packing.groups() * quads * inputs * one]);
    for (group, output, input) in packing.blocks() {
        let start = ((group * quads + output / TOGETHER) * inputs + input) * one;
        for (term, from) in packing.weights(group, output, input).into_iter().enumerate() {
            let to = plain.get_mut(start + term * TOGETHER + output % TOGETHER);
            if let (Some(to), Some(from)) = (to, from.and_then(|from| weight.get(from))) {
                *to = *from;
            }
        }
    }
    plain
}

fn transform(layer: &Layer, weight: &[i32], memory: &mut usize) -> Result<Vec<Polynomial>> {
    let (packing, powers, degree) = (&layer.packing, layer.packing.powers(), layer.params.degree());
    let step = step(&powers, degree);
    let polynomials = packing.blocks().map(|(group, output, input)| {
        let mut plain = Zeroizing::new(vec![0; degree]);
        for (power, from) in powers.iter().zip(packing.weights(group, output, input)) {
            let value = from.and_then(|from| weight.get(from));
            if let (Some(to), Some(value)) = (plain.get_mut(*power), value) {
                *to = *value;
            }
        }
        match memory.checked_sub(Weights::bytes(layer.params, step)) {
            Some(left) => {
                *memory = left;
                ready(layer, &plain, step).map(Polynomial::Ready)
            }
            None => Ok(Polynomial::Plain(plain)),
        }
    });
    polynomials.collect()
}

/// A polynomial with weights at multiples of `step` only.
fn ready(layer: &Layer, plain: &[i32], step: usize) -> Result<Weights> {
    let wide =
        Zeroizing::new(plain.iter().step_by(step).map(|w| i64::from(*w)).collect::<Vec<_>>());
    match step {
        1 => Weights::new(layer.params, &wide),
        step => Weights::in_power(layer.params, step, &wide),
    }
    .map_err(misuse)
}

/// The largest power of two that divides all powers at which weights stand.
fn step(powers: &[usize], degree: usize) -> usize {
    let all = powers.iter().fold(degree, |all, power| all | power);
    1 << all.trailing_zeros()
}

/// The sums of one tile, to which its ciphertexts are added as they arrive.
pub(super) struct Tile<'a> {
    layer: &'a Layer,
    weights: &'a ServerWeights,
    group: usize,
    threads: usize,
    sums: TileSums<'a>,
    /// The next input block to be added.
    next: usize,
    /// Ciphertexts that wait to be added together.
    batch: Vec<Arrived>,
    /// Results of the same sums, the next one last.
    done: Vec<Ciphertext>,
}

enum TileSums<'a> {
    Direct { plan: &'a Direct, sums: Vec<direct::Sums> },
    Transform(Vec<Accumulator>),
}

enum Arrived {
    Direct(direct::Factor),
    Transform(Operand),
}

impl Tile<'_> {
    /// Takes the ciphertext of the next input block.
    pub(super) fn push(&mut self, cipher: Ciphertext) -> Result<()> {
        self.batch.push(match &self.sums {
            TileSums::Direct { plan, .. } => Arrived::Direct(plan.factor(&cipher).map_err(misuse)?),
            TileSums::Transform(_) => Arrived::Transform(cipher.into_operand().map_err(misuse)?),
        });
        if self.batch.len() == BATCH { self.add() } else { Ok(()) }
    }

    /// Multiplies and adds what waits.
    fn add(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let (layer, weights, group, next) = (self.layer, self.weights, self.group, self.next);
        let inputs = layer.packing.input_blocks();
        let done = match &mut self.sums {
            TileSums::Direct { plan, sums } => {
                let (one, quads) = (plan.terms() * TOGETHER, sums.len());
                let add = |(quad, sums): (usize, &mut direct::Sums)| {
                    let row = ((group * quads + quad) * inputs + next) * one;
                    let weights = weights.plain.get(row..row + batch.len() * one);
                    let weights = weights.ok_or_else(unfit)?;
                    for (arrived, weights) in batch.iter().zip(weights.chunks_exact(one)) {
                        if let Arrived::Direct(factor) = arrived {
                            plan.accumulate(sums, factor, weights).map_err(misuse)?;
                        }
                    }
                    Ok(())
                };
                parallel::map(self.threads, sums.iter_mut().enumerate().collect(), add)
            }
            TileSums::Transform(sums) => {
                let blocks = sums.len();
                let add = |(block, sum): (usize, &mut Accumulator)| {
                    let row = (group * blocks + block) * inputs + next;
                    let weights = weights.polynomials.get(row..row + batch.len());
                    for (arrived, weights) in batch.iter().zip(weights.ok_or_else(unfit)?) {
                        let Arrived::Transform(operand) = arrived else { continue };
                        match weights {
                            Polynomial::Ready(weights) => sum.accumulate(operand, weights),
                            Polynomial::Plain(plain) => {
                                sum.accumulate(operand, &ready(layer, plain, 1)?)
                            }
                        }
                        .map_err(misuse)?;
                    }
                    Ok(())
                };
                parallel::map(self.threads, sums.iter_mut().enumerate().collect(), add)
            }
        };
        done.into_iter().collect::<Result<()>>()?;
        self.next += batch.len();
        Ok(())
    }

    /// The sum of `block`, once each in ascending order, after all inputs.
    pub(super) fn result(&mut self, block: usize) -> Result<Ciphertext> {
        if !self.batch.is_empty() {
            self.add()?;
        }
        if self.next != self.layer.packing.input_blocks() {
            return Err(defect("a tile of products is read before all its inputs"));
        }
        match &mut self.sums {
            TileSums::Direct { plan, sums } => {
                if block.is_multiple_of(TOGETHER) {
                    let sums = sums.get(block / TOGETHER).ok_or_else(unfit)?;
                    self.done = plan.finish(sums).map_err(misuse)?;
                    self.done.reverse();
                }
                self.done.pop().ok_or_else(unfit)
            }
            TileSums::Transform(sums) => {
                let zero = Accumulator::new(self.layer.params).map_err(misuse)?;
                let sum = sums.get_mut(block).ok_or_else(unfit)?;
                std::mem::replace(sum, zero).finish().map_err(misuse)
            }
        }
    }
}

fn unfit() -> Error {
    Error::misuse("weights that do not fit their layer")
}
