//! A smooth function of few bits, not below zero: a table, or straight lines on 64 pieces.
//!
//! Up to 8 bits the table holds every value, half a last place from the function. Wider
//! arguments are cut into 64 pieces: the upper bits look up a value and a slope, the lower
//! bits multiply the slope.

use super::refusal::Result;

/// Bits of the largest argument whose values are all in a table.
pub const WHOLE: u32 = 8;
/// Bits of the pieces.
pub const PIECES: u32 = 6;
/// Bits of the widest argument.
pub const MOST: u32 = 14;
/// Bits of the largest entry of a table of all values.
const ENTRY: u32 = 16;
/// Bits of the largest end of a line.
const END: u32 = 60;
/// Bits after the point of slopes, beyond those that the lower bits of the argument need.
const GUARD: u32 = 3;

/// The values of a function of integers below a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Curve {
    /// All of them.
    Whole(Vec<u64>),
    /// A straight line on each piece.
    Lines(Lines),
}

/// Lines through 64 pieces of `2^drop` values; none is below zero anywhere on its piece.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lines {
    /// Bits of the argument within a piece.
    pub drop: u32,
    /// Bits after the point.
    pub fraction: u32,
    /// Values at the start of the pieces, with a half of the last place of the result.
    pub starts: Vec<u64>,
    /// Rises from one argument to the next.
    pub slopes: Vec<i64>,
    /// Bits that hold any point of the lines, not read as signed.
    pub width: u32,
    /// Bits of slopes, signed.
    pub slope_bits: u32,
}

/// Bits of the largest entry, one at least.
fn width(entries: impl Iterator<Item = i64>) -> u32 {
    let largest = entries.fold(1, i64::max);
    largest.ilog2() + 1
}

impl Curve {
    /// The `function` of arguments of 1 to 14 bits, rounded.
    ///
    /// # Errors
    /// For other widths, and for values of more than 16 bits, or 60 in lines with their
    /// bits after the point.
    pub fn new(bits: u32, function: impl Fn(i64) -> f64) -> Result<Self> {
        match bits {
            1..=WHOLE => Self::whole(bits, function),
            ..=MOST if bits > WHOLE => Lines::new(bits, function).map(Self::Lines),
            _ => Err("a curve of other than 1 to 14 bits".into()),
        }
    }

    fn whole(bits: u32, function: impl Fn(i64) -> f64) -> Result<Self> {
        let entry = |z| function(z).round().max(0.0) as u64;
        let entries: Vec<u64> = (0..1 << bits).map(entry).collect();
        if entries.iter().any(|entry| *entry >= 1 << ENTRY) {
            return Err("a table with entries of more than 16 bits".into());
        }
        Ok(Self::Whole(entries))
    }

    /// Returns the bits of the argument.
    pub fn bits(&self) -> u32 {
        match self {
            Self::Whole(entries) => entries.len().checked_ilog2().unwrap_or(0),
            Self::Lines(lines) => lines.drop + PIECES,
        }
    }

    /// Returns the value at `0 <= z < 2^bits`.
    pub fn clear(&self, z: i64) -> i64 {
        let lines = match self {
            Self::Whole(entries) => {
                return entries.get(z as usize).map_or(0, |entry| *entry as i64);
            }
            Self::Lines(lines) => lines,
        };
        let piece = z >> lines.drop;
        let start = lines.starts.get(piece as usize).map_or(0, |start| *start as i64);
        let slope = lines.slopes.get(piece as usize).copied().unwrap_or(0);
        (start + slope * (z & ((1 << lines.drop) - 1))) >> lines.fraction
    }
}

impl Lines {
    fn new(bits: u32, function: impl Fn(i64) -> f64) -> Result<Self> {
        let drop = bits - PIECES;
        let fraction = drop + GUARD;
        let pieces: Vec<[i64; 2]> =
            (0..1 << PIECES).map(|piece| line(&function, piece << drop, drop, fraction)).collect();
        let within = |value: i64| value.unsigned_abs() < 1 << (END - 1 - drop);
        if !pieces.iter().flatten().copied().all(within) {
            return Err("lines with values of more than 60 bits".into());
        }
        let ends = pieces.iter().map(|[start, slope]| start + (slope.max(&0) << drop));
        Ok(Self {
            drop,
            fraction,
            starts: pieces.iter().map(|[start, _]| *start as u64).collect(),
            slopes: pieces.iter().map(|[_, slope]| *slope).collect(),
            width: width(ends).max(fraction + 1),
            slope_bits: width(pieces.iter().map(|[_, slope]| slope.abs())) + 1,
        })
    }
}

/// Start, with a half for rounding, and slope of the piece from `first` on: parallel to
/// the chord, equally far from the function at both extremes, not below zero.
fn line(function: &impl Fn(i64) -> f64, first: i64, drop: u32, fraction: u32) -> [i64; 2] {
    let one = (1u64 << fraction) as f64;
    let steps = 1i64 << drop;
    let rise = function(first + steps) - function(first);
    let slope = (rise / steps as f64 * one).round() as i64;
    let start = |step: i64| function(first + step) * one - slope as f64 * step as f64;
    let (low, high) = (0..steps)
        .map(start)
        .fold((f64::MAX, f64::MIN), |(low, high), start| (low.min(start), high.max(start)));
    let start = (f64::midpoint(low, high) + one / 2.0).round() as i64;
    [start.max(slope.saturating_neg().saturating_mul(steps - 1)).max(0), slope]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn curves_stay_near_their_function_and_above_zero() {
        for bits in 1..=MOST {
            let steps = f64::from(1 << bits);
            let function = |z: i64| 1000.0 / (1.0 + 4.0 * z as f64 / steps) - 200.0;
            let curve = Curve::new(bits, function).unwrap();
            assert_eq!(curve.bits(), bits);
            for z in 0..1 << bits {
                let [got, real] = [curve.clear(z) as f64, function(z)];
                assert!(got >= 0.0 && (got - real).abs() <= 1.0, "{bits} {z}: {got} {real}");
            }
        }
    }

    #[test]
    fn what_fits_nowhere_is_refused() {
        for bits in [0, 15, u32::MAX] {
            assert!(Curve::new(bits, |_| 1.0).is_err());
        }
        for value in [65536.0, 1e30, f64::INFINITY] {
            assert!(Curve::new(8, |_| value).is_err());
        }
        for value in [1e18, 1e30, -1e30, f64::INFINITY] {
            assert!(Curve::new(9, |z| value * (z & 1) as f64).is_err() || value < 0.0);
            assert!(Curve::new(9, |z| value * z as f64).is_err());
        }
    }
}
