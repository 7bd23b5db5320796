//! Taylor polynomials of `1/sqrt(t)` about the upper end of an interval, where all
//! coefficients are positive and no iteration diverges.

use crate::functions::newton::Interval;
use crate::functions::straight_line::Builder;

/// The polynomial of `degree`, with `fraction` bits after the point.
pub(super) fn start(
    builder: &mut Builder,
    interval: Interval,
    degree: u32,
    fraction: u32,
) -> usize {
    let Interval { high, bits, .. } = interval;
    let end = high as f64 / (1u64 << bits) as f64;
    // z = 1 - t/end, of which c + z*(c + z*(..)).
    let more = 14;
    let one = (1u64 << (fraction + more)) as f64;
    let slope = (one / high as f64).round() as i64;
    let line = builder.affine(&[(0, -slope)], slope * high);
    let z = builder.rounded(line, more);
    let coefficients: Vec<i64> = coefficients(degree)
        .map(|c| (c / end.sqrt() * (1u64 << fraction) as f64).round() as i64)
        .collect();
    let mut rest = coefficients.iter().rev();
    let mut sum = builder.affine(&[], rest.next().copied().unwrap_or(0));
    for coefficient in rest {
        let product = builder.product(z, sum);
        let product = builder.rounded(product, fraction);
        sum = builder.affine(&[(product, 1)], *coefficient);
    }
    sum
}

/// The Taylor coefficients of `(1 - z)^(-1/2)`, from the constant on.
fn coefficients(degree: u32) -> impl Iterator<Item = f64> {
    let next = |last: &mut f64, k: u32| {
        if k > 0 {
            *last *= f64::from(2 * k - 1) / f64::from(2 * k);
        }
        Some(*last)
    };
    (0..=degree).scan(1.0, next)
}
