//! The AES kernels where blocks are encrypted by bits, eight at a time: WebAssembly.

use ring::aes128::Aes128x8;
use zeroize::{Zeroize, Zeroizing};

use super::{EIGHT, Eight};

/// Blocks of an eight that share a key at most: `2^SHARED`.
const SHARED: u32 = EIGHT.ilog2();

/// See [`super::aes::Hasher::hash`].
pub(super) fn hash(keys: &Aes128x8, first: usize, spread: u32, blocks: &mut [u128]) {
    let (mut spread_keys, mut ready) = (Aes128x8::NONE, None);
    for (batch, eight) in blocks.as_chunks_mut::<EIGHT>().0.iter_mut().enumerate() {
        let first = first + ((EIGHT * batch) >> spread);
        if ready != Some(first) {
            spread_keys.spread(keys, first, spread.min(SHARED));
            ready = Some(first);
        }
        let encrypted = spread_keys.encrypt(eight);
        eight.iter_mut().zip(encrypted).for_each(|(block, pad)| *block ^= pad);
    }
}

/// See [`super::aes::Ciphers::fold`]; the first key has the number `first` among those of all eights.
pub(super) fn fold(
    keys: &[Aes128x8],
    range: std::ops::Range<usize>,
    counters: &Eight,
    columns: &mut [Eight],
    sum: &mut Eight,
) {
    let mut key = Aes128x8::NONE;
    let mut stream = Zeroizing::new([0; EIGHT]);
    sum.fill(0);
    for (i, at) in (0..1usize << columns.len()).rev().zip(range) {
        key.spread(&keys[at / EIGHT], at % EIGHT, SHARED);
        *stream = key.encrypt(counters);
        sum.iter_mut().zip(&*stream).for_each(|(sum, block)| *sum ^= block);
        if let Some(column) = columns.get_mut(i.trailing_zeros() as usize) {
            column.iter_mut().zip(&*sum).for_each(|(column, sum)| *column ^= sum);
        }
    }
}

/// See [`super::stream::Streams::write`].
pub(super) fn stream(keys: &Aes128x8, lane: usize, counters: &[Eight], out: &mut [Eight]) {
    let mut key = Aes128x8::NONE;
    key.spread(keys, lane, SHARED);
    out.iter_mut().zip(counters).for_each(|(out, counters)| *out = key.encrypt(counters));
}

/// The round keys of secret keys, in eights.
pub(super) fn expanded(keys: &[u128]) -> Vec<Aes128x8> {
    let mut eight = [0; EIGHT];
    let expanded = keys.chunks(EIGHT).map(|keys| {
        eight[..keys.len()].copy_from_slice(keys);
        let mut round_keys = Aes128x8::NONE;
        round_keys.set(&eight);
        round_keys
    });
    let expanded = expanded.collect();
    eight.zeroize();
    expanded
}
