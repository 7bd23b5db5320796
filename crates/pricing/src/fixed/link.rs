//! The link that plans are good for where none is named: 400 Mbit/s, 40 ms, as `--network wan`.

/// Bandwidth in bits per second. `ot`'s budget divides by the bandwidth in the offered settings
/// and takes this one where they name none.
pub const BITS_PER_SECOND: u64 = 400_000_000;

/// Time of a round trip, in nanoseconds. Digits of comparisons are chosen with a whole round trip
/// for each round.
pub const ROUND_TRIP_NANOSECONDS: u64 = 40_000_000;

/// Time of a byte at [`BITS_PER_SECOND`], in nanoseconds.
pub const BYTE_NANOSECONDS: u64 = 8_000_000_000 / BITS_PER_SECOND;

/// Time of a round trip on a near link, 0.3 ms and what waking a party takes, in nanoseconds.
pub const NEAR_ROUND_TRIP_NANOSECONDS: u64 = 400_000;

/// Time of a byte on a near link of 3 Gbit/s, with what making and reading it takes, in nanoseconds.
pub const NEAR_BYTE_NANOSECONDS: u64 = 8;
