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
mod table;

use std::sync::Arc;

use ring::cpu::CpuTime;
use ring::helpers::Helpers;
use wire::{Error, Packed, Result, Segment, tags};
use zeroize::Zeroizing;

use self::ggm::{CLEAR, Forest};
use self::lpn::Code;
use self::params::Set;
use self::table::Table;
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

/// What a party holds of a refill: `own` is the sender's Delta, or the choice bits of the receiver's
/// paths, `depth` a tree.
struct Refill<Own> {
    set: Set,
    domain: Domain,
    forest: Forest,
    code: Code,
    /// One block for each level of each tree.
    seeds: Zeroizing<Vec<u128>>,
    secret: Table,
    own: Own,
}

/// The sender's Delta.
type Delta = Zeroizing<u128>;
/// The choice bits of the receiver's paths.
type Paths = Zeroizing<Vec<u8>>;

/// A refill of which trees are still to be grown.
pub(crate) struct Growing<Own> {
    refill: Arc<Refill<Own>>,
    done: usize,
}

/// The sender's refill.
pub(crate) type Sender = Growing<Delta>;
/// The receiver's refill.
pub(crate) type Receiver = Growing<Paths>;

/// The next trees of a refill. They can be grown at any time.
pub(crate) struct Trees<Own> {
    refill: Arc<Refill<Own>>,
    first: usize,
    count: usize,
}

/// Trees of the sender.
pub(crate) type SenderTrees = Trees<Delta>;
/// Trees of the receiver.
pub(crate) type ReceiverTrees = Trees<Paths>;

impl Sender {
    /// Refill `number` of the session's direction, from its base correlations.
    pub(crate) fn new(domain: &Domain, number: u64, set: Set, delta: u128, base: &[u128]) -> Self {
        let (seeds, secret) = base.split_at(set.seeds());
        let secret = Table::new(secret.iter().map(|q| q & CLEAR));
        let refill = Refill::new(domain, number, set, seeds, secret, Zeroizing::new(delta));
        Self { refill: Arc::new(refill), done: 0 }
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
        let (paths, choices) = choices.split_at(set.seeds());
        let (seeds, secret) = base.split_at(set.seeds());
        let secret = secret.iter().zip(choices);
        let secret = Table::new(secret.map(|(t, choice)| (t & CLEAR) | u128::from(*choice)));
        let paths = Zeroizing::new(paths.to_vec());
        let refill = Refill::new(domain, number, set, seeds, secret, paths);
        Self { refill: Arc::new(refill), done: 0 }
    }
}

impl<Own> Growing<Own> {
    /// The next trees, as many as are asked for or are left.
    pub(crate) fn next(&mut self, count: usize) -> Trees<Own> {
        let (first, count) = (self.done, count.min(self.refill.set.trees - self.done));
        self.done += count;
        Trees { refill: Arc::clone(&self.refill), first, count }
    }

    /// Whether all trees have been asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.done == self.refill.set.trees
    }
}

impl<Own> Trees<Own> {
    /// The set of the refill.
    pub(crate) fn set(&self) -> Set {
        self.refill.set
    }

    /// Number of correlations.
    pub(crate) fn leaves(&self) -> usize {
        self.count << self.refill.set.depth
    }

    fn depth(&self) -> usize {
        self.refill.set.depth as usize
    }

    /// Trees that a thread takes, and the number of the first of each share.
    fn shares(&self, threads: usize) -> (usize, impl Iterator<Item = usize> + use<Own>) {
        let share = self.count.div_ceil(threads).max(1);
        (share, (self.first..).step_by(share))
    }

    fn seeds(&self) -> &[u128] {
        &self.refill.seeds[self.first * self.depth()..][..self.count * self.depth()]
    }

    /// Adds the code to the leaves.
    fn encode(&self, threads: usize, leaves: &mut [u128]) {
        let depth = self.depth();
        let (share, firsts) = self.shares(threads);
        let (code, secret) = (&self.refill.code, self.refill.secret.blocks());
        let jobs = firsts.zip(leaves.chunks_mut(share << depth));
        let jobs = jobs
            .map(|(first, leaves)| move || code.add(first << depth, 1 << depth, secret, leaves));
        spread(threads, jobs);
    }
}

impl SenderTrees {
    /// Grows the trees into `leaves`, as many as there are.
    pub(crate) fn grow(&self, threads: usize, leaves: &mut [u128]) -> Sent {
        let depth = self.depth();
        let mut blocks = vec![0; self.count * depth];
        let mut sums = Zeroizing::new(vec![0; self.count]);
        let (share, firsts) = self.shares(threads);
        let jobs = leaves
            .chunks_mut(share << depth)
            .zip(self.seeds().chunks(share * depth))
            .zip(blocks.chunks_mut(share * depth))
            .zip(sums.chunks_mut(share));
        let (forest, delta) = (self.refill.forest, *self.refill.own);
        spread(
            threads,
            firsts.zip(jobs).map(|(first, (((leaves, seeds), blocks), sums))| {
                move || forest.grow(first, delta, seeds, leaves, blocks, sums)
            }),
        );
        Sent { domain: self.refill.domain, blocks, sums }
    }

    /// Turns the leaves of [`SenderTrees::grow`] into blocks `q_i`.
    pub(crate) fn finish(&self, threads: usize, leaves: &mut [u128]) {
        self.encode(threads, leaves);
    }

    /// Makes blocks `q_i` of trees that have been sent and whose leaves are no longer there.
    pub(crate) fn remake(&self, threads: usize, leaves: &mut [u128]) {
        let depth = self.depth();
        let (share, firsts) = self.shares(threads);
        let jobs = leaves.chunks_mut(share << depth).zip(self.seeds().chunks(share * depth));
        let (forest, delta) = (self.refill.forest, *self.refill.own);
        spread(
            threads,
            firsts
                .zip(jobs)
                .map(|(first, (leaves, seeds))| move || forest.regrow(first, delta, seeds, leaves)),
        );
        self.encode(threads, leaves);
    }
}

impl ReceiverTrees {
    /// Recovers the trees and turns them into blocks `t_i` with `c_i` as lowest bit, as many as there
    /// are `leaves`. `received` is what the sender says of these trees.
    ///
    /// # Errors
    /// [`wire::Error::Peer`] when the trees are not the sender's.
    pub(crate) fn make(
        &self,
        threads: usize,
        received: &Received,
        leaves: &mut [u128],
    ) -> Result<()> {
        let depth = self.depth();
        let mut sums = Zeroizing::new(vec![0; self.count]);
        let (share, firsts) = self.shares(threads);
        let choices = &self.refill.own[self.first * depth..];
        let jobs = leaves
            .chunks_mut(share << depth)
            .zip(self.seeds().chunks(share * depth))
            .zip(choices.chunks(share * depth))
            .zip(received.blocks.chunks(share * depth))
            .zip(sums.chunks_mut(share));
        let forest = self.refill.forest;
        spread(
            threads,
            firsts.zip(jobs).map(|(first, ((((leaves, seeds), choices), blocks), sums))| {
                move || forest.puncture(first, seeds, choices, leaves, blocks, sums)
            }),
        );
        received.verify(&self.refill.domain, &sums)?;
        self.encode(threads, leaves);
        Ok(())
    }
}

impl<Own> Refill<Own> {
    fn new(
        domain: &Domain,
        number: u64,
        set: Set,
        seeds: &[u128],
        secret: Table,
        own: Own,
    ) -> Self {
        let [tree_key, code_key] = domain.blocks(b"ferret  ", &[&number.to_le_bytes()]);
        let seeds = Zeroizing::new(seeds.to_vec());
        let forest = Forest::new(*domain, tree_key, set.depth as usize);
        Self { set, domain: *domain, forest, code: Code::new(code_key), seeds, secret, own }
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
