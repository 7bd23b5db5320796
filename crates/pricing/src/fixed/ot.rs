//! Nanoseconds of oblivious transfers and their correlations, on a core with vector AES whose
//! second-level cache holds one or two megabytes.
//!
//! [`SOFTSPOKEN`] and [`FERRET`] choose between sources and parameter sets, so they tell those
//! apart. [`CORRELATION`] and [`PAD`] choose digits of comparisons before any source is known.

/// A correlation of SoftSpoken with k = 8, without its bytes.
pub const SOFTSPOKEN: u64 = 100;

/// A correlation of each of Ferret's sets, from the smallest to the largest, without its bytes. A
/// larger set sends less and reads a larger table at random.
pub const FERRET: [u64; 5] = [15, 15, 16, 20, 26];

/// A silent correlation of whichever set.
pub const CORRELATION: u64 = 25;

/// A pad of one entry of a table of whatever size.
pub const PAD: u64 = 3;
