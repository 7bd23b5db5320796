//! Correlations, held by value and spent once.

use std::fmt;

use ring::simd::Level;
use ring::word::mask;
use zeroize::Zeroizing;

use super::store::Store;
use crate::block::{combine, multiples};
use crate::hash::{BATCH, PADS_PER_KEY, PadHash, elements_per_key, part_of, tweaked};
use crate::simd::EIGHT;

/// The Delta holder's half of `len()` correlations: blocks `q_i`.
///
/// Not `Clone`: spending a correlation twice would reveal the xor of two secrets.
/// Once is fine,
/// ```
/// fn once(batch: tacit_ot::SenderBatch) -> Vec<[u64; 2]> {
///     batch.random_pairs(8)
/// }
/// ```
/// twice does not compile:
/// ```compile_fail,E0382
/// fn twice(batch: tacit_ot::SenderBatch) -> [Vec<[u64; 2]>; 2] {
///     [batch.random_pairs(8), batch.random_pairs(8)]
/// }
/// ```
pub struct SenderBatch {
    pub(crate) hash: PadHash,
    pub(crate) first: u64,
    pub(crate) delta: Zeroizing<u128>,
    pub(crate) blocks: Store<u128>,
}

/// The receiver's half: choice bits `c_i` and blocks `t_i = q_i xor c_i*Delta`.
pub struct ReceiverBatch {
    pub(crate) hash: PadHash,
    pub(crate) first: u64,
    pub(crate) blocks: Store<u128>,
    pub(crate) choices: Store<u8>,
}

impl SenderBatch {
    /// Returns the number of correlations.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position of the first correlation in this session's stream.
    pub fn first_index(&self) -> u64 {
        self.first
    }

    /// Splits off the first `count` correlations, or all when there are fewer.
    #[must_use]
    pub fn split_off(&mut self, count: usize) -> Self {
        let blocks = self.blocks.take(count);
        let first = self.first;
        self.first += blocks.len() as u64;
        Self { hash: self.hash, first, delta: self.delta.clone(), blocks }
    }

    /// Makes random OTs: for each correlation two pads of `bits` bits (1 to 64),
    /// of which the receiver knows the one it chose.
    pub fn random_pairs(mut self, bits: u32) -> Vec<[u64; 2]> {
        let low = mask(bits.clamp(1, 64));
        let mut pairs = Vec::with_capacity(self.len());
        self.pads(1, self.len(), |pads| {
            let (new, _) = pads.as_chunks::<2>();
            pairs.extend(new.iter().map(|pair| pair.map(|pad| pad as u64 & low)));
        });
        pairs
    }

    /// Consumes `choice_bits` correlations for each of `count` elements and shows
    /// `each` the `2^choice_bits` pads of several elements at a time, in order. The
    /// caller has checked `len()`.
    pub(crate) fn pads(&mut self, choice_bits: u32, count: usize, each: impl FnMut(&[u128])) {
        self.pads_at(Level::best(), choice_bits, count, each);
    }

    fn pads_at(
        &mut self,
        level: Level,
        choice_bits: u32,
        count: usize,
        mut each: impl FnMut(&[u128]),
    ) {
        let (width, fan) = (choice_bits as usize, 1 << choice_bits);
        if fan > PADS_PER_KEY {
            return self.wide_pads_at(level, width, count, each);
        }
        let lanes = elements_per_key(choice_bits);
        let masks = masks(*self.delta, fan, lanes);
        let masks = &masks[..lanes * fan];
        let keys_at_once = EIGHT.min(BATCH / masks.len());
        let mut pads = self.hash.pads(level);
        let spent = self.split_off(count * width);
        let mut index = spent.first;
        for groups in spent.blocks.chunks(EIGHT * lanes * width) {
            pads.set_keys(index, lanes * width);
            for (turn, elements) in groups.chunks(keys_at_once * lanes * width).enumerate() {
                let mut starts = Zeroizing::new([0; 64]);
                let used = combine_all(elements, width, &mut starts);
                for (inputs, starts) in
                    pads.blocks.chunks_exact_mut(masks.len()).zip(starts[..used].chunks(lanes))
                {
                    mask_all(inputs, starts, masks, fan);
                }
                each(pads.hash(turn * keys_at_once, masks.len().ilog2(), used * fan));
            }
            index += groups.len() as u64;
        }
    }

    /// The pads of elements that take several keys each, as many elements at a time as eight keys
    /// make, or one.
    fn wide_pads_at(
        &mut self,
        level: Level,
        width: usize,
        count: usize,
        mut each: impl FnMut(&[u128]),
    ) {
        let (fan, turn) = (1 << width, EIGHT * PADS_PER_KEY);
        let masks = masks(*self.delta, fan, 1);
        let mut pads = self.hash.pads(level);
        let spent = self.split_off(count * width);
        let mut index = spent.first;
        for elements in spent.blocks.chunks((turn / fan).max(1) * width) {
            let used = elements.len() / width * fan;
            let inputs = pads.blocks.chunks_exact_mut(fan);
            for (inputs, element) in inputs.zip(elements.chunks_exact(width)) {
                mask_all(inputs, &[tweaked(combine(element), 0)], &masks[..fan], fan);
            }
            for start in (0..used).step_by(turn) {
                let keyed = (start..used).step_by(PADS_PER_KEY).take(EIGHT);
                let part = |pad| (index + (pad / fan * width) as u64, part_of(pad % fan));
                pads.set_parts(keyed.map(part));
                pads.hash_parts(start);
            }
            each(&pads.blocks[..used]);
            index += elements.len() as u64;
        }
    }
}

/// What is added to sigma of an element's block to make the inputs of a group:
/// sigma of `j` times Delta, and the tweak.
fn masks(delta: u128, fan: usize, lanes: usize) -> Zeroizing<[u128; BATCH]> {
    let mut shifts = Zeroizing::new([0; BATCH]);
    multiples(delta, &mut shifts[..fan]);
    let mut masks = Zeroizing::new([0; BATCH]);
    for (at, mask) in masks[..lanes * fan].iter_mut().enumerate() {
        *mask = tweaked(shifts[at % fan], at as u64);
    }
    masks
}

/// `inputs[i*fan + j] = starts[i] xor masks[i*fan + j]`.
fn mask_all(inputs: &mut [u128], starts: &[u128], masks: &[u128], fan: usize) {
    match fan {
        2 => mask_rows::<2>(inputs, starts, masks),
        4 => mask_rows::<4>(inputs, starts, masks),
        8 => mask_rows::<8>(inputs, starts, masks),
        // One element per key or more.
        _ => inputs.iter_mut().zip(masks).for_each(|(input, mask)| *input = starts[0] ^ mask),
    }
}

fn mask_rows<const FAN: usize>(inputs: &mut [u128], starts: &[u128], masks: &[u128]) {
    let rows = inputs.as_chunks_mut::<FAN>().0.iter_mut().zip(masks.as_chunks::<FAN>().0);
    for ((inputs, masks), start) in rows.zip(starts) {
        for (input, mask) in inputs.iter_mut().zip(masks) {
            *input = start ^ mask;
        }
    }
}

/// Sigma of the combination of every `width` blocks, to `out`; returns their
/// number, at most 64.
fn combine_all(blocks: &[u128], width: usize, out: &mut [u128; 64]) -> usize {
    match width {
        1 => blocks.iter().zip(&mut *out).for_each(|(block, out)| *out = tweaked(*block, 0)),
        2 => combine_chunks::<2>(blocks, out),
        3 => combine_chunks::<3>(blocks, out),
        4 => combine_chunks::<4>(blocks, out),
        _ => {
            let elements = blocks.chunks_exact(width).zip(&mut *out);
            elements.for_each(|(element, out)| *out = tweaked(combine(element), 0));
        }
    }
    blocks.len() / width
}

fn combine_chunks<const WIDTH: usize>(blocks: &[u128], out: &mut [u128; 64]) {
    let elements = blocks.as_chunks::<WIDTH>().0.iter().zip(out);
    elements.for_each(|(element, out)| *out = tweaked(combine(element), 0));
}

impl ReceiverBatch {
    /// Returns the number of correlations.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position of the first correlation in this session's stream.
    pub fn first_index(&self) -> u64 {
        self.first
    }

    /// Splits off the first `count` correlations, or all when there are fewer.
    #[must_use]
    pub fn split_off(&mut self, count: usize) -> Self {
        let (blocks, choices) = (self.blocks.take(count), self.choices.take(count));
        let first = self.first;
        self.first += blocks.len() as u64;
        Self { hash: self.hash, first, blocks, choices }
    }

    /// Makes random OTs: the choice bits (0 or 1) and, for each, the chosen pad of
    /// `bits` bits (1 to 64).
    pub fn random(mut self, bits: u32) -> (Vec<u64>, Vec<u64>) {
        let low = mask(bits.clamp(1, 64));
        let count = self.len();
        let (mut choices, mut chosen) = (Vec::with_capacity(count), Vec::with_capacity(count));
        self.pads(1, count, |choice, pads| {
            choices.extend(choice.iter().map(|choice| u64::from(*choice)));
            chosen.extend(pads.iter().map(|pad| *pad as u64 & low));
        });
        (choices, chosen)
    }

    /// Consumes `choice_bits` correlations for each of `count` elements and shows
    /// `each` the random choices (below `2^choice_bits`) of several elements at a
    /// time and the pads that they open, in order. The caller has checked `len()`.
    pub(crate) fn pads(
        &mut self,
        choice_bits: u32,
        count: usize,
        each: impl FnMut(&[u8], &[u128]),
    ) {
        self.pads_at(Level::best(), choice_bits, count, each);
    }

    fn pads_at(
        &mut self,
        level: Level,
        choice_bits: u32,
        count: usize,
        mut each: impl FnMut(&[u8], &[u128]),
    ) {
        let width = choice_bits as usize;
        let lanes = elements_per_key(choice_bits);
        let mut pads = self.hash.pads(level);
        let mut starts = Zeroizing::new([0; 64]);
        let mut chosen = Zeroizing::new([0; 64]);
        let spent = self.split_off(count * width);
        let mut index = spent.first;
        let bits = spent.choices.chunks(EIGHT * lanes * width);
        for (groups, bits) in spent.blocks.chunks(EIGHT * lanes * width).zip(bits) {
            let used = combine_all(groups, width, &mut starts);
            choose_all(bits, width, &mut chosen);
            if lanes == 1 {
                let parts = (index..).step_by(width).zip(&chosen[..used]);
                pads.set_parts(parts.map(|(at, choice)| (at, part_of(usize::from(*choice)))));
            } else {
                pads.set_keys(index, lanes * width);
            }
            let made = pads.blocks.iter_mut().zip(&*starts).zip(&*chosen).enumerate();
            made.take(used).for_each(|(at, ((input, start), choice))| {
                let tweak = (at % lanes) << choice_bits | usize::from(*choice);
                *input = start ^ tweak as u128;
            });
            each(&chosen[..used], pads.hash(0, lanes.ilog2(), used));
            index += groups.len() as u64;
        }
    }
}

/// Every `width` choice bits as a number, low bit first, to `out`.
fn choose_all(bits: &[u8], width: usize, out: &mut [u8; 64]) {
    match width {
        1 => out[..bits.len()].copy_from_slice(bits),
        _ => {
            let elements = bits.chunks_exact(width).zip(out);
            elements.for_each(|(bits, out)| *out = bits.iter().rev().fold(0, |c, b| (c << 1) | b));
        }
    }
}

impl fmt::Debug for SenderBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenderBatch(<{} correlations>)", self.len())
    }
}

impl fmt::Debug for ReceiverBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiverBatch(<{} correlations>)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    /// Correlations of elements that each take `width`.
    const ELEMENTS: usize = 21;
    /// The position of the first of them in their stream.
    const FIRST: u64 = 5;

    /// Pad `at` of an element, one at a time: group and lane of narrow elements, part of wide ones.
    fn pad(hash: PadHash, width: usize, element: usize, at: usize, x: u128) -> u128 {
        let lanes = elements_per_key(width as u32);
        let (group, lane) = (element / lanes * lanes, element % lanes);
        let mut pads = hash.pads(Level::SCALAR);
        pads.set_parts(std::iter::once((FIRST + (group * width) as u64, part_of(at))));
        pads.blocks[0] = tweaked(x, (lane << width | at) as u64);
        pads.hash(0, 0, 1)[0]
    }

    #[test]
    fn tables_of_every_width_take_a_key_for_sixteen_pads() {
        let mut rng = Random::seeded(1);
        let (hash, delta) = (PadHash::with_key(rng.block()), rng.block() | 1);
        for width in 1..=8 {
            let blocks: Vec<u128> = (0..ELEMENTS * width).map(|_| rng.block()).collect();
            let choices: Vec<u8> = (0..blocks.len()).map(|_| rng.word() as u8 & 1).collect();
            let mut shifts = [0; 256];
            multiples(delta, &mut shifts);
            let all = |(element, blocks): (usize, &[u128])| {
                let x = combine(blocks);
                let pads = (0..1 << width).map(|at| pad(hash, width, element, at, x ^ shifts[at]));
                pads.collect::<Vec<_>>()
            };
            let wanted: Vec<u128> = blocks.chunks(width).enumerate().flat_map(all).collect();
            for level in Level::available() {
                let delta = Zeroizing::new(delta);
                let mut q =
                    SenderBatch { hash, first: FIRST, delta, blocks: blocks.clone().into() };
                let mut got = Vec::new();
                q.pads_at(level, width as u32, ELEMENTS, |pads| got.extend_from_slice(pads));
                assert!(got == wanted, "width {width} at {level:?}");
                let flipped = blocks.iter().zip(&choices);
                let t: Vec<u128> =
                    flipped.map(|(q, c)| q ^ (shifts[1] & u128::from(*c).wrapping_neg())).collect();
                let (blocks, choices) = (t.into(), choices.clone().into());
                let mut t = ReceiverBatch { hash, first: FIRST, blocks, choices };
                let mut at = 0;
                t.pads_at(level, width as u32, ELEMENTS, |choices, pads| {
                    for (choice, pad) in choices.iter().zip(pads) {
                        let sent = wanted[(at << width) + usize::from(*choice)];
                        assert!(*pad == sent, "element {at} of width {width} at {level:?}");
                        at += 1;
                    }
                });
                assert_eq!(at, ELEMENTS);
            }
        }
    }
}
