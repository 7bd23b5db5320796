//! Real functions behind the tables, from exactly rounded operations alone: both
//! parties derive the same widths from them on every machine.

/// `e^-x` for x >= 0, to about 1e-13 of itself.
pub fn exp_minus(x: f64) -> f64 {
    const HALVINGS: i32 = 10;
    if x > 745.0 {
        return 0.0;
    }
    let small = -x / f64::from(1 << HALVINGS);
    let terms = (1..=18).rev().fold(1.0, |sum, k| 1.0 + sum * small / f64::from(k));
    (0..HALVINGS).fold(terms, |power, _| power * power)
}

/// Standard normal distribution function at -x for x >= 0, to about 1e-13.
pub fn normal_tail(x: f64) -> f64 {
    const MOST_TERMS: i32 = 300;
    /// One over the square root of two pi.
    const PEAK: f64 = 0.398_942_280_401_432_7;
    if x > 8.5 {
        return 0.0;
    }
    let (mut term, mut sum) = (x, x);
    for k in 1..MOST_TERMS {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
        if term < sum * 1e-18 {
            break;
        }
    }
    (0.5 - PEAK * exp_minus(x * x / 2.0) * sum).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_machine() {
        for i in 0..4000 {
            let x = f64::from(i) / 100.0;
            assert!((exp_minus(x) - (-x).exp()).abs() < 1e-12 * (-x).exp(), "{x}");
        }
        assert!(exp_minus(1e9) == 0.0);
    }

    #[test]
    fn tails_of_the_normal_distribution_are_known() {
        let known = [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (4.0, 3.167_124_183_311_992e-5),
            (6.0, 9.865_876_450_376_98e-10),
        ];
        for (x, tail) in known {
            assert!((normal_tail(x) - tail).abs() < 1e-12, "{x}: {}", normal_tail(x));
        }
        assert!(normal_tail(1e9) == 0.0);
    }
}
