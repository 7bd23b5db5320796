//! Correlations, held by value and spent once.

use std::fmt;

use ring::word::mask;
use zeroize::Zeroizing;

use crate::block::{combine, multiples};
use crate::hash::{GROUP, Group, PadHash, elements_per_key, tweaked};
use crate::store::Store;

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

/// The other half: choice bits `c_i` and blocks `t_i = q_i xor c_i*Delta`.
pub struct ReceiverBatch {
    pub(crate) hash: PadHash,
    pub(crate) first: u64,
    pub(crate) blocks: Store<u128>,
    pub(crate) choices: Store<u8>,
}

impl SenderBatch {
    /// Number of correlations.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Position of the first correlation in this session's stream.
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

    /// Random transfers: for each correlation two pads of `bits` bits (1 to 64),
    /// of which the receiver knows the one it chose.
    pub fn random_pairs(mut self, bits: u32) -> Vec<[u64; 2]> {
        let low = mask(bits.clamp(1, 64));
        let mut pairs = Vec::with_capacity(self.len());
        self.pads(1, self.len(), |pads| {
            pairs.push([pads[0] as u64 & low, pads[1] as u64 & low]);
        });
        pairs
    }

    /// Consumes `choice_bits` correlations for each of `count` elements and shows
    /// `each` the element's `2^choice_bits` pads. The caller has checked `len()`.
    pub(crate) fn pads(&mut self, choice_bits: u32, count: usize, mut each: impl FnMut(&[u128])) {
        let (width, fan) = (choice_bits as usize, 1 << choice_bits);
        let lanes = elements_per_key(choice_bits);
        let mut shifts = Zeroizing::new([0; GROUP]);
        multiples(*self.delta, &mut shifts[..fan]);
        let mut pads = Group::new();
        let spent = self.split_off(count * width);
        let mut index = spent.first;
        for group in spent.blocks.chunks(lanes * width) {
            for (lane, element) in group.chunks_exact(width).enumerate() {
                let base = combine(element);
                for (j, shift) in shifts[..fan].iter().enumerate() {
                    let at = lane * fan + j;
                    pads.inputs[at] = tweaked(base ^ shift, at as u64);
                }
            }
            let used = group.len() / width * fan;
            self.hash.pads(index, used, &mut pads).chunks_exact(fan).for_each(&mut each);
            index += group.len() as u64;
        }
    }
}

impl ReceiverBatch {
    /// Number of correlations.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Position of the first correlation in this session's stream.
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

    /// Random transfers: the choice bits (0 or 1) and, for each, the chosen pad of
    /// `bits` bits (1 to 64).
    pub fn random(mut self, bits: u32) -> (Vec<u64>, Vec<u64>) {
        let low = mask(bits.clamp(1, 64));
        let count = self.len();
        let (mut choices, mut chosen) = (Vec::with_capacity(count), Vec::with_capacity(count));
        self.pads(1, count, |choice, pad| {
            choices.push(choice);
            chosen.push(pad as u64 & low);
        });
        (choices, chosen)
    }

    /// Consumes `choice_bits` correlations for each of `count` elements and shows
    /// `each` the element's random choice and the pad it opens. The caller has
    /// checked `len()`.
    pub(crate) fn pads(&mut self, choice_bits: u32, count: usize, mut each: impl FnMut(u64, u128)) {
        let width = choice_bits as usize;
        let lanes = elements_per_key(choice_bits);
        let mut pads = Group::new();
        let mut chosen = Zeroizing::new([0; 16]);
        let spent = self.split_off(count * width);
        let mut index = spent.first;
        let bits = spent.choices.chunks(lanes * width);
        for (group, bits) in spent.blocks.chunks(lanes * width).zip(bits) {
            let used = group.len() / width;
            let elements = group.chunks_exact(width).zip(bits.chunks_exact(width));
            for (lane, (element, bits)) in elements.enumerate() {
                chosen[lane] = bits.iter().rev().fold(0, |c, bit| (c << 1) | u64::from(*bit));
                let tweak = ((lane as u64) << choice_bits) | chosen[lane];
                pads.inputs[lane] = tweaked(combine(element), tweak);
            }
            let opened = self.hash.pads(index, used, &mut pads);
            chosen.iter().zip(opened).for_each(|(choice, pad)| each(*choice, *pad));
            index += group.len() as u64;
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
