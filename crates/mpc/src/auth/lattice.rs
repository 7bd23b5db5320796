//! A secret key of RLWE to which the client commits, and tags of phases under it.
//!
//! | | |
//! |---|---|
//! | In | `8*N` correlated OTs; the agreed seed of the public key |
//! | Out | the client: its key; the server: the public key; both: what gives tags of phases, and a relation for the check |
//! | Reveals | corrections, masked by random choices; the public key |
//! | Security | the secret is ternary whatever the client sends, being a difference of two committed bits a coefficient; errors of the public key are in -32 to 31 once the relation has been checked |
//! | Cost | up `8*N` bits and `N*K` bits; down `2*N*(K+40)` bits and `N*(6*(K+40) - 15)` bits for words of tags ([`key_cost`]) |
//! | Paper | this project |

use std::fmt;

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use he::rlwe::committed::{ERROR_BITS, LEAST_ERROR, Multiplicand};
use he::rlwe::{Params, PublicKey, SecretKey};
use ot::{ReceiverBatch, SenderBatch};
use ring::{Bits, Random, Seed};
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::commit::{accept, commit, commit_cost};
use super::tag::{tag_client, tag_cost, tag_server};
use super::values::{Keys, Values};

/// Client to server: the body of the public key.
type Body = Packed<{ tags::COMMITTED_KEY }>;

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

/// Commits to a fresh secret and sends its public key. `seed` is that of the uniform half and comes
/// from a hash of both parties' nonces.
///
/// # Errors
/// [`Error::Internal`] for another number of correlations, [`Error::Peer`], [`Error::Transport`].
pub fn commit_key(
    ch: &mut Channel,
    ots: ReceiverBatch,
    params: Params,
    seed: &Seed,
    rng: &mut Random,
) -> Result<ClientKey> {
    let secret = SecretKey::generate(params, rng).map_err(misuse)?;
    let (public, errors) = secret.public_key_with_errors(seed, rng).map_err(misuse)?;
    commit_secret(ch, ots, (secret, public.body().to_vec()), &errors, seed)
}

/// [`commit_key`] with a secret, a body of the public key and the errors that are said to be its.
pub(super) fn commit_secret(
    ch: &mut Channel,
    mut ots: ReceiverBatch,
    (secret, body): (SecretKey, Vec<u64>),
    errors: &[i64],
    seed: &Seed,
) -> Result<ClientKey> {
    let params = secret.params();
    let [of_signs, of_errors] = plans(params)?;
    let ternary = secret.ternary().map_err(misuse)?;
    let signs = Zeroizing::new(signs(&ternary));
    let moved: Zeroizing<Vec<u64>> =
        Zeroizing::new(errors.iter().map(|e| (e - LEAST_ERROR) as u64).collect());
    let planes = (0..ERROR_BITS).map(|bit| Bits::of_words(&moved, bit)).collect();
    let (first, second) = (ots.split_off(of_signs.labels()), ots);
    let signs = commit(ch, first, vec![Bits::clone(&signs)])?;
    let errors = commit(ch, second, planes)?;
    ch.send(&Body::one(body.clone(), params.modulus_bits()))?;
    let signs = tag_client(ch, &of_signs, &signs)?;
    let errors = tag_client(ch, &of_errors, &errors)?;
    let coefficients = signs.linear(differences);
    let multiplied = |words: &[u128]| Multiplicand::new(words, coefficients.modulus());
    let values = multiplied(&coefficients.values).map_err(misuse)?;
    let tags = multiplied(&coefficients.tags).map_err(misuse)?;
    let modulus = coefficients.modulus();
    let mut key = ClientKey { secret, values, tags, modulus, relation: errors };
    let keep: Vec<usize> = (0..params.degree()).collect();
    let a = PublicKey::uniform_half(params, seed);
    let phases = key.phases(&a, params.modulus_bits(), &keep, &body)?;
    key.relation = phases.less(&key.relation)?.plus(&vec![offset(); params.degree()]);
    Ok(key)
}

/// Accepts the client's commitment to its secret.
///
/// # Errors
/// [`Error::Internal`] for another number of correlations, [`Error::Peer`], [`Error::Transport`].
pub fn accept_key(
    ch: &mut Channel,
    mut ots: SenderBatch,
    params: Params,
    seed: &Seed,
    keys: &MacKeys,
    rng: &mut Random,
) -> Result<ServerKey> {
    let ([of_signs, of_errors], degree) = (plans(params)?, params.degree());
    let (first, second) = (ots.split_off(of_signs.labels()), ots);
    let signs = accept(ch, first, 1, 2 * degree)?;
    let errors = accept(ch, second, ERROR_BITS as usize, degree)?;
    let body: Body = ch.receive(&vec![layout(params)])?;
    let body = body.concat();
    let public = PublicKey::new(params, seed, body.clone());
    let public = public.map_err(|error| Error::peer("a public key", error.to_string()))?;
    let signs = tag_server(ch, &of_signs, keys, &signs, rng)?;
    let errors = tag_server(ch, &of_errors, keys, &errors, rng)?;
    let coefficients = signs.linear(differences);
    let betas = Multiplicand::new(&coefficients.betas, coefficients.modulus()).map_err(misuse)?;
    let modulus = coefficients.modulus();
    let mut key = ServerKey { public, betas, modulus, relation: errors };
    let keep: Vec<usize> = (0..degree).collect();
    let a = PublicKey::uniform_half(params, seed);
    let phases = key.phases(&a, params.modulus_bits(), &keep, (&body, keys))?;
    key.relation = phases.less(&key.relation)?.plus(&vec![offset(); degree], keys);
    Ok(key)
}

/// Returns the correlations that a commitment takes: 8 for each coefficient.
pub const fn key_ots(params: Params) -> usize {
    (2 + ERROR_BITS as usize) * params.degree()
}

/// Returns what [`commit_key`] costs.
///
/// # Errors
/// None for parameters that exist.
pub fn key_cost(params: Params) -> Result<Cost> {
    let [signs, errors] = plans(params)?;
    Ok(commit_cost(1, 2 * params.degree())
        .then(commit_cost(ERROR_BITS as usize, params.degree()))
        .then(Cost::message(Role::Client, Body::body_len(&[layout(params)])))
        .then(tag_cost(&signs))
        .then(tag_cost(&errors)))
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
