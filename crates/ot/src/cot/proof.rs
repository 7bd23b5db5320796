//! That the trees of both parties fit: the COT sender shows that it knows all leaves but one of each
//! tree, the COT receiver that these are the same whichever it misses.
//!
//! | | |
//! |---|---|
//! | In | receiver: all leaves of 128/k trees; sender: all but one of each |
//! | Out | whether they fit |
//! | Reveals | nothing: the sender answers only what the receiver knows, and shows that it does |
//! | Security | malicious, but that a receiver may guess bits of Delta and is found out unless it guesses right; AES-128 as ideal cipher, SHA-256 as random oracle |
//! | Cost | 16 bytes for each tree and 32, then 32 ([`challenge_layout`], [`proof_layout`]) |
//! | Paper | the check of Boyle et al., CCS 2019, as SoftSpokenOT uses it; the answer in the place of that of Canetti, Sarkar, Wang, PKC 2020 |
//!
//! Each leaf has a tag, a block under the leaf as key. The receiver sends the sum of the tags of each
//! tree and a digest of the digest of all tags. The sender finds the tags it misses from the sums,
//! compares, and answers with the digest of all tags. Without the keys of its base OTs it could
//! not: whoever simulates it sees which keys it asks for, and hence its Delta.

use ring::simd::Level;
use subtle::ConstantTimeEq;
use wire::{Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::softspoken::Field;
use super::tree::Leaves;
use crate::block::{mask_of_secret, of_words, to_words};
use crate::session::Domain;
use crate::simd::EIGHT;
use crate::simd::aes::Hasher;

/// COT receiver to COT sender: the sum of the tags of each tree, low word first, and four words of
/// a digest.
pub(crate) type TreeChallenge = Packed<{ tags::TREE_CHALLENGE }>;
/// COT sender to COT receiver: the digest of all tags.
pub(crate) type TreeProof = Packed<{ tags::TREE_PROOF }>;

const WORDS: usize = 4;

/// Layout of [`TreeChallenge`].
pub(crate) fn challenge_layout(field: Field) -> Vec<Segment> {
    vec![Segment { count: 2 * field.trees() + WORDS, bits: 64 }]
}

/// Layout of [`TreeProof`].
pub(crate) fn proof_layout() -> Vec<Segment> {
    vec![Segment { count: WORDS, bits: 64 }]
}

/// What [`TreeChallenge`] costs when `from` sends it.
pub(crate) fn challenge_cost(from: Role, field: Field) -> Cost {
    Cost::message(from, TreeChallenge::body_len(&challenge_layout(field)))
}

/// What [`TreeProof`] costs when `from` sends it.
pub(crate) fn proof_cost(from: Role) -> Cost {
    Cost::message(from, TreeProof::body_len(&proof_layout()))
}

/// The COT receiver, waiting for the [`TreeProof`].
pub(crate) struct Expected(Zeroizing<[u64; WORDS]>);

/// The COT receiver's challenge, from the leaves of its trees in order.
pub(crate) fn challenge(domain: &Domain, trees: &[Leaves]) -> (Expected, TreeChallenge) {
    let tags = Zeroizing::new(tags_of(domain, trees));
    let size = trees.first().map_or(1, |leaves| leaves.len());
    let sums = tags.chunks(size).map(|tags| tags.iter().fold(0, |sum, tag| sum ^ tag));
    let mut words: Vec<u64> = sums.flat_map(to_words).collect();
    let proof = Zeroizing::new(digest(domain, &tags));
    words.extend(digest_of_proof(domain, &proof));
    (Expected(proof), Packed::one(words, 64))
}

impl Expected {
    /// Compares.
    ///
    /// # Errors
    /// [`Error::Peer`] when the sender does not know its trees.
    pub(crate) fn verify(&self, proof: TreeProof) -> Result<()> {
        if proof.concat().ct_eq(&*self.0).into() {
            return Ok(());
        }
        Err(Error::peer("a proof of the trees' leaves", "another string"))
    }
}

/// The COT sender's answer, from the leaves that [`puncture`](super::tree::puncture) recovered.
///
/// # Errors
/// [`Error::Peer`] when the receiver's trees do not fit, or its challenge has another layout.
pub(crate) fn prove(
    domain: &Domain,
    field: Field,
    delta: u128,
    trees: &[Leaves],
    challenge: TreeChallenge,
) -> Result<TreeProof> {
    let words = challenge.concat();
    let (sums, expected) = words.split_at(words.len().saturating_sub(WORDS));
    let (sums, _) = sums.as_chunks();
    if sums.len() != field.trees() || expected.len() != WORDS {
        return Err(Error::peer("a challenge for each tree", format!("{} words", words.len())));
    }
    let mut tags = Zeroizing::new(tags_of(domain, trees));
    for ((tree, tags), sum) in tags.chunks_mut(1 << field.bits()).enumerate().zip(sums) {
        tags[0] = of_words(*sum);
        tags[0] = tags.iter().fold(0, |sum, tag| sum ^ tag);
        let hole = field.part(delta, tree);
        (0..field.bits()).for_each(|bit| swap(tags, bit, hole));
    }
    let proof = Zeroizing::new(digest(domain, &tags));
    if digest_of_proof(domain, &proof).ct_eq(expected).into() {
        return Ok(Packed::one(proof.to_vec(), 64));
    }
    Err(Error::peer("trees that fit", "sums of different trees"))
}

/// Swaps the tags whose positions differ in `bit`, if `hole` has it set: all bits in turn bring
/// the tag of leaf `x` from position `x xor hole` to position `x`.
fn swap(tags: &mut [u128], bit: usize, hole: u8) {
    let on = mask_of_secret(u128::from((hole >> bit) & 1));
    for pair in tags.chunks_exact_mut(2 << bit) {
        let (low, high) = pair.split_at_mut(1 << bit);
        for (low, high) in low.iter_mut().zip(high) {
            let changed = (*low ^ *high) & on;
            *low ^= changed;
            *high ^= changed;
        }
    }
}

/// A block under each leaf as key, which differs for each tree and session.
fn tags_of(domain: &Domain, trees: &[Leaves]) -> Vec<u128> {
    let mut hasher = Zeroizing::new(Hasher::new(Level::best()));
    let mut all = Vec::with_capacity(trees.iter().map(|leaves| leaves.len()).sum());
    for (tree, leaves) in (0u8..).zip(trees) {
        let [start, _] = domain.blocks(b"leaf tag", &[&[tree]]);
        for leaves in leaves.chunks(EIGHT) {
            let mut keys = Zeroizing::new([0; EIGHT]);
            keys[..leaves.len()].copy_from_slice(leaves);
            hasher.set(*keys);
            let mut tags = Zeroizing::new([start; EIGHT]);
            hasher.hash(0, 0, &mut *tags);
            all.extend_from_slice(&tags[..leaves.len()]);
        }
    }
    all
}

fn digest(domain: &Domain, tags: &[u128]) -> [u64; WORDS] {
    let mut bytes = Zeroizing::new(Vec::with_capacity(size_of_val(tags)));
    tags.iter().for_each(|tag| bytes.extend_from_slice(&tag.to_le_bytes()));
    domain.words(b"all tags", &[&bytes])
}

fn digest_of_proof(domain: &Domain, proof: &[u64; WORDS]) -> [u64; WORDS] {
    let bytes = Zeroizing::new(proof.map(u64::to_le_bytes));
    domain.words(b"expected", &[bytes.as_flattened()])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::measure::trees;
    use crate::session::SessionId;
    use ring::Random;

    #[test]
    fn whoever_knows_all_leaves_but_one_passes_and_no_one_else() {
        let domain = Domain::new(SessionId([4; 32]), Role::Server);
        let mut rng = Random::seeded(1);
        for field in Field::ALL {
            let delta = rng.block() | 1;
            let [all, mut known] = trees(field, delta, &mut rng);
            let (expected, challenge) = challenge(&domain, &all);
            let prove =
                |known: &[Leaves], challenge| prove(&domain, field, delta, known, challenge);
            expected.verify(prove(&known, challenge.clone()).unwrap()).unwrap();
            let mut other = prove(&known, challenge.clone()).unwrap().concat();
            other[3] ^= 1;
            assert!(expected.verify(Packed::one(other, 64)).is_err());
            let spoilt = |at: usize| {
                let mut words = challenge.clone().concat();
                words[at] ^= 1 << 40;
                prove(&known, Packed::one(words, 64)).is_err()
            };
            assert!((0..2 * field.trees() + WORDS).all(spoilt));
            let short = challenge.clone().concat()[1..].to_vec();
            assert!(prove(&known, Packed::one(short, 64)).is_err());
            let last = known.last_mut().unwrap();
            last[1] ^= 1;
            assert!(prove(&known, challenge).is_err(), "a leaf is another");
        }
    }
}
