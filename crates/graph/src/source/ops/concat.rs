//! Concatenations.

use super::checks::concatenated;
use crate::error::{Check, Result};
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use serde::{Deserialize, Serialize};

/// Relative difference up to which two scales are one.
const SAME: f64 = 1e-9;

/// Inputs one after another along the outermost axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concat {}

impl SourceOperator for Concat {
    fn kind(&self) -> &'static str {
        "Concat"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        concatenated(inputs)
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values)
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        let ranges = (0..values.inputs()).map(|place| values.range(place));
        let join = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        Ok(ranges.collect::<Result<Vec<_>>>()?.into_iter().reduce(join))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.scale()?;
        let inputs = step.values().inputs();
        let mut signed = false;
        for place in 0..inputs {
            if (step.input(place)?.format.scale / scale - 1.0).abs() >= SAME {
                step.rescale(place, &format!("rescaled{place}"), scale)?;
            }
            signed |= step.input(place)?.format.signed;
        }
        step.write(Box::new(ops::Concat), scale, signed)
    }
}
