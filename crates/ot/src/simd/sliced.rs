//! The AES kernels where blocks are encrypted by bits, eight at a time: WebAssembly.

use ring::aes128::{Aes128x8, Blocks8};
use zeroize::{Zeroize, Zeroizing};

use super::{EIGHT, Eight};

/// Blocks of an eight that share a key at most: `2^SHARED`.
const SHARED: u32 = EIGHT.ilog2();

/// See [`super::aes::Hasher::hash`].
pub(super) fn hash(keys: &Aes128x8, first: usize, spread: u32, blocks: &mut [u128]) {
    if spread >= SHARED {
        for (batch, eight) in blocks.as_chunks_mut::<EIGHT>().0.iter_mut().enumerate() {
            let encrypted = keys.encrypt_under(first + ((EIGHT * batch) >> spread), eight);
            eight.iter_mut().zip(encrypted).for_each(|(block, pad)| *block ^= pad);
        }
        return;
    }
    let (mut spread_keys, mut ready) = (Aes128x8::NONE, None);
    for (batch, eight) in blocks.as_chunks_mut::<EIGHT>().0.iter_mut().enumerate() {
        let first = first + ((EIGHT * batch) >> spread);
        if ready != Some(first) {
            spread_keys.spread(keys, first, spread);
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
    let counters = Blocks8::new(counters);
    let mut sums = Blocks8::NONE;
    let mut columns_of_bits = vec![Blocks8::NONE; columns.len()];
    for (i, at) in (0..1usize << columns.len()).rev().zip(range) {
        keys[at / EIGHT].add_under(at % EIGHT, &counters, &mut sums);
        if let Some(column) = columns_of_bits.get_mut(i.trailing_zeros() as usize) {
            column.add(&sums);
        }
    }
    *sum = sums.blocks();
    for (column, bits) in columns.iter_mut().zip(&columns_of_bits) {
        let added = Zeroizing::new(bits.blocks());
        column.iter_mut().zip(&*added).for_each(|(column, block)| *column ^= block);
    }
}

/// See [`super::stream::Streams::write`].
pub(super) fn stream(keys: &Aes128x8, lane: usize, counters: &[Eight], out: &mut [Eight]) {
    out.iter_mut()
        .zip(counters)
        .for_each(|(out, counters)| *out = keys.encrypt_under(lane, counters));
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
