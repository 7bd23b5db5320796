//! Projections of output bits to words (Ball, Malkin, Rosulek, "Garbling gadgets", CCS
//! 2016), on a group of instances. A projection takes one key; AND gates are in
//! `ot::gates`, with the same keys.

use ot::gates::{GateHash, hash_input};
use zeroize::Zeroizing;

pub(crate) use ot::gates::Labels;

/// The hashes of the labels of colour 0 and of colour 1 of an instance, and whether
/// colour 0 stands for a one.
pub(crate) type Colours = (u128, u128, u64);

/// The garbler's end of a group of `L` instances (1 or 8), from their zero labels.
pub(crate) fn colours<const L: usize>(
    hash: &mut GateHash,
    delta: u128,
    zeros: &Labels<L>,
) -> Zeroizing<[Colours; L]> {
    let mut blocks = Zeroizing::new([0; 16]);
    let shift = hash_input(delta, 0);
    let (low, high) = blocks[..2 * L].split_at_mut(L);
    for (lane, ((low, high), zero)) in low.iter_mut().zip(high).zip(zeros).enumerate() {
        *low = hash_input(*zero, lane as u64);
        *high = *low ^ shift;
    }
    let first = hash.next(1);
    hash.hash(first, (2 * L).ilog2(), &mut blocks[..(2 * L).next_multiple_of(8)]);
    let mut out = Zeroizing::new([(0, 0, 0); L]);
    for (lane, out) in out.iter_mut().enumerate() {
        let meaning = zeros[lane] & 1;
        let swap = (blocks[lane] ^ blocks[L + lane]) & meaning.wrapping_neg();
        *out = (blocks[lane] ^ swap, blocks[L + lane] ^ swap, meaning as u64);
    }
    out
}

/// The evaluator's end: the hash of each instance's label, and the label's colour.
pub(crate) fn hashes<const L: usize>(hash: &mut GateHash, labels: &Labels<L>) -> [(u128, u64); L] {
    let mut blocks = [0; 8];
    for (lane, (block, label)) in blocks.iter_mut().zip(labels).enumerate() {
        *block = hash_input(*label, lane as u64);
    }
    let first = hash.next(1);
    hash.hash(first, 3, &mut blocks);
    std::array::from_fn(|lane| (blocks[lane], labels[lane] as u64 & 1))
}
