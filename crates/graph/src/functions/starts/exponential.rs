//! CrypTen's start (Knott et al., NeurIPS 2021), the exponential by `(1 + z/256)^256`.

use crate::functions::straight_line::Builder;

/// Squares that make the exponential.
const SQUARES: u32 = 8;
/// Bits after the point while they are made, as in CrypTen.
const FRACTION: u32 = 16;

/// About `1/sqrt(t/2^bits)` with `fraction` bits after the point, of t that stands for
/// `t/2^bits * whole`.
pub(super) fn start(builder: &mut Builder, [bits, fraction]: [u32; 2], whole: f64) -> usize {
    let one = (1u64 << FRACTION) as f64;
    let step = whole / (1u64 << bits) as f64;
    let guard = 1u64 << FRACTION;
    // 1 - (t/2 + 0.2)/256, the slope with more bits after the point.
    let slope = (step / 512.0 * one * guard as f64).round() as i64;
    let constant = ((1.0 - 0.2 / 256.0) * one * guard as f64).round() as i64;
    let line = builder.affine(&[(0, -slope)], constant);
    let mut power = builder.rounded(line, FRACTION);
    for _ in 0..SQUARES {
        let square = builder.square(power);
        power = builder.rounded(square, FRACTION);
    }
    let root = whole.sqrt();
    let scaled = |factor: f64, over: u32| (factor * (1u64 << over) as f64).round() as i64;
    let drop = FRACTION + SQUARES - fraction.min(FRACTION);
    let terms = [
        (power, scaled(2.2 * root, SQUARES)),
        (0, -scaled(step / 1024.0 * root, FRACTION + SQUARES)),
    ];
    let sum = builder.affine(&terms, scaled(0.2 * root, FRACTION + SQUARES));
    builder.rounded(sum, drop)
}
