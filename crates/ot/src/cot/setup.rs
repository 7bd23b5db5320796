//! Setup of a direction: base OTs, then the trees.

use ring::{Prg, Seed};
use wire::{Channel, Cost, Error, Message, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::softspoken::{Field, Receiver, Sender};
use super::tree::{Sums, grow, path_bit, puncture};
use crate::base::{self, Offer, Offerer, Replies};
use crate::session::Domain;

/// COT receiver to COT sender: the masked sums of all trees, low word first.
pub(crate) type TreeSums = Packed<{ tags::TREE_SUMS }>;

/// The COT receiver, waiting for [`Replies`].
pub(crate) struct Offering {
    domain: Domain,
    field: Field,
    offerer: Offerer,
}

/// The COT sender, waiting for [`TreeSums`].
pub(crate) struct Accepting {
    domain: Domain,
    field: Field,
    delta: Zeroizing<u128>,
    keys: Vec<Seed>,
}

/// First step of the COT receiver; both parties name the same `field`.
pub(crate) fn offer(domain: Domain, field: Field, rng: &mut Prg) -> (Offering, Offer) {
    let (offerer, offer) = base::offer(rng);
    (Offering { domain, field, offerer }, offer)
}

/// First step of the COT sender: Delta is drawn, with lowest bit 1, and becomes the choice
/// bits.
///
/// # Errors
/// [`Error::Peer`].
pub(crate) fn accept(
    domain: Domain,
    field: Field,
    rng: &mut Prg,
    offer: &Offer,
) -> Result<(Accepting, Replies)> {
    // The fixed bit lets a silent receiver's block carry its choice.
    let delta = Zeroizing::new(rng.block() | 1);
    let depth = field.bits();
    let off_path = |at| 1 - path_bit(field.part(*delta, at / depth), at % depth, depth);
    let choices: Zeroizing<Vec<u8>> = Zeroizing::new((0..base::COUNT).map(off_path).collect());
    let (keys, replies) = base::accept(&domain, rng, &choices, offer)?;
    Ok((Accepting { domain, field, delta, keys }, replies))
}

impl Offering {
    /// Grows the trees.
    ///
    /// # Errors
    /// [`Error::Peer`].
    pub(crate) fn finish(self, rng: &mut Prg, replies: &Replies) -> Result<(Receiver, TreeSums)> {
        let pairs = self.offerer.finish(&self.domain, replies)?;
        Ok(grown(&self.domain, self.field, rng, &pairs))
    }
}

/// The trees of a direction's COT receiver from its base OTs, a pair for each level of all trees.
pub(crate) fn grown(
    domain: &Domain,
    field: Field,
    rng: &mut Prg,
    pairs: &[[Seed; 2]],
) -> (Receiver, TreeSums) {
    let mut trees = Vec::with_capacity(field.trees());
    let mut words = Vec::with_capacity(sums_layout()[0].count);
    for (tree, pairs) in (0u8..).zip(pairs.chunks_exact(field.bits())) {
        let (leaves, sums) = grow(domain, tree, rng.block(), pairs);
        trees.push(leaves);
        let halves = sums.iter().flatten().flat_map(|sum| [*sum as u64, (sum >> 64) as u64]);
        words.extend(halves);
    }
    let hash = hash_of(domain, &words);
    (Receiver::new(domain, field, (&trees, hash)), Packed::one(words, 64))
}

/// What the check of an extension starts from: with the keys of the base OTs, which both parties
/// have by then, the sums say all about the trees.
fn hash_of(domain: &Domain, sums: &[u64]) -> [u8; 32] {
    let bytes: Vec<u8> = sums.iter().flat_map(|word| word.to_le_bytes()).collect();
    domain.digest(b"tree sum", &[&bytes])
}

/// New base OTs in both directions, of the domains in which this party and the other holds Delta:
/// this party's keys, its trees and their sums.
pub(crate) fn fresh(
    ch: &mut Channel,
    rng: &mut Prg,
    (ours, theirs): (Domain, Domain),
    field: Field,
) -> Result<(Accepting, (Receiver, TreeSums))> {
    let (offering, offered) = offer(theirs, field, rng);
    let their_offer = crossed(ch, Role::Client, &offered, &1)?;
    let (accepting, replies) = accept(ours, field, rng, &their_offer)?;
    let their_replies = crossed(ch, Role::Server, &replies, &base::COUNT)?;
    Ok((accepting, offering.finish(rng, &their_replies)?))
}

/// A message each way: that of the party that is `first`, then the other's.
fn crossed<M: Message>(ch: &mut Channel, first: Role, ours: &M, shape: &M::Shape) -> Result<M> {
    if ch.role() == first {
        ch.send(ours)?;
        return ch.receive(shape);
    }
    let theirs = ch.receive(shape)?;
    ch.send(ours)?;
    Ok(theirs)
}

/// What [`fresh`] costs.
pub(crate) fn fresh_cost() -> Cost {
    let (client, server) = (Role::Client, Role::Server);
    [
        base::offer_cost(client),
        base::offer_cost(server),
        base::replies_cost(server),
        base::replies_cost(client),
    ]
    .into_iter()
    .collect()
}

impl Accepting {
    /// The COT sender whose base OTs are there: `delta`, and the keys of the sides off its
    /// paths, one for each level of all trees.
    pub(crate) const fn new(
        domain: Domain,
        field: Field,
        delta: Zeroizing<u128>,
        keys: Vec<Seed>,
    ) -> Self {
        Self { domain, field, delta, keys }
    }

    /// Recovers the trees.
    ///
    /// # Errors
    /// [`Error::Peer`] when the sums have another layout.
    pub(crate) fn finish(self, sums: TreeSums) -> Result<Sender> {
        let words = sums.concat();
        let (levels, rest) = words.as_chunks();
        if levels.len() != base::COUNT || !rest.is_empty() {
            return Err(Error::peer("the sums of 128 levels", format!("{} words", words.len())));
        }
        let sums: Sums = levels.iter().map(blocks).collect();
        let depth = self.field.bits();
        let trees = (0u8..).zip(sums.chunks_exact(depth).zip(self.keys.chunks_exact(depth)));
        let trees: Vec<_> = trees
            .map(|(tree, (sums, keys))| {
                let hole = self.field.part(*self.delta, usize::from(tree));
                puncture(&self.domain, tree, hole, keys, sums)
            })
            .collect();
        let hash = hash_of(&self.domain, &words);
        Ok(Sender::new(&self.domain, self.field, (&trees, hash), *self.delta))
    }
}

/// Layout of [`TreeSums`]: two blocks for each level of all trees, whatever the
/// field.
pub(crate) const fn sums_layout() -> [Segment; 1] {
    [Segment { count: base::COUNT * 4, bits: 64 }]
}

/// What [`TreeSums`] costs when `from` sends it.
pub(crate) fn sums_cost(from: Role) -> Cost {
    Cost::message(from, TreeSums::body_len(&sums_layout()))
}

/// Left and right sum of a level.
fn blocks(words: &[u64; 4]) -> [u128; 2] {
    [0, 2].map(|at| u128::from(words[at]) | (u128::from(words[at + 1]) << 64))
}
