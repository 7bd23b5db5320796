//! Sums with constants of the server.

use super::checks::{same_shape, same_width};
use super::known::Known;
use super::operator::{Operator, Site, UnscaledOperator, Weighted};
use super::range::Range;
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use serde::{Deserialize, Serialize};

/// Sum with constants of the server, one for each element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offset;

fn constants(weights: Option<&NodeWeights>) -> impl Iterator<Item = i128> {
    weights.into_iter().flat_map(|weights| &weights.bias).map(|c| i128::from(*c))
}

impl Operator for Offset {
    fn kind(&self) -> &'static str {
        "offset"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        same_width(site.input(), site.output)?;
        Ok(true)
    }

    fn weighted(&self) -> Option<&dyn Weighted> {
        Some(self)
    }

    fn unscaled(&self, _site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        Some(self)
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let constants = &site.needed_weights()?.bias;
        Ok(inputs[0].iter().zip(constants).map(|(v, c)| v.wrapping_add(*c)).collect())
    }

    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        inputs[0].plus(Range::around(constants(site.weights))).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}

impl Weighted for Offset {
    fn weight_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        None
    }

    fn bias_shape(&self, output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![output.len()])
    }

    fn check(&self, output: &Tensor, weights: &NodeWeights) -> Check<()> {
        let want = output.len();
        let fits = weights.weight.is_empty() && weights.bias.len() == want;
        fits.then_some(()).ok_or(format!("needs {want} constants"))
    }
}

impl UnscaledOperator for Offset {
    fn range(&self, weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
        inputs[0].plus(Range::around(constants(weights)))
    }

    fn interpret(&self, weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128> {
        inputs[0].iter().zip(constants(weights)).map(|(v, c)| v + c).collect()
    }
}
