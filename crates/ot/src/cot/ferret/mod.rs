//! Ferret: correlations from a few, almost without communication.
//!
//! | | |
//! |---|---|
//! | In | [`Set::base`] correlations; their choice bits are the secret and the noisy positions |
//! | Out | sender: `q_i`, lowest bit 0; receiver: pseudo-random `c_i`, `t_i = q_i xor c_i*Delta` |
//! | Reveals | nothing: the corrections open what the receiver's correlations choose |
//! | Security | the receiver sends nothing; a sender that cheats guesses noisy positions and is found out unless it guesses right ([`check`]); learning parity with regular noise ([`params`]), AES-128 as ideal cipher; Delta keeps 127 bits, its lowest is 1 |
//! | Cost | `16*depth` bytes per tree and 32 a message, sender to receiver, one message per [`Set::trees_in_message`] trees ([`corrections_layout`]) |
//! | Paper | Yang, Weng, Lan, Zhang, Wang, "Ferret: fast extension for correlated OT with small communication", CCS 2020; trees of Guo et al., "Half-Tree", EUROCRYPT 2023 |
//!
//! A refill starts from its base alone. Its trees are then grown, sent and encoded in
//! order and only as far as correlations are asked for: fewer samples of the same
//! instance are no easier.

mod check;
mod ggm;
mod lpn;
pub(crate) mod params;

use ring::cpu::CpuTime;
use ring::helpers::Helpers;
use wire::{Error, Packed, Result, Segment, tags};
use zeroize::{Zeroize, Zeroizing};

use self::ggm::{CLEAR, Forest};
use self::lpn::Code;
use self::params::Set;
use crate::block::{of_words, to_words};
use crate::session::Domain;

/// Sender to receiver: for each tree the blocks of levels 2 .. depth and the sum of its tags, low word
/// first; then the digest of all trees.
pub(crate) type Corrections = Packed<{ tags::FERRET_CORRECTIONS }>;

/// Layout of the message for `trees` trees.
pub(crate) fn corrections_layout(set: Set, trees: usize) -> Vec<Segment> {
    vec![Segment { count: 2 * trees * set.blocks() + check::WORDS, bits: 64 }]
}

/// The trees of each message that together make `trees`.
pub(crate) fn messages(set: Set, trees: usize) -> impl Iterator<Item = usize> {
    let most = set.trees_in_message();
    (0..trees).step_by(most).map(move |done| most.min(trees - done))
}

/// What the sender says of some trees.
pub(crate) struct Sent {
    domain: Domain,
    blocks: Vec<u128>,
    sums: Zeroizing<Vec<u128>>,
}

impl Sent {
    /// The messages of so many trees each, which are all.
    pub(crate) fn messages(&self, trees: &[usize]) -> impl Iterator<Item = Corrections> {
        let blocks_of_tree = self.blocks.len() / self.sums.len().max(1);
        let (mut blocks, mut sums) = (self.blocks.as_slice(), self.sums.as_slice());
        trees.iter().map(move |trees| {
            let (now, later) = sums.split_at(*trees);
            let (sent, rest) = blocks.split_at(trees * blocks_of_tree);
            (blocks, sums) = (rest, later);
            let mut words: Vec<u64> = sent.iter().flat_map(|block| to_words(*block)).collect();
            words.extend(check::digest(&self.domain, now));
            Packed::one(words, 64)
        })
    }
}

/// What the receiver got for some trees: messages in the order of their trees.
#[derive(Default)]
pub(crate) struct Received {
    blocks: Vec<u128>,
    /// Trees of each message, and its digest.
    digests: Vec<(usize, [u64; check::WORDS])>,
}

impl Received {
    /// Takes in the next message, of so many trees.
    pub(crate) fn add(&mut self, trees: usize, message: Corrections) {
        let words = message.concat();
        let Some((words, digest)) = words.split_last_chunk() else { return };
        self.blocks.extend(words.as_chunks().0.iter().map(|pair| of_words(*pair)));
        self.digests.push((trees, *digest));
    }

    /// Compares the digests with the sums of all trees in order.
    fn verify(&self, domain: &Domain, mut sums: &[u128]) -> Result<()> {
        for (trees, digest) in &self.digests {
            let (now, later) = sums.split_at_checked(*trees).unwrap_or((sums, &[]));
            sums = later;
            check::verify(domain, now, digest)?;
        }
        if sums.is_empty() {
            return Ok(());
        }
        Err(Error::internal(format!("{} trees of Ferret without a digest", sums.len())))
    }
}

/// What both parties hold of a refill.
struct Refill {
    set: Set,
    domain: Domain,
    forest: Forest,
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
    pub(crate) fn grow(&self, threads: usize, leaves: &mut [u128]) -> Sent {
        let (depth, trees) = (self.refill.depth(), leaves.len() >> self.refill.depth());
        let mut blocks = vec![0; trees * depth];
        let mut sums = Zeroizing::new(vec![0; trees]);
        let share = trees.div_ceil(threads).max(1);
        let jobs = leaves
            .chunks_mut(share << depth)
            .zip(self.refill.seeds(trees).chunks(share * depth))
            .zip(blocks.chunks_mut(share * depth))
            .zip(sums.chunks_mut(share));
        let (forest, delta) = (self.refill.forest, *self.delta);
        let firsts = (self.refill.done..).step_by(share);
        spread(
            threads,
            firsts.zip(jobs).map(|(first, (((leaves, seeds), blocks), sums))| {
                move || forest.grow(first, delta, seeds, leaves, blocks, sums)
            }),
        );
        Sent { domain: self.refill.domain, blocks, sums }
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
    /// blocks `t_i` with `c_i` as lowest bit. `received` is what the sender says of these trees.
    ///
    /// # Errors
    /// [`wire::Error::Peer`] when the trees are not the sender's.
    pub(crate) fn encode(
        &mut self,
        threads: usize,
        received: &Received,
        leaves: &mut [u128],
    ) -> Result<()> {
        let (depth, trees) = (self.refill.depth(), leaves.len() >> self.refill.depth());
        let mut sums = Zeroizing::new(vec![0; trees]);
        let share = trees.div_ceil(threads).max(1);
        let choices = &self.choices[self.refill.done * depth..];
        let jobs = leaves
            .chunks_mut(share << depth)
            .zip(self.refill.seeds(trees).chunks(share * depth))
            .zip(choices.chunks(share * depth))
            .zip(received.blocks.chunks(share * depth))
            .zip(sums.chunks_mut(share));
        let forest = self.refill.forest;
        let firsts = (self.refill.done..).step_by(share);
        spread(
            threads,
            firsts.zip(jobs).map(|(first, ((((leaves, seeds), choices), blocks), sums))| {
                move || forest.puncture(first, seeds, choices, leaves, blocks, sums)
            }),
        );
        received.verify(&self.refill.domain, &sums)?;
        self.refill.encode(threads, leaves);
        Ok(())
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
        let forest = Forest::new(*domain, tree_key, set.depth as usize);
        Self { set, domain: *domain, forest, code: Code::new(code_key), base, done: 0 }
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
        let jobs = jobs.map(|(first, leaves)| move || code.add(first, 1 << depth, secret, leaves));
        spread(threads, jobs);
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
