//! AES-128 by permutations of bytes: vectors of 16 bytes, each looked up in tables of 16 entries that
//! stand in registers, so that time depends on no value.
//!
//! The idea is Hamburg's (*Accelerating AES with Vector Permute Instructions*, CHES 2009). A byte is kept as
//! a pair (i, k) of elements of GF(16), i in its lower and k in its upper half, that stands for
//! `i + k*t`, for a t outside of GF(16). With j = i + k, `io = 1/(1/i + a/k) + j` and
//! `jo = 1/(1/j + a/k) + i`, the S-box is `U[io] + T[jo] + c` for two tables; 1/0 is [`INFINITE`], whose
//! entry in every table is zero. The tables solve these 256 linear equations for t = 0x12 and a =
//! 12, with GF(16) written in powers of one of its generators. Constants c are added to round keys.
//! Between rounds bytes stay pairs, and tables give both the S-box and twice the S-box, as MixColumns needs
//! them.

use zeroize::{Zeroize, Zeroizing};

/// Blocks that are encrypted side by side.
const SIDE_BY_SIDE: usize = 4;
/// Stands for 1/0: no index of a table, whatever element is added to it.
const INFINITE: u8 = 0x80;

type Table = [u8; 16];

/// Pairs of bytes 0 to 15, and of their multiples of 16.
#[rustfmt::skip]
const PAIRS: [Table; 2] = [
    [0x00, 0x01, 0x62, 0x63, 0xd7, 0xd6, 0xb5, 0xb4, 0xd4, 0xd5, 0xb6, 0xb7, 0x03, 0x02, 0x61, 0x60],
    [0x00, 0x72, 0x9b, 0xe9, 0x77, 0x05, 0xec, 0x9e, 0xe1, 0x93, 0x7a, 0x08, 0x96, 0xe4, 0x0d, 0x7f],
];
/// 1/x.
#[rustfmt::skip]
const INVERSES: Table = [
    INFINITE, 0x01, 0x0c, 0x08, 0x06, 0x0f, 0x04, 0x0e, 0x03, 0x0d, 0x0b, 0x0a, 0x02, 0x09, 0x07, 0x05,
];
/// a/x.
#[rustfmt::skip]
const RATIOS: Table = [
    INFINITE, 0x0c, 0x06, 0x04, 0x03, 0x0b, 0x02, 0x07, 0x0d, 0x0a, 0x09, 0x05, 0x01, 0x08, 0x0f, 0x0e,
];
/// U and T of the pair of the S-box.
#[rustfmt::skip]
const ONCE: [Table; 2] = [
    [0x00, 0xd2, 0x01, 0xbc, 0x73, 0x1d, 0xbd, 0xcf, 0x1c, 0xd3, 0xa0, 0x72, 0xce, 0x6e, 0xa1, 0x6f],
    [0x00, 0xc0, 0xde, 0x2d, 0x19, 0xf4, 0xf3, 0x34, 0x2a, 0x1e, 0x07, 0xc7, 0xea, 0xed, 0xd9, 0x33],
];
/// U and T of the pair of twice the S-box, in GF(256).
#[rustfmt::skip]
const TWICE: [Table; 2] = [
    [0x00, 0xae, 0x62, 0x48, 0xf9, 0x1f, 0x2a, 0xb1, 0x7d, 0xcc, 0x35, 0x9b, 0xd3, 0xe6, 0x57, 0x84],
    [0x00, 0x26, 0x9f, 0xd2, 0x07, 0xf3, 0x4d, 0xd5, 0x6c, 0xb9, 0xbe, 0x98, 0x4a, 0xf4, 0x21, 0x6b],
];
/// U and T of the S-box itself.
#[rustfmt::skip]
const LAST: [Table; 2] = [
    [0x00, 0x54, 0x01, 0xb7, 0x11, 0xf2, 0xb6, 0xa6, 0xf3, 0x55, 0x44, 0x10, 0xa7, 0xe3, 0x45, 0xe2],
    [0x00, 0x4b, 0xb5, 0x2a, 0xa3, 0xc2, 0x9f, 0x89, 0x77, 0xfe, 0x5d, 0x16, 0x3c, 0x61, 0xe8, 0xd4],
];
const SHIFT_ROWS: Table = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11];
const ROTATE: Table = [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12];
/// The constant of the S-box, which ShiftRows and MixColumns leave alone.
const CONSTANT: u8 = 0x63;

/// A vector of 16 bytes.
pub(super) trait Bytes: Copy {
    fn of(bytes: [u8; 16]) -> Self;
    fn bytes(self) -> [u8; 16];
    fn xor(self, other: Self) -> Self;
    /// The lower four bits of each byte.
    fn low(self) -> Self;
    /// The upper four bits of each byte.
    fn high(self) -> Self;
    /// The entry of `self` that each byte of `at` names; zero where it is 16 or more.
    fn look_up(self, at: Self) -> Self;
    /// The same, from which a compiler does not learn its value: permutations by a constant become instructions that
    /// make the constant anew each time.
    fn opaque(self) -> Self;
}

/// The tables of the S-box, and permutations of the bytes of a state.
struct Tables<V> {
    /// ShiftRows.
    shift_rows: V,
    /// Each byte of a column in the place of the one before it.
    rotate: V,
    inverses: V,
    ratios: V,
    once: [V; 2],
    twice: [V; 2],
    last: [V; 2],
}

impl<V: Bytes> Tables<V> {
    fn new() -> Self {
        Self {
            shift_rows: V::of(SHIFT_ROWS).opaque(),
            rotate: V::of(ROTATE).opaque(),
            inverses: V::of(INVERSES),
            ratios: V::of(RATIOS),
            once: ONCE.map(V::of),
            twice: TWICE.map(V::of),
            last: LAST.map(V::of),
        }
    }

    /// What the tables of a result are looked up by.
    fn indices(&self, pair: V) -> [V; 2] {
        let (i, k) = (pair.low(), pair.high());
        let j = i.xor(k);
        let ratio = self.ratios.look_up(k);
        let under_i = self.inverses.look_up(i).xor(ratio);
        let under_j = self.inverses.look_up(j).xor(ratio);
        [self.inverses.look_up(under_i).xor(j), self.inverses.look_up(under_j).xor(i)]
    }

    /// The S-box of bytes that are no pairs, less its constant.
    fn substituted(&self, bytes: V) -> V {
        both(&self.last, self.indices(paired(bytes)))
    }

    fn encrypt<const COUNT: usize>(&self, keys: &[V; 11], blocks: &mut [[u8; 16]; COUNT]) {
        let [first, middle @ .., last] = keys;
        let mut states = blocks.map(|block| paired(V::of(block)).xor(*first));
        for key in middle {
            for state in &mut states {
                let at = self.indices(state.look_up(self.shift_rows));
                let (once, twice) = (both(&self.once, at), both(&self.twice, at));
                // 2*x0 + 3*x1 + x2 + x3, by x0 + x1 and so on.
                let rotated = |x: V| x.look_up(self.rotate);
                let inner = once.xor(twice).xor(rotated(once.xor(rotated(once))));
                *state = twice.xor(rotated(inner)).xor(*key);
            }
        }
        for (block, state) in blocks.iter_mut().zip(states) {
            let at = self.indices(state.look_up(self.shift_rows));
            *block = both(&self.last, at).xor(*last).bytes();
        }
    }
}

/// The sum of the entries that both indices name, each in its table.
fn both<V: Bytes>([u, t]: &[V; 2], indices: [V; 2]) -> V {
    u.look_up(indices[0]).xor(t.look_up(indices[1]))
}

fn paired<V: Bytes>(bytes: V) -> V {
    both(&PAIRS.map(V::of), [bytes.low(), bytes.high()])
}

/// The keys of all rounds, as pairs but for the last, with the constant of the S-box of the round.
#[derive(Zeroize)]
pub(super) struct RoundKeys([[u8; 16]; 11]);

impl Drop for RoundKeys {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl zeroize::ZeroizeOnDrop for RoundKeys {}

impl RoundKeys {
    pub(super) fn new<V: Bytes>(key: &[u8; 16]) -> Self {
        let mut keys = Self([*key; 11]);
        let tables = Tables::new();
        let (mut round, mut constant) = (Zeroizing::new(*key), 1u8);
        for out in keys.0.iter_mut().skip(1) {
            let substituted = tables.substituted(V::of(*round)).bytes();
            let last = [13, 14, 15, 12].map(|at| substituted[at] ^ CONSTANT);
            let mut carried = Zeroizing::new(last);
            carried[0] ^= constant;
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
            for column in round.chunks_mut(4) {
                column.iter_mut().zip(carried.iter()).for_each(|(byte, carried)| *byte ^= carried);
                carried.copy_from_slice(column);
            }
            *out = round.map(|byte| byte ^ CONSTANT);
        }
        for key in &mut keys.0[..10] {
            *key = paired(V::of(*key)).bytes();
        }
        keys
    }

    pub(super) fn encrypt<V: Bytes>(&self, blocks: &mut [[u8; 16]]) {
        let (keys, tables) = (self.0.map(V::of), Tables::new());
        // Chains of permutations are long, so several blocks go side by side.
        let (several, rest) = blocks.as_chunks_mut::<SIDE_BY_SIDE>();
        several.iter_mut().for_each(|blocks| tables.encrypt(&keys, blocks));
        rest.iter_mut().for_each(|block| tables.encrypt(&keys, std::array::from_mut(block)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Aes128;
    use super::*;
    use crate::Random;

    /// The instructions, one byte at a time.
    #[derive(Clone, Copy)]
    struct Plain([u8; 16]);

    impl Bytes for Plain {
        fn of(bytes: [u8; 16]) -> Self {
            Self(bytes)
        }

        fn bytes(self) -> [u8; 16] {
            self.0
        }

        fn xor(self, other: Self) -> Self {
            Self(std::array::from_fn(|at| self.0[at] ^ other.0[at]))
        }

        fn low(self) -> Self {
            Self(self.0.map(|byte| byte & 15))
        }

        fn high(self) -> Self {
            Self(self.0.map(|byte| byte >> 4))
        }

        fn look_up(self, at: Self) -> Self {
            Self(at.0.map(|at| self.0.get(usize::from(at)).copied().unwrap_or(0)))
        }

        fn opaque(self) -> Self {
            self
        }
    }

    #[test]
    fn permutations_are_aes() {
        let mut rng = Random::seeded(1);
        for count in [0, 1, 3, 4, 5, 64, 255] {
            let key = rng.block().to_le_bytes();
            let mut got: Vec<_> = (0..count).map(|_| rng.block().to_le_bytes()).collect();
            let mut wanted = got.clone();
            RoundKeys::new::<Plain>(&key).encrypt::<Plain>(&mut got);
            Aes128::new(&key).encrypt(&mut wanted);
            assert_eq!(got, wanted);
        }
    }

    #[test]
    fn every_byte_is_substituted() {
        // The key schedule meets all bytes sooner or later; here each is met in every position.
        for byte in 0..=255u8 {
            let key = [byte; 16];
            let mut got: Vec<_> = (0..=255u8).map(|other| [other; 16]).collect();
            let mut wanted = got.clone();
            RoundKeys::new::<Plain>(&key).encrypt::<Plain>(&mut got);
            Aes128::new(&key).encrypt(&mut wanted);
            assert_eq!(got, wanted);
        }
    }
}
