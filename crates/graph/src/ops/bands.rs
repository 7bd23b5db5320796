//! The band between secret edges in which each value lies.

use super::checks::{ensure, same_shape};
use super::known::Known;
use super::operator::{Operator, Site, Weighted};
use super::range::Range;
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use serde::{Deserialize, Serialize};

/// Most edges: each is compared with each value.
pub const MAX_EDGES: usize = 64;

/// For each element the number of the server's edges that are not above it.
///
/// The edges are the server's constants, and lie within a quarter of the ring on either side of
/// zero, so that no difference to a value leaves the ring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// Number of edges.
    pub edges: usize,
}

impl Bands {
    /// Returns the largest magnitude of an edge for values of `bits`.
    pub fn largest_edge(bits: u32) -> i64 {
        1 << bits.clamp(2, 62).saturating_sub(2)
    }
}

impl Operator for Bands {
    fn kind(&self) -> &'static str {
        "bands"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        let bits = site.input().format.bits;
        ensure((2..=62).contains(&bits), || format!("bands of values of {bits} bits"))?;
        let edges = self.edges;
        ensure((1..=MAX_EDGES).contains(&edges), || format!("{edges} edges"))?;
        Ok(false)
    }

    fn weighted(&self) -> Option<&dyn Weighted> {
        Some(self)
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let edges = &site.needed_weights()?.bias;
        let band = |value: &i64| edges.iter().filter(|edge| **edge <= *value).count() as i64;
        Ok(inputs[0].iter().map(band).collect())
    }

    fn output(&self, _site: &Site<'_>, _inputs: &[Known]) -> Known {
        Range::new(0, self.edges as i128).into()
    }

    fn fits(&self, site: &Site<'_>, _inputs: &[Known]) -> Check<()> {
        let most = Self::largest_edge(site.input().format.bits);
        let within = site.needed_weights()?.bias.iter().all(|edge| (-most..=most).contains(edge));
        within.then_some(()).ok_or_else(|| "an edge beyond all values".into())
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.difference_width()
    }
}

impl Weighted for Bands {
    fn weight_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        None
    }

    fn bias_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.edges])
    }

    fn check(&self, _output: &Tensor, weights: &NodeWeights) -> Check<()> {
        let fits = weights.weight.is_empty() && weights.bias.len() == self.edges;
        fits.then_some(()).ok_or(format!("needs {} edges", self.edges))
    }
}
