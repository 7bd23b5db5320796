//! Functions of one number by their public tables.

use super::checks::{ensure, same_shape};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// Largest number of a table's entries.
const MAX_TABLE: usize = 256;

/// `y = values[x - low]`: a function by its public table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookup {
    /// The smallest input.
    pub low: i64,
    /// The results from there on; 2 to 256 of them, a power of two.
    pub values: Vec<i64>,
}

impl Operator for Lookup {
    fn kind(&self) -> &'static str {
        "lookup"
    }

    fn title(&self) -> &'static str {
        "table"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (input, output) = (site.input(), site.output);
        same_shape(input, output)?;
        let size = self.values.len();
        let sized = (2..=MAX_TABLE).contains(&size) && size.is_power_of_two();
        ensure(sized, || format!("a table of {size} entries"))?;
        let (bits, need) = (input.format.bits, size.ilog2());
        ensure(bits >= need, || format!("{bits} bits for a table of {size} entries"))?;
        let bound = 1i64 << (output.format.bits - 1);
        let fits = self.values.iter().all(|v| (-bound..bound).contains(v));
        ensure(fits, || "an entry does not fit the output".into())?;
        Ok(self.values.iter().any(|v| *v < 0))
    }

    /// Positions count modulo the table's size, as in the protocol.
    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let at = |v: &i64| v.wrapping_sub(self.low) as usize % self.values.len();
        Ok(inputs[0].iter().map(|v| self.values[at(v)]).collect())
    }

    fn output(&self, _: &Site<'_>, _inputs: &[Known]) -> Known {
        Range::around(self.values.iter().map(|v| i128::from(*v))).into()
    }

    fn fits(&self, _: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let low = i128::from(self.low);
        let table = Range::new(low, low + self.values.len() as i128 - 1);
        table.holds(inputs[0].range).then_some(()).ok_or("looks up beyond its table".into())
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.values.len().ilog2()
    }
}
