//! Sums of tensors with public factors, several at once.

use crate::error::{Check, Result};
use crate::ops::{Concat, Sum};
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{levels, side};
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// The whole number that the largest factor becomes at least.
const FACTOR: f64 = 64.0;
/// Bits that results have beyond activations.
const SPARE_BITS: u32 = 1;
/// The most bits that are dropped of the sums.
const MOST_SHIFT: f64 = 30.0;
/// The largest absolute value of a factor, and the most combinations.
const MOST: (f64, usize) = (1e6, 64);

/// Sums of all inputs times factors, `f[0]*x0 + f[1]*x1 + ..` for each `f`, one after another along
/// the outermost axis. The factors become public, so that nothing is sent but for one rescaling of
/// all results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combinations {
    /// The factors of the inputs, in order, of each combination.
    pub factors: Vec<Vec<f64>>,
}

impl Combinations {
    fn largest(&self) -> f64 {
        self.factors.iter().flatten().fold(0.0, |most, factor| factor.abs().max(most))
    }

    /// Writes one combination without rescaling, and tells its place.
    fn sum(&self, step: &mut dyn Lowering, index: usize, unit: f64) -> Result<usize> {
        let shape = step.input(0)?.shape.clone();
        let mut whole = vec![];
        for (place, factor) in self.factors[index].iter().enumerate() {
            let factor = (factor * step.input(place)?.format.scale / unit).round();
            if factor.abs() >= f64::from(1u32 << 31) {
                let what = "combines tensors of very different calibrated ranges";
                return Err(step.refuse(what, "calibrate with inputs like the real ones"));
            }
            whole.push(factor as i64);
        }
        let (mut reads, mut multiplier) = (0, whole[0]);
        for (place, factor) in whole.into_iter().enumerate().skip(1) {
            let multipliers = [multiplier, factor];
            let sum = Sum { multipliers, accumulator_bits: 0, shift: 0 };
            let node = IntegerNode::new(sum, &[reads, place], unit, true);
            let node = IntegerNode { shape: Some(shape.clone()), ..node };
            reads = step.before(&format!("sum{index}.{place}"), node)?;
            multiplier = 1;
        }
        Ok(reads)
    }
}

impl SourceOperator for Combinations {
    fn kind(&self) -> &'static str {
        "Combinations"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let [first, others @ ..] = inputs else { return Err("reads nothing".into()) };
        let fits = |factors: &Vec<f64>| {
            let usable = |factor: &f64| factor.is_finite() && factor.abs() <= MOST.0;
            factors.len() == inputs.len() && factors.iter().all(usable)
        };
        let usable = self.factors.iter().all(fits) && self.largest() > 0.0;
        if others.is_empty() || !usable || self.factors.len() > MOST.1 {
            return Err(format!("has the factors {:?} of {} inputs", self.factors, inputs.len()));
        }
        let mut shape = first.to_vec();
        match shape.first_mut() {
            Some(outermost) if others.iter().all(|other| other == first) => {
                *outermost *= self.factors.len();
            }
            _ => return Err(format!("combines {inputs:?}")),
        }
        Ok(shape)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let bits = values.activation_bits();
        let input = |place| Ok((Place::Input(place), side(values.range(place)?) / levels(bits)));
        let mut demands = (0..values.inputs()).map(input).collect::<Result<Vec<_>>>()?;
        demands.push((Place::Output, side(values.output_range()?) / levels(bits + SPARE_BITS)));
        Ok(demands)
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.scale()?;
        let inputs = step.values().inputs();
        let scales = (0..inputs).map(|place| Ok(step.input(place)?.format.scale));
        let coarsest = scales.collect::<Result<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
        let needed = scale * FACTOR / (coarsest * self.largest());
        let shift = needed.log2().ceil().clamp(0.0, MOST_SHIFT) as u32;
        let unit = scale / f64::from(shift).exp2();
        let sums = (0..self.factors.len()).map(|index| self.sum(step, index, unit));
        let places = sums.collect::<Result<Vec<_>>>()?;
        let all = match places[..] {
            [only] => only,
            _ => step.before("all", IntegerNode::new(Concat, &places, unit, true))?,
        };
        let rounded = Sum { multipliers: [1, 0], accumulator_bits: 0, shift };
        step.finish(IntegerNode::new(rounded, &[all; 2], scale, true))
    }
}
