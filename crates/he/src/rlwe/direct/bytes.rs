//! Coefficients as bytes, of four ciphertexts beside each other, and weights as one or two bytes.

use ring::Wiped;
use ring::word::mask;
use zeroize::Zeroizing;

use super::TOGETHER;
use crate::rlwe::params::Params;
use crate::simd::Level;
use crate::simd::direct::bytes::{self, LANES, Layout, Term};

/// Bits of the lower byte of a weight of two.
const LOW: u32 = 7;

/// How coefficients and weights are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) layout: Layout,
    /// Bytes of a weight.
    planes: u32,
}

impl Bytes {
    /// Cuts for weights of magnitude at most `largest`; none where the machine has no use for it, or the weights
    /// are too large.
    pub(super) fn of(level: Level, params: Params, largest: u64) -> Option<Self> {
        let (limbs, degree) = (params.modulus_bits().div_ceil(8) as usize, params.degree());
        let planes = match largest {
            0..=0x7f => 1,
            // The upper byte of these is one, too.
            0x80..=0x3fbf => 2,
            _ => return None,
        };
        bytes::are_there(level).then_some(Self { layout: Layout { degree, limbs }, planes })
    }

    /// Bytes of a weight, with how far each is shifted.
    pub(super) fn planes(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.planes).map(|plane| (plane, LOW * plane))
    }

    /// The bytes of halves of ciphertexts, extended: -x, then x.
    pub(super) fn extend(self, bits: u32, halves: &[&[u64]]) -> Wiped<u8> {
        let (degree, low) = (self.layout.degree, mask(bits));
        let groups = halves.len().div_ceil(LANES);
        let mut extended = Wiped::new(vec![0; groups * self.layout.group()]);
        let each = extended.chunks_exact_mut(self.layout.group());
        for (group, halves) in each.zip(halves.chunks(LANES)) {
            let mut numbers = Zeroizing::new(vec![[0; LANES]; degree]);
            for (lane, half) in halves.iter().enumerate() {
                numbers.iter_mut().zip(*half).for_each(|(to, x)| to[lane] = *x);
            }
            for (limb, plane) in group.chunks_exact_mut(self.layout.plane()).enumerate() {
                let byte = |x: u64| (x >> (8 * limb)) as u8;
                let (negative, positive) = plane.as_chunks_mut::<LANES>().0.split_at_mut(degree);
                for ((negative, positive), x) in negative.iter_mut().zip(positive).zip(&*numbers) {
                    *positive = x.map(byte);
                    *negative = x.map(|x| byte(x.wrapping_neg() & low));
                }
            }
        }
        extended
    }

    /// One byte of the weights of groups of ciphertexts at all places. `weights` has for each ciphertext and place
    /// one for each result.
    pub(super) fn terms(
        self,
        plane: u32,
        offsets: &[usize],
        weights: &[[i32; TOGETHER]],
    ) -> Zeroizing<Vec<Term>> {
        let byte = |weight: i32| match (self.planes, plane) {
            (1, _) => weight as u8,
            // From -64 to 63.
            (_, 0) => ((weight << 1) as u8).cast_signed().wrapping_shr(1).cast_unsigned(),
            _ => ((weight + (1 << (LOW - 1))) >> LOW) as u8,
        };
        let mut terms = Zeroizing::new(Vec::with_capacity(weights.len().div_ceil(LANES)));
        for (group, weights) in weights.chunks((LANES * offsets.len()).max(1)).enumerate() {
            for (at, offset) in offsets.iter().enumerate() {
                let start = group * self.layout.group() + LANES * offset;
                // The weights come where they are wiped.
                terms.push(Term { start, weights: [0; TOGETHER] });
                let Some(Term { weights: packed, .. }) = terms.last_mut() else { continue };
                for (lane, weights) in weights.chunks(offsets.len()).enumerate() {
                    for (packed, weight) in packed.iter_mut().zip(weights[at]) {
                        *packed |= u32::from(byte(weight)) << (8 * lane);
                    }
                }
            }
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_weights_make_the_weights() {
        let layout = Layout { degree: 64, limbs: 5 };
        for (planes, largest) in [(1, 127), (2, 0x3fbf)] {
            let cut = Bytes { layout, planes };
            for weight in -largest..=largest {
                let of = |(plane, shift): (u32, u32)| {
                    let terms = cut.terms(plane, &[3], &[[weight; TOGETHER]]);
                    let [byte, ..] = terms[0].weights[0].to_le_bytes();
                    i32::from(byte.cast_signed()) << shift
                };
                assert_eq!(cut.planes().map(of).sum::<i32>(), weight);
            }
        }
    }

    #[test]
    fn extended_halves_lie_by_byte_and_place() {
        let cut = Bytes { layout: Layout { degree: 2, limbs: 2 }, planes: 1 };
        let halves: [&[u64]; 5] = [&[1, 2], &[3, 4], &[5, 6], &[7, 8], &[0x1234, 0]];
        let extended = cut.extend(13, &halves);
        assert_eq!(extended.len(), 2 * cut.layout.group());
        // 2^13 - 1 and so on, then the numbers themselves; the lower bytes first.
        assert_eq!(
            extended[..16],
            [255, 253, 251, 249, 254, 252, 250, 248, 1, 3, 5, 7, 2, 4, 6, 8]
        );
        assert_eq!(extended[16..24], [0x1f; 8]);
        assert_eq!(extended[32..48], [0xcc, 0, 0, 0, 0, 0, 0, 0, 0x34, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((extended[48], extended[56]), (0x0d, 0x12));
    }
}
