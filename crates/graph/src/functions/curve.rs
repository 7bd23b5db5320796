//! A smooth function of few bits, not below zero: a table, or straight lines on pieces.
//!
//! A table holds every value of up to 8 bits, or 10 where a circuit looks it up, half a last place from
//! the function. Other arguments are cut into pieces, 64 where nothing else is said: the upper bits look up a value
//! and a slope, the lower bits multiply the slope.

use super::refusal::Result;
use pricing::fixed::message::COMPARED_BITS;
use serde::{Deserialize, Serialize};

/// Bits of the largest argument whose values are all in a table.
pub const WHOLE: u32 = 8;
/// Bits of the largest argument of a table that a circuit looks up.
pub const TABLED: u32 = 10;
/// Bits of the number of pieces where nothing else is said.
pub const PIECES: u32 = 6;
/// Bits of the largest number of pieces.
const MOST_PIECES: u32 = 8;
/// Bits of the widest argument.
pub const MOST: u32 = 14;
/// Bits of the largest entry of a table of all values.
const ENTRY: u32 = 16;
/// Rounds of lines, of which most are comparisons'.
const LINES_ROUNDS: usize = 16;
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

/// The public numbers of a curve, as files have them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Numbers {
    /// A value for each argument.
    Table(Vec<u64>),
    /// A straight line on each piece.
    Lines {
        /// Bits of the argument within a piece.
        drop: u32,
        /// Bits after the point.
        fraction: u32,
        /// Values at the start of the pieces, with a half of the last place of the result.
        starts: Vec<u64>,
        /// Rises from one argument to the next.
        slopes: Vec<i64>,
    },
}

/// Lines through pieces of `2^drop` values; none is below zero anywhere on its piece.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lines {
    /// Bits of the number of pieces.
    pub pieces: u32,
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
    /// The least slope.
    pub least: i64,
    /// Bits of what slopes are above the least, with a bit to spare.
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
            ..=MOST if bits > WHOLE => Lines::new(bits, [PIECES, GUARD], function).map(Self::Lines),
            _ => Err("a curve of other than 1 to 14 bits".into()),
        }
    }

    /// The curve that numbers from outside describe.
    ///
    /// # Errors
    /// For tables of other than 2 to 1024 entries of at most 16 bits, and for other lines than
    /// [`Lines::of`] takes.
    pub fn of(numbers: &Numbers) -> Result<Self> {
        let entries = match numbers {
            Numbers::Lines { drop, fraction, starts, slopes } => {
                return Lines::of([*drop, *fraction], starts, slopes).map(Self::Lines);
            }
            Numbers::Table(entries) => entries,
        };
        let sized = (2..=1 << TABLED).contains(&entries.len()) && entries.len().is_power_of_two();
        if !sized || entries.iter().any(|entry| *entry >= 1 << ENTRY) {
            return Err("a table of other than 2 to 1024 entries of at most 16 bits".into());
        }
        Ok(Self::Whole(entries.clone()))
    }

    /// Returns the numbers that describe the curve.
    pub fn numbers(&self) -> Numbers {
        match self {
            Self::Whole(entries) => Numbers::Table(entries.clone()),
            Self::Lines(lines) => Numbers::Lines {
                drop: lines.drop,
                fraction: lines.fraction,
                starts: lines.starts.clone(),
                slopes: lines.slopes.clone(),
            },
        }
    }

    pub(crate) fn whole(bits: u32, function: impl Fn(i64) -> f64) -> Result<Self> {
        let entry = |z| function(z).round().max(0.0) as u64;
        let entries: Vec<u64> = (0..1 << bits).map(entry).collect();
        if entries.iter().any(|entry| *entry >= 1 << ENTRY) {
            return Err("a table with entries of more than 16 bits".into());
        }
        Ok(Self::Whole(entries))
    }

    /// A table that tells `2^dull` neighbouring arguments not apart: each entry is in the middle
    /// of what the function is there.
    ///
    /// # Errors
    /// For values of more than 16 bits.
    pub(crate) fn coarse(bits: u32, dull: u32, function: impl Fn(i64) -> f64) -> Result<Self> {
        let middle = |z: i64| {
            let first = z >> dull << dull;
            let all = (first..first + (1 << dull)).map(&function);
            let ends = all.fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
            f64::midpoint(ends.0, ends.1)
        };
        Self::whole(bits, middle)
    }

    /// Returns the bits of the argument.
    pub fn bits(&self) -> u32 {
        match self {
            Self::Whole(entries) => entries.len().checked_ilog2().unwrap_or(0),
            Self::Lines(lines) => lines.drop + lines.pieces,
        }
    }

    /// Returns the value at `0 <= z < 2^bits`.
    pub fn clear(&self, z: i64) -> i64 {
        match self {
            Self::Whole(entries) => entries.get(z as usize).map_or(0, |entry| *entry as i64),
            Self::Lines(lines) => lines.point(z) >> lines.fraction,
        }
    }
}

impl Lines {
    /// Lines near a function of arguments of so many bits, in `2^pieces` pieces, with `guard` bits
    /// after the point beyond those that the argument within a piece needs.
    ///
    /// # Errors
    /// For values of more than 60 bits with those after the point.
    pub(crate) fn new(
        bits: u32,
        [pieces, guard]: [u32; 2],
        function: impl Fn(i64) -> f64,
    ) -> Result<Self> {
        let drop = bits - pieces;
        let fraction = drop + guard;
        let lines: Vec<[i64; 2]> =
            (0..1 << pieces).map(|piece| line(&function, piece << drop, drop, fraction)).collect();
        let within = |value: i64| value.unsigned_abs() < 1 << (END - 1 - drop);
        if !lines.iter().flatten().copied().all(within) {
            return Err("lines with values of more than 60 bits".into());
        }
        let starts: Vec<u64> = lines.iter().map(|[start, _]| *start as u64).collect();
        let slopes: Vec<i64> = lines.iter().map(|[_, slope]| *slope).collect();
        Ok(Self::measured([drop, fraction], starts, slopes))
    }

    /// The lines that numbers from outside describe: pieces of `2^drop` values, with so many bits
    /// after the point.
    ///
    /// # Errors
    /// For other than 2 to 256 pieces of 1 to 10 bits, for more than 20 bits after the point, for
    /// values of more than 40 bits, and for lines that fall below zero.
    pub fn of([drop, fraction]: [u32; 2], starts: &[u64], slopes: &[i64]) -> Result<Self> {
        let count = starts.len();
        let sized = (2..=1 << MOST_PIECES).contains(&count) && count.is_power_of_two();
        if !sized || count != slopes.len() || !(1..=10).contains(&drop) || fraction > 20 {
            return Err("lines of other than 2 to 256 pieces".into());
        }
        let last = (1i64 << drop) - 1;
        let fits = |(start, slope): (&u64, &i64)| {
            let small = *start < 1 << 40 && slope.unsigned_abs() < 1 << 30;
            small && *start as i64 + slope * last >= 0
        };
        if !starts.iter().zip(slopes).all(fits) {
            return Err("lines with values below zero or of more than 40 bits".into());
        }
        Ok(Self::measured([drop, fraction], starts.to_vec(), slopes.to_vec()))
    }

    /// With the widths that hold them.
    fn measured([drop, fraction]: [u32; 2], starts: Vec<u64>, slopes: Vec<i64>) -> Self {
        let ends = starts.iter().zip(&slopes);
        let ends = ends.map(|(start, slope)| *start as i64 + (slope.max(&0) << drop));
        let least = slopes.iter().copied().min().unwrap_or(0);
        Self {
            pieces: starts.len().ilog2(),
            drop,
            fraction,
            width: width(ends).max(fraction + 1),
            least,
            slope_bits: width(slopes.iter().map(|slope| slope - least)) + 1,
            starts,
            slopes,
        }
    }

    /// About how many bits a value takes on the wire, and how many rounds, for results of so many
    /// bits, with a choice where the curve mirrors.
    pub(super) fn price(&self, results: usize, mirrors: bool) -> [usize; 2] {
        let [wide, slope] = [self.width + 1, self.slope_bits].map(|bits| bits as usize);
        let [drop, fraction] = [self.drop, self.fraction].map(|bits| bits as usize);
        let by_circuit = circuit([self.pieces as usize, 0], wide + slope - 2);
        let by_circuit = by_circuit + (wide * (wide + 1) + slope * (slope + 1)) / 2;
        let tables = (((1 << self.pieces) - 1) * (wide + slope)).min(by_circuit);
        let compared = (drop + fraction) * COMPARED_BITS + wide - drop;
        let narrow = drop.min(slope);
        let product = 2 * narrow * (wide + 1) + 2 * (2 * wide - drop - slope);
        let mirror = if mirrors { 2 * wide } else { 0 };
        [tables + compared + product + mirror + 2 * results, LINES_ROUNDS]
    }

    /// Returns the value at `0 <= z`, before its last bits are dropped.
    pub(super) fn point(&self, z: i64) -> i64 {
        let piece = (z >> self.drop) as usize;
        let start = self.starts.get(piece).map_or(0, |start| *start as i64);
        let slope = self.slopes.get(piece).copied().unwrap_or(0);
        start + slope * (z & ((1 << self.drop) - 1))
    }
}

/// About how many bits a look-up of so many bits in a table of so wide entries takes, by a circuit
/// of AND gates: carries of the position, products of its lower bits, and choices between parts of
/// the table by each upper bit. Entries do not depend on so many of the lowest bits.
pub(super) fn circuit([bits, dull]: [usize; 2], width: usize) -> usize {
    let choices = |low: usize| width * ((1 << (bits - low)) - 1) + bits - low;
    let products = |low: usize| (1usize << (low - dull.min(low))).saturating_sub(2);
    let weight = |low: usize| 2 * (bits - 1) + products(low) + choices(low);
    2 * (1..=bits.min(7)).map(weight).min().unwrap_or(0)
}

/// The number of the lowest bits of positions that no entry depends on.
pub(super) fn dull(entries: &[u64]) -> usize {
    let alike = |bits: &usize| {
        let mut blocks = entries.chunks(1 << bits);
        blocks.all(|block| block.iter().all(|entry| Some(entry) == block.first()))
    };
    let bits = entries.len().checked_ilog2().unwrap_or(0) as usize;
    (0..=bits).take_while(alike).last().unwrap_or(0)
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
    fn numbers_give_the_curve_back() {
        for (bits, pieces) in [(3, 3), (7, 4), (10, 5), (12, 8)] {
            let function = |z: i64| 100.0 - 3.0 * (z as f64).sqrt();
            let curve = match bits == pieces {
                true => Curve::whole(bits, function).unwrap(),
                false => Curve::Lines(Lines::new(bits, [pieces, 1], function).unwrap()),
            };
            assert_eq!(Curve::of(&curve.numbers()).unwrap(), curve);
        }
        let lines = |drop, fraction, starts: &[u64], slopes: &[i64]| {
            let (starts, slopes) = (starts.to_vec(), slopes.to_vec());
            Curve::of(&Numbers::Lines { drop, fraction, starts, slopes }).is_err()
        };
        assert!(lines(0, 3, &[9; 4], &[0; 4]) && lines(11, 3, &[9; 4], &[0; 4]));
        assert!(lines(2, 21, &[9; 4], &[0; 4]) && lines(2, 3, &[9; 3], &[0; 3]));
        assert!(lines(2, 3, &[9; 512], &[0; 512]) && lines(2, 3, &[9; 4], &[0; 2]));
        assert!(lines(2, 3, &[9; 2], &[-4, 0]) && lines(2, 3, &[1 << 40, 0], &[0; 2]));
        assert!(lines(2, 3, &[9; 2], &[i64::MIN, 0]) && lines(2, 3, &[9; 2], &[1 << 30, 0]));
        for entries in [vec![], vec![0; 3], vec![0; 2048], vec![1 << 16; 2]] {
            assert!(Curve::of(&Numbers::Table(entries)).is_err());
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
