//! Smooth functions of one number that tables evaluate.

use serde::{Deserialize, Serialize};

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `x * min(max(x / 6 + 1/2, 0), 1)`.
    HardSwish,
    /// `min(max(alpha * x + beta, 0), 1)`.
    HardSigmoid,
    /// `x`, below 0 `alpha * (exp(x) - 1)`.
    Elu,
    /// `ln(1 + exp(x))`.
    Softplus,
    /// `x`, below 0 `alpha * x`.
    LeakyRelu,
    /// `exp(x)`.
    Exp,
    /// The natural logarithm, minus infinity at 0 and below.
    Log,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// `x / (1 + |x|)`.
    Softsign,
}

impl Function {
    /// Returns the function at `x`.
    pub fn at(self, x: f64, alpha: f64, beta: f64) -> f64 {
        match self {
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Tanh => x.tanh(),
            Self::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Self::HardSigmoid => (alpha * x + beta).clamp(0.0, 1.0),
            Self::Elu => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Self::LeakyRelu => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            Self::Exp => x.exp(),
            Self::Log => x.max(0.0).ln(),
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Softsign => x / (1.0 + x.abs()),
        }
    }
}
