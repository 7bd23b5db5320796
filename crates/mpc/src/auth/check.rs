//! The check that relations hold: tagged integers that should be 0 mod 2^k, and others that should
//! be small mod 2^K.
//!
//! | | |
//! |---|---|
//! | In | the client's integers with tags mod 2^(k+40), all committed; for each kind 64 random tagged masks below 2^40; for small ones 64 committed samples of deviation 2^13; the server's keys |
//! | Out | nothing, or an error |
//! | Reveals | to the server 64 combinations of each kind, whose high bits are masked, those of small integers with a sample added (RLWE with hints), and whether the client's tags are what it expects; to the client the tags it has |
//! | Security | integers that are not zero, or above [`BOUND`] in magnitude, pass with probability `2^-40 + 2^-64`; SHA-256 is a random oracle (commitment) |
//! | Cost | seed of 16 bytes; `64*40` bits and 32 bytes; `64*(k+40)` bits; 32 bytes: 4 rounds; with small ones `64*58` and `64*(K+40)` bits more ([`check_cost`]) |
//! | Paper | Cramer et al., SPDZ2k, CRYPTO 2018 (batch check mod 2^k, masks of the high bits) |
//!
//! The server draws the combinations after all is committed. The client opens them and commits to the
//! sum of their tags, the server says what it expects, and the client opens its commitment if that is
//! what it has. Otherwise it closes: a server that sent false words of tags learns that they do not fit,
//! one bit, and not by how much. A client that opens a wrong combination learns alpha from the server's
//! answer, when it is committed to a tag already; keys never serve after a check that failed.
//!
//! *Small ones.* Of an integer above twice [`ACCEPTED`] no two of the combinations with its coefficient
//! 0, and 1 or -1, can both be accepted, whatever the sample: 1/2 each, as for zeros.

use gc::tagged::{ALPHA_BITS, MacKeys};
use he::rlwe::committed::covers;
use ring::word::signed;
use ring::{Bits, Random, Seed};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

pub use super::combine::COMBINATIONS;
use super::combine::{Coefficients, SMALL, ZERO};
use super::values::{Keys, Values, ones};
use crate::bytes::Bytes;
use crate::defect::defect;

/// Server to client: the seed of the combinations.
type SeedMessage = Bytes<{ tags::CHECK_SEED }>;
/// Client to server: what is opened of the combinations, then the commitment.
type Opening = Packed<{ tags::CHECK_OPENING }>;
/// Server to client: the tags it expects.
type Expected = Packed<{ tags::CHECK_TAGS }>;
/// Client to server: the nonce of the commitment.
pub(super) type NonceMessage = Bytes<{ tags::CHECK_NONCE }>;

/// Bytes of the seed.
const SEED: usize = 16;
/// Bytes of the nonce and of the commitment.
const NONCE: usize = 32;
/// Largest magnitude of a combination of small integers that is accepted, 9.2 deviations of a sample.
pub(super) const ACCEPTED: i64 = 75_281;
/// Largest magnitude of an integer that passes as small: 2^17.2.
pub const BOUND: i64 = 2 * ACCEPTED;
/// Bits of a committed sample plus `2^17`, and of a combination plus [`ACCEPTED`].
pub const COVER_BITS: u32 = 18;

/// The client's integers that are to be small mod 2^(modulus - 40), all of one modulus, with masks as
/// for zeros and its samples as [`cover_planes`] has them.
#[derive(Clone, Copy, Debug)]
pub struct SmallValues<'a> {
    /// The integers.
    pub errors: &'a [Values],
    /// [`COMBINATIONS`] random committed integers of 40 bits with tags mod 2^40.
    pub masks: &'a Values,
    /// [`COMBINATIONS`] samples plus 2^17, with tags of the integers' modulus.
    pub covers: &'a Values,
}

/// The server's keys of these.
#[derive(Clone, Copy, Debug)]
pub struct SmallKeys<'a> {
    /// The keys of the integers that are to be small.
    pub errors: &'a [Keys],
    /// The keys of the integers that mask combinations.
    pub masks: &'a Keys,
    /// The keys of the samples that cover combinations of errors.
    pub covers: &'a Keys,
}

/// Returns the planes of [`COMBINATIONS`] fresh samples of deviation 2^13, plus 2^17.
pub fn cover_planes(rng: &mut Random) -> Vec<Bits> {
    let samples = covers(rng, COMBINATIONS);
    let moved: Zeroizing<Vec<u64>> =
        Zeroizing::new(samples.iter().map(|y| (y + (1 << (COVER_BITS - 1))) as u64).collect());
    (0..COVER_BITS).map(|bit| Bits::of_words(&moved, bit)).collect()
}

/// What the client opens of the combinations of one kind, and their tags.
pub(super) struct Shown {
    pub(super) modulus: u32,
    /// Values of low bits, for small ones, and of high bits.
    pub(super) opened: Vec<Vec<u64>>,
    pub(super) tags: Vec<u128>,
}

/// Combinations of words, with masks in their high bits: values and tags, or keys.
type Sums<const LISTS: usize> = Zeroizing<[[u128; COMBINATIONS]; LISTS]>;

/// Shows that all `relations` are 0, each list mod `2^(modulus - 40)`, and that `small` ones are small.
/// `masks` are [`COMBINATIONS`] random committed integers of 40 bits with tags mod 2^40, used for
/// nothing else.
///
/// # Errors
/// [`Error::Internal`] for masks of another size and for integers that are not 0, or not small, before
/// anything is opened; [`Error::Peer`] when the server's tags are not the client's: keys, material and
/// session are dropped, and the input must not be sent again; [`Error::Transport`].
pub fn check_client(
    ch: &mut Channel,
    relations: &[Values],
    masks: &Values,
    small: Option<SmallValues<'_>>,
    rng: &mut Random,
) -> Result<()> {
    let modulus = widest(relations.iter().map(Values::modulus), (masks.len(), masks.modulus()))?;
    let seed = receive_seed(ch)?;
    let zero_bits = modulus - ALPHA_BITS;
    let sums = sums_client(&seed, ZERO, relations, masks, modulus)?;
    if sums[0].iter().fold(0, |all, value| all | (value & ones(zero_bits))) != 0 {
        return Err(defect("a relation of the client's own values does not hold"));
    }
    let mut shown = vec![shown_zero(&sums, modulus)];
    if let Some(small) = small {
        let (sums, modulus) = small_sums_client(&seed, small)?;
        let shown_small = shown_small(&sums, modulus);
        let most = 2 * ACCEPTED as u64;
        if shown_small.opened.iter().take(1).flatten().any(|low| *low > most) {
            return Err(defect("an error of the client's own encryptions is large"));
        }
        shown.push(shown_small);
    }
    finish_client(ch, &seed, shown, rng)
}

/// Combinations of lists that are to be zero, with their masks.
pub(super) fn sums_client(
    seed: &Seed,
    domain: u64,
    lists: &[Values],
    masks: &Values,
    modulus: u32,
) -> Result<Sums<2>> {
    let mut combination = Coefficients::new(seed, domain);
    let mut sums = Zeroizing::new([[0; COMBINATIONS]; 2]);
    for list in lists {
        let list = list.raised(modulus)?;
        combination.add([&list.values, &list.tags], &mut sums);
    }
    let [values, tags] = &mut *sums;
    add_masks(values, &masks.values, modulus);
    add_masks(tags, &masks.tags, modulus);
    Ok(sums)
}

/// Combinations of small lists, with samples and masks, and their modulus.
pub(super) fn small_sums_client(seed: &Seed, small: SmallValues<'_>) -> Result<(Sums<2>, u32)> {
    let SmallValues { errors, masks, covers } = small;
    let moduli = errors.iter().map(Values::modulus).chain([covers.modulus()]);
    let modulus = only(moduli, (masks.len(), masks.modulus()), covers.len())?;
    let mut sums = sums_client(seed, SMALL, errors, masks, modulus)?;
    let covers = covers.plus(&[cover_offset(); COMBINATIONS]);
    let [values, tags] = &mut *sums;
    add(values, &covers.values, modulus);
    add(tags, &covers.tags, modulus);
    Ok((sums, modulus))
}

pub(super) fn shown_zero(sums: &Sums<2>, modulus: u32) -> Shown {
    let high = sums[0].iter().map(|value| (value >> (modulus - ALPHA_BITS)) as u64).collect();
    Shown { modulus, opened: vec![high], tags: sums[1].to_vec() }
}

pub(super) fn shown_small(sums: &Sums<2>, modulus: u32) -> Shown {
    let bits = modulus - ALPHA_BITS;
    let low = |value: &u128| {
        let moved = signed((value & ones(bits)) as u64, bits).wrapping_add(ACCEPTED);
        // What does not fit is above what is accepted.
        if (0..1 << COVER_BITS).contains(&moved) { moved as u64 } else { (1 << COVER_BITS) - 1 }
    };
    let high = sums[0].iter().map(|value| (value >> bits) as u64).collect();
    Shown { modulus, opened: vec![sums[0].iter().map(low).collect(), high], tags: sums[1].to_vec() }
}

/// From the opening on, with what is opened and the tags committed to.
pub(super) fn finish_client(
    ch: &mut Channel,
    seed: &Seed,
    shown: Vec<Shown>,
    rng: &mut Random,
) -> Result<()> {
    let nonce = Zeroizing::new([rng.block().to_le_bytes(), rng.block().to_le_bytes()]);
    let ours: Zeroizing<Vec<u128>> =
        Zeroizing::new(shown.iter().flat_map(|shown| &shown.tags).copied().collect());
    let commitment = committed(seed, nonce.as_flattened(), &ours);
    let bytes = commitment.iter().map(|byte| u64::from(*byte)).collect();
    let moduli: Vec<u32> = shown.iter().map(|shown| shown.modulus).collect();
    let opened = shown.into_iter().flat_map(|shown| shown.opened).chain([bytes]);
    ch.send(&Opening::new(opening_layout(moduli.len() > 1).into_iter().zip(opened).collect()))?;
    let expected = wide(ch.receive::<Expected>(&tags_layout(&moduli))?, &moduli);
    let differ = ours.iter().zip(&expected).fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
    if ours.len() != expected.len() || !bool::from(differ.ct_eq(&0)) {
        let got = "others: the session ends, and nothing may be repeated under its keys";
        return Err(Error::peer("the tags of the client's values", got));
    }
    ch.send(&NonceMessage::new(nonce.as_flattened().to_vec()))
}

/// Checks that all of the client's relations hold, and that `small` ones are small.
///
/// # Errors
/// [`Error::Internal`] for masks of another size; [`Error::Peer`] when a combination is too large and
/// when the client's tags are not those expected; [`Error::Transport`]. After any of these the keys
/// serve no more.
pub fn check_server(
    ch: &mut Channel,
    relations: &[Keys],
    masks: &Keys,
    small: Option<SmallKeys<'_>>,
    keys: &MacKeys,
    rng: &mut Random,
) -> Result<()> {
    let modulus = widest(relations.iter().map(Keys::modulus), (masks.len(), masks.modulus()))?;
    let seed = rng.seed();
    ch.send(&SeedMessage::new(seed.0.to_vec()))?;
    let mut sums = vec![sums_server(&seed, ZERO, relations, masks, modulus)?];
    if let Some(small) = small {
        sums.push(small_sums_server(&seed, small, keys)?);
    }
    let mut parts = ch.receive::<Opening>(&opening_layout(sums.len() > 1))?.into_values();
    let mut expected = Zeroizing::new(Vec::new());
    for (at, betas) in sums.iter().enumerate() {
        let bits = betas.modulus() - ALPHA_BITS;
        let low = if at == 0 { vec![ACCEPTED as u64; COMBINATIONS] } else { next(&mut parts) };
        if low.iter().any(|low| *low > 2 * ACCEPTED as u64) {
            return Err(Error::peer("encryptions with small errors", "large ones"));
        }
        let value = |(low, high): (&u64, &u64)| {
            let low = i128::from(*low as i64 - ACCEPTED) as u128;
            u128::from(*high) << bits | (low & ones(bits))
        };
        let opened: Vec<u128> = low.iter().zip(&next(&mut parts)).map(value).collect();
        expected.extend(betas.tags_of(&opened, keys).iter());
    }
    let moduli: Vec<u32> = sums.iter().map(Keys::modulus).collect();
    ch.send(&Expected::new(split(&expected, &moduli)))?;
    let commitment: Vec<u8> = next(&mut parts).iter().map(|byte| *byte as u8).collect();
    let nonce: NonceMessage = ch.receive(&NONCE)?;
    if bool::from(committed(&seed, &nonce.0, &expected).ct_eq(&commitment[..])) {
        return Ok(());
    }
    Err(Error::peer("a client whose values keep their relations", "tags of others"))
}

fn sums_server(
    seed: &Seed,
    domain: u64,
    lists: &[Keys],
    masks: &Keys,
    modulus: u32,
) -> Result<Keys> {
    let mut combination = Coefficients::new(seed, domain);
    let mut sums = Zeroizing::new([[0; COMBINATIONS]; 1]);
    for list in lists {
        combination.add([&list.raised(modulus)?.betas], &mut sums);
    }
    let [betas] = &mut *sums;
    add_masks(betas, &masks.betas, modulus);
    Ok(Keys::new(betas.to_vec(), modulus))
}

fn small_sums_server(seed: &Seed, small: SmallKeys<'_>, keys: &MacKeys) -> Result<Keys> {
    let SmallKeys { errors, masks, covers } = small;
    let moduli = errors.iter().map(Keys::modulus).chain([covers.modulus()]);
    let modulus = only(moduli, (masks.len(), masks.modulus()), covers.len())?;
    let sums = sums_server(seed, SMALL, errors, masks, modulus)?;
    let covers = covers.plus(&[cover_offset(); COMBINATIONS], keys);
    let mut betas = sums.betas.clone();
    add(&mut betas, &covers.betas, modulus);
    Ok(Keys::new(betas, modulus))
}

/// Returns what the check costs for relations of which the widest have tags mod 2^modulus, with small
/// integers that have tags mod 2^small.
pub fn check_cost(modulus: u32, small: Option<u32>) -> Cost {
    let moduli: Vec<u32> = std::iter::once(modulus).chain(small).collect();
    Cost::message(Role::Server, SEED as u64)
        .then(Cost::message(Role::Client, Opening::body_len(&opening_layout(small.is_some()))))
        .then(Cost::message(Role::Server, Expected::body_len(&tags_layout(&moduli))))
        .then(Cost::message(Role::Client, NONCE as u64))
}

pub(super) fn receive_seed(ch: &mut Channel) -> Result<Seed> {
    let message: SeedMessage = ch.receive(&SEED)?;
    let bytes = message.0.first_chunk().ok_or_else(|| defect("a seed of another length"))?;
    Ok(Seed(*bytes))
}

/// The largest modulus of all relations, if the masks are as many and as wide as they must be.
fn widest(relations: impl Iterator<Item = u32>, masks: (usize, u32)) -> Result<u32> {
    let modulus = relations.max().filter(|modulus| (ALPHA_BITS + 1..=104).contains(modulus));
    match (modulus, masks == (COMBINATIONS, ALPHA_BITS)) {
        (Some(modulus), true) => Ok(modulus),
        _ => Err(defect("a check of no relations, or with other masks than it takes")),
    }
}

/// The modulus that all have.
fn only(mut moduli: impl Iterator<Item = u32>, masks: (usize, u32), covers: usize) -> Result<u32> {
    let first = moduli.next();
    let same = first.filter(|first| covers == COMBINATIONS && moduli.all(|other| other == *first));
    // Small combinations are told from others where their ring is wider than they.
    let modulus = widest(same.into_iter(), masks)?;
    match modulus > ALPHA_BITS + COVER_BITS + 1 {
        true => Ok(modulus),
        false => Err(defect("small integers in a ring that has no others")),
    }
}

/// What turns a committed sample into itself.
const fn cover_offset() -> u128 {
    (1u128 << (COVER_BITS - 1)).wrapping_neg()
}

/// Adds the masks to the high bits, and reduces.
fn add_masks(sums: &mut [u128], masks: &[u128], modulus: u32) {
    for (sum, mask) in sums.iter_mut().zip(masks) {
        *sum = sum.wrapping_add(mask << (modulus - ALPHA_BITS)) & ones(modulus);
    }
}

fn add(sums: &mut [u128], more: &[u128], modulus: u32) {
    let pairs = sums.iter_mut().zip(more);
    pairs.for_each(|(sum, more)| *sum = sum.wrapping_add(*more) & ones(modulus));
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

fn next(parts: &mut impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    parts.next().unwrap_or_default()
}

fn opening_layout(small: bool) -> Vec<Segment> {
    let segment = |bits| Segment { count: COMBINATIONS, bits };
    let more = [segment(COVER_BITS), segment(ALPHA_BITS)];
    let more = more.into_iter().filter(|_| small);
    let end = [Segment { count: NONCE, bits: 8 }];
    std::iter::once(segment(ALPHA_BITS)).chain(more).chain(end).collect()
}

/// For each modulus low words, then what is above 64 bits.
fn tags_layout(moduli: &[u32]) -> Vec<Segment> {
    let widths = moduli.iter().flat_map(|modulus| [(*modulus).min(64), modulus.saturating_sub(64)]);
    let some = widths.filter(|bits| *bits > 0);
    some.map(|bits| Segment { count: COMBINATIONS, bits }).collect()
}

fn split(tags: &[u128], moduli: &[u32]) -> Vec<(Segment, Vec<u64>)> {
    let kinds = moduli.iter().zip(tags.chunks(COMBINATIONS));
    let parts = kinds.flat_map(|(modulus, tags)| {
        let part = |part: usize| tags.iter().map(|tag| (tag >> (64 * part)) as u64).collect();
        let layout = tags_layout(&[*modulus]).into_iter().enumerate();
        layout.map(|(at, layout)| (layout, part(at))).collect::<Vec<(Segment, Vec<u64>)>>()
    });
    parts.collect()
}

fn wide(message: Expected, moduli: &[u32]) -> Vec<u128> {
    let mut parts = message.into_values();
    let kind = |modulus: &u32| {
        let mut tags: Vec<u128> = next(&mut parts).into_iter().map(u128::from).collect();
        if *modulus > 64 {
            let high = next(&mut parts);
            tags.iter_mut().zip(high).for_each(|(tag, high)| *tag |= u128::from(high) << 64);
        }
        tags
    };
    moduli.iter().flat_map(kind).collect()
}
