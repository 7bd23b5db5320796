//! Both ends of the extension on trees out of a hat, and a receiver that cheats.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::hash::PadHash;
use crate::measure::Extension;
use crate::session::SessionId;
use ring::Random;
use wire::Role;

fn core_against_core(levels: [Level; 2], field: Field) {
    let Extension { mut sender, mut receiver } =
        Extension::new(levels, field, &mut Random::seeded(1));
    let delta = *sender.delta();
    let (mut t, mut q, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for grains in [1, SLICE + 3, SLICE] {
        let corrections = receiver.extend(grains, &mut t, &mut c);
        let words: Vec<_> = corrections.0.iter().map(|(segment, _)| *segment).collect();
        assert_eq!(words, corrections_layout(field, grains));
        sender.extend(grains, corrections, &mut q).unwrap();
    }
    assert_eq!([t.len(), q.len(), c.len()], [(2 * SLICE + 4) * GRAIN; 3]);
    for ((t, q), c) in t.iter().zip(&q).zip(&c) {
        assert_eq!(t ^ q, delta & u128::from(*c).wrapping_neg());
    }
    let ones: usize = c.iter().map(|c| usize::from(*c)).sum();
    assert!(ones.abs_diff(c.len() / 2) < 6 * 65, "{ones} of {}", c.len());
}

#[test]
fn core_against_core_over_several_slices() {
    for level in Level::available() {
        let levels = [level, Level::SCALAR];
        Field::ALL.into_iter().for_each(|field| core_against_core(levels, field));
    }
}

#[test]
fn messages_cover_the_count_exactly() {
    for (count, wanted) in
        [(0, 0), (1, 1), (128, 1), (129, 2), (3 * MESSAGE * GRAIN + 1, 3 * MESSAGE + 1)]
    {
        assert_eq!(messages(count).sum::<usize>(), wanted);
        assert!(messages(count).all(|grains| (1..=MESSAGE).contains(&grains)));
    }
}

/// What both parties make of a message whose corrections were changed: Delta, whether the sender
/// refuses it, the sender's blocks without its check, and the receiver's blocks and choices.
struct Cheated {
    delta: u128,
    refused: bool,
    q: Vec<u128>,
    t: Vec<u128>,
    c: Vec<u8>,
}

const GRAINS: usize = 2;

fn cheated(field: Field, spoil: impl Fn(&mut [u64])) -> Cheated {
    let both = || Extension::new([Level::best(); 2], field, &mut Random::seeded(7));
    let Extension { mut sender, mut receiver } = both();
    let (mut t, mut c) = (Vec::new(), Vec::new());
    let mut words = receiver.extend(GRAINS, &mut t, &mut c).concat();
    let honest = row_offsets(field, &words);
    spoil(&mut words);
    // A receiver that cheats knows the offsets of what it sends.
    let rows = t.iter_mut().zip(honest).zip(row_offsets(field, &words));
    rows.for_each(|((row, honest), now)| *row ^= honest ^ now);
    let (mut q, mut unread) = (Vec::new(), Vec::new());
    let message = || Packed::one(words.clone(), 64);
    let fits = sender.unchecked(GRAINS, message(), &mut q);
    let refused = both().sender.extend(GRAINS, message(), &mut unread).is_err();
    assert_eq!(refused, !fits);
    Cheated { delta: *sender.delta(), refused, q, t, c }
}

/// The offsets that the rows of a message get.
fn row_offsets(field: Field, words: &[u64]) -> Vec<u128> {
    let domain = Domain::new(SessionId([9; 32]), Role::Client);
    let mut check = Check::new(Level::best(), domain, [0; 32]);
    let corrections = &words[..words.len() - WORDS];
    assert_eq!(corrections.len(), super::words(field, GRAINS));
    check.take_in(corrections);
    check.draw(GRAINS + 1);
    check.offsets()[..GRAINS * GRAIN].to_vec()
}

/// Flips the correction of row `row` of `tree`; of tree 0, which has none, those of all others.
fn flip(words: &mut [u64], field: Field, tree: usize, row: usize) {
    let stride = 2 * (GRAINS + 1);
    let trees = if tree == 0 { 1..field.trees() } else { tree..tree + 1 };
    trees.for_each(|tree| words[(tree - 1) * stride + row / 64] ^= 1 << (row % 64));
}

/// A receiver that flips one correction of each tree, and knows what one message of the OT says in
/// that row, finds the part of Delta that belongs to the tree: the only one for which the message
/// opens. Sixteen outputs give it all of Delta at k = 8, unless the sender checks.
#[test]
fn flipped_corrections_open_delta_to_a_receiver_unless_they_are_checked() {
    for field in Field::ALL {
        let flips = |words: &mut [u64]| {
            (0..field.trees()).for_each(|tree| flip(words, field, tree, tree));
        };
        let cheated = cheated(field, flips);
        let hash = PadHash::with_key(99);
        let delta = Zeroizing::new(cheated.delta);
        let mut sent = SenderBatch { hash, first: 0, delta, blocks: cheated.q.into() };
        let known = |row: usize| 1000 + row as u128;
        let mut masked: Vec<[u128; 2]> = Vec::new();
        sent.pads(1, field.trees(), |pads| {
            for pads in pads.as_chunks().0 {
                masked.push(pads.map(|pad| pad ^ known(masked.len())));
            }
        });
        let mut found = 0;
        for tree in 0..field.trees() {
            // Tree 0 is the one that all others differ from.
            let choice = usize::from(cheated.c[tree]) ^ usize::from(tree == 0);
            let opens = |guess: &u128| {
                let part = guess << (tree * field.bits());
                let block = cheated.t[tree] ^ part;
                let (mut blocks, mut choices) = (cheated.t.clone(), cheated.c.clone());
                (blocks[tree], choices[tree]) = (block, choice as u8);
                let (blocks, choices) = (blocks.into(), choices.into());
                let mut guessed = ReceiverBatch { hash, first: 0, blocks, choices };
                let mut pads = Vec::new();
                guessed.pads(1, field.trees(), |_, some| pads.extend_from_slice(some));
                let pad = pads[tree];
                masked[tree][choice] ^ pad == known(tree)
            };
            let fitting: Vec<u128> = (0..1 << field.bits()).filter(opens).collect();
            found |= fitting.first().copied().unwrap_or(0) << (tree * field.bits());
        }
        assert_eq!(found, cheated.delta, "the attack on {field:?} fails where nothing is checked");
        assert!(cheated.refused, "and {field:?} is not checked");
    }
}

#[test]
fn a_single_flip_anywhere_is_refused() {
    for field in Field::ALL {
        assert!(!cheated(field, |_| ()).refused);
        let rows = GRAIN * (GRAINS + 1);
        for tree in 0..field.trees() {
            for row in [tree, rows / 2 - tree, rows - 1 - tree] {
                assert!(cheated(field, |words| flip(words, field, tree, row)).refused);
            }
        }
        let proof = (1..=WORDS).map(|back| (back, 0)).chain([(1, 63), (WORDS, 17)]);
        for (back, bit) in proof {
            let flipped = |words: &mut [u64]| words[words.len() - back] ^= 1 << bit;
            assert!(cheated(field, flipped).refused, "word {back} from the end");
        }
    }
}
