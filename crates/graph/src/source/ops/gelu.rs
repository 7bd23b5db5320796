//! GELU.

use super::checks::one;
use crate::error::{Check, Result};
use crate::functions::Gelu as Function;
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{HIDDEN_BITS, levels, side};
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// Where GELU is a ReLU, up to what results of the finest scale show.
const GELU_REACH: f64 = 2.5;

/// The Gaussian error linear unit of each value: `x * Phi(x)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gelu {}

impl SourceOperator for Gelu {
    fn kind(&self) -> &'static str {
        "Gelu"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        one(inputs).map(<[usize]>::to_vec)
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let activation = values.activation_bits();
        let finest = GELU_REACH / levels(activation.saturating_sub(2).max(2));
        let scale = side(values.range(0)?) / levels(activation + HIDDEN_BITS);
        Ok(vec![(Place::Input(0), scale.max(finest))])
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.input(0)?.format.scale;
        let Some(magnitude) = Function::least(scale) else {
            let what = "is a GELU of values that are too small";
            return Err(step.refuse(what, "calibrate with real inputs"));
        };
        step.write(Box::new(ops::Gelu { magnitude, scale }), scale, true)
    }
}
