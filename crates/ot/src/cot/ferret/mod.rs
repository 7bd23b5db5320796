//! Ferret: correlations from a few, almost without communication.
//!
//! | | |
//! |---|---|
//! | In | [`Set::base`] correlations; their choice bits are the secret and the noisy positions |
//! | Out | sender: `q_i`, lowest bit 0; receiver: pseudo-random `c_i`, `t_i = q_i xor c_i*Delta` |
//! | Reveals | nothing: the corrections open what the receiver's correlations choose |
//! | Security | semi-honest; learning parity with regular noise ([`params`]), AES-128 as ideal cipher; Delta keeps 127 bits, its lowest is 1 |
//! | Cost | `16*(depth - 1)` bytes per tree, sender to receiver, one message per [`Set::trees_in_message`] trees ([`corrections_layout`]) |
//! | Paper | Yang, Weng, Lan, Zhang, Wang, "Ferret: fast extension for correlated OT with small communication", CCS 2020; trees of Guo et al., "Half-Tree", EUROCRYPT 2023 |
//!
//! A refill starts from its base alone. Its trees are then grown, sent and encoded in
//! order and only as far as correlations are asked for: fewer samples of the same
//! instance are no easier.

mod ggm;
mod lpn;
pub(crate) mod params;

use ring::cpu::CpuTime;
use ring::helpers::Helpers;
use wire::{Packed, Segment, tags};
use zeroize::{Zeroize, Zeroizing};

use self::ggm::{CLEAR, Keys};
use self::lpn::Code;
use self::params::Set;
use crate::block::{of_words, to_words};
use crate::session::Domain;

/// Sender to receiver: for each tree the blocks of levels 2 .. depth, low word first.
pub(crate) type Corrections = Packed<{ tags::FERRET_CORRECTIONS }>;

/// Layout of the message for `trees` trees.
pub(crate) fn corrections_layout(set: Set, trees: usize) -> Vec<Segment> {
    vec![Segment { count: 2 * trees * set.blocks(), bits: 64 }]
}

/// The trees of each message that together make `trees`.
pub(crate) fn messages(set: Set, trees: usize) -> impl Iterator<Item = usize> {
    let most = set.trees_in_message();
    (0..trees).step_by(most).map(move |done| most.min(trees - done))
}

/// The message of these blocks.
pub(crate) fn corrections(blocks: &[u128]) -> Corrections {
    let words = blocks.iter().flat_map(|block| to_words(*block));
    Packed::one(words.collect(), 64)
}

/// The blocks of a message.
pub(crate) fn blocks(corrections: Corrections) -> Vec<u128> {
    let words = corrections.concat();
    let pairs = words.as_chunks::<2>().0.iter();
    pairs.map(|pair| of_words(*pair)).collect()
}

/// What both parties hold of a refill.
struct Refill {
    set: Set,
    keys: Keys,
    code: Code,
    /// One block for each level of each tree, then the secret's.
    base: Zeroizing<Vec<u128>>,
    done: usize,
}

/// The sender's refill.
pub(crate) struct Sender {
    refill: Refill,
    delta: Zeroizing<u128>,
}

/// The receiver's refill.
pub(crate) struct Receiver {
    refill: Refill,
    choices: Zeroizing<Vec<u8>>,
}

impl Sender {
    /// Refill `number` of the session's direction, from its base correlations.
    pub(crate) fn new(domain: &Domain, number: u64, set: Set, delta: u128, base: &[u128]) -> Self {
        let mut refill = Refill::new(domain, number, set, base);
        refill.secret_mut().iter_mut().for_each(|q| *q &= CLEAR);
        Self { refill, delta: Zeroizing::new(delta) }
    }

    /// Grows the next trees, as many as fit into `leaves`.
    pub(crate) fn grow(&self, threads: usize, leaves: &mut [u128]) -> Vec<u128> {
        let (depth, trees) = (self.refill.depth(), leaves.len() >> self.refill.depth());
        let mut corrections = vec![0; trees * (depth - 1)];
        let share = trees.div_ceil(threads).max(1);
        let jobs = leaves
            .chunks_mut(share << depth)
            .zip(self.refill.seeds(trees).chunks(share * depth))
            .zip(corrections.chunks_mut(share * (depth - 1)));
        let (keys, delta) = (self.refill.keys, *self.delta);
        let firsts = (self.refill.done..).step_by(share);
        spread(
            threads,
            firsts.zip(jobs).map(|(first, ((leaves, seeds), corrections))| {
                move || keys.grow(first, depth, delta, seeds, leaves, corrections)
            }),
        );
        corrections
    }

    /// Turns the leaves of [`Sender::grow`] into blocks `q_i`.
    pub(crate) fn encode(&mut self, threads: usize, leaves: &mut [u128]) {
        self.refill.encode(threads, leaves);
    }

    /// Whether all trees have been grown.
    pub(crate) fn is_empty(&self) -> bool {
        self.refill.done == self.refill.set.trees
    }
}

impl Receiver {
    /// The other end of [`Sender::new`].
    pub(crate) fn new(
        domain: &Domain,
        number: u64,
        set: Set,
        base: &[u128],
        choices: &[u8],
    ) -> Self {
        let mut refill = Refill::new(domain, number, set, base);
        let (paths, secret) = choices.split_at(set.trees * set.depth as usize);
        for (t, choice) in refill.secret_mut().iter_mut().zip(secret) {
            *t = (*t & CLEAR) | u128::from(*choice);
        }
        Self { refill, choices: Zeroizing::new(paths.to_vec()) }
    }

    /// Recovers the next trees, as many as fit into `leaves`, and turns them into
    /// blocks `t_i` with `c_i` as lowest bit. `corrections` are those of these trees.
    pub(crate) fn encode(&mut self, threads: usize, corrections: &[u128], leaves: &mut [u128]) {
        let (depth, trees) = (self.refill.depth(), leaves.len() >> self.refill.depth());
        let share = trees.div_ceil(threads).max(1);
        let choices = &self.choices[self.refill.done * depth..];
        let jobs = leaves
            .chunks_mut(share << depth)
            .zip(self.refill.seeds(trees).chunks(share * depth))
            .zip(choices.chunks(share * depth))
            .zip(corrections.chunks(share * (depth - 1)));
        let keys = self.refill.keys;
        let firsts = (self.refill.done..).step_by(share);
        spread(
            threads,
            firsts.zip(jobs).map(|(first, (((leaves, seeds), choices), corrections))| {
                move || keys.puncture(first, depth, seeds, choices, leaves, corrections)
            }),
        );
        self.refill.encode(threads, leaves);
    }

    /// Whether all trees have been grown.
    pub(crate) fn is_empty(&self) -> bool {
        self.refill.done == self.refill.set.trees
    }
}

impl Refill {
    fn new(domain: &Domain, number: u64, set: Set, base: &[u128]) -> Self {
        let [tree_key, code_key] = domain.blocks(b"ferret  ", &[&number.to_le_bytes()]);
        let base = Zeroizing::new(base.to_vec());
        Self { set, keys: Keys::new(tree_key), code: Code::new(code_key), base, done: 0 }
    }

    fn depth(&self) -> usize {
        self.set.depth as usize
    }

    fn seeds(&self, trees: usize) -> &[u128] {
        &self.base[self.done * self.depth()..][..trees * self.depth()]
    }

    fn secret_mut(&mut self) -> &mut [u128] {
        &mut self.base[self.set.trees * self.set.depth as usize..]
    }

    /// Adds the code to the leaves of the next trees, and moves on.
    fn encode(&mut self, threads: usize, leaves: &mut [u128]) {
        let depth = self.depth();
        let trees = leaves.len() >> depth;
        let share = trees.div_ceil(threads).max(1) << depth;
        let (code, secret) = (&self.code, &self.base[self.set.trees * depth..]);
        let first = (self.done << depth..).step_by(share);
        let jobs = first.zip(leaves.chunks_mut(share));
        spread(threads, jobs.map(|(first, leaves)| move || code.add(first, secret, leaves)));
        self.base[self.done * depth..][..trees * depth].zeroize();
        self.done += trees;
    }
}

/// Runs the jobs, on several threads if there are to be several and as far as helpers are free.
fn spread<J: FnOnce() + Send>(threads: usize, jobs: impl Iterator<Item = J>) {
    let helpers = Helpers::take(threads.saturating_sub(1));
    let mut shares: Vec<Vec<J>> = std::iter::repeat_with(Vec::new).take(helpers.count()).collect();
    let mut own = Vec::new();
    for (place, job) in jobs.enumerate() {
        match shares.get_mut(place % (helpers.count() + 1)) {
            Some(share) => share.push(job),
            None => own.push(job),
        }
    }
    let time = &CpuTime::current();
    std::thread::scope(|scope| {
        for share in shares {
            scope.spawn(move || {
                let _counting = time.as_ref().map(CpuTime::count);
                share.into_iter().for_each(|job| job());
            });
        }
        own.into_iter().for_each(|job| job());
    });
}
