//! The server's weights, and the way in which ciphertexts are multiplied with them.

use std::ops::{Deref, Range};

use he::rlwe::direct::TOGETHER;
use he::rlwe::{Direct, Params, Row, Weights};
use pricing::fixed::lattice::direct::{POINTWISE, TRANSFORMED};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use super::narrow::Narrow;
use super::packing::Folding;
use crate::linear::transport::misuse;

/// Bytes of transformed weights that a server keeps of one layer. A layer that would need more
/// keeps none and transforms its weights whenever it uses them, unless direct products take less
/// work than that.
const KEPT: usize = 64 << 20;

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
    /// and output block; or those of the polynomials that are transformed whenever they are used,
    /// by group, output block, input block and power.
    plain: Narrow,
    /// Weights for the transforms, by group, output block and input block; those behind the last
    /// are in `plain`.
    polynomials: Vec<Weights>,
    /// The powers of X at which weights stand.
    powers: Vec<usize>,
    /// One per output channel, at accumulator scale.
    bias: Zeroizing<Vec<i64>>,
    /// The weights as they came, for products in the clear; empty unless these were asked for.
    weight: Zeroizing<Vec<i32>>,
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
    let evaluated = transformed(packing, layer.params);
    if packing.pairs().saturating_mul(plan.work()) <= evaluated {
        Kernel::Direct(Box::new(plan))
    } else {
        Kernel::Transform
    }
}

/// Work of all products in the evaluation basis, of the transforms of all ciphertexts and of those
/// of weights that are not kept, in multiplications of the direct kernel.
pub(super) fn transformed(packing: &Folding, params: Params) -> usize {
    let (degree, products) = (params.degree(), packing.pairs());
    let ciphertexts = packing.polynomials().saturating_add(packing.responses());
    let transforms = (2 * degree * TRANSFORMED).saturating_mul(ciphertexts);
    let again = again(packing, params).saturating_mul(TRANSFORMED);
    products.saturating_mul(2 * degree * POINTWISE).saturating_add(transforms).saturating_add(again)
}

/// Coefficients of the transforms of weights that are not kept, of all products. Weights in a power of X
/// have transforms that are shorter by that power.
pub(super) fn again(packing: &Folding, params: Params) -> usize {
    if keeps(packing, params) {
        return 0;
    }
    let degree = params.degree();
    packing.pairs().saturating_mul(degree / step(&packing.powers(), degree))
}

/// From this step of the powers on at which weights stand, a transform takes little of the time of the
/// product that it is for.
const SHORT: usize = 16;

/// Returns the bytes that a server holds of the transforms of a layer's weights, if it has the memory.
pub fn transform_bytes(layer: &Layer) -> usize {
    let (packing, params) = (&layer.packing, layer.params);
    match kernel(layer) {
        Kernel::Transform if keeps(packing, params) => {
            let each = Weights::bytes(params, step(&packing.powers(), params.degree()));
            packing.weight_polynomials().saturating_mul(each)
        }
        _ => 0,
    }
}

/// Returns whether the weights of a layer are soon transformed anew, so that transforms of others are
/// better kept.
pub fn transforms_soon(layer: &Layer) -> bool {
    step(&layer.packing.powers(), layer.params.degree()) >= SHORT
}

/// Whether a server keeps the transforms of the weights of a layer, if it has the memory.
pub(super) fn keeps(packing: &Folding, params: Params) -> bool {
    let step = step(&packing.powers(), params.degree());
    packing.weight_polynomials().saturating_mul(Weights::bytes(params, step)) <= KEPT
}

impl ServerWeights {
    /// Encodes `weight` `[O, I/g, kh, kw]` and `bias` `[O]` for `layer`. Transformed
    /// weights take from `memory`, in bytes, what they need; once it is used up, and in a layer
    /// that would need a lot of it, weights are transformed whenever they are used.
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
        let powers = layer.packing.powers();
        let (plain, polynomials) = match &kernel {
            Kernel::Direct(plan) => (interleave(layer, plan, weight), Vec::new()),
            Kernel::Transform => transform(layer, weight, memory)?,
        };
        let (bias, weight) = (Zeroizing::new(bias.to_vec()), Zeroizing::default());
        Ok(Self { kernel, plain, polynomials, powers, bias, weight })
    }

    /// Keeps `weight` as it is too, which preprocessed layers need.
    #[must_use]
    pub fn keeping(self, weight: &[i32]) -> Self {
        Self { weight: Zeroizing::new(weight.to_vec()), ..self }
    }

    /// How they are multiplied with.
    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the weights in `range` as the direct kernel reads them.
    pub(super) fn plain(&self, range: Range<usize>) -> Result<Zeroizing<Vec<i32>>> {
        self.plain.get(range).ok_or_else(unfit)
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
            Kernel::Transform => {
                self.polynomials.len() + self.plain.len() / self.powers.len().max(1)
            }
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

    /// The transforms of `count` polynomials from a place on beside each other, if they repeat enough.
    pub(super) fn row(&self, layer: &Layer, place: usize, count: usize) -> Result<Option<Row>> {
        if place < self.polynomials.len() {
            let all = self.several(layer, place, count)?;
            let all: Vec<&Weights> = all.iter().map(|own| &**own).collect();
            return Ok(Row::new(layer.params, &all));
        }
        let step = step(&self.powers, layer.params.degree());
        let values = self.values(place, count)?;
        Row::transform(layer.params, step, &self.powers, &values).map_err(misuse)
    }

    /// The transforms of `count` polynomials from a place on.
    pub(super) fn several(
        &self,
        layer: &Layer,
        place: usize,
        count: usize,
    ) -> Result<Vec<Own<'_>>> {
        let own = |place| match self.polynomials.get(place) {
            Some(kept) => Ok(Own::Kept(kept)),
            None => in_evaluation(layer, &self.powers, &self.values(place, 1)?).map(Own::Made),
        };
        (place..).take(count).map(own).collect()
    }

    /// The weights of `count` polynomials from `place` on, whose transforms are not kept, at the powers at which
    /// they stand.
    fn values(&self, place: usize, count: usize) -> Result<Zeroizing<Vec<i32>>> {
        let terms = self.powers.len();
        let start = place.checked_sub(self.polynomials.len()).ok_or_else(unfit)? * terms;
        self.plain.get(start..start + count * terms).ok_or_else(unfit)
    }
}

/// Weights in the evaluation basis.
pub(super) enum Own<'a> {
    Kept(&'a Weights),
    /// Transformed anew.
    Made(Weights),
}

impl Deref for Own<'_> {
    type Target = Weights;

    fn deref(&self) -> &Weights {
        match self {
            Self::Kept(weights) => weights,
            Self::Made(weights) => weights,
        }
    }
}

impl std::fmt::Debug for ServerWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerWeights(<hidden>, {:?})", self.kernel)
    }
}

fn interleave(layer: &Layer, plan: &Direct, weight: &[i32]) -> Narrow {
    let packing = &layer.packing;
    let (outputs, inputs) = (packing.output_blocks(), packing.input_blocks());
    let (terms, quads) = (plan.terms(), outputs.div_ceil(TOGETHER));
    let one = terms * TOGETHER;
    let mut plain = Narrow::zeros(packing.groups() * quads * inputs * one, layer.largest);
    for (group, output, input) in packing.blocks() {
        let start = ((group * quads + output / TOGETHER) * inputs + input) * one;
        for (term, from) in packing.weights(group, output, input).into_iter().enumerate() {
            if let Some(value) = from.and_then(|from| weight.get(from)) {
                plain.set(start + term * TOGETHER + output % TOGETHER, *value);
            }
        }
    }
    plain
}

/// The polynomials that are not kept, and those that are: the first ones.
fn transform(layer: &Layer, weight: &[i32], memory: &mut usize) -> Result<(Narrow, Vec<Weights>)> {
    let (packing, powers) = (&layer.packing, layer.packing.powers());
    let each = Weights::bytes(layer.params, step(&powers, layer.params.degree()));
    let (all, mut ready) = (packing.weight_polynomials(), Vec::new());
    let kept = if keeps(packing, layer.params) { all.min(*memory / each.max(1)) } else { 0 };
    *memory -= kept * each;
    let mut plain = Narrow::zeros((all - kept) * powers.len(), layer.largest);
    for (place, (group, output, input)) in packing.blocks().enumerate() {
        let values = packing.weights(group, output, input).into_iter();
        let values = values.map(|from| from.and_then(|from| weight.get(from)).copied());
        let values: Zeroizing<Vec<i32>> =
            Zeroizing::new(values.map(Option::unwrap_or_default).collect());
        match place.checked_sub(kept) {
            None => ready.push(in_evaluation(layer, &powers, &values)?),
            Some(behind) => {
                let start = behind * powers.len();
                values.iter().enumerate().for_each(|(i, value)| plain.set(start + i, *value));
            }
        }
    }
    Ok((plain, ready))
}

/// The transform of the polynomial with `values` at `powers`.
fn in_evaluation(layer: &Layer, powers: &[usize], values: &[i32]) -> Result<Weights> {
    let degree = layer.params.degree();
    let step = step(powers, degree);
    let mut wide = Zeroizing::new(vec![0; degree / step]);
    for (power, value) in powers.iter().zip(values) {
        if let Some(to) = wide.get_mut(power / step) {
            *to = i64::from(*value);
        }
    }
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

pub(super) fn unfit() -> Error {
    Error::misuse("weights that do not fit their layer")
}
