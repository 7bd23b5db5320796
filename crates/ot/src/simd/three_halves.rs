//! Gates of eight instances in three halves, as [`crate::three_halves`] says: written once and compiled as the
//! other AES kernels are.

use ring::simd::Width;

use super::Eight;
use super::aes::Hasher;

/// The words of a lane by which control bits are found: the third of a hash, and each of the lowest three of a
/// table's controls.
const THIRD: i32 = 0xaa;
const SECOND: i32 = 0x55;
const FIRST: i32 = 0;

/// A gate's table as vectors have it: `G_0` and above it `G_1`; `G_2`, which is in the low half; the bits, each lowest in
/// a word of 32 bits.
pub(crate) struct Parts<T> {
    pub(crate) pairs: T,
    pub(crate) thirds: T,
    pub(crate) controls: T,
}

/// Where the bits of a table stand in [`Parts::controls`].
pub(crate) const PLACES: [u32; 3] = [0, 32, 64];

impl Hasher {
    /// Garbles under the keys `first` to `first + 2`; false, and nothing done, at the portable level.
    pub(crate) fn garble_three(
        &self,
        first: usize,
        delta: &u128,
        operands: [&Eight; 2],
        table: Parts<&mut Eight>,
        out: &mut Eight,
    ) -> bool {
        widest!(self.level, garble(&self.schedule, first, delta, operands, table, out) else return false);
        true
    }

    /// Evaluates what [`Hasher::garble_three`] garbled; false at the portable level.
    pub(crate) fn evaluate_three(
        &self,
        first: usize,
        operands: [&Eight; 2],
        table: Parts<&Eight>,
        out: &mut Eight,
    ) -> bool {
        widest!(self.level, evaluate(&self.schedule, first, operands, table, out) else return false);
        true
    }
}

macro_rules! kernels {
    ($name:ident, $features:tt, $vector:ident) => {
        mod $name {
            use super::{FIRST, PLACES, Parts, SECOND, THIRD};
            use crate::simd::Eight;
            use crate::simd::aes::Schedule;
            use crate::simd::kernels::$name::hashed;
            use crate::simd::vector::$vector::{self as vector, LANES, Vector};

            /// Vectors of eight blocks.
            const VECTORS: usize = 8 / LANES;

            /// The sum of vectors.
            #[inline]
            #[target_feature(enable = $features)]
            fn sum<const N: usize>(all: [Vector; N]) -> Vector {
                let mut sum = vector::zero();
                for one in all {
                    sum = vector::xor(sum, one);
                }
                sum
            }

            /// Each hash with what is kept of it lowest.
            #[inline]
            #[target_feature(enable = $features)]
            fn turned(mut hashes: [Vector; VECTORS]) -> [Vector; VECTORS] {
                for hash in &mut hashes {
                    *hash = vector::turned(*hash);
                }
                hashes
            }

            /// What both halves of a result have of the operands' labels, for control bits and colours as masks.
            #[inline]
            #[target_feature(enable = $features)]
            fn linear([a, b]: [Vector; 2], [x, y]: [Vector; 2], [i, j]: [Vector; 2]) -> Vector {
                let (mixed, both) = (sum([vector::lows(a), vector::highs(b)]), sum([x, y]));
                sum([
                    vector::and(vector::joined(y, x), mixed),
                    vector::and(vector::joined(both, sum([y, j])), vector::highs(a)),
                    vector::and(vector::joined(sum([x, i]), sum([both, j])), vector::lows(b)),
                ])
            }

            #[target_feature(enable = $features)]
            pub(super) fn garble(
                schedule: &Schedule,
                first: usize,
                delta: &u128,
                operands: [&Eight; 2],
                table: Parts<&mut Eight>,
                out: &mut Eight,
            ) {
                let (delta, ones, none) =
                    (vector::broadcast(delta), vector::words(-1), vector::zero());
                let (low_delta, high_delta) = (vector::lows(delta), vector::highs(delta));
                let shift = vector::sigma(delta);
                let mut zeros = [[none; VECTORS]; 3];
                let mut permuted = [[none; VECTORS]; 2];
                for at in 0..VECTORS {
                    for (half, operand) in operands.iter().enumerate() {
                        let label = vector::load(operand, at);
                        permuted[half][at] = vector::colours(label);
                        let flipped = vector::and(permuted[half][at], delta);
                        zeros[half][at] = vector::xor(label, flipped);
                    }
                    zeros[2][at] = vector::xor(zeros[0][at], zeros[1][at]);
                }
                let a0 = turned(hashed(schedule, first, &zeros[0], none));
                let a1 = turned(hashed(schedule, first, &zeros[0], shift));
                let b0 = turned(hashed(schedule, first + 1, &zeros[1], none));
                let b1 = turned(hashed(schedule, first + 1, &zeros[1], shift));
                let s0 = turned(hashed(schedule, first + 2, &zeros[2], none));
                let s1 = turned(hashed(schedule, first + 2, &zeros[2], shift));
                for at in 0..VECTORS {
                    let [a, b] = [permuted[0][at], permuted[1][at]];
                    let (left, right) = (zeros[0][at], zeros[1][at]);
                    let (not_a, not_b, ab) = (sum([a, ones]), sum([b, ones]), sum([a, b]));
                    let of_a = vector::xor(a0[at], a1[at]);
                    let of_b = vector::xor(b0[at], b1[at]);
                    let of_sum = vector::xor(s0[at], s1[at]);
                    let x = vector::masks::<THIRD>(vector::xor(a0[at], s0[at]));
                    let y = vector::masks::<THIRD>(vector::xor(a0[at], b0[at]));
                    let xy = sum([x, y]);
                    let z = [
                        sum([vector::masks::<THIRD>(of_a), a]),
                        sum([vector::masks::<THIRD>(of_b), ab]),
                        sum([vector::masks::<THIRD>(of_sum), b]),
                    ];
                    let (mixed, high, low) = (
                        vector::xor(vector::lows(left), vector::highs(right)),
                        vector::highs(left),
                        vector::lows(right),
                    );
                    let pair = sum([
                        vector::joined(of_a, of_b),
                        vector::and(vector::joined(b, a), mixed),
                        vector::and(vector::joined(ab, not_b), high),
                        vector::and(vector::joined(not_a, sum([ab, ones])), low),
                        vector::and(vector::joined(xy, sum([y, not_b])), low_delta),
                        vector::and(vector::joined(sum([x, a]), xy), high_delta),
                    ]);
                    let third = sum([
                        vector::lows(of_sum),
                        vector::and(ab, mixed),
                        vector::and(a, high),
                        vector::and(b, low),
                        vector::and(sum([x, ab]), low_delta),
                        vector::and(sum([y, ab]), high_delta),
                    ]);
                    let mut controls = none;
                    for (z, place) in z.into_iter().zip(PLACES) {
                        let bit = vector::and(z, vector::broadcast(&(1 << place)));
                        controls = vector::xor(controls, bit);
                    }
                    let hashes =
                        vector::joined(vector::xor(a0[at], s0[at]), vector::xor(b0[at], s0[at]));
                    let product = vector::and(vector::and(a, b), delta);
                    let labels = linear([left, right], [x, y], [none; 2]);
                    vector::store(table.pairs, at, pair);
                    vector::store(table.thirds, at, third);
                    vector::store(table.controls, at, controls);
                    vector::store(out, at, sum([hashes, labels, product]));
                }
            }

            #[target_feature(enable = $features)]
            pub(super) fn evaluate(
                schedule: &Schedule,
                first: usize,
                operands: [&Eight; 2],
                table: Parts<&Eight>,
                out: &mut Eight,
            ) {
                let none = vector::zero();
                let mut labels = [[none; VECTORS]; 3];
                for at in 0..VECTORS {
                    labels[0][at] = vector::load(operands[0], at);
                    labels[1][at] = vector::load(operands[1], at);
                    labels[2][at] = vector::xor(labels[0][at], labels[1][at]);
                }
                let of_a = turned(hashed(schedule, first, &labels[0], none));
                let of_b = turned(hashed(schedule, first + 1, &labels[1], none));
                let of_sum = turned(hashed(schedule, first + 2, &labels[2], none));
                for at in 0..VECTORS {
                    let (a, b, controls) =
                        (labels[0][at], labels[1][at], vector::load(table.controls, at));
                    let (i, j) = (vector::colours(a), vector::colours(b));
                    let other = vector::xor(i, j);
                    let z_0 = vector::and(i, vector::masks::<FIRST>(controls));
                    let z_1 = vector::and(j, vector::masks::<SECOND>(controls));
                    let z_2 = vector::and(other, vector::masks::<THIRD>(controls));
                    let x = vector::masks::<THIRD>(vector::xor(of_a[at], of_sum[at]));
                    let x = sum([x, z_0, z_2]);
                    let y = vector::masks::<THIRD>(vector::xor(of_b[at], of_sum[at]));
                    let y = sum([x, y, z_1, z_2]);
                    let pair = vector::and(vector::joined(i, j), vector::load(table.pairs, at));
                    let third = vector::lows(vector::load(table.thirds, at));
                    let hashes = vector::joined(of_a[at], of_b[at]);
                    let hashes = vector::xor(hashes, vector::lows(of_sum[at]));
                    let linear = linear([a, b], [x, y], [i, j]);
                    let table = vector::xor(pair, vector::and(other, third));
                    vector::store(out, at, sum([hashes, linear, table]));
                }
            }
        }
    };
}

kernels!(narrow, "avx2,aes", xmm);
kernels!(wider, "avx2,aes,avx512f,avx512vl", xmm);
kernels!(wide, "avx2,aes,vaes", ymm);
#[cfg(test)]
kernels!(paired, "avx2,aes", paired);

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;
    use ring::simd::Level;

    /// The kernels for two blocks per vector, on machines without VAES as well.
    #[test]
    fn two_blocks_per_vector_give_the_same() {
        if Level::best().width() == Width::Scalar {
            return;
        }
        let mut rng = Random::seeded(3);
        let mut eight = || -> Eight { std::array::from_fn(|_| rng.block()) };
        let (keys, left, right) = (eight(), eight(), eight());
        let (operands, delta) = ([&left, &right], eight()[0] | 1);
        let mut hasher = Hasher::new(Level::best());
        hasher.set(keys);
        let mut rounds = [[0; 8]; 11];
        // SAFETY: the level proves the presence of AVX2 and AES-NI.
        unsafe { crate::simd::kernels::paired::schedule(&keys, &mut rounds) };
        let mut made = [[[0; 8]; 4]; 2];
        let [first, second] = &mut made;
        let [pairs, thirds, controls, out] = first;
        hasher.garble_three(4, &delta, operands, Parts { pairs, thirds, controls }, out);
        let [pairs, thirds, controls, out] = second;
        // SAFETY: as above.
        unsafe {
            paired::garble(&rounds, 4, &delta, operands, Parts { pairs, thirds, controls }, out);
        }
        assert_eq!(made[0], made[1]);
        let [pairs, thirds, controls, _] = &made[0];
        let (mut one, mut other) = ([0; 8], [0; 8]);
        hasher.evaluate_three(4, operands, Parts { pairs, thirds, controls }, &mut one);
        // SAFETY: as above.
        unsafe {
            paired::evaluate(&rounds, 4, operands, Parts { pairs, thirds, controls }, &mut other)
        };
        assert_eq!(one, other);
    }
}
