//! Products of a feature map with one factor for each channel, as of squeeze-and-excite.

use super::checks::two;
use super::multiply::{self, Multiply};
use super::narrow::extended;
use crate::error::{Check, Result};
use crate::ops::{MatMul, Operator, Product, Reshape, Rounding, Sum, View};
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// Values of a channel from which on ciphertexts take fewer bytes than products by oblivious
/// transfer: a polynomial has 2048 coefficients, and one of factors comes with it.
const LARGE: usize = 400;
/// Most bits of a product under encryption: wider ones have no room below the largest modulus.
const WIDEST: f64 = 25.0;
/// Most bits that products lose.
const MOST_SHIFT: f64 = 30.0;

/// `y[c, ..] = x[c, ..] * g[c]`: all values of a channel times the factor of that channel. The first
/// input is `[channels, ..]` and the second one `[channels, 1, ..]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {}

impl SourceOperator for Gate {
    fn kind(&self) -> &'static str {
        "Gate"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (x, g) = two(inputs)?;
        let fits = match (x, g) {
            ([channels, ..], [factors, rest @ ..]) => {
                channels == factors && x.len() == g.len() && rest.iter().all(|side| *side == 1)
            }
            _ => false,
        };
        fits.then(|| x.to_vec()).ok_or(format!("gates {x:?} by {g:?}"))
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        Multiply {}.demands(values)
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        multiply::clip_factors(step)?;
        let shape = step.shape().to_vec();
        let (channels, all) = (shape[0], shape.iter().product::<usize>());
        let large = all / channels.max(1) >= LARGE;
        let rounds = step.rounding() == Rounding::Stochastic;
        let summed = step.values().is_rescaled_by_sums();
        if large && rounds && !summed && multiply::width(step)? <= WIDEST {
            return encrypted(step, [channels, all / channels.max(1)]);
        }
        let strides = (0..shape.len()).map(|axis| usize::from(axis == 0)).collect();
        let spread = shown(step, 1, View { start: 0, strides }, shape)?;
        if summed {
            return multiply::product(step, [0, spread]);
        }
        let (shift, scale) = rounding(step)?;
        let [x, g] = [step.input(0)?, step.input(spread)?].map(|factor| factor.format);
        let signed = x.signed || g.signed;
        let operator = Product { factor_bits: [1, 1] };
        let product = IntegerNode::new(operator, &[0, spread], x.scale * g.scale, signed);
        if shift == 0 {
            return finished(step, product);
        }
        let product = step.before("product", product)?;
        let rounded = Sum { multipliers: [1, 0], accumulator_bits: 0, shift };
        finished(step, IntegerNode::new(rounded, &[product; 2], scale, true))
    }
}

/// The bits that products lose, and the scale that this leaves: at least as fine as readers want
/// the results.
fn rounding(step: &dyn Lowering) -> Result<(u32, f64)> {
    let scale = step.input(0)?.format.scale * step.input(1)?.format.scale;
    let shift = (step.scale()? / scale).log2().floor().clamp(0.0, MOST_SHIFT);
    Ok((shift as u32, scale * shift.exp2()))
}

/// Writes the output, in wider shares where a reader does not clip it.
fn finished(step: &mut dyn Lowering, node: IntegerNode) -> Result<()> {
    let narrow = step.values().is_clipped_by_readers();
    if narrow { step.finish(node) } else { extended(step, node) }
}

/// Writes an operator that shows the tensor at a place under another shape, and tells its place.
fn shown(
    step: &mut dyn Lowering,
    place: usize,
    operator: impl Operator,
    shape: Vec<usize>,
) -> Result<usize> {
    let format = step.input(place)?.format;
    let node = IntegerNode::new(operator, &[place], format.scale, format.signed);
    step.before(&format!("shown{place}"), IntegerNode { shape: Some(shape), ..node })
}

/// Writes the products as those of a column of values and a matrix of one factor, one for each
/// channel, which ciphertexts multiply and round.
fn encrypted(step: &mut dyn Lowering, [channels, each]: [usize; 2]) -> Result<()> {
    let shape = step.shape().to_vec();
    let factors = shown(step, 1, Reshape, vec![channels, 1, 1])?;
    let values = shown(step, 0, Reshape, vec![channels, 1, each])?;
    let (shift, scale) = rounding(step)?;
    let operator = MatMul { accumulator_bits: 1, shift, rounding: step.rounding() };
    let node = IntegerNode::new(operator, &[factors, values], scale, true);
    let product = IntegerNode { shape: Some(vec![channels, 1, each]), ..node };
    let product = step.before("product", product)?;
    let shown = IntegerNode::new(Reshape, &[product], scale, true);
    finished(step, IntegerNode { shape: Some(shape), ..shown })
}
