//! Vectors of one and two blocks: the same names in each module, so that a kernel
//! is written once. Vectors of four blocks would slow the clock of the whole core
//! on many machines, and with it the AES that surrounds everything here.

use std::ptr::{from_mut, from_ref};

use super::Eight;

/// The low half of every `2*half` bits of a word.
const fn low(half: u32) -> i64 {
    (u64::MAX / ((1 << half) + 1)) as i64
}

/// One block: AES-NI.
pub(super) mod xmm {
    use super::{Eight, from_mut, from_ref};
    use std::arch::x86_64::*;

    pub(crate) type Vector = __m128i;
    /// Blocks of a vector.
    pub(crate) const LANES: usize = 1;

    /// Vector number `at` of eight blocks.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn load(from: &Eight, at: usize) -> Vector {
        // SAFETY: a block is as long as the vector; the load needs no alignment.
        unsafe { _mm_loadu_si128(from_ref(&from[at]).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn store(to: &mut Eight, at: usize, value: Vector) {
        // SAFETY: a block is as long as the vector; the store needs no alignment.
        unsafe { _mm_storeu_si128(from_mut(&mut to[at]).cast(), value) }
    }

    /// The block in every lane.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn broadcast(from: &u128) -> Vector {
        // SAFETY: a block is as long as the vector; the load needs no alignment.
        unsafe { _mm_loadu_si128(from_ref(from).cast()) }
    }

    /// Keys of vector number `at` of eight blocks, `2^SPREAD` of which share a key;
    /// the first has key number `first`.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn keys<const SPREAD: u32>(from: &Eight, first: usize, at: usize) -> Vector {
        broadcast(&from[(first + (at >> SPREAD)) % 8])
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn zero() -> Vector {
        _mm_setzero_si128()
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn xor(a: Vector, b: Vector) -> Vector {
        _mm_xor_si128(a, b)
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn and(a: Vector, b: Vector) -> Vector {
        _mm_and_si128(a, b)
    }

    /// All ones in each lane whose lowest bit is set.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn colours(a: Vector) -> Vector {
        _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(a)))
    }

    /// All ones in each lane, of whose four words that of `WORD`, repeated, has its lowest bit set.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn masks<const WORD: i32>(a: Vector) -> Vector {
        _mm_srai_epi32::<31>(_mm_slli_epi32::<31>(_mm_shuffle_epi32::<WORD>(a)))
    }

    /// The words of each lane moved up by one, the last to the lowest place.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn turned(a: Vector) -> Vector {
        _mm_shuffle_epi32::<0b10_01_00_11>(a)
    }

    /// The low half of each lane, twice.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn lows(a: Vector) -> Vector {
        _mm_unpacklo_epi64(a, a)
    }

    /// The high half of each lane, twice.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn highs(a: Vector) -> Vector {
        _mm_unpackhi_epi64(a, a)
    }

    /// The low halves of the lanes of `a`, and above them those of `b`.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn joined(a: Vector, b: Vector) -> Vector {
        _mm_unpacklo_epi64(a, b)
    }

    /// (high xor low, high) of each lane's (high, low).
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn sigma(a: Vector) -> Vector {
        _mm_xor_si128(_mm_unpackhi_epi64(a, a), _mm_bslli_si128::<8>(a))
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn round(state: Vector, key: Vector) -> Vector {
        _mm_aesenc_si128(state, key)
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn last_round(state: Vector, key: Vector) -> Vector {
        _mm_aesenclast_si128(state, key)
    }

    /// The last word of the key in each lane, rotated by a byte, four times.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn rotated_word(key: Vector) -> Vector {
        _mm_shuffle_epi8(key, _mm_set1_epi32(0x0c0f_0e0d))
    }

    /// Every word added to those above it, in each lane.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn word_sums(key: Vector) -> Vector {
        let sums = _mm_xor_si128(key, _mm_bslli_si128::<4>(key));
        _mm_xor_si128(sums, _mm_bslli_si128::<8>(sums))
    }

    /// Four equal words in each lane.
    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn words(value: i32) -> Vector {
        _mm_set1_epi32(value)
    }
}

/// Two blocks: AVX2, with VAES for the rounds.
pub(super) mod ymm {
    use super::{Eight, from_mut, from_ref, low};
    use std::arch::x86_64::*;

    pub(crate) type Vector = __m256i;
    /// Blocks of a vector.
    pub(crate) const LANES: usize = 2;

    /// Vector number `at` of eight blocks.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn load(from: &Eight, at: usize) -> Vector {
        // SAFETY: two blocks are as long as the vector; the load needs no alignment.
        unsafe { _mm256_loadu_si256(from_ref(&from.as_chunks::<LANES>().0[at]).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn store(to: &mut Eight, at: usize, value: Vector) {
        let to = &mut to.as_chunks_mut::<LANES>().0[at];
        // SAFETY: two blocks are as long as the vector; the store needs no alignment.
        unsafe { _mm256_storeu_si256(from_mut(to).cast(), value) }
    }

    /// The block in every lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn broadcast(from: &u128) -> Vector {
        // SAFETY: a block is as long as the part; the load needs no alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(from_ref(from).cast()) })
    }

    /// Keys of vector number `at` of eight blocks, `2^SPREAD` of which share a key;
    /// the first has key number `first`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn keys<const SPREAD: u32>(from: &Eight, first: usize, at: usize) -> Vector {
        match SPREAD {
            0 => load(from, (first / LANES + at) % 4),
            _ => broadcast(&from[(first + ((LANES * at) >> SPREAD)) % 8]),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn zero() -> Vector {
        _mm256_setzero_si256()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn xor(a: Vector, b: Vector) -> Vector {
        _mm256_xor_si256(a, b)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn and(a: Vector, b: Vector) -> Vector {
        _mm256_and_si256(a, b)
    }

    /// All ones in each lane whose lowest bit is set.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn colours(a: Vector) -> Vector {
        _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(_mm256_shuffle_epi32::<0>(a)))
    }

    /// All ones in each lane, of whose four words that of `WORD`, repeated, has its lowest bit set.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn masks<const WORD: i32>(a: Vector) -> Vector {
        _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(_mm256_shuffle_epi32::<WORD>(a)))
    }

    /// The words of each lane moved up by one, the last to the lowest place.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn turned(a: Vector) -> Vector {
        _mm256_shuffle_epi32::<0b10_01_00_11>(a)
    }

    /// The low half of each lane, twice.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn lows(a: Vector) -> Vector {
        _mm256_unpacklo_epi64(a, a)
    }

    /// The high half of each lane, twice.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn highs(a: Vector) -> Vector {
        _mm256_unpackhi_epi64(a, a)
    }

    /// The low halves of the lanes of `a`, and above them those of `b`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn joined(a: Vector, b: Vector) -> Vector {
        _mm256_unpacklo_epi64(a, b)
    }

    /// (high xor low, high) of each lane's (high, low).
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn sigma(a: Vector) -> Vector {
        _mm256_xor_si256(_mm256_unpackhi_epi64(a, a), _mm256_bslli_epi128::<8>(a))
    }

    #[inline]
    #[target_feature(enable = "avx2,vaes")]
    pub(crate) fn round(state: Vector, key: Vector) -> Vector {
        _mm256_aesenc_epi128(state, key)
    }

    #[inline]
    #[target_feature(enable = "avx2,vaes")]
    pub(crate) fn last_round(state: Vector, key: Vector) -> Vector {
        _mm256_aesenclast_epi128(state, key)
    }

    /// The last word of the key in each lane, rotated by a byte, four times.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn rotated_word(key: Vector) -> Vector {
        _mm256_shuffle_epi8(key, _mm256_set1_epi32(0x0c0f_0e0d))
    }

    /// Every word added to those above it, in each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn word_sums(key: Vector) -> Vector {
        let sums = _mm256_xor_si256(key, _mm256_bslli_epi128::<4>(key));
        _mm256_xor_si256(sums, _mm256_bslli_epi128::<8>(sums))
    }

    /// Four equal words in each lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn words(value: i32) -> Vector {
        _mm256_set1_epi32(value)
    }

    /// In each lane: the low words of both, then the high words.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn swap_words(a: Vector, b: Vector) -> (Vector, Vector) {
        (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
    }

    /// In every `2*HALF` bits (at most 64): the low halves of both, then the high
    /// halves.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn swap<const HALF: u32>(a: Vector, b: Vector) -> (Vector, Vector) {
        let (low, half) = (_mm256_set1_epi64x(low(HALF)), _mm_cvtsi32_si128(HALF as i32));
        (select(low, a, _mm256_sll_epi64(b, half)), select(low, _mm256_srl_epi64(a, half), b))
    }

    /// `a` where the mask is set, `b` elsewhere.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn select(mask: Vector, a: Vector, b: Vector) -> Vector {
        _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b))
    }

    /// Lane `i` to `out[i][row]`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn scatter(from: Vector, out: &mut [[u128; 128]; LANES], row: usize) {
        let parts = [_mm256_castsi256_si128(from), _mm256_extracti128_si256::<1>(from)];
        for (square, part) in out.iter_mut().zip(parts) {
            // SAFETY: a row is as long as the part; the store needs no alignment.
            unsafe { _mm_storeu_si128(from_mut(&mut square[row]).cast(), part) }
        }
    }
}

/// Two blocks, each encrypted by itself: what [`ymm`] does on machines without
/// VAES, to test the kernels.
#[cfg(test)]
pub(super) mod paired {
    use std::arch::x86_64::*;

    pub(crate) use super::ymm::{
        LANES, Vector, and, broadcast, colours, highs, joined, keys, load, lows, masks,
        rotated_word, sigma, store, turned, word_sums, words, xor, zero,
    };

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    fn halves(vector: Vector) -> [__m128i; 2] {
        [_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)]
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn round(state: Vector, key: Vector) -> Vector {
        let ([s, t], [k, l]) = (halves(state), halves(key));
        _mm256_set_m128i(_mm_aesenc_si128(t, l), _mm_aesenc_si128(s, k))
    }

    #[inline]
    #[target_feature(enable = "avx2,aes")]
    pub(crate) fn last_round(state: Vector, key: Vector) -> Vector {
        let ([s, t], [k, l]) = (halves(state), halves(key));
        _mm256_set_m128i(_mm_aesenclast_si128(t, l), _mm_aesenclast_si128(s, k))
    }
}
