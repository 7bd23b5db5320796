//! The check that relations hold: tagged integers that should be 0 mod 2^k.
//!
//! | | |
//! |---|---|
//! | In | the client's integers `r` with tags mod 2^(k+40), all committed; 64 random tagged masks below 2^40; the server's keys |
//! | Out | nothing, or an error |
//! | Reveals | to the server 64 combinations, whose high bits are masked, and whether the client's tags are what it expects; to the client the tags it has |
//! | Security | a relation that does not hold passes with probability `2^-40 + 2^-64`; SHA-256 is a random oracle (commitment) |
//! | Cost | seed of 16 bytes; `64*40` bits and 32 bytes; `64*(k+40)` bits; 32 bytes: 4 rounds ([`check_cost`]) |
//! | Paper | Cramer et al., SPDZ2k, CRYPTO 2018 (batch check mod 2^k, masks of the high bits) |
//!
//! The server draws the combinations after all is committed. The client opens them and commits to the
//! sum of their tags, the server says what it expects, and the client opens its commitment if that is
//! what it has. Otherwise it closes: a server that sent false words of tags learns that they do not fit,
//! one bit, and not by how much. A client that opens a wrong combination learns alpha from the server's
//! answer, when it is committed to a tag already; keys never serve after a check that failed.

use ring::{Random, Seed};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use gc::tagged::{ALPHA_BITS, MacKeys};

pub use super::combine::COMBINATIONS;
use super::combine::Coefficients;
use super::values::{Keys, Values, ones};
use crate::bytes::Bytes;
use crate::defect::defect;

/// Server to client: the seed of the combinations.
type SeedMessage = Bytes<{ tags::CHECK_SEED }>;
/// Client to server: the high bits of the combinations, then the commitment.
type Opening = Packed<{ tags::CHECK_OPENING }>;
/// Server to client: the tags it expects.
type Expected = Packed<{ tags::CHECK_TAGS }>;
/// Client to server: the nonce of the commitment.
type NonceMessage = Bytes<{ tags::CHECK_NONCE }>;

/// Bytes of the seed.
const SEED: usize = 16;
/// Bytes of the nonce and of the commitment.
const NONCE: usize = 32;

/// Shows that all `relations` are 0, each list mod `2^(modulus - 40)`. `masks` are
/// [`COMBINATIONS`] random committed integers of 40 bits with tags mod 2^40, used for nothing else.
///
/// # Errors
/// [`Error::Internal`] for masks of another size and for integers that are not 0, before anything is
/// opened; [`Error::Peer`] when the server's tags are not the client's: keys, material and session
/// are dropped, and the input must not be sent again; [`Error::Transport`].
pub fn check_client(
    ch: &mut Channel,
    relations: &[Values],
    masks: &Values,
    rng: &mut Random,
) -> Result<()> {
    let modulus = modulus(relations.iter().map(Values::modulus), (masks.len(), masks.modulus()))?;
    let zero_bits = modulus - ALPHA_BITS;
    let seed = receive_seed(ch)?;
    let mut combination = Coefficients::new(&seed);
    let mut sums = Zeroizing::new([[0; COMBINATIONS]; 2]);
    for list in relations {
        let list = list.raised(modulus)?;
        combination.add([&list.values, &list.tags], &mut sums);
    }
    let [values, tags] = &mut *sums;
    add_masks(values, &masks.values, modulus);
    add_masks(tags, &masks.tags, modulus);
    if values.iter().fold(0, |all, value| all | (value & ones(zero_bits))) != 0 {
        return Err(defect("a relation of the client's own values does not hold"));
    }
    let opened = values.iter().map(|value| (value >> zero_bits) as u64).collect();
    finish_client(ch, &seed, opened, tags, modulus, rng)
}

/// From the opening on, with what is opened and the tags committed to.
pub(super) fn finish_client(
    ch: &mut Channel,
    seed: &Seed,
    opened: Vec<u64>,
    tags: &[u128],
    modulus: u32,
    rng: &mut Random,
) -> Result<()> {
    let nonce = Zeroizing::new([rng.block().to_le_bytes(), rng.block().to_le_bytes()]);
    let commitment = committed(seed, nonce.as_flattened(), tags);
    let bytes = commitment.iter().map(|byte| u64::from(*byte)).collect();
    let parts = opening_layout().into_iter().zip([opened, bytes]).collect();
    ch.send(&Opening::new(parts))?;
    let expected = wide(ch.receive::<Expected>(&tags_layout(modulus))?);
    let differ = tags.iter().zip(&expected).fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
    if tags.len() != expected.len() || !bool::from(differ.ct_eq(&0)) {
        let got = "others: the session ends, and nothing may be repeated under its keys";
        return Err(Error::peer("the tags of the client's values", got));
    }
    ch.send(&NonceMessage::new(nonce.as_flattened().to_vec()))
}

/// Checks that all of the client's relations hold.
///
/// # Errors
/// [`Error::Internal`] for masks of another size; [`Error::Peer`] when the client's tags are not
/// those expected; [`Error::Transport`]. After any of these the keys serve no more.
pub fn check_server(
    ch: &mut Channel,
    relations: &[Keys],
    masks: &Keys,
    keys: &MacKeys,
    rng: &mut Random,
) -> Result<()> {
    let modulus = modulus(relations.iter().map(Keys::modulus), (masks.len(), masks.modulus()))?;
    let seed = rng.seed();
    ch.send(&SeedMessage::new(seed.0.to_vec()))?;
    let mut combination = Coefficients::new(&seed);
    let mut sums = Zeroizing::new([[0; COMBINATIONS]; 1]);
    for list in relations {
        combination.add([&list.raised(modulus)?.betas], &mut sums);
    }
    let [betas] = &mut *sums;
    add_masks(betas, &masks.betas, modulus);
    let mut parts = ch.receive::<Opening>(&opening_layout())?.into_values();
    let (opened, commitment) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let opened: Vec<u128> =
        opened.iter().map(|high| u128::from(*high) << (modulus - ALPHA_BITS)).collect();
    let expected = Keys::new(betas.to_vec(), modulus).tags(&opened, keys);
    ch.send(&Expected::new(split(&expected, modulus)))?;
    let nonce: NonceMessage = ch.receive(&NONCE)?;
    let commitment: Vec<u8> = commitment.iter().map(|byte| *byte as u8).collect();
    if bool::from(committed(&seed, &nonce.0, &expected).ct_eq(&commitment[..])) {
        return Ok(());
    }
    Err(Error::peer("a client whose values keep their relations", "tags of others"))
}

/// Returns what the check costs for relations of which the widest have tags mod 2^modulus.
pub fn check_cost(modulus: u32) -> Cost {
    Cost::message(Role::Server, SEED as u64)
        .then(Cost::message(Role::Client, Opening::body_len(&opening_layout())))
        .then(Cost::message(Role::Server, Expected::body_len(&tags_layout(modulus))))
        .then(Cost::message(Role::Client, NONCE as u64))
}

pub(super) fn receive_seed(ch: &mut Channel) -> Result<Seed> {
    let message: SeedMessage = ch.receive(&SEED)?;
    let bytes = message.0.first_chunk().ok_or_else(|| defect("a seed of another length"))?;
    Ok(Seed(*bytes))
}

/// The largest modulus of all relations, if the masks are as many and as wide as they must be.
fn modulus(relations: impl Iterator<Item = u32>, masks: (usize, u32)) -> Result<u32> {
    let modulus = relations.max().filter(|modulus| (ALPHA_BITS + 1..=104).contains(modulus));
    match (modulus, masks == (COMBINATIONS, ALPHA_BITS)) {
        (Some(modulus), true) => Ok(modulus),
        _ => Err(defect("a check of no relations, or with other masks than it takes")),
    }
}

/// Adds the masks to the high bits, and reduces.
fn add_masks(sums: &mut [u128], masks: &[u128], modulus: u32) {
    for (sum, mask) in sums.iter_mut().zip(masks) {
        *sum = sum.wrapping_add(mask << (modulus - ALPHA_BITS)) & ones(modulus);
    }
}

/// The commitment to tags.
fn committed(seed: &Seed, nonce: &[u8], tags: &[u128]) -> [u8; NONCE] {
    let mut hash = Sha256::new();
    hash.update(b"tacit check of tags");
    hash.update(seed.0);
    hash.update(nonce);
    tags.iter().for_each(|tag| hash.update(tag.to_le_bytes()));
    hash.finalize().into()
}

fn opening_layout() -> Vec<Segment> {
    vec![Segment { count: COMBINATIONS, bits: ALPHA_BITS }, Segment { count: NONCE, bits: 8 }]
}

/// Low words, then what is above 64 bits.
fn tags_layout(modulus: u32) -> Vec<Segment> {
    let widths = [modulus.min(64), modulus.saturating_sub(64)];
    let some = widths.into_iter().filter(|bits| *bits > 0);
    some.map(|bits| Segment { count: COMBINATIONS, bits }).collect()
}

fn split(tags: &[u128], modulus: u32) -> Vec<(Segment, Vec<u64>)> {
    let part = |part: usize| tags.iter().map(|tag| (tag >> (64 * part)) as u64).collect();
    tags_layout(modulus).into_iter().enumerate().map(|(at, layout)| (layout, part(at))).collect()
}

fn wide(message: Expected) -> Vec<u128> {
    let mut tags = vec![0u128; COMBINATIONS];
    for (part, words) in message.into_values().enumerate() {
        tags.iter_mut().zip(words).for_each(|(tag, word)| *tag |= u128::from(word) << (64 * part));
    }
    tags
}
