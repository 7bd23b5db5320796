//! The largest value of each window.

use super::geometry::Window;
use super::known::Known;
use super::operator::{Operator, Site};
use super::pool;
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// The largest value of each window; padded positions never win.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaxPool(pub Window);

impl Operator for MaxPool {
    fn kind(&self) -> &'static str {
        "max-pool"
    }

    fn title(&self) -> &'static str {
        "max pool"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        pool::verify(&self.0, site)
    }

    fn listed(&self, _site: &Site<'_>) -> usize {
        pool::listed(&self.0)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(pool::pool(&self.0, inputs[0], i64::MIN, i64::max))
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        inputs[0].range.into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.difference_width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}
