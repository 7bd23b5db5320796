//! AES-128 under many keys: pads under eight keys at a time, and the leaf
//! streams of SoftSpoken added up as they come.

use std::ops::Range;

use ring::aes128::Aes128;
use ring::simd::Level;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
use ring::simd::Width;
use zeroize::{Zeroize, Zeroizing};

#[cfg(target_arch = "x86_64")]
use super::kernels::{narrow, wide, wider};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::sliced;
use super::{EIGHT, Eight};

/// Blocks that portable code hands to a cipher at a time, at most.
const TOGETHER: usize = 32;
/// The round keys of a cipher.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) type RoundKeys = [u128; 11];
/// The round keys of eight ciphers, round by round.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) type Schedule = [Eight; 11];
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) type Schedule = ring::aes128::Aes128x8;
/// The round keys before any key is set.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) const NONE: Schedule = [[0; EIGHT]; 11];
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) const NONE: Schedule = Schedule::NONE;

/// `E_key(x) xor x` under eight keys. Whose keys are not public wipes it.
#[derive(Zeroize)]
pub(crate) struct Hasher {
    #[zeroize(skip)]
    pub(super) level: Level,
    keys: Eight,
    pub(super) schedule: Schedule,
}

impl Hasher {
    pub(crate) const fn new(level: Level) -> Self {
        Self { level, keys: [0; EIGHT], schedule: NONE }
    }

    /// Takes new keys.
    pub(crate) fn set(&mut self, keys: Eight) {
        self.keys = keys;
        schedule(self.level, &keys, &mut self.schedule);
    }

    /// Replaces every block `x` by `E_key(x) xor x`, block `i` under key number
    /// `first + (i >> spread)`, which is below 8. `blocks` is a multiple of eight.
    pub(crate) fn hash(&self, first: usize, spread: u32, blocks: &mut [u128]) {
        #[cfg(target_arch = "x86_64")]
        match (self.level.width(), self.level.vaes()) {
            (Width::Scalar, _) => {}
            // SAFETY: the level proves the presence of AVX2 and VAES.
            (_, true) => return unsafe { wide::hash(&self.schedule, first, spread, blocks) },
            // SAFETY: the level proves the presence of AVX-512 and AES-NI.
            (Width::Avx512, _) => {
                return unsafe { wider::hash(&self.schedule, first, spread, blocks) };
            }
            // SAFETY: the level proves the presence of AVX2 and AES-NI.
            _ => return unsafe { narrow::hash(&self.schedule, first, spread, blocks) },
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        if self.level.width() == Width::Simd128 {
            return sliced::hash(&self.schedule, first, spread, blocks);
        }
        let mut states = Zeroizing::new([[0; 16]; TOGETHER]);
        for (key, pads) in self.keys[first..].iter().zip(blocks.chunks_mut(1 << spread)) {
            let cipher = Aes128::new(&key.to_le_bytes());
            for pads in pads.chunks_mut(TOGETHER) {
                let states = &mut states[..pads.len()];
                states.iter_mut().zip(&*pads).for_each(|(state, pad)| *state = pad.to_le_bytes());
                cipher.encrypt(states);
                pads.iter_mut()
                    .zip(&*states)
                    .for_each(|(pad, state)| *pad ^= u128::from_le_bytes(*state));
            }
        }
    }
}

impl Hasher {
    /// The half-gates of eight instances under the keys `first` and `first + 1`, as
    /// [`crate::gates`] says; false, and nothing done, at the portable level.
    pub(crate) fn garble(
        &self,
        first: usize,
        delta: &u128,
        operands: [&Eight; 2],
        tables: [&mut Eight; 2],
        out: &mut Eight,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        widest!(self.level, garble(&self.schedule, first, delta, operands, tables, out) else return false);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (first, delta, operands, tables, out);
        cfg!(target_arch = "x86_64")
    }

    /// Hashes the evaluator's inputs of [`Hasher::garble`]; false at the portable level.
    pub(crate) fn evaluate(
        &self,
        first: usize,
        operands: [&Eight; 2],
        tables: [&Eight; 2],
        out: &mut Eight,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        widest!(self.level, evaluate(&self.schedule, first, operands, tables, out) else return false);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (first, operands, tables, out);
        cfg!(target_arch = "x86_64")
    }
}

/// The round keys of `keys`; left alone at the portable level.
pub(super) fn schedule(level: Level, keys: &Eight, out: &mut Schedule) {
    #[cfg(target_arch = "x86_64")]
    match (level.width(), level.vaes()) {
        (Width::Scalar, _) => {}
        // SAFETY: the level proves the presence of AVX2 and VAES.
        (_, true) => unsafe { wide::schedule(keys, out) },
        // SAFETY: the level proves the presence of AVX-512 and AES-NI.
        (Width::Avx512, _) => unsafe { wider::schedule(keys, out) },
        // SAFETY: the level proves the presence of AVX2 and AES-NI.
        _ => unsafe { narrow::schedule(keys, out) },
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if level.width() == Width::Simd128 {
        out.set(keys);
    }
    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
    let _ = (level, keys, out);
}

/// Secret keys, ready for use.
pub(crate) struct Ciphers {
    #[cfg_attr(
        target_arch = "wasm32",
        allow(dead_code, reason = "there is one level with vectors")
    )]
    level: Level,
    keys: Keys,
}

enum Keys {
    Portable(Vec<Aes128>),
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    Expanded(Zeroizing<Vec<RoundKeys>>),
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Expanded(Vec<Schedule>),
}

impl Keys {
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    fn expanded(level: Level, keys: &[u128]) -> Self {
        let mut expanded = Zeroizing::new(vec![[0; 11]; keys.len()]);
        let (mut eight, mut rounds) = (Zeroizing::new([0; 8]), Zeroizing::new([[0; 8]; 11]));
        for (keys, out) in keys.chunks(8).zip(expanded.chunks_mut(8)) {
            eight[..keys.len()].copy_from_slice(keys);
            schedule(level, &eight, &mut rounds);
            for (lane, out) in out.iter_mut().enumerate() {
                out.iter_mut().zip(rounds.iter()).for_each(|(out, round)| *out = round[lane]);
            }
        }
        Self::Expanded(expanded)
    }

    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    fn expanded(_: Level, keys: &[u128]) -> Self {
        Self::Expanded(sliced::expanded(keys))
    }
}

impl Ciphers {
    pub(crate) fn new(level: Level, keys: &[u128]) -> Self {
        if level == Level::SCALAR {
            let ciphers = keys.iter().map(|key| Aes128::new(&key.to_le_bytes()));
            return Self { level, keys: Keys::Portable(ciphers.collect()) };
        }
        Self { level, keys: Keys::expanded(level, keys) }
    }

    /// Encrypts `counters` under each of the keys in `range`, the streams `r_n-1,
    /// ..., r_1` and perhaps `r_0`, n being 2 to the number of `columns`. With `s_i
    /// = r_n-1 xor .. xor r_i`, adds `s_i` to the column of the lowest bit set in
    /// `i`, for every i > 0, and returns the sum of all streams in `sum`.
    pub(crate) fn fold(
        &self,
        range: Range<usize>,
        counters: &Eight,
        columns: &mut [Eight],
        sum: &mut Eight,
    ) {
        match &self.keys {
            Keys::Portable(keys) => portable(&keys[range], counters, columns, sum),
            #[cfg(target_arch = "x86_64")]
            Keys::Expanded(keys) => {
                let keys = &keys[range];
                match (self.level.width(), self.level.vaes()) {
                    (Width::Scalar, _) => {}
                    // SAFETY: the level proves the presence of AVX2 and VAES.
                    (_, true) => unsafe { wide::fold(keys, counters, columns, sum) },
                    // SAFETY: the level proves the presence of AVX-512 and AES-NI.
                    (Width::Avx512, _) => unsafe { wider::fold(keys, counters, columns, sum) },
                    // SAFETY: the level proves the presence of AVX2 and AES-NI.
                    _ => unsafe { narrow::fold(keys, counters, columns, sum) },
                }
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Keys::Expanded(keys) => sliced::fold(keys, range, counters, columns, sum),
            #[cfg(not(any(
                target_arch = "x86_64",
                all(target_arch = "wasm32", target_feature = "simd128")
            )))]
            Keys::Expanded(keys) => debug_assert!(keys.is_empty(), "no {:?} here", self.level),
        }
    }
}

fn portable(keys: &[Aes128], counters: &Eight, columns: &mut [Eight], sum: &mut Eight) {
    let counters = counters.map(u128::to_le_bytes);
    let mut leaf = Zeroizing::new([[0; 16]; 8]);
    sum.fill(0);
    for (i, key) in (0..1usize << columns.len()).rev().zip(keys) {
        *leaf = counters;
        key.encrypt(&mut *leaf);
        for (sum, block) in sum.iter_mut().zip(&*leaf) {
            *sum ^= u128::from_le_bytes(*block);
        }
        if let Some(column) = columns.get_mut(i.trailing_zeros() as usize) {
            column.iter_mut().zip(&*sum).for_each(|(column, sum)| *column ^= sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    fn blocks(rng: &mut Random, count: usize) -> Vec<u128> {
        (0..count).map(|_| rng.block()).collect()
    }

    fn eight(rng: &mut Random) -> Eight {
        std::array::from_fn(|_| rng.block())
    }

    #[test]
    fn every_level_hashes_alike() {
        let mut rng = Random::seeded(1);
        for (spread, first) in (0..=8).flat_map(|spread| [0, 2, 6].map(|first| (spread, first))) {
            // Up to eight keys, in whole eights of blocks.
            let most = ((8usize - first) << spread).min(256);
            for count in (8..=most.next_multiple_of(8)).step_by(8) {
                let (keys, inputs) = (eight(&mut rng), blocks(&mut rng, count));
                let run = |level| {
                    let (mut hasher, mut blocks) = (Hasher::new(level), inputs.clone());
                    hasher.set(keys);
                    hasher.hash(first, spread, &mut blocks);
                    blocks.truncate(most);
                    blocks
                };
                let wanted = run(Level::SCALAR);
                for level in Level::available() {
                    assert_eq!(run(level), wanted, "{level:?} {spread} {first} {count}");
                }
            }
        }
    }

    #[test]
    fn every_level_folds_alike() {
        let mut rng = Random::seeded(2);
        for (depth, missing) in [2, 4, 8].into_iter().flat_map(|depth| [(depth, 0), (depth, 1)]) {
            let keys = blocks(&mut rng, (1 << depth) - missing);
            let (counters, before) = (eight(&mut rng), vec![eight(&mut rng); depth]);
            let run = |level| {
                let (mut columns, mut sum) = (before.clone(), [1; 8]);
                let ciphers = Ciphers::new(level, &[&[7, 8, 9], &*keys].concat());
                ciphers.fold(3..keys.len() + 3, &counters, &mut columns, &mut sum);
                (columns, sum)
            };
            let wanted = run(Level::SCALAR);
            for level in Level::available() {
                assert!(run(level) == wanted, "{level:?} {depth} {missing}");
            }
        }
    }

    /// The kernels for two blocks per vector, on machines without VAES as well.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn two_blocks_per_vector_give_the_same() {
        use super::super::kernels::paired;
        if Level::best().width() == Width::Scalar {
            return;
        }
        let mut rng = Random::seeded(3);
        let (keys, counters) = (eight(&mut rng), eight(&mut rng));
        let mut rounds = [[0; 8]; 11];
        // SAFETY: the level proves the presence of AVX2 and AES-NI.
        unsafe { paired::schedule(&keys, &mut rounds) };
        for (spread, first) in (0..=8).flat_map(|spread| [0, 2, 6].map(|first| (spread, first))) {
            let count = ((8usize - first) << spread).min(256).next_multiple_of(8);
            let mut wanted = blocks(&mut rng, count);
            let mut got = wanted.clone();
            // SAFETY: as above.
            unsafe { paired::hash(&rounds, first, spread, &mut got) };
            let mut hasher = Hasher::new(Level::SCALAR);
            hasher.set(keys);
            hasher.hash(first, spread, &mut wanted);
            let sure = count.min((8 - first) << spread);
            assert_eq!(got[..sure], wanted[..sure], "{spread} {first}");
        }
        let (delta, operands) = (rng.block() | 1, [eight(&mut rng), eight(&mut rng)]);
        let operands = [&operands[0], &operands[1]];
        let hasher = {
            let mut hasher = Hasher::new(Level::best());
            hasher.set(keys);
            hasher
        };
        let (mut tables, mut out) = ([[[0; 8]; 2]; 2], [[0; 8]; 2]);
        // SAFETY: as above.
        unsafe { paired::garble(&rounds, 2, &delta, operands, tables[0].each_mut(), &mut out[0]) };
        hasher.garble(2, &delta, operands, tables[1].each_mut(), &mut out[1]);
        assert_eq!((tables[0], out[0]), (tables[1], out[1]));
        // SAFETY: as above.
        unsafe { paired::evaluate(&rounds, 2, operands, tables[0].each_ref(), &mut out[0]) };
        hasher.evaluate(2, operands, tables[1].each_ref(), &mut out[1]);
        assert_eq!(out[0], out[1]);
        let expanded: Vec<RoundKeys> = (0..8).map(|i| rounds.map(|round| round[i])).collect();
        let (mut wanted, mut got) = ((vec![[0; 8]; 3], [0; 8]), (vec![[0; 8]; 3], [0; 8]));
        // SAFETY: as above.
        unsafe { paired::fold(&expanded, &counters, &mut got.0, &mut got.1) };
        let portable = Ciphers::new(Level::SCALAR, &keys);
        portable.fold(0..8, &counters, &mut wanted.0, &mut wanted.1);
        assert_eq!(got, wanted);
    }
}
