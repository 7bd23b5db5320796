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
    /// The square root, 0 below 0.
    Sqrt,
    /// `1 / x`, of either infinity at 0.
    Reciprocal,
    /// The error function.
    Erf,
    /// -1, 0 or 1.
    Sign,
    /// The largest integer that is not above `x`.
    Floor,
    /// The smallest integer that is not below `x`.
    Ceil,
    /// The nearest integer, the even one of two.
    Round,
    /// `x / (1 + exp(-alpha * x))`.
    Silu,
    /// `x * tanh(ln(1 + exp(x)))`.
    Mish,
    /// `x * (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
    /// `x` to the power of `alpha`, of 0 below 0.
    Power,
}

impl Function {
    /// Whether it is steep just above 0, where a table of even steps is too coarse.
    pub(crate) fn is_steep(self, alpha: f64) -> bool {
        matches!(self, Self::Sqrt | Self::Log | Self::Reciprocal)
            || self == Self::Power && alpha < 1.0
    }

    /// The magnitude of arguments beyond which the function is within half of `step` of its limits;
    /// nothing for a function without limits.
    pub(crate) fn flat_beyond(self, step: f64) -> Option<f64> {
        if !matches!(self, Self::Sigmoid | Self::Tanh | Self::Erf) {
            return None;
        }
        let (mut inside, mut beyond) = (0.0, 64.0);
        while beyond - inside > 1e-3 {
            let middle = (inside + beyond) / 2.0;
            match 1.0 - self.at(middle, 0.0, 0.0) > step / 2.0 {
                true => inside = middle,
                false => beyond = middle,
            }
        }
        Some(beyond)
    }

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
            Self::Sqrt => x.max(0.0).sqrt(),
            Self::Reciprocal => x.recip(),
            Self::Erf => erf(x),
            Self::Sign => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Round => x.round_ties_even(),
            Self::Silu => x / (1.0 + (-alpha * x).exp()),
            Self::Mish => x * Self::Softplus.at(x, 0.0, 0.0).tanh(),
            Self::Gelu => x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)) / 2.0,
            Self::Power => x.max(0.0).powf(alpha),
        }
    }
}

/// The error function, by a series of positive terms (Abramowitz and Stegun, "Handbook of
/// mathematical functions", 7.1.6); 1 beyond 6, where it is within 1e-16 of that.
fn erf(x: f64) -> f64 {
    if x.abs() >= 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for odd in (3..400).step_by(2) {
        term *= 2.0 * x * x / f64::from(odd);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_known_values() {
        let near = |function: Function, x: f64, y: f64| {
            let got = function.at(x, 0.0, 0.0);
            assert!((got - y).abs() < 1e-12, "{function:?} of {x} is {got}, not {y}");
        };
        // Abramowitz and Stegun, table 7.1.
        for (x, y) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813),
            (1.0, 0.842_700_792_950),
            (2.0, 0.995_322_265_019),
        ] {
            near(Function::Erf, x, y);
            near(Function::Erf, -x, -y);
        }
        for (function, beyond) in [(Function::Tanh, 3.116), (Function::Sigmoid, 6.232)] {
            let found = function.flat_beyond(1.0 / 255.0).unwrap_or_default();
            assert!((found - beyond).abs() < 0.35, "{function:?} is flat beyond {found}");
        }
        assert_eq!(Function::Exp.flat_beyond(0.01), None);
        near(Function::Erf, 5.9, 1.0);
        near(Function::Erf, 7.0, 1.0);
        near(Function::Mish, 1.0, 0.865_098_388_267);
        assert!((Function::Silu.at(1.0, 2.0, 0.0) - 0.880_797_077_978).abs() < 1e-12);
        near(Function::Gelu, 1.0, 0.841_344_746_069);
        assert!((Function::Power.at(4.0, 1.5, 0.0) - 8.0).abs() < 1e-12);
        assert!(Function::Power.at(-4.0, 1.5, 0.0).abs() < 1e-12);
        near(Function::Sqrt, 2.25, 1.5);
        near(Function::Sqrt, -1.0, 0.0);
        near(Function::Reciprocal, -0.25, -4.0);
        for (x, sign, floor, ceil, round) in [
            (-1.5, -1.0, -2.0, -1.0, -2.0),
            (0.0, 0.0, 0.0, 0.0, 0.0),
            (0.5, 1.0, 0.0, 1.0, 0.0),
            (2.6, 1.0, 2.0, 3.0, 3.0),
        ] {
            near(Function::Sign, x, sign);
            near(Function::Floor, x, floor);
            near(Function::Ceil, x, ceil);
            near(Function::Round, x, round);
        }
    }
}
