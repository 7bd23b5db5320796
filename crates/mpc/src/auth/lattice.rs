//! A secret key of RLWE to which the client commits, and tags of phases under it.
//!
//! | | |
//! |---|---|
//! | In | `8*N` correlated OTs |
//! | Out | the client: its key; the server: the public key; both: what gives tags of phases, and a relation for the check |
//! | Reveals | corrections, masked by random choices; the public key |
//! | Security | the secret is ternary whatever the client sends, being a difference of two committed bits a coefficient; errors of the public key are in -32 to 31 once the relation has been checked; the uniform half of the public key is drawn when both are committed |
//! | Cost | up `8*N` bits and `N*K` bits; down 16 bytes, `2*N*(K+40)` bits and `N*(6*(K+40) - 15)` bits for words of tags ([`key_costs`]) |
//! | Paper | this project |
//!
//! The client commits ([`commit_key`]), the server answers with the seed of the uniform half and with tags
//! ([`CommittedKey::tag`]), and the client sends the public key ([`TaggedKey::publish`]); the server does the
//! same in its order ([`accept_key`], [`AcceptedKey::tag`], [`KeyTags::receive`]). What else the parties have to
//! say goes between these steps.

use std::fmt;

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use he::rlwe::committed::{ERROR_BITS, LEAST_ERROR, Multiplicand};
use he::rlwe::{Params, PublicKey, SecretKey};
use ot::{ReceiverBatch, SenderBatch};
use ring::{Bits, Random, Seed};
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::commit::{ClientBits, ServerBits, accept, commit, commit_cost};
use super::tag::{tag_client, tag_cost, tag_server};
use super::values::{Keys, Values};
use crate::bytes::Bytes;
use crate::defect::defect;

/// Client to server: the body of the public key.
type Body = Packed<{ tags::COMMITTED_KEY }>;
/// Server to client: the seed of the uniform half.
type KeySeed = Bytes<{ tags::COMMITTED_KEY_SEED }>;

/// Bytes of the seed.
const SEED: usize = 16;

/// The client's end: its secret key, and values and tags of its coefficients.
pub struct ClientKey {
    secret: SecretKey,
    values: Multiplicand,
    tags: Multiplicand,
    modulus: u32,
    relation: Values,
}

/// The server's end: the public key, and the keys of the secret's coefficients.
pub struct ServerKey {
    public: PublicKey,
    betas: Multiplicand,
    modulus: u32,
    relation: Keys,
}

/// A secret to which the client has committed, with the errors that its public key will have.
pub struct CommittedKey {
    secret: SecretKey,
    pub(crate) errors: Zeroizing<Vec<i64>>,
    bits: [ClientBits; 2],
}

/// The committed secret and errors with their tags, and the seed of the public key's uniform half.
pub struct TaggedKey {
    secret: SecretKey,
    errors: Zeroizing<Vec<i64>>,
    seed: Seed,
    tagged: [Values; 2],
}

/// What the server holds of a committed secret.
pub struct AcceptedKey {
    params: Params,
    bits: [ServerBits; 2],
}

/// The keys of its tags, until the public key is there.
pub struct KeyTags {
    params: Params,
    seed: Seed,
    tagged: [Keys; 2],
}

/// Commits to a fresh secret and to the errors of its public key.
///
/// # Errors
/// [`Error::Internal`] for another number of correlations, [`Error::Transport`].
pub fn commit_key(
    ch: &mut Channel,
    mut ots: ReceiverBatch,
    params: Params,
    rng: &mut Random,
) -> Result<CommittedKey> {
    let secret = SecretKey::generate(params, rng).map_err(misuse)?;
    let errors = secret.key_errors(rng);
    let [of_signs, _] = plans(params)?;
    let ternary = secret.ternary().map_err(misuse)?;
    let signs = Zeroizing::new(signs(&ternary));
    let moved: Zeroizing<Vec<u64>> =
        Zeroizing::new(errors.iter().map(|e| (e - LEAST_ERROR) as u64).collect());
    let planes = (0..ERROR_BITS).map(|bit| Bits::of_words(&moved, bit)).collect();
    let (first, second) = (ots.split_off(of_signs.labels()), ots);
    let signs = commit(ch, first, vec![Bits::clone(&signs)])?;
    let bits = [signs, commit(ch, second, planes)?];
    Ok(CommittedKey { secret, errors, bits })
}

impl CommittedKey {
    /// Receives the seed of the public key's uniform half, and the tags.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn tag(self, ch: &mut Channel) -> Result<TaggedKey> {
        let Self { secret, errors, bits: [signs, of_errors] } = self;
        let message: KeySeed = ch.receive(&SEED)?;
        let bytes = message.0.first_chunk().ok_or_else(|| defect("a seed of another length"))?;
        let plans = plans(secret.params())?;
        let tagged = [tag_client(ch, &plans[0], &signs)?, tag_client(ch, &plans[1], &of_errors)?];
        Ok(TaggedKey { secret, errors, seed: Seed(*bytes), tagged })
    }
}

impl TaggedKey {
    /// Sends the public key.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn publish(self, ch: &mut Channel) -> Result<ClientKey> {
        let Self { secret, errors, seed, tagged: [signs, of_errors] } = self;
        let params = secret.params();
        let body = secret.public_body(&seed, &errors).map_err(misuse)?;
        ch.send(&Body::one(body.clone(), params.modulus_bits()))?;
        let coefficients = signs.linear(differences);
        let multiplied = |words: &[u128]| Multiplicand::new(words, coefficients.modulus());
        let values = multiplied(&coefficients.values).map_err(misuse)?;
        let tags = multiplied(&coefficients.tags).map_err(misuse)?;
        let modulus = coefficients.modulus();
        let mut key = ClientKey { secret, values, tags, modulus, relation: of_errors };
        let keep: Vec<usize> = (0..params.degree()).collect();
        let a = PublicKey::uniform_half(params, &seed);
        let phases = key.phases(&a, params.modulus_bits(), &keep, &body)?;
        key.relation = phases.less(&key.relation)?.plus(&vec![offset(); params.degree()]);
        Ok(key)
    }
}

/// Accepts the client's commitment to its secret.
///
/// # Errors
/// [`Error::Internal`] for another number of correlations, [`Error::Peer`], [`Error::Transport`].
pub fn accept_key(ch: &mut Channel, mut ots: SenderBatch, params: Params) -> Result<AcceptedKey> {
    let ([of_signs, _], degree) = (plans(params)?, params.degree());
    let (first, second) = (ots.split_off(of_signs.labels()), ots);
    let signs = accept(ch, first, 1, 2 * degree)?;
    Ok(AcceptedKey { params, bits: [signs, accept(ch, second, ERROR_BITS as usize, degree)?] })
}

impl AcceptedKey {
    /// Draws and sends the seed of the public key's uniform half, and sends what makes the tags.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn tag(self, ch: &mut Channel, keys: &MacKeys, rng: &mut Random) -> Result<KeyTags> {
        let Self { params, bits: [signs, of_errors] } = self;
        let seed = rng.seed();
        ch.send(&KeySeed::new(seed.0.to_vec()))?;
        let plans = plans(params)?;
        let signs = tag_server(ch, &plans[0], keys, &signs, rng)?;
        let tagged = [signs, tag_server(ch, &plans[1], keys, &of_errors, rng)?];
        Ok(KeyTags { params, seed, tagged })
    }
}

impl KeyTags {
    /// Receives the public key.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn receive(self, ch: &mut Channel, keys: &MacKeys) -> Result<ServerKey> {
        let Self { params, seed, tagged: [signs, of_errors] } = self;
        let body: Body = ch.receive(&vec![layout(params)])?;
        let body = body.concat();
        let public = PublicKey::new(params, &seed, body.clone());
        let public = public.map_err(|error| Error::peer("a public key", error.to_string()))?;
        let coefficients = signs.linear(differences);
        let modulus = coefficients.modulus();
        let betas = Multiplicand::new(&coefficients.betas, modulus).map_err(misuse)?;
        let mut key = ServerKey { public, betas, modulus, relation: of_errors };
        let keep: Vec<usize> = (0..params.degree()).collect();
        let a = PublicKey::uniform_half(params, &seed);
        let phases = key.phases(&a, params.modulus_bits(), &keep, (&body, keys))?;
        let moved = vec![offset(); params.degree()];
        key.relation = phases.less(&key.relation)?.plus(&moved, keys);
        Ok(key)
    }
}

/// Returns the correlations that a commitment takes: 8 for each coefficient.
pub const fn key_ots(params: Params) -> usize {
    (2 + ERROR_BITS as usize) * params.degree()
}

/// Returns what the three steps of a committed key cost: commitments, seed and tags, public key.
///
/// # Errors
/// None for parameters that exist.
pub fn key_costs(params: Params) -> Result<[Cost; 3]> {
    let [signs, errors] = plans(params)?;
    let commits = commit_cost(1, 2 * params.degree());
    let commits = commits.then(commit_cost(ERROR_BITS as usize, params.degree()));
    let seed = Cost::message(Role::Server, SEED as u64);
    let body = Cost::message(Role::Client, Body::body_len(&[layout(params)]));
    Ok([commits, seed.then(tag_cost(&signs)).then(tag_cost(&errors)), body])
}

impl ClientKey {
    /// Returns the secret key.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// Returns what the check is to find 0 mod 2^K: the phases of the public key less its errors.
    pub fn relation(&self) -> &Values {
        &self.relation
    }

    /// Returns the phases `c0 + a*secret`, mod 2^bits, at the coefficients `keep`, for each of which
    /// there is an element of `c0`. `a` and `c0` are integers below 2^bits.
    ///
    /// # Errors
    /// [`Error::Misuse`] for polynomials of another degree.
    pub fn phases(&self, a: &[u64], bits: u32, keep: &[usize], c0: &[u64]) -> Result<Values> {
        let [values, tags] = [&self.values, &self.tags].map(|words| words.times(a));
        let (values, tags) = (values.map_err(misuse)?, tags.map_err(misuse)?);
        let [values, tags] = [&values, &tags].map(|words| kept(words, keep));
        let phases = Values::new(values, tags, self.modulus).plus(&wide(c0));
        phases.narrowed(bits + ALPHA_BITS)
    }
}

impl ServerKey {
    /// Returns the public key. It is to be used for nothing that leaves before the check, but
    /// responses that are masked.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// As [`ClientKey::relation`].
    pub fn relation(&self) -> &Keys {
        &self.relation
    }

    /// As [`ClientKey::phases`].
    ///
    /// # Errors
    /// [`Error::Misuse`] for polynomials of another degree.
    pub fn phases(
        &self,
        a: &[u64],
        bits: u32,
        keep: &[usize],
        (c0, keys): (&[u64], &MacKeys),
    ) -> Result<Keys> {
        let betas = kept(&self.betas.times(a).map_err(misuse)?, keep);
        Keys::new(betas, self.modulus).plus(&wide(c0), keys).narrowed(bits + ALPHA_BITS)
    }
}

/// The committed bits of the secret, `2*N` integers of one bit, and those of the errors.
fn plans(params: Params) -> Result<[BitTags; 2]> {
    let modulus = params.modulus_bits() + ALPHA_BITS;
    Ok([
        BitTags::new(2 * params.degree(), 1, modulus)?,
        BitTags::new(params.degree(), ERROR_BITS, modulus)?,
    ])
}

const fn layout(params: Params) -> Segment {
    Segment { count: params.degree(), bits: params.modulus_bits() }
}

/// Whether each coefficient is 1, then whether it is -1.
fn signs(ternary: &[u64]) -> Bits {
    let negative = ternary.iter().map(|s| s >> 63);
    ternary.iter().map(|s| s & !(s >> 63) & 1).chain(negative).collect()
}

/// The first half less the second.
fn differences(words: &[u128]) -> Vec<u128> {
    let (plus, minus) = words.split_at(words.len() / 2);
    plus.iter().zip(minus).map(|(plus, minus)| plus.wrapping_sub(*minus)).collect()
}

/// The number that is added to errors before the client commits to them, so that none is negative.
const fn offset() -> u128 {
    (-LEAST_ERROR) as u128
}

fn kept(words: &[u128], keep: &[usize]) -> Vec<u128> {
    keep.iter().map(|at| words.get(*at).copied().unwrap_or_default()).collect()
}

fn wide(words: &[u64]) -> Vec<u128> {
    words.iter().map(|word| u128::from(*word)).collect()
}

fn misuse(error: he::Error) -> Error {
    Error::misuse(error.to_string())
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientKey({:?})", self.secret)
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerKey({:?})", self.public)
    }
}
