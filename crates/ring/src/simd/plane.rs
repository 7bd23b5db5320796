//! Bit planes of whole 64s of bytes and words, as [`crate::plane`] defines them.
//! Words in excess of the other list are left alone.

use super::Level;
#[cfg(target_arch = "x86_64")]
use super::Width;
use crate::plane::{collect, collect_words, spread, spread_words};

/// Defines a function that runs the code for the level.
macro_rules! dispatched {
    ($(#[$doc:meta])* $name:ident($from:ty, $to:ty), $portable:expr) => {
        $(#[$doc])*
        pub(crate) fn $name(level: Level, from: $from, bit: u32, to: $to) {
            #[cfg(target_arch = "x86_64")]
            match level.width() {
                Width::Scalar => {}
                // SAFETY: the level proves the presence of AVX2.
                Width::Avx2 => return unsafe { avx2::$name(from, bit, to) },
                // SAFETY: the level proves the presence of AVX-512.
                Width::Avx512 => return unsafe { avx512::$name(from, bit, to) },
            }
            let (_, portable) = (level, $portable);
            to.iter_mut().zip(from).for_each(|(to, from)| portable(to, from, bit));
        }
    };
}

dispatched!(
    /// Bit `bit` of each byte.
    gather(&[[u8; 64]], &mut [u64]),
    |to: &mut u64, from, bit| *to = collect(from, bit)
);
dispatched!(
    /// Adds a plane to bit `bit` of each byte.
    scatter(&[u64], &mut [[u8; 64]]),
    |to, from: &u64, bit| spread(to, *from, bit)
);
dispatched!(
    /// Bit `bit` of each word.
    gather_words(&[[u64; 64]], &mut [u64]),
    |to: &mut u64, from: &[u64; 64], bit| *to = collect_words(from, bit)
);
dispatched!(
    /// Adds a plane to bit `bit` of each word.
    scatter_words(&[u64], &mut [[u64; 64]]),
    |to: &mut [u64; 64], from: &u64, bit| spread_words(to, *from, bit)
);

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::ptr::from_ref;

    use crate::plane::{collect_words, spread, spread_words};

    #[target_feature(enable = "avx2")]
    pub(super) fn gather(from: &[[u8; 64]], bit: u32, to: &mut [u64]) {
        // The bit moves to the top of its byte, whatever comes from the byte below.
        let shift = _mm_cvtsi32_si128(7 - bit as i32);
        for (to, from) in to.iter_mut().zip(from) {
            let mut plane = 0;
            for half in from.as_chunks::<32>().0.iter().rev() {
                // SAFETY: half a chunk is as long as the vector; no alignment needed.
                let bytes = unsafe { _mm256_loadu_si256(from_ref(half).cast()) };
                let signs = _mm256_movemask_epi8(_mm256_sll_epi16(bytes, shift));
                plane = (plane << 32) | u64::from(signs as u32);
            }
            *to = plane;
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn scatter(from: &[u64], bit: u32, to: &mut [[u8; 64]]) {
        to.iter_mut().zip(from).for_each(|(to, from)| spread(to, *from, bit));
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn gather_words(from: &[[u64; 64]], bit: u32, to: &mut [u64]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = collect_words(from, bit));
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn scatter_words(from: &[u64], bit: u32, to: &mut [[u64; 64]]) {
        to.iter_mut().zip(from).for_each(|(to, from)| spread_words(to, *from, bit));
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::ptr::{from_mut, from_ref};

    pub(super) use super::avx2::gather;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn scatter(from: &[u64], bit: u32, to: &mut [[u8; 64]]) {
        for (to, from) in to.iter_mut().zip(from) {
            let halves = [*from as u32, (from >> 32) as u32];
            for (half, bits) in to.as_chunks_mut::<32>().0.iter_mut().zip(halves) {
                let ones = _mm256_maskz_set1_epi8(bits, 1 << bit);
                // SAFETY: half a chunk is as long as the vector; no alignment needed.
                let bytes = unsafe { _mm256_loadu_si256(from_ref(half).cast()) };
                let sum = _mm256_or_si256(bytes, ones);
                // SAFETY: as above.
                unsafe { _mm256_storeu_si256(from_mut(half).cast(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn gather_words(from: &[[u64; 64]], bit: u32, to: &mut [u64]) {
        let wanted = _mm256_set1_epi64x(1 << bit);
        for (to, from) in to.iter_mut().zip(from) {
            let mut plane = 0;
            for four in from.as_chunks::<4>().0.iter().rev() {
                // SAFETY: four words are as long as the vector; no alignment needed.
                let words = unsafe { _mm256_loadu_si256(from_ref(four).cast()) };
                plane = (plane << 4) | u64::from(_mm256_test_epi64_mask(words, wanted));
            }
            *to = plane;
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn scatter_words(from: &[u64], bit: u32, to: &mut [[u64; 64]]) {
        for (to, from) in to.iter_mut().zip(from) {
            let mut rest = *from;
            for four in to.as_chunks_mut::<4>().0 {
                let ones = _mm256_maskz_set1_epi64(rest as u8 & 15, 1 << bit);
                // SAFETY: four words are as long as the vector; no alignment needed.
                let words = unsafe { _mm256_loadu_si256(from_ref(four).cast()) };
                let sum = _mm256_or_si256(words, ones);
                // SAFETY: as above.
                unsafe { _mm256_storeu_si256(from_mut(four).cast(), sum) };
                rest >>= 4;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn every_level_takes_bytes_apart_alike() {
        let mut rng = Random::seeded(1);
        let mut bytes = [[0; 64]; 5];
        rng.fill(bytes.as_flattened_mut());
        for (level, bit) in Level::available().into_iter().flat_map(|l| (0..8).map(move |b| (l, b)))
        {
            let (mut plane, mut back) = ([0; 5], [[0; 64]; 5]);
            gather(level, &bytes, bit, &mut plane);
            assert!(plane.iter().zip(&bytes).all(|(plane, bytes)| *plane == collect(bytes, bit)));
            scatter(level, &plane, bit, &mut back);
            let kept = bytes.map(|chunk| chunk.map(|byte| byte & (1 << bit)));
            assert_eq!(back, kept, "{level:?}, bit {bit}");
        }
    }

    #[test]
    fn every_level_takes_words_apart_alike() {
        let mut rng = Random::seeded(2);
        let words = [(); 5].map(|()| std::array::from_fn(|_| rng.word()));
        for (level, bit) in
            Level::available().into_iter().flat_map(|l| (0..64).map(move |b| (l, b)))
        {
            let (mut plane, mut back) = ([0; 5], [[0; 64]; 5]);
            gather_words(level, &words, bit, &mut plane);
            assert!(plane.iter().zip(&words).all(|(p, words)| *p == collect_words(words, bit)));
            scatter_words(level, &plane, bit, &mut back);
            let kept = words.map(|chunk: [u64; 64]| chunk.map(|word| word & (1 << bit)));
            assert_eq!(back, kept, "{level:?}, bit {bit}");
        }
    }
}
