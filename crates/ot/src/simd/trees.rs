//! Levels of Ferret's trees and the tags of their leaves, hashed and added up in one pass.

use std::ops::Range;

use ring::simd::Level;
#[cfg(target_arch = "x86_64")]
use ring::simd::Width;
#[cfg(target_arch = "x86_64")]
use zeroize::Zeroizing;

use super::Eight;
use super::aes::Hasher;
#[cfg(target_arch = "x86_64")]
use super::aes::Schedule;

impl Hasher {
    /// Replaces the nodes at the front of `nodes`, those of `parents`, by their children `H(x)` and `x xor H(x)`, cut by
    /// `keep`, from the last on: node `i` by nodes `2*i` and `2*i + 1`, under the key of this number. Returns what all left and
    /// all right children add up to, uncut; nothing is done where no kernel is for the processor.
    pub(crate) fn expand(
        &self,
        key: usize,
        keep: u128,
        nodes: &mut [Eight],
        parents: Range<usize>,
    ) -> Option<[u128; 2]> {
        #[cfg(target_arch = "x86_64")]
        let sums = widest!(self.level, expand(&self.schedule, key, &keep, nodes, parents) else return None);
        #[cfg(target_arch = "x86_64")]
        return Some(sums);
        #[cfg(not(target_arch = "x86_64"))]
        none((key, keep, nodes, parents))
    }

    /// Writes the tags `H(x)` of `leaves` under the key of this number to `tags`, and returns their sum; nothing is done where
    /// no kernel is for the processor.
    pub(crate) fn tag(&self, key: usize, leaves: &[Eight], tags: &mut [Eight]) -> Option<u128> {
        #[cfg(target_arch = "x86_64")]
        let sum = widest!(self.level, tag(&self.schedule, key, leaves, tags) else return None);
        #[cfg(target_arch = "x86_64")]
        return Some(sum);
        #[cfg(not(target_arch = "x86_64"))]
        none((key, leaves, tags))
    }
}

/// Nothing, of what is given to a kernel that there is not.
#[cfg(not(target_arch = "x86_64"))]
fn none<T, U>(_: T) -> Option<U> {
    None
}

/// Adds `pair` to the pair of this number and zero to all others, in the same time for each.
pub(crate) fn add_pair(level: Level, pairs: &mut [[u128; 2]], number: u64, pair: &[u128; 2]) {
    #[cfg(target_arch = "x86_64")]
    if level.width() != Width::Scalar {
        // SAFETY: the level proves the presence of AVX2.
        return unsafe { chosen::add_pair(pairs, number, pair) };
    }
    let _ = level;
    for (at, to) in (0u64..).zip(pairs) {
        let here = ((at ^ number).wrapping_sub(1) as i64 >> 63) as i128 as u128;
        *to = [to[0] ^ (pair[0] & here), to[1] ^ (pair[1] & here)];
    }
}

#[cfg(target_arch = "x86_64")]
mod chosen {
    use std::arch::x86_64::*;
    use std::ptr::{from_mut, from_ref};

    #[target_feature(enable = "avx2")]
    pub(super) fn add_pair(pairs: &mut [[u128; 2]], number: u64, pair: &[u128; 2]) {
        // SAFETY: a pair is as long as the vector; the load needs no alignment.
        let pair = unsafe { _mm256_loadu_si256(from_ref(pair).cast()) };
        let number = _mm256_set1_epi64x(number.cast_signed());
        let (mut at, one) = (_mm256_setzero_si256(), _mm256_set1_epi64x(1));
        for to in pairs {
            let here = _mm256_and_si256(pair, _mm256_cmpeq_epi64(at, number));
            let to = from_mut(to).cast();
            // SAFETY: a pair is as long as the vector; neither needs alignment.
            unsafe { _mm256_storeu_si256(to, _mm256_xor_si256(_mm256_loadu_si256(to), here)) };
            at = _mm256_add_epi64(at, one);
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($name:ident, $features:tt, $vector:ident, $interleaved:path) => {
        mod $name {
            use super::{Eight, Range, Schedule, Zeroizing};
            use crate::simd::kernels::$name::masked;
            use crate::simd::vector::$vector::{self as vector, LANES, Vector};

            /// Vectors of eight blocks.
            const VECTORS: usize = 8 / LANES;

            #[target_feature(enable = $features)]
            pub(super) fn expand(
                schedule: &Schedule,
                key: usize,
                keep: &u128,
                nodes: &mut [Eight],
                parents: Range<usize>,
            ) -> [u128; 2] {
                let keep = vector::broadcast(keep);
                let (mut left, mut all) = ([vector::zero(); VECTORS], [vector::zero(); VECTORS]);
                for batch in parents.rev() {
                    let mut nodes_of = [vector::zero(); VECTORS];
                    for at in 0..VECTORS {
                        nodes_of[at] = vector::load(&nodes[batch], at);
                    }
                    let hashed = hashed(schedule, key, &nodes_of);
                    let children = &mut nodes[2 * batch..2 * batch + 2];
                    for at in 0..VECTORS {
                        let (parent, child) = (nodes_of[at], hashed[at]);
                        left[at] = vector::xor(left[at], child);
                        all[at] = vector::xor(all[at], parent);
                        let other = vector::and(vector::xor(child, parent), keep);
                        let pairs = $interleaved(vector::and(child, keep), other);
                        for (half, pair) in pairs.into_iter().enumerate() {
                            let place = 2 * at + half;
                            vector::store(&mut children[place / VECTORS], place % VECTORS, pair);
                        }
                    }
                }
                let left = sum(&left);
                [left, left ^ sum(&all)]
            }

            #[target_feature(enable = $features)]
            pub(super) fn tag(
                schedule: &Schedule,
                key: usize,
                leaves: &[Eight],
                tags: &mut [Eight],
            ) -> u128 {
                let mut all = [vector::zero(); VECTORS];
                for (leaves, tags) in leaves.iter().zip(tags) {
                    let mut nodes = [vector::zero(); VECTORS];
                    for at in 0..VECTORS {
                        nodes[at] = vector::load(leaves, at);
                    }
                    for (at, tag) in hashed(schedule, key, &nodes).into_iter().enumerate() {
                        all[at] = vector::xor(all[at], tag);
                        vector::store(tags, at, tag);
                    }
                }
                sum(&all)
            }

            /// `H` of eight nodes.
            #[inline]
            #[target_feature(enable = $features)]
            fn hashed(
                schedule: &Schedule,
                key: usize,
                nodes: &[Vector; VECTORS],
            ) -> [Vector; VECTORS] {
                let mut input = [vector::zero(); VECTORS];
                for at in 0..VECTORS {
                    input[at] = vector::sigma(nodes[at]);
                }
                masked(schedule, key, &input)
            }

            /// What the blocks of eight add up to.
            #[inline]
            #[target_feature(enable = $features)]
            fn sum(vectors: &[Vector; VECTORS]) -> u128 {
                let mut blocks = Zeroizing::new([0; 8]);
                for at in 0..VECTORS {
                    vector::store(&mut blocks, at, vectors[at]);
                }
                blocks.iter().fold(0, |sum, block| sum ^ block)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(narrow, "avx2,aes", xmm, super::order::of_one);
#[cfg(target_arch = "x86_64")]
kernels!(wider, "avx2,aes,avx512f,avx512vl", xmm, super::order::of_one);
#[cfg(target_arch = "x86_64")]
kernels!(wide, "avx2,aes,vaes", ymm, super::order::of_two);
#[cfg(all(test, target_arch = "x86_64"))]
kernels!(paired, "avx2,aes", paired, super::order::of_two);

/// The blocks of two vectors in turns.
#[cfg(target_arch = "x86_64")]
mod order {
    use std::arch::x86_64::{__m128i, __m256i, _mm256_permute2x128_si256};

    #[inline(always)]
    pub(super) fn of_one(a: __m128i, b: __m128i) -> [__m128i; 2] {
        [a, b]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn of_two(a: __m256i, b: __m256i) -> [__m256i; 2] {
        [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::EIGHT;
    use ring::Random;

    /// `H(x)` under one of eight keys.
    fn hashed(keys: Eight, key: usize, x: u128) -> u128 {
        let mut hasher = Hasher::new(Level::SCALAR);
        hasher.set(keys);
        let mut blocks = [0; EIGHT];
        blocks[0] = (((x >> 64) ^ x) << 64) | x >> 64;
        hasher.hash(key, 3, &mut blocks);
        blocks[0]
    }

    #[test]
    fn all_levels_make_the_same_children_and_tags() {
        let mut rng = Random::seeded(1);
        let keys: Eight = std::array::from_fn(|_| rng.block());
        let before: Vec<u128> = (0..8 * EIGHT).map(|_| rng.block()).collect();
        let (key, keep) = (5, !1);
        for parents in [0..4, 1..3, 3..4] {
            let mut expected = before.clone();
            let mut sums = [0; 2];
            for at in (EIGHT * parents.start..EIGHT * parents.end).rev() {
                let left = hashed(keys, key, expected[at]);
                let pair = [left, left ^ expected[at]];
                sums = [sums[0] ^ pair[0], sums[1] ^ pair[1]];
                expected[2 * at..2 * at + 2].copy_from_slice(&pair.map(|child| child & keep));
            }
            let tags: Vec<u128> =
                before[..16].iter().map(|leaf| hashed(keys, key, *leaf)).collect();
            for level in Level::available().into_iter().filter(|level| *level != Level::SCALAR) {
                let mut hasher = Hasher::new(level);
                hasher.set(keys);
                let mut found = before.clone();
                let nodes = found.as_chunks_mut().0;
                let found_sums = hasher.expand(key, keep, nodes, parents.clone());
                assert_eq!(found_sums.is_some(), cfg!(target_arch = "x86_64"));
                if let Some(found_sums) = found_sums {
                    assert!(found == expected && found_sums == sums, "{level:?}");
                }
                let mut made = [[0; EIGHT]; 2];
                if let Some(all) = hasher.tag(key, &before.as_chunks().0[..2], &mut made) {
                    assert!(made.as_flattened() == tags, "{level:?}");
                    assert_eq!(all, tags.iter().fold(0, |sum, tag| sum ^ tag));
                }
            }
        }
    }

    /// Two blocks in a vector, on machines that encrypt one at a time too.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn pairs_of_blocks_make_the_same_children() {
        let Some(level) =
            Level::available().into_iter().find(|level| level.width() != Width::Scalar)
        else {
            return;
        };
        let mut rng = Random::seeded(2);
        let mut hasher = Hasher::new(level);
        hasher.set(std::array::from_fn(|_| rng.block()));
        let before: Vec<u128> = (0..4 * EIGHT).map(|_| rng.block()).collect();
        let [mut one, mut other] = [before.clone(), before];
        let sums = hasher.expand(2, !1, one.as_chunks_mut().0, 0..2);
        // SAFETY: the level proves the presence of AVX2 and AES-NI.
        let expected =
            unsafe { paired::expand(&hasher.schedule, 2, &!1, other.as_chunks_mut().0, 0..2) };
        assert!(one == other);
        assert_eq!(sums, Some(expected));
        let mut tags = [[[0; EIGHT]; 4]; 2];
        let leaves = one.as_chunks().0;
        let all = hasher.tag(2, leaves, &mut tags[0]);
        // SAFETY: the level proves the presence of AVX2 and AES-NI.
        let other = unsafe { paired::tag(&hasher.schedule, 2, leaves, &mut tags[1]) };
        assert_eq!((all, tags[0]), (Some(other), tags[1]));
    }

    #[test]
    fn a_pair_is_added_where_it_belongs() {
        let mut rng = Random::seeded(3);
        let before: Vec<[u128; 2]> = (0..9).map(|_| [rng.block(), rng.block()]).collect();
        let pair = [rng.block(), rng.block()];
        for level in Level::available() {
            for number in [0, 3, 8, 9] {
                let mut found = before.clone();
                add_pair(level, &mut found, number, &pair);
                for (at, (found, before)) in (0..).zip(found.iter().zip(&before)) {
                    let added = if at == number { pair } else { [0; 2] };
                    assert_eq!(*found, [before[0] ^ added[0], before[1] ^ added[1]]);
                }
            }
        }
    }
}
