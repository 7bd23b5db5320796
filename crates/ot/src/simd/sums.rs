//! Rows of Ferret's code times its table on the vectors of WebAssembly: a block in one vector instead of two halves.

use std::arch::wasm32::{u64x2_splat, v128, v128_load, v128_store, v128_xor};

/// Makes rows `past ..` of `rows`, those before being there: each is the sum of the rows that are `taps` before it and of the
/// blocks of `table` at its places, `words` in each list.
///
/// # Panics
/// Where a place is not in the table, a tap is longer than `past`, or places are missing.
#[inline]
pub(crate) fn rows<const LISTS: usize>(
    (past, taps): (usize, &[usize]),
    (words, places): (usize, [&[u32]; LISTS]),
    table: &[u128],
    rows: &mut [u128],
) {
    for row in past..rows.len() {
        let before = taps.iter().map(|tap| &rows[row - tap]);
        let mut sum = before.fold(u64x2_splat(0), |sum, block| v128_xor(sum, load(block)));
        for list in places {
            for place in &list[words * (row - past)..][..words] {
                sum = v128_xor(sum, load(&table[*place as usize]));
            }
        }
        store(&mut rows[row], sum);
    }
}

pub(super) fn load(block: &u128) -> v128 {
    // SAFETY: a block is as long as a vector; the load needs no alignment.
    unsafe { v128_load(std::ptr::from_ref(block).cast()) }
}

pub(super) fn store(block: &mut u128, value: v128) {
    // SAFETY: a block is as long as a vector; the store needs no alignment.
    unsafe { v128_store(std::ptr::from_mut(block).cast(), value) }
}
