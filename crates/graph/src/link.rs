//! Links: public functions that make estimates of a model's results.
//!
//! A model may give what a function of its family takes, such as the log-odds of a class, and
//! clients apply that function to the results that they learn. A link is part of the public graph.

use crate::error::Check;
use serde::{Deserialize, Serialize};

/// What becomes of results: `function` of `scale` times a result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The function.
    pub function: LinkFunction,
    /// What results are multiplied by before it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub scale: f64,
}

/// Functions of the product x of the scale and a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkFunction {
    /// 1 / (1 + exp(-x)): a probability of log-odds.
    Sigmoid,
    /// Probabilities of all classes: exp(x) over its sum.
    Softmax,
    /// exp(x), such as a rate.
    Exp,
    /// ln(1 + exp(x)).
    Softplus,
    /// x |x|, of models that were trained on signed roots.
    SignedSquare,
    /// 1 where x is above zero, or else 0.
    Step,
    /// -2^(-x): how normal an input is to an isolation forest, x being its normalised path length.
    Isolation,
}

impl Link {
    /// Checks that the scale is a number.
    pub(crate) fn check(&self) -> Check<()> {
        let scaled = self.scale.is_finite() && self.scale != 0.0;
        scaled.then_some(()).ok_or_else(|| format!("a link of scale {}", self.scale))
    }
}

fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(scale: &f64) -> bool {
    *scale == 1.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn unknown_links_are_refused() {
        let link: Link = serde_json::from_str(r#"{"function": "signed-square"}"#).unwrap();
        assert_eq!((link.function, link.scale), (LinkFunction::SignedSquare, 1.0));
        assert_eq!(serde_json::to_string(&link).unwrap(), r#"{"function":"signed-square"}"#);
        for text in [r#"{"function": "tanh"}"#, r#"{"function": "exp", "more": 1}"#, "{}"] {
            assert!(serde_json::from_str::<Link>(text).is_err(), "{text}");
        }
        for scale in [0.0, f64::NAN, f64::INFINITY] {
            assert!(Link { scale, ..link }.check().is_err());
        }
    }
}
