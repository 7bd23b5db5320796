//! AES-128 by bits: eight blocks side by side, each under a key of its own, as a circuit of gates on
//! vectors of 128 bits. No address and no branch depends on a key or a block.
//!
//! Vector b holds bit b of every byte: bit i of one of its bytes is that of a byte of block i (Kasper, Schwabe,
//! "Faster and timing-attack resistant AES-GCM", CHES 2009). Bytes stand row by row and not column by column as in a block,
//! so that the rotations of MixColumns move whole words of 32 bits, for which processors need no vector of places, and
//! ShiftRows is the only permutation of bytes. The S-box is a circuit of Boyar and Peralta ([`sbox`]), whose negations are
//! added to the round keys. Round keys of eight keys are made side by side as well.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::sbox::substituted;

/// Blocks side by side.
pub(super) const BLOCKS: usize = 8;
/// Bits of a byte that the S-box negates.
const CONSTANT: u8 = 0x63;

/// A vector of 128 bits.
pub(super) trait Word: Copy {
    fn of(bits: u128) -> Self;
    fn bits(self) -> u128;
    fn xor(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    /// Each half shifted to the left, by less than 8.
    fn left(self, count: u32) -> Self;
    /// Each half shifted to the right, by less than 8.
    fn right(self, count: u32) -> Self;
    /// All bits of each byte that has the bit of `mask` set, of which every byte has one.
    fn whole(self, mask: Self) -> Self;
    /// The bytes at the places that the bytes of `at` name, below 16.
    fn permuted(self, at: Self) -> Self;
    /// The same, from which a compiler does not learn its value: permutations by a constant become instructions that
    /// make the constant anew each time.
    fn opaque(self) -> Self;
    /// Each row in the place of the one before it.
    fn next_row(self) -> Self;
    /// Each row in the place of the second before it.
    fn second_row(self) -> Self;
    /// The last column, rotated, in the place of each.
    fn last_column(self) -> Self;
    /// Each column in the place of the one after it, and none in that of the first.
    fn next_column(self) -> Self;
    /// Each column in the place of the second after it, and none in those of the first two.
    fn second_column(self) -> Self;
}

/// A byte in all places.
const fn everywhere(byte: u8) -> u128 {
    u128::MAX / 0xff * byte as u128
}

/// Bits of eight blocks.
type State<W> = [W; BLOCKS];

/// The bits of blocks, and back: bit i of a byte of vector b for bit b of a byte of vector i.
#[inline(always)]
fn transposed<W: Word>(mut state: State<W>) -> State<W> {
    for (distance, mask) in [(1, 0x55), (2, 0x33), (4, 0x0f)] {
        let mask = W::of(everywhere(mask));
        let count = distance as u32;
        for low in (0..BLOCKS).filter(|at| at & distance == 0) {
            let high = low + distance;
            let swap = state[low].right(count).xor(state[high]).and(mask);
            state[high] = state[high].xor(swap);
            state[low] = state[low].xor(swap.left(count));
        }
    }
    state
}

#[inline(always)]
fn sum<W: Word>(a: State<W>, b: State<W>) -> State<W> {
    std::array::from_fn(|at| a[at].xor(b[at]))
}

/// The bytes of blocks row by row, or back.
const ROWS: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
/// ShiftRows.
const SHIFT_ROWS: [u8; 16] = [0, 1, 2, 3, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14];
/// ShiftRows, and the bytes back in the order of blocks.
const SHIFT_ROWS_BACK: [u8; 16] = [0, 5, 10, 15, 1, 6, 11, 12, 2, 7, 8, 13, 3, 4, 9, 14];

/// The bytes of each vector at these places.
#[inline(always)]
fn permuted<W: Word>(state: State<W>, places: [u8; 16]) -> State<W> {
    let places = W::of(u128::from_le_bytes(places)).opaque();
    state.map(|x| x.permuted(places))
}

#[inline(always)]
fn mix_columns<W: Word>(state: State<W>) -> State<W> {
    let rotated = state.map(W::next_row);
    // x0 + x1; twice that is what its bits are shifted to, with the polynomial 0x1b for the highest.
    let pairs = sum(state, rotated);
    std::array::from_fn(|at| {
        let twice = match at {
            0 => pairs[7],
            1 | 3 | 4 => pairs[at - 1].xor(pairs[7]),
            _ => pairs[at - 1],
        };
        twice.xor(rotated[at]).xor(pairs[at].second_row())
    })
}

/// The round keys of eight keys, the constant of the S-box added from the second on, row by row but for the last. Wiped
/// when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct RoundKeys([[u128; BLOCKS]; 11]);

impl RoundKeys {
    pub(super) const NONE: Self = Self([[0; BLOCKS]; 11]);

    /// Makes the round keys of `keys` (FIPS 197, section 5.2).
    pub(super) fn set<W: Word>(&mut self, keys: &[u128; BLOCKS]) {
        let first_row = W::of(u128::from(u32::MAX));
        let mut round = transposed(permuted(keys.map(W::of), ROWS));
        let (mut constant, [first, later @ ..]) = (1u8, &mut self.0);
        *first = round.map(W::bits);
        for out in later {
            let word = substituted(round.map(W::last_column));
            for at in 0..BLOCKS {
                let sums = round[at].xor(round[at].next_column());
                let sums = sums.xor(sums.second_column()).xor(word[at]);
                let sums = if constant >> at & 1 == 1 { sums.xor(first_row) } else { sums };
                out[at] = sums.bits();
                round[at] = if CONSTANT >> at & 1 == 1 { sums.xor(W::of(!0)) } else { sums };
            }
            constant = (constant << 1) ^ ((constant >> 7) * 0x1b);
        }
        let last = &mut self.0[10];
        *last = permuted(last.map(W::of), ROWS).map(W::bits);
    }

    /// Round keys out of those of `keys` for blocks that share them: that of block i is the one of key
    /// `first + (i >> spread)`, or any beyond the eighth.
    pub(super) fn spread<W: Word>(&mut self, keys: &Self, first: usize, spread: u32) {
        let (from, to) = (keys.0.as_flattened(), self.0.as_flattened_mut());
        if spread == 0 {
            let (first, rest) = (first as u32 % 8, (8 - first as u32) % 8);
            let [low, high] = [0xff >> first, !(0xff >> first)].map(|x| W::of(everywhere(x)));
            for (to, from) in to.iter_mut().zip(from) {
                let from = W::of(*from);
                *to = from.right(first).and(low).xor(from.left(rest).and(high)).bits();
            }
            return;
        }
        let each = 1 << spread.min(3);
        let all = everywhere(((1u16 << each) - 1) as u8);
        for (at, key) in (first..BLOCKS).take(BLOCKS / each).enumerate() {
            let [bit, place] = [everywhere(1 << key), all << (at * each)].map(W::of);
            for (to, from) in to.iter_mut().zip(from) {
                let part = W::of(*from).whole(bit).and(place);
                *to = if at == 0 { part } else { part.xor(W::of(*to)) }.bits();
            }
        }
    }

    /// Encrypts each block under its key.
    pub(super) fn encrypt<W: Word>(&self, blocks: &[u128; BLOCKS]) -> [u128; BLOCKS] {
        let state = transposed(permuted(blocks.map(W::of), ROWS));
        transposed(self.rounds(state, W::of)).map(W::bits)
    }

    /// Encrypts all blocks under the key of this number, below 8.
    pub(super) fn encrypt_under<W: Word>(
        &self,
        key: usize,
        blocks: &[u128; BLOCKS],
    ) -> [u128; BLOCKS] {
        let state = transposed(permuted(blocks.map(W::of), ROWS));
        transposed(self.rounds_under(key, state)).map(W::bits)
    }

    /// Encrypts all blocks under the key of this number, below 8, and adds them to `sum`.
    pub(super) fn add_under<W: Word>(&self, key: usize, blocks: &Bits, sum: &mut Bits) {
        let encrypted = self.rounds_under(key, blocks.0.map(W::of));
        sum.0 = self::sum(sum.0.map(W::of), encrypted).map(W::bits);
    }

    #[inline(always)]
    fn rounds_under<W: Word>(&self, key: usize, state: State<W>) -> State<W> {
        let bit = W::of(everywhere(1 << key));
        self.rounds(state, |keys| W::of(keys).whole(bit))
    }

    /// The rounds on bits, row by row at the start and in the order of blocks at the end; `key` makes a vector out of one of the
    /// round keys.
    #[inline(always)]
    fn rounds<W: Word>(&self, mut state: State<W>, key: impl Fn(u128) -> W) -> State<W> {
        let [first, middle @ .., last] = &self.0;
        state = sum(state, first.map(&key));
        for keys in middle {
            state = mix_columns(permuted(substituted(state), SHIFT_ROWS));
            state = sum(state, keys.map(&key));
        }
        state = permuted(substituted(state), SHIFT_ROWS_BACK);
        sum(state, last.map(&key))
    }
}

/// Eight blocks by bits: as [`RoundKeys::add_under`] takes them, or sums of what it makes of them.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Bits([u128; BLOCKS]);

impl Bits {
    /// Zeros.
    pub(super) const NONE: Self = Self([0; BLOCKS]);

    /// Bits of blocks to encrypt.
    pub(super) fn of<W: Word>(blocks: &[u128; BLOCKS]) -> Self {
        Self(transposed(permuted(blocks.map(W::of), ROWS)).map(W::bits))
    }

    /// Adds another sum.
    pub(super) fn add<W: Word>(&mut self, other: &Self) {
        self.0 = sum(self.0.map(W::of), other.0.map(W::of)).map(W::bits);
    }

    /// The blocks of sums of encrypted ones.
    pub(super) fn blocks<W: Word>(&self) -> [u128; BLOCKS] {
        transposed(self.0.map(W::of)).map(W::bits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Aes128;
    use super::*;
    use crate::Random;

    impl Word for u128 {
        fn of(bits: u128) -> Self {
            bits
        }
        fn bits(self) -> u128 {
            self
        }
        fn xor(self, other: Self) -> Self {
            self ^ other
        }
        fn and(self, other: Self) -> Self {
            self & other
        }
        fn left(self, count: u32) -> Self {
            let [low, high] = [self as u64, (self >> 64) as u64].map(|x| u128::from(x << count));
            low | high << 64
        }
        fn right(self, count: u32) -> Self {
            let [low, high] = [self as u64, (self >> 64) as u64].map(|x| u128::from(x >> count));
            low | high << 64
        }
        fn whole(self, mask: Self) -> Self {
            bytes(|at| if self.to_le_bytes()[at] & mask.to_le_bytes()[at] == 0 { 0 } else { 0xff })
        }
        fn permuted(self, at: Self) -> Self {
            bytes(|place| self.to_le_bytes()[usize::from(at.to_le_bytes()[place])])
        }
        fn opaque(self) -> Self {
            self
        }
        fn next_row(self) -> Self {
            self.rotate_right(32)
        }
        fn second_row(self) -> Self {
            self.rotate_right(64)
        }
        fn last_column(self) -> Self {
            bytes(|at| self.to_le_bytes()[(4 * (at / 4) + 7) % 16])
        }
        fn next_column(self) -> Self {
            bytes(|at| if at % 4 < 1 { 0 } else { self.to_le_bytes()[at - 1] })
        }
        fn second_column(self) -> Self {
            bytes(|at| if at % 4 < 2 { 0 } else { self.to_le_bytes()[at - 2] })
        }
    }

    fn bytes(byte: impl Fn(usize) -> u8) -> u128 {
        u128::from_le_bytes(std::array::from_fn(byte))
    }

    /// The encryption of each block under its key, by the crate's other code.
    fn wanted(keys: [u128; BLOCKS], blocks: [u128; BLOCKS]) -> [u128; BLOCKS] {
        std::array::from_fn(|at| {
            let mut block = [blocks[at].to_le_bytes()];
            Aes128::new(&keys[at].to_le_bytes()).encrypt(&mut block);
            u128::from_le_bytes(block[0])
        })
    }

    fn check<W: Word>() {
        let mut rng = Random::seeded(1);
        for byte in 0..32u8 {
            let keys = std::array::from_fn(|at| rng.block() ^ everywhere(8 * byte + at as u8));
            let blocks = std::array::from_fn(|at| everywhere(8 * byte + at as u8));
            let (mut own, mut spread) = (RoundKeys::NONE, RoundKeys::NONE);
            own.set::<W>(&keys);
            assert_eq!(own.encrypt::<W>(&blocks), wanted(keys, blocks));
            let (bits, mut both) = (Bits::of::<W>(&blocks), Bits::NONE);
            let each = [7, 2].map(|key| wanted([keys[key]; BLOCKS], blocks));
            for (key, wanted) in [7, 2].into_iter().zip(each) {
                assert_eq!(own.encrypt_under::<W>(key, &blocks), wanted);
                own.add_under::<W>(key, &bits, &mut both);
            }
            let mut twice = both.clone();
            twice.add::<W>(&both);
            assert_eq!(both.blocks::<W>(), std::array::from_fn(|at| each[0][at] ^ each[1][at]));
            assert_eq!(twice.blocks::<W>(), [0; BLOCKS]);
            for (shift, first) in (0..5).flat_map(|shift| [0, 1, 6, 7].map(|first| (shift, first)))
            {
                spread.spread::<W>(&own, first, shift);
                let place = |at: usize| first + (at >> shift);
                let shared = std::array::from_fn(|at| keys[place(at) % 8]);
                let got = spread.encrypt::<W>(&blocks);
                let mut all = got.iter().zip(wanted(shared, blocks)).enumerate();
                assert!(all.all(|(at, (got, wanted))| place(at) >= 8 || *got == wanted));
            }
        }
    }

    #[test]
    fn gates_are_aes() {
        check::<u128>();
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    #[test]
    fn vectors_are_aes() {
        check::<super::super::vector::V128>();
    }
}
