//! Samples of a distribution over few magnitudes, by aliases.
//!
//! A word is a column of a table (5 bits), a fraction (58 bits) and a sign. Below the column's threshold the sample is
//! the column's number, otherwise another one (Walker, "New fast method for generating discrete random numbers with
//! arbitrary frequency distributions", Electronics Letters 10(8), 1974). Thresholds and aliases are constants, and a
//! column is looked up in registers, so that neither time nor addresses depend on a sample.

use std::hint::black_box;

use ring::word::spread;

use super::{Level, Width};

/// Columns of a table, and magnitudes at most.
const COLUMNS: usize = 32;

/// Bits of a word above which its column is.
const COLUMN_AT: u32 = 59;

/// Bits of a word's column and sign, which are not of its fraction.
const FRACTION_AT: u32 = 6;

/// The aliases of a distribution.
pub(crate) struct Aliases([u64; COLUMNS]);

impl Aliases {
    /// The distribution in which a magnitude of at most `k` has probability `bounds[k] / 2^63`. Probabilities are
    /// exact.
    pub(crate) const fn new<const N: usize>(bounds: &[u64; N]) -> Self {
        const { assert!(N < COLUMNS) }
        let whole = 1u64 << (63 - COLUMNS.ilog2());
        let (mut left, mut below, mut k) = ([0; COLUMNS], 0, 0);
        while k <= N {
            let bound = if k < N { bounds[k] } else { 1 << 63 };
            left[k] = bound - below;
            below = bound;
            k += 1;
        }
        // A column that is not full is filled by a magnitude that has more than one column.
        let (mut entries, mut done) = ([0; COLUMNS], [false; COLUMNS]);
        while let Some(few) = Self::first(&left, &done, 0, whole - 1) {
            if let Some(many) = Self::first(&left, &done, whole + 1, u64::MAX) {
                entries[few] = left[few] << FRACTION_AT | many as u64;
                left[many] -= whole - left[few];
            }
            done[few] = true;
        }
        let mut at = 0;
        while at < COLUMNS {
            if !done[at] {
                entries[at] = at as u64;
            }
            at += 1;
        }
        Self(entries)
    }

    /// The first column that is not done and has from `least` to `most` left.
    const fn first(
        left: &[u64; COLUMNS],
        done: &[bool; COLUMNS],
        least: u64,
        most: u64,
    ) -> Option<usize> {
        let mut at = 0;
        while at < COLUMNS {
            if !done[at] && left[at] >= least && left[at] <= most {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

#[cfg(test)]
impl Aliases {
    /// The probability of each magnitude, times 2^63.
    pub(crate) fn masses(&self) -> [u64; COLUMNS] {
        let mut masses = [0; COLUMNS];
        for (column, entry) in self.0.iter().enumerate() {
            let threshold = entry >> FRACTION_AT;
            masses[column] += threshold;
            masses[(entry & 31) as usize] += (1 << 58) - threshold;
        }
        masses
    }
}

/// Adds `factor` (below 2^31) times the sample that a word stands for to each sum; there are at least as many words as
/// sums.
pub(crate) fn add_samples(
    level: Level,
    sums: &mut [i64],
    words: &[u64],
    aliases: &Aliases,
    factor: i32,
) {
    match level.0 {
        Width::Scalar => each(sums, words, aliases, factor),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { each256(sums, words, aliases, factor) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { each512(sums, words, aliases, factor) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => each(sums, words, aliases, factor),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn each256(sums: &mut [i64], words: &[u64], aliases: &Aliases, factor: i32) {
    each(sums, words, aliases, factor);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn each512(sums: &mut [i64], words: &[u64], aliases: &Aliases, factor: i32) {
    use std::arch::x86_64::*;
    let (whole, rest) = sums.as_chunks_mut::<8>();
    let (some, last) = words.split_at(8 * whole.len());
    // SAFETY: loads and stores are of whole arrays of eight numbers.
    unsafe {
        let entries = aliases.0.as_ptr();
        let entries: [__m512i; 4] =
            std::array::from_fn(|i| _mm512_loadu_si512(entries.add(8 * i).cast()));
        let (other, one) = (_mm512_set1_epi64(COLUMNS as i64 / 2), _mm512_set1_epi64(1));
        let low = _mm512_set1_epi64((1 << FRACTION_AT) - 1);
        let factor = _mm512_set1_epi64(factor.into());
        for (sums, words) in whole.iter_mut().zip(some.as_chunks::<8>().0) {
            let word = _mm512_loadu_si512(words.as_ptr().cast());
            let column = _mm512_srli_epi64::<COLUMN_AT>(word);
            let first = _mm512_permutex2var_epi64(entries[0], column, entries[1]);
            let second = _mm512_permutex2var_epi64(entries[2], column, entries[3]);
            let in_second = _mm512_test_epi64_mask(column, other);
            let entry = _mm512_mask_blend_epi64(in_second, first, second);
            let (threshold, alias) =
                (_mm512_andnot_si512(low, entry), _mm512_and_si512(low, entry));
            let fraction = _mm512_slli_epi64::<{ FRACTION_AT - 1 }>(word);
            let is_below = _mm512_cmplt_epu64_mask(fraction, threshold);
            let size = _mm512_mask_blend_epi64(is_below, alias, column);
            let is_negative = _mm512_test_epi64_mask(word, one);
            let zero = _mm512_setzero_si512();
            let sample = _mm512_mask_sub_epi64(size, is_negative, zero, size);
            let sum = _mm512_loadu_si512(sums.as_ptr().cast());
            let sum = _mm512_add_epi64(sum, _mm512_mul_epi32(sample, factor));
            _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
        }
    }
    each(rest, last, aliases, factor);
}

/// Samples that are looked up together.
const LANES: usize = 8;

#[inline(always)]
fn each(sums: &mut [i64], words: &[u64], aliases: &Aliases, factor: i32) {
    let (whole, rest) = sums.as_chunks_mut::<LANES>();
    let (some, last) = words.split_at(LANES * whole.len());
    for (sums, words) in whole.iter_mut().zip(some.as_chunks().0) {
        lanes(sums, words, aliases, factor);
    }
    for (sum, word) in rest.iter_mut().zip(last) {
        lanes(std::array::from_mut(sum), &[*word], aliases, factor);
    }
}

#[inline(always)]
fn lanes<const L: usize>(sums: &mut [i64; L], words: &[u64; L], aliases: &Aliases, factor: i32) {
    let bits = std::array::from_fn(|bit| words.map(|word| spread((word >> COLUMN_AT >> bit) & 1)));
    let entries = pick32(&aliases.0, &bits);
    let is_below: [u64; L] = std::array::from_fn(|lane| {
        let fraction = (words[lane] << (FRACTION_AT - 1)) >> FRACTION_AT;
        spread(fraction.wrapping_sub(entries[lane] >> FRACTION_AT) >> 63)
    });
    // Without the barrier the compiler makes a comparison and a branch of these masks.
    let is_below = black_box(is_below);
    let columns = words.map(|word| word >> COLUMN_AT);
    let sizes = either(entries.map(|entry| entry & (COLUMNS as u64 - 1)), columns, &is_below);
    for (sum, (word, size)) in sums.iter_mut().zip(words.iter().zip(sizes)) {
        let sign = spread(word & 1);
        *sum += i64::from(factor) * (size ^ sign).wrapping_sub(sign) as i64;
    }
}

/// Masks of the bits of the columns of `L` words, lowest bit first.
type Masks<const L: usize> = [[u64; L]; COLUMNS.ilog2() as usize];

/// Takes the second value of each lane where the mask is set, and otherwise the first.
#[inline(always)]
fn either<const L: usize>(first: [u64; L], second: [u64; L], mask: &[u64; L]) -> [u64; L] {
    std::array::from_fn(|lane| first[lane] ^ ((first[lane] ^ second[lane]) & mask[lane]))
}

#[inline(always)]
fn pick2<const L: usize>(entries: &[u64], bits: &Masks<L>) -> [u64; L] {
    either([entries[0]; L], [entries[1]; L], &bits[0])
}

#[inline(always)]
fn pick4<const L: usize>(entries: &[u64], bits: &Masks<L>) -> [u64; L] {
    either(pick2(&entries[..2], bits), pick2(&entries[2..], bits), &bits[1])
}

#[inline(always)]
fn pick8<const L: usize>(entries: &[u64], bits: &Masks<L>) -> [u64; L] {
    either(pick4(&entries[..4], bits), pick4(&entries[4..], bits), &bits[2])
}

#[inline(always)]
fn pick16<const L: usize>(entries: &[u64], bits: &Masks<L>) -> [u64; L] {
    either(pick8(&entries[..8], bits), pick8(&entries[8..], bits), &bits[3])
}

/// Looks up the entry of each lane's column, which is given by the masks of its bits.
#[inline(always)]
fn pick32<const L: usize>(entries: &[u64; COLUMNS], bits: &Masks<L>) -> [u64; L] {
    either(pick16(&entries[..16], bits), pick16(&entries[16..], bits), &bits[4])
}

#[cfg(test)]
mod tests {
    use ring::Random;

    use super::*;

    const BOUNDS: [u64; 5] = [1 << 60, 3 << 60, (3 << 60) + 7, (7 << 60) - 1, (1 << 63) - 5];
    const ALIASES: Aliases = Aliases::new(&BOUNDS);

    #[test]
    fn columns_add_up_to_the_probabilities() {
        let (mass, mut below) = (ALIASES.masses(), 0);
        for (k, bound) in BOUNDS.into_iter().chain([1 << 63]).enumerate() {
            assert_eq!(mass[k], bound - below, "magnitude {k}");
            below = bound;
        }
        assert_eq!(mass[BOUNDS.len() + 1..], [0; COLUMNS - BOUNDS.len() - 1]);
    }

    #[test]
    fn every_level_is_the_scalar_one_at_every_threshold() {
        let edges = ALIASES.0.iter().enumerate().flat_map(|(column, entry)| {
            let fractions = [0, (entry >> FRACTION_AT).wrapping_sub(1) & ((1 << 58) - 1)];
            let fractions = fractions.into_iter().chain([entry >> FRACTION_AT, (1 << 58) - 1]);
            fractions.flat_map(move |fraction| {
                [0, 1].map(|sign| (column as u64) << COLUMN_AT | fraction << 1 | sign)
            })
        });
        let words: Vec<u64> = edges.chain(Random::seeded(1).uniform(1001, 64)).collect();
        let sample = |word: &u64| {
            let (column, fraction) = (word >> COLUMN_AT, (word << 5) >> FRACTION_AT);
            let entry = ALIASES.0[column as usize];
            let size = if fraction < entry >> FRACTION_AT { column } else { entry & 31 };
            if word & 1 == 1 { -(size as i64) } else { size as i64 }
        };
        let want: Vec<i64> = words.iter().map(|word| 7 + 10 * sample(word)).collect();
        for level in Level::available() {
            let mut sums = vec![7; words.len()];
            add_samples(level, &mut sums, &words, &ALIASES, 10);
            assert_eq!(sums, want, "{level:?}");
        }
    }
}
