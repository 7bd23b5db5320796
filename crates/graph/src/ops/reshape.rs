//! The elements of a tensor under another shape.

use super::checks::{ensure, same_width};
use super::known::Known;
use super::operator::{Operator, Site, UnscaledOperator};
use super::range::Range;
use crate::error::Check;
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};

/// The input's elements in their order under another shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reshape;

impl Operator for Reshape {
    fn kind(&self) -> &'static str {
        "reshape"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (input, output) = (site.input(), site.output);
        ensure(input.len() == output.len(), || "changes the number of elements".into())?;
        same_width(input, output)?;
        Ok(input.format.signed)
    }

    fn rearranges(&self) -> bool {
        true
    }

    fn unscaled(&self, _site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        Some(self)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(inputs[0].to_vec())
    }

    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        inputs[0].kept(site.input().shape.first() == site.output.shape.first())
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}

impl UnscaledOperator for Reshape {
    fn range(&self, _weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
        inputs[0]
    }

    fn interpret(&self, _weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128> {
        inputs[0].to_vec()
    }
}
