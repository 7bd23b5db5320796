//! `e^-x` in integers. Both parties build the same tables, on any machine: what a C
//! library's `exp` returns differs from one to the next in the last bit.

/// Fraction bits of an argument.
pub(super) const ARGUMENT: u32 = 80;
/// Fraction bits of a result.
pub(super) const RESULT: u32 = 63;
/// Arguments from here on are beyond every table: `e^-64 < 2^-92`.
const BEYOND: u128 = 64;
/// Halvings before the series.
const HALVINGS: u32 = 7;
/// Terms of the series: `0.5^20/20! < 2^-80`.
const TERMS: u64 = 20;

/// `scale` as an argument, 64 at most.
pub(super) fn argument(scale: f64) -> u128 {
    // A product with a power of two, then a conversion: exact but for the last bits cut off.
    (scale.min(BEYOND as f64) * (1u128 << ARGUMENT) as f64) as u128
}

/// `e^-x * 2^63`, off by less than 2^-54 of one.
pub(super) fn exponential(x: u128) -> u64 {
    if x >> ARGUMENT >= BEYOND {
        return 0;
    }
    let y = (x >> (HALVINGS + ARGUMENT - RESULT)) as u64;
    let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> RESULT) as u64;
    // Horner's scheme: 1 - y(1 - y/2(1 - y/3(...))).
    let one = 1u64 << RESULT;
    let step = |sum: u64, n: u64| one - product(y, sum) / n;
    let series = (1..=TERMS).rev().fold(one, step);
    (0..HALVINGS).fold(series, |root, _| product(root, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_floating_point() {
        for at in 0..20_000u32 {
            let x = f64::from(at) * 0.0031 + f64::from(at % 7) * 1e-7;
            let got = exponential(argument(x)) as f64 / (1u64 << RESULT) as f64;
            assert!((got - (-x).exp()).abs() < 2f64.powi(-51), "e^-{x}: {got}");
        }
        assert_eq!(exponential(0), 1 << RESULT);
        assert_eq!(exponential(argument(1e30)), 0);
        // e^-1 to 60 bits.
        assert!(exponential(1 << ARGUMENT).abs_diff(0x2f16_ac6c_59de_6f8d) < 1 << 9);
    }
}
