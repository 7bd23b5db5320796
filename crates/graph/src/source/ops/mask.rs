//! Masks of attention scores.

use super::checks::two;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// The first input where the second, of the same shape, is 1; so low where it is 0 that
/// a softmax makes it 0. The second is the graph's input, or shows it in another order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mask {}

impl SourceOperator for Mask {
    fn kind(&self) -> &'static str {
        "Mask"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (a, b) = two(inputs)?;
        (a == b).then(|| a.to_vec()).ok_or(format!("masks {a:?} by {b:?}"))
    }
}
