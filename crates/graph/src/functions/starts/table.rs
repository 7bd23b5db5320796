//! SiRNN's start (Rathee et al., S&P 2021; also Iron's): the place of the leading bit by tables
//! of eight-bit digits, a product with a power of four, and a table of the leading eight bits.

use crate::functions::Result;
use crate::functions::newton::{Core, Interval, Newton, Wanted, iteration, last};
use crate::functions::straight_line::Builder;

/// Bits of a digit, and of the leading part.
const DIGIT: u32 = 8;
/// Bits after the point of the first guess.
const GUESS: u32 = 9;

/// The errors of [`super::found`].
pub(super) fn found(
    builder: &mut Builder,
    value: usize,
    newton: Newton,
    wanted: Wanted,
) -> Result<(usize, i64, f64)> {
    let [low, high] = builder.range(value);
    if low < 1 || high >= 1 << 48 || !newton.has_precision() {
        return Err("a table of inverse roots of this range".into());
    }
    // An even number of bits, so that octaves of four end there.
    let length = (64 - high.leading_zeros()).next_multiple_of(2).max(DIGIT);
    let octave = octave(builder, value, length);
    let octaves = length / 2;
    builder.known(octave, [0, i64::from(octaves) - 1]);
    let powers = |bits: u32, up: bool| -> Vec<i64> {
        (0..octaves).map(|k| 1 << (bits * if up { k } else { octaves - 1 - k })).collect()
    };
    let factor = builder.lookup(octave, powers(2, false));
    let [quarter, whole] = [1i64 << (length - 2), 1i64 << length];
    let normal = builder.product_within(factor, value, [quarter, whole - 1]);
    // From 4^octaves/4 on: the two highest bits are not both 0.
    let bits = (newton.precision + 4).clamp(DIGIT, length);
    let bits = bits - (bits + length) % 2;
    let interval = Interval { low: 1 << (bits - 2), high: (1 << bits) - 1, bits };
    let t = builder.shift(normal, length - bits);
    builder.known(t, [interval.low, interval.high]);
    let core = core(newton, interval, wanted)?;
    let result = builder.inline(&core.straight_line, t);
    let back = builder.lookup(octave, powers(1, wanted == Wanted::Root));
    let result = builder.product(back, result);
    let base = i64::from(length / 2);
    let scale = match wanted {
        Wanted::Root => i64::from(octaves) - 1 - base,
        Wanted::Inverse => base,
    };
    Ok((result, scale + i64::from(core.fraction), core.error + 2.0 / interval.low as f64))
}

/// A table of the leading bits, and one iteration.
fn core(newton: Newton, interval: Interval, wanted: Wanted) -> Result<Core> {
    let Interval { low, high, bits } = interval;
    let mut builder = Builder::new([low, high]);
    let leading = builder.shift(0, bits - DIGIT);
    let guess = |z: i64| ((1 << GUESS) as f64 / ((z.max(64) as f64 + 0.5) / 256.0).sqrt()).round();
    let y = builder.lookup(leading, (0..1 << DIGIT).map(|z| guess(z) as i64).collect());
    let fraction = match wanted {
        Wanted::Root => last(&mut builder, [y, 0], [GUESS, bits, newton.precision], 3.0),
        Wanted::Inverse => {
            let fraction = newton.precision + 2;
            iteration(&mut builder, [y, 0], [GUESS, bits, fraction], 3.0);
            fraction
        }
    };
    Ok(Core::new(builder.finish_over(low..=high, 1)?, fraction, interval, wanted))
}

/// Half the place of the leading bit.
fn octave(builder: &mut Builder, value: usize, length: u32) -> usize {
    let mut digits = Vec::new();
    let mut rest = value;
    for place in 0..length.div_ceil(DIGIT) {
        let above = match place + 1 < length.div_ceil(DIGIT) {
            true => builder.shift(rest, DIGIT),
            false => {
                digits.push((place, rest));
                break;
            }
        };
        let digit = builder.affine(&[(rest, 1), (above, -(1 << DIGIT))], 0);
        builder.known(digit, [0, (1 << DIGIT) - 1]);
        digits.push((place, digit));
        rest = above;
    }
    let mut found: Option<usize> = None;
    for (place, digit) in digits {
        let within = |v: i64| if v == 0 { 0 } else { i64::from(v.ilog2() / 2 + place * DIGIT / 2) };
        let own = builder.lookup(digit, (0..1 << DIGIT).map(within).collect());
        found = Some(match found {
            None => own,
            Some(below) => {
                let zero = (0..1 << DIGIT).map(|v| i64::from(v == 0)).collect();
                let zero = builder.lookup(digit, zero);
                let kept = builder.product(zero, below);
                builder.affine(&[(own, 1), (kept, 1)], 0)
            }
        });
    }
    found.unwrap_or(value)
}
