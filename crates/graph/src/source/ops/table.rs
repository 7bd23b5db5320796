//! Functions of one number, by tables.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::function::Function;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// A smooth function, by a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Which one.
    pub function: Function,
    /// The function's first parameter, if it has any.
    #[serde(default)]
    pub alpha: f64,
    /// The function's second parameter.
    #[serde(default)]
    pub beta: f64,
}

impl SourceOperator for Table {
    fn kind(&self) -> &'static str {
        "Table"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let fits = self.alpha.is_finite() && self.beta.is_finite();
        fits.then(|| input.to_vec()).ok_or("has a parameter that is not finite".into())
    }
}
