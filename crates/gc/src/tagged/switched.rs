//! Projections of bits that count where another bit, their switch, is 1.
//!
//! | | |
//! |---|---|
//! | In | zero labels of a switch s and of bits b of weight w; the evaluator's labels |
//! | Out | shares of the sum of `s*b*w`, as of other outputs |
//! | Security | as `garble.rs`: each word is masked by the hash of a pair of labels, of which the evaluator has not both |
//! | Cost | two pairs of words for each bit and one for the switch, in place of one for each bit and an AND gate |
//! | Paper | Ball, Malkin, Rosulek, "Garbling gadgets", CCS 2016 (projections), of two labels here |
//!
//! For each colour c of the switch the bits are projected as others are, from hashes of pairs of labels: with steps of
//! w, or, where c stands for 0, of 0. Hashes are masks, so that both look alike. The garbler's summands and keys are those of
//! colour 0; what those of colour 1 differ by is a value with a tag too, which is masked by the hash of the switch's label of
//! colour 1. It is uniform for the hashes of colour 0 that are in it.
//!
//! The hash of a pair is that of `B xor sigma(S)`. Of four labels it has four inputs, whose differences are Delta, `sigma(Delta)`
//! and the sum of both: none of them is zero, since sigma is an orthomorphism. So four instances share a key.

use ot::gates::{GateHash, hash_input};
use zeroize::Zeroizing;

use super::keys::MacKeys;
use super::wide::mask;
use crate::batch::LANES;
use crate::gates::{Labels, colours, hashes};

/// Instances whose pairs of labels share a key.
const TOGETHER: usize = LANES / 2;

/// A value and a tag, or their keys.
type Pair = (u64, u128);

/// Widths of values and of tags, as masks of their bits.
#[derive(Clone, Copy)]
pub(super) struct Rings {
    bits: u32,
    value: u64,
    tag: u128,
}

impl Rings {
    pub(super) fn new(bits: u32, tag_bits: u32) -> Self {
        Self { bits, value: mask(bits) as u64, tag: mask(tag_bits) }
    }

    /// The mask of a value and that of a tag out of one hash.
    fn split(self, hash: u128) -> Pair {
        (hash as u64 & self.value, hash >> self.bits & self.tag)
    }
}

/// The garbler's end of a sum of bits under a switch, of `L` instances.
pub(super) struct Switched<'a, const L: usize> {
    keys: &'a MacKeys,
    rings: Rings,
    /// The switch's zero labels.
    on: &'a Labels<L>,
    /// Summands and keys for both colours of the switch.
    sums: Zeroizing<[[Pair; L]; 2]>,
}

impl<'a, const L: usize> Switched<'a, L> {
    pub(super) fn new(keys: &'a MacKeys, rings: Rings, on: &'a Labels<L>) -> Self {
        Self { keys, rings, on, sums: Zeroizing::new([[(0, 0); L]; 2]) }
    }

    /// Projects a bit, and hands on the words of the first `lanes` instances.
    pub(super) fn project(
        &mut self,
        hash: &mut GateHash,
        zeros: &Labels<L>,
        weight: u64,
        lanes: usize,
        words: &mut impl FnMut(u128, u128),
    ) {
        let (rings, alpha) = (self.rings, u128::from(self.keys.alpha()));
        let pads = pads_of_pairs(hash, self.keys.delta(), self.on, zeros);
        for (colour, sums) in self.sums.iter_mut().enumerate() {
            let rows = sums.iter_mut().zip(&*pads).zip(self.on.iter().zip(zeros)).take(lanes);
            for (((value, beta), pads), (on, zero)) in rows {
                // All ones where this colour stands for a switch that is on, and colour 0 for a one.
                let counts = secret_mask(on ^ colour as u128);
                let is_one = secret_mask(*zero);
                let [(v_0, m_0), (v, m)] = pads[colour].map(|pad| rings.split(pad));
                let step = (weight ^ is_one).wrapping_sub(is_one) & counts;
                let v_1 = v_0.wrapping_add(step) & rings.value;
                let key = m_0.wrapping_sub(alpha.wrapping_mul(u128::from(v_0)));
                let m_1 = alpha.wrapping_mul(u128::from(v_1)).wrapping_add(key);
                let sent = u128::from(v_1.wrapping_sub(v) & rings.value);
                words(sent, m_1.wrapping_sub(m) & rings.tag);
                *value = value.wrapping_add(weight & is_one & counts).wrapping_sub(v_0);
                *beta = beta.wrapping_add(key);
            }
        }
    }

    /// Hands on the words of the switch, and adds the summands and keys of all bits to `sums`.
    pub(super) fn finish(
        self,
        hash: &mut GateHash,
        sums: &mut [Pair],
        words: &mut impl FnMut(u128, u128),
    ) {
        let (rings, alpha) = (self.rings, u128::from(self.keys.alpha()));
        let hashes = colours(hash, self.keys.delta(), self.on);
        let [first, second] = &*self.sums;
        let rows = sums.iter_mut().zip(&*hashes).zip(first.iter().zip(second));
        for (((value, beta), (_, one, _)), (first, second)) in rows {
            let (v, m) = rings.split(*one);
            let more = second.0.wrapping_sub(first.0) & rings.value;
            let tag = alpha.wrapping_mul(u128::from(more));
            let tag = tag.wrapping_add(first.1).wrapping_sub(second.1);
            words(u128::from(more.wrapping_sub(v) & rings.value), tag.wrapping_sub(m) & rings.tag);
            *value = value.wrapping_add(first.0);
            *beta = beta.wrapping_add(first.1);
        }
    }
}

/// The evaluator's end: adds values and tags of a bit to `sums`; `words` are those of both colours of the
/// switch.
pub(super) fn project<const L: usize>(
    hash: &mut GateHash,
    rings: Rings,
    [on, labels]: [&Labels<L>; 2],
    words: [(&[u128], &[u128]); 2],
    sums: &mut [Pair],
) {
    let pads = pads(hash, on, labels);
    let [(values, tags), (other_values, other_tags)] = words;
    for (lane, (value, tag)) in sums.iter_mut().enumerate() {
        let (colour, sent) = (public_mask(on[lane]), public_mask(labels[lane]));
        let chosen = |zero: u128, one: u128| (zero ^ (colour & (zero ^ one))) & sent;
        let (v, m) = rings.split(pads[lane]);
        let more = chosen(values[lane], other_values[lane]) as u64;
        *value += v.wrapping_add(more) & rings.value;
        *tag = tag.wrapping_add(m).wrapping_add(chosen(tags[lane], other_tags[lane]));
    }
}

/// The evaluator's end of the words of the switch.
pub(super) fn finish<const L: usize>(
    hash: &mut GateHash,
    rings: Rings,
    on: &Labels<L>,
    (values, tags): (&[u128], &[u128]),
    sums: &mut [Pair],
) {
    let hashes = hashes(hash, on);
    for (lane, (value, tag)) in sums.iter_mut().enumerate() {
        let (hash, colour) = (hashes[lane].0, public_mask(on[lane]));
        let (v, m) = rings.split(hash);
        *value += v.wrapping_add(values[lane] as u64) & rings.value & colour as u64;
        *tag = tag.wrapping_add(m.wrapping_add(tags[lane]) & colour);
    }
}

/// Where the block of a lane of so many stands, and that of its next pair of colours.
const fn place<const L: usize>(lane: usize) -> (usize, usize) {
    if L == 1 { (0, 1) } else { (lane / TOGETHER * 4 * TOGETHER + lane % TOGETHER, TOGETHER) }
}

/// For each instance the hashes of both colours of a bit, for both colours of its switch.
fn pads_of_pairs<const L: usize>(
    hash: &mut GateHash,
    delta: u128,
    on: &Labels<L>,
    zeros: &Labels<L>,
) -> Zeroizing<[[[u128; 2]; 2]; L]> {
    let (mut blocks, by) = (Zeroizing::new([0; 4 * LANES]), hash_input(delta, 0));
    let shifts = [0, by, hash_input(by, 0), by ^ hash_input(by, 0)];
    for (lane, (on, zero)) in on.iter().zip(zeros).enumerate() {
        let [on, zero] = [on, zero].map(|label| label ^ ((label & 1).wrapping_neg() & delta));
        let input = hash_input(zero ^ hash_input(on, 0), lane as u64);
        let (first, step) = place::<L>(lane);
        for (at, shift) in shifts.iter().enumerate() {
            blocks[first + at * step] = input ^ shift;
        }
    }
    let first = hash.next(2);
    let used = (4 * L).next_multiple_of(LANES);
    hash.hash(first, (4 * TOGETHER.min(L)).ilog2(), &mut blocks[..used]);
    let mut pads = Zeroizing::new([[[0; 2]; 2]; L]);
    for (lane, pads) in pads.iter_mut().enumerate() {
        let (first, step) = place::<L>(lane);
        *pads = [0, 2].map(|on| [on, on + 1].map(|at| blocks[first + at * step]));
    }
    pads
}

/// The hash of the evaluator's two labels of each instance.
fn pads<const L: usize>(hash: &mut GateHash, on: &Labels<L>, labels: &Labels<L>) -> [u128; LANES] {
    let mut blocks = [0; LANES];
    for (lane, (block, (on, label))) in blocks.iter_mut().zip(on.iter().zip(labels)).enumerate() {
        *block = hash_input(label ^ hash_input(*on, 0), lane as u64);
    }
    let first = hash.next(2);
    hash.hash(first, TOGETHER.min(L).ilog2(), &mut blocks);
    blocks
}

/// All ones where the lowest bit is 1, which is secret.
fn secret_mask(label: u128) -> u64 {
    ot::block::mask_of_secret(label & 1) as u64
}

/// All ones for colour 1, which its holder knows.
const fn public_mask(label: u128) -> u128 {
    (label & 1).wrapping_neg()
}
