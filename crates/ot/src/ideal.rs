//! The ideal functionality: a dealer that both parties trust. Tests only.

use ring::{Bits, Random};
use zeroize::Zeroizing;

use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::hash::PadHash;
use crate::job::Job;
use crate::rot::{Column, ReceiverPads, SenderPads};

/// Returns `count` matching correlations under a fresh Delta, whose lowest bit is 1.
pub fn deal(rng: &mut Random, count: usize) -> (SenderBatch, ReceiverBatch) {
    let delta = rng.block() | 1;
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

/// Returns the random oblivious transfers for `jobs` that never were correlations: uniform pads, of
/// which the receiver gets the one its uniform choice names.
pub fn deal_pads(rng: &mut Random, jobs: &[Job]) -> (Vec<SenderPads>, Vec<ReceiverPads>) {
    jobs.iter().map(|job| deal_job(rng, *job)).unzip()
}

fn deal_job(rng: &mut Random, job: Job) -> (SenderPads, ReceiverPads) {
    let pads: Vec<Column> = (0..job.entries()).map(|_| column(rng, &job)).collect();
    let choices: Vec<Bits> =
        (0..job.choice_bits).map(|_| (0..job.count).map(|_| rng.word()).collect()).collect();
    random_ots(job, pads, choices)
}

/// Returns the random oblivious transfers of these pads, entry by entry, and random choices, a plane
/// for each of their bits: both as `job` says.
pub fn random_ots(job: Job, pads: Vec<Column>, choices: Vec<Bits>) -> (SenderPads, ReceiverPads) {
    let choice = |i: usize| {
        choices.iter().rev().fold(0, |choice, plane| (choice << 1) | plane.get(i) as usize)
    };
    let opened = Column {
        planes: (0..job.entry.pad_planes())
            .map(|bit| (0..job.count).map(|i| pads[choice(i)].planes[bit].get(i)).collect())
            .collect(),
        words: (0..job.entry.words().count())
            .map(|word| (0..job.count).map(|i| pads[choice(i)].words[word][i]).collect())
            .collect(),
    };
    (SenderPads { job, pads }, ReceiverPads { job, choices, opened })
}

fn column(rng: &mut Random, job: &Job) -> Column {
    Column {
        planes: (0..job.entry.pad_planes())
            .map(|_| (0..job.count).map(|_| rng.word()).collect())
            .collect(),
        words: job.entry.words().map(|bits| rng.uniform(job.count, bits)).collect(),
    }
}
