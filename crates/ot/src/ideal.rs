//! The ideal functionality: a dealer that both parties trust. Tests only.

use ring::Random;
use zeroize::Zeroizing;

use crate::batch::{ReceiverBatch, SenderBatch};
use crate::hash::PadHash;

/// `count` matching correlations under a fresh Delta.
pub fn deal(rng: &mut Random, count: usize) -> (SenderBatch, ReceiverBatch) {
    let delta = rng.block();
    let hash = PadHash::with_key(rng.block());
    let blocks: Vec<u128> = (0..count).map(|_| rng.block()).collect();
    let choices: Vec<u8> = (0..count).map(|_| rng.word() as u8 & 1).collect();
    let opened = blocks.iter().zip(&choices);
    let opened: Vec<u128> =
        opened.map(|(q, c)| q ^ (delta & u128::from(*c).wrapping_neg())).collect();
    let delta = Zeroizing::new(delta);
    let sender = SenderBatch { hash, first: 0, delta, blocks: blocks.into() };
    let receiver = ReceiverBatch { hash, first: 0, blocks: opened.into(), choices: choices.into() };
    (sender, receiver)
}
