//! Rows of a table.

use super::checks::one;
use crate::error::{Check, Result};
use crate::ops::{self, View};
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::SourceOperator;
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};

/// Low bits that a table's entries have beyond its results.
const SHIFT: u32 = 4;

/// Rows of a table at positions that the input, `[length]`, names; the input is the
/// graph's, or shows it in another order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Name of the table, of shape `[rows, columns]`.
    pub weight: String,
}

impl SourceOperator for Embedding {
    fn kind(&self) -> &'static str {
        "Embedding"
    }

    fn floats(&self) -> Vec<&str> {
        vec![&self.weight]
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let [length] = *input else {
            return Err(format!("looks rows up for a tensor of shape {input:?}"));
        };
        match floats[&self.weight].shape[..] {
            [_, columns] => Ok(vec![length, columns]),
            _ => Err("its table is no matrix".into()),
        }
    }

    fn table(&self) -> Option<&str> {
        Some(&self.weight)
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.scale()?;
        let table = &step.floats()[&self.weight];
        let unit = scale / f64::from(1u32 << SHIFT);
        let entries: Vec<f64> = table.data.iter().map(|w| (f64::from(*w) / unit).round()).collect();
        let largest = entries.iter().fold(0.0f64, |most, entry| most.max(entry.abs()));
        if largest >= f64::from(1u32 << 30) {
            let what = "its table is far too large for the calibrated range";
            return Err(step.refuse(what, "calibrate with real inputs"));
        }
        let [rows, columns] = [table.shape[0], table.shape[1]];
        // One more for the rounding term.
        let weight_bits = ((largest as u32 + (1 << SHIFT)).ilog2() + 2).max(SHIFT + 2);
        let rounding = step.rounding();
        let operator = ops::Embedding { rows, weight_bits, shift: SHIFT, rounding };
        let weight = entries.into_iter().map(|entry| entry as i32).collect();
        let length = step.input(0)?.shape[0];
        let across = IntegerNode {
            weights: Some(NodeWeights { weight, bias: vec![] }),
            shape: Some(vec![columns, length]),
            ..IntegerNode::new(operator, &[0], scale, true)
        };
        let across = step.before("columns", across)?;
        let view = View { start: 0, strides: vec![1, length] };
        step.finish(IntegerNode::new(view, &[across], scale, true))
    }
}
