//! Setup of a direction: base OTs, then the trees, then the proof that both fit.

use ring::{Prg, Seed};
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::proof::{self, Expected, TreeChallenge, TreeProof, challenge_layout, proof_layout};
use super::schedule::Sourcing;
use super::softspoken::{Field, Receiver, Sender};
use super::tree::{Leaves, Sums, grow, path_bit, puncture};
use crate::base;
use crate::base::hybrid::{self, Chooser, Request, Response};
use crate::block::{of_words, to_words};
use crate::session::Domain;

/// COT receiver to COT sender: the masked sums of all trees, low word first.
pub(crate) type TreeSums = Packed<{ tags::TREE_SUMS }>;

/// The COT sender: a Delta, and the trees it waits for.
pub(crate) struct Accepting {
    domain: Domain,
    field: Field,
    delta: Zeroizing<u128>,
}

/// What the COT receiver sends when it has new base OTs.
pub(crate) struct Offered {
    response: Response,
    sums: TreeSums,
    challenge: TreeChallenge,
}

/// Trees and their masked sums.
struct Grown {
    leaves: Vec<Leaves>,
    sums: Vec<u64>,
}

/// First step of the COT sender: Delta is drawn, with lowest bit 1, and becomes the choice
/// bits. Both parties name the same `sourcing`.
pub(crate) fn accept(
    domain: Domain,
    sourcing: Sourcing,
    rng: &mut Prg,
) -> (Accepting, Chooser, Request) {
    let field = sourcing.source.field();
    // The fixed bit lets a silent receiver's block carry its choice.
    let delta = Zeroizing::new(rng.block() | 1);
    let depth = field.bits();
    let off_path = |at| 1 - path_bit(field.part(*delta, at / depth), at % depth, depth);
    let bits: Zeroizing<Vec<u8>> = Zeroizing::new((0..base::COUNT).map(off_path).collect());
    let (chooser, request) = hybrid::choose(&domain, sourcing.base, rng, &bits);
    (Accepting { domain, field, delta }, chooser, request)
}

/// First step of the COT receiver: it grows the trees.
///
/// # Errors
/// [`Error::Peer`].
pub(crate) fn offer(
    domain: &Domain,
    field: Field,
    rng: &mut Prg,
    request: &Request,
) -> Result<(Receiver, Expected, Offered)> {
    let (pairs, response, bound) = hybrid::offer(domain, rng, request)?;
    let Grown { leaves, sums } = grown(domain, field, rng, &pairs);
    let (expected, challenge) = proof::challenge(domain, &leaves);
    let hash = hash_of(domain, bound, &sums);
    let receiver = Receiver::new(domain, field, (&leaves, hash));
    Ok((receiver, expected, Offered { response, sums: Packed::one(sums, 64), challenge }))
}

/// The COT receiver whose base OTs are there, a pair for each level of all trees.
pub(crate) fn resume(
    domain: &Domain,
    field: Field,
    rng: &mut Prg,
    pairs: &[[Seed; 2]],
) -> (Receiver, TreeSums) {
    let Grown { leaves, sums } = grown(domain, field, rng, pairs);
    let hash = hash_of(domain, NO_RESPONSE, &sums);
    (Receiver::new(domain, field, (&leaves, hash)), Packed::one(sums, 64))
}

fn grown(domain: &Domain, field: Field, rng: &mut Prg, pairs: &[[Seed; 2]]) -> Grown {
    let mut leaves = Vec::with_capacity(field.trees());
    let mut words = Vec::with_capacity(sums_layout()[0].count);
    for (tree, pairs) in (0u8..).zip(pairs.chunks_exact(field.bits())) {
        let (of_tree, sums) = grow(domain, tree, rng.block(), pairs);
        leaves.push(of_tree);
        let halves = sums.iter().flatten().flat_map(|sum| to_words(*sum));
        words.extend(halves);
    }
    Grown { leaves, sums: words }
}

/// In the place of a response where base OTs are kept.
const NO_RESPONSE: [u8; 32] = [0; 32];

/// What the check of an extension starts from: with the request of the base OTs, which came before,
/// response and sums say all about the trees.
fn hash_of(domain: &Domain, response: [u8; 32], sums: &[u64]) -> [u8; 32] {
    let bytes: Vec<u8> = sums.iter().flat_map(|word| word.to_le_bytes()).collect();
    domain.digest(b"tree sum", &[&response, &bytes])
}

impl Offered {
    /// Sends all.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub(crate) fn send(&self, ch: &mut Channel) -> Result<()> {
        self.response.send(ch)?;
        ch.send(&self.sums)?;
        ch.send(&self.challenge)
    }

    /// Receives all.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn receive(ch: &mut Channel, sourcing: Sourcing) -> Result<Self> {
        let response = Response::receive(ch, sourcing.base)?;
        let sums = ch.receive(&sums_layout().to_vec())?;
        let challenge = ch.receive(&challenge_layout(sourcing.source.field()))?;
        Ok(Self { response, sums, challenge })
    }
}

impl Accepting {
    /// The COT sender whose base OTs are there.
    pub(crate) const fn new(domain: Domain, field: Field, delta: Zeroizing<u128>) -> Self {
        Self { domain, field, delta }
    }

    /// Recovers the trees, and shows that it knows them.
    ///
    /// # Errors
    /// [`Error::Peer`] when the trees do not fit, or something has another layout.
    pub(crate) fn finish(self, chooser: Chooser, offered: Offered) -> Result<(Sender, TreeProof)> {
        let Offered { response, sums, challenge } = offered;
        let ((keys, bound), sums) = (chooser.finish(&self.domain, &response)?, sums.concat());
        let leaves = self.punctured(&keys, &sums)?;
        let Self { domain, field, delta } = self;
        let proof = proof::prove(&domain, field, *delta, &leaves, challenge)?;
        let hash = hash_of(&domain, bound, &sums);
        Ok((Sender::new(&domain, field, (&leaves, hash), *delta), proof))
    }

    /// Recovers the trees from kept base OTs: the keys of the sides off its paths, one for each
    /// level of all trees.
    ///
    /// # Errors
    /// [`Error::Peer`] when the sums have another layout.
    pub(crate) fn resume(self, keys: &[Seed], sums: TreeSums) -> Result<Sender> {
        let sums = sums.concat();
        let leaves = self.punctured(keys, &sums)?;
        let hash = hash_of(&self.domain, NO_RESPONSE, &sums);
        Ok(Sender::new(&self.domain, self.field, (&leaves, hash), *self.delta))
    }

    fn punctured(&self, keys: &[Seed], words: &[u64]) -> Result<Vec<Leaves>> {
        let (levels, rest) = words.as_chunks();
        if levels.len() != base::COUNT || !rest.is_empty() {
            return Err(Error::peer("the sums of 128 levels", format!("{} words", words.len())));
        }
        let sums: Sums = levels
            .iter()
            .map(|[a, b, c, d]: &[u64; 4]| [of_words([*a, *b]), of_words([*c, *d])])
            .collect();
        let depth = self.field.bits();
        let trees = (0u8..).zip(sums.chunks_exact(depth).zip(keys.chunks_exact(depth)));
        let punctured = trees.map(|(tree, (sums, keys))| {
            let hole = self.field.part(*self.delta, usize::from(tree));
            puncture(&self.domain, tree, hole, keys, sums)
        });
        Ok(punctured.collect())
    }
}

/// What one direction takes with new base OTs, of which `cot_sender` holds Delta.
pub(crate) fn fresh_cost(cot_sender: Role, sourcing: Sourcing) -> Cost {
    hybrid::request_cost(cot_sender, sourcing.base)
        .then(offered_cost(!cot_sender, sourcing))
        .then(proof::proof_cost(cot_sender))
}

/// What [`Offered`] costs when `from` sends it.
pub(crate) fn offered_cost(from: Role, sourcing: Sourcing) -> Cost {
    let challenge = proof::challenge_cost(from, sourcing.source.field());
    hybrid::response_cost(from, sourcing.base).then(sums_cost(from)).then(challenge)
}

/// Receives the other party's proof.
///
/// # Errors
/// [`Error::Peer`] when it is none, [`Error::Transport`].
pub(crate) fn verify(ch: &mut Channel, expected: &Expected) -> Result<()> {
    expected.verify(ch.receive::<TreeProof>(&proof_layout())?)
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
