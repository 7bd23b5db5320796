//! The lattice half of base OTs: OTs out of ML-KEM-768, whose keys are hashed with those of the
//! classical half.
//!
//! | | |
//! |---|---|
//! | In | chooser: 128 choice bits |
//! | Out | offerer: 128 pairs of secrets; chooser: the chosen secret of each; both: a digest of all messages |
//! | Reveals | nothing: a masked key is pseudo-random whatever the choice |
//! | Security | malicious; module LWE as in ML-KEM-768 (FIPS 203), SHA-256 as random oracle, AES-256 as ideal cipher |
//! | Cost | 128 masked keys of 1232 bytes, then 256 capsules of 1088 |
//! | Paper | McQuoid, Rosulek, Roy, CCS 2020 (ePrint 2020/1043) and "Batching base oblivious transfers", ASIACRYPT 2021 (ePrint 2021/682): OT out of a key exchange and a function that can be programmed at one point; here out of a KEM, as Masny, Rindal, "Endemic oblivious transfer", CCS 2019 (ePrint 2019/706), appendix D.3, have it for Kyber |
//!
//! A masked key is a pair `(s, t)`, from which everybody computes two public keys: that of side `x` is
//! `s + H(x, t xor P(x, s))`. The chooser draws a key pair and `r`, and sets `s` to the key less `H(c, r)` and
//! `t` to `r xor P(c, s)`: it knows the secret key of its side, and the other key is out of its hands, since
//! `H` is asked for it after `s` is fixed. The offerer encapsulates a secret under both keys.

use std::fmt;

use libcrux_ml_kem::mlkem768::{
    MlKem768Ciphertext, MlKem768PrivateKey, decapsulate, encapsulate, generate_key_pair,
};
use ring::Prg;
use subtle::{Choice, ConditionallySelectable};
use wire::{Cost, Error, Message, Result, Role, tags};
use zeroize::{Zeroize, Zeroizing};

use super::COUNT;
use super::element::{BYTES as VECTOR, Element};
use crate::session::Domain;

/// Bytes of the seed of a key's matrix.
const MATRIX: usize = 32;
/// Bytes of `t`: the other side's key is out of the chooser's hands but for q^3 / 2^384 after q queries.
const TWEAK: usize = 48;
/// Bytes of a masked key.
pub(crate) const MASKED: usize = VECTOR + MATRIX + TWEAK;
/// Bytes of a capsule, an ML-KEM-768 ciphertext.
pub(crate) const CAPSULE: usize = 1088;
/// Bytes of a secret.
const SECRET: usize = 32;

type Tweak = [u8; TWEAK];

/// Secrets of one side of all OTs.
pub(super) type Secrets = Zeroizing<Vec<[u8; SECRET]>>;

/// Random oracle outputs of the lattice half, for one side of all OTs.
pub(super) struct Half {
    /// A secret for each OT.
    pub(super) secrets: Secrets,
    /// A digest of all messages of this half.
    pub(super) transcript: [u8; 32],
}

/// A public key without its mask.
#[derive(Clone, PartialEq, Eq)]
struct Masked {
    vector: Element,
    matrix: [u8; MATRIX],
    tweak: Tweak,
}

/// The chooser's masked keys.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keys(Vec<Masked>);

/// The offerer's capsules: one for each side of each OT.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Capsules(Vec<[[u8; CAPSULE]; 2]>);

/// The chooser, waiting for the [`Capsules`].
pub(crate) struct Chooser {
    secrets: Vec<SecretKey>,
    bits: Zeroizing<Vec<u8>>,
    /// A digest of the masked keys.
    said: [u8; 32],
}

/// Wiped on drop.
struct SecretKey(MlKem768PrivateKey);

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0[..MlKem768PrivateKey::len()].zeroize();
    }
}

/// Draws a key pair for each choice bit (0 or 1), and masks the public keys.
pub(super) fn choose(domain: &Domain, rng: &mut Prg, choices: &[u8]) -> (Chooser, Keys) {
    let (mut secrets, mut masked) = (Vec::new(), Vec::new());
    for (index, bit) in (0u64..).zip(choices) {
        let mut seed = Zeroizing::new([0; 64]);
        rng.fill(&mut *seed);
        let (secret, public) = generate_key_pair(*seed).into_parts();
        secrets.push(SecretKey(secret));
        let mut tweak = Zeroizing::new([0; TWEAK]);
        rng.fill(&mut *tweak);
        masked.push(Masked::new(domain, (index, *bit), public.as_slice(), &tweak));
    }
    let keys = Keys(masked);
    let said = keys.digest(domain, &keys.digests(domain));
    (Chooser { secrets, bits: Zeroizing::new(choices.to_vec()), said }, keys)
}

impl Chooser {
    /// The secrets of the chosen sides, and a digest of both messages.
    ///
    /// # Errors
    /// [`Error::Peer`] when there are not two capsules for each key.
    pub(super) fn finish(
        self,
        domain: &Domain,
        capsules: &Capsules,
    ) -> Result<(Secrets, [u8; 32])> {
        if capsules.0.len() != self.secrets.len() {
            let wanted = format!("{} pairs of capsules", self.secrets.len());
            return Err(Error::peer(wanted, format!("{capsules:?}")));
        }
        let chosen = |((secret, bit), [zero, one]): ((&SecretKey, &u8), &[[u8; CAPSULE]; 2])| {
            let mut capsule = *zero;
            for (byte, other) in capsule.iter_mut().zip(one) {
                byte.conditional_assign(other, Choice::from(*bit));
            }
            let capsule = Zeroizing::new(capsule);
            decapsulate(&secret.0, &MlKem768Ciphertext::from(&*capsule))
        };
        let keys = self.secrets.iter().zip(self.bits.iter());
        let secrets = keys.zip(&capsules.0).map(chosen).collect();
        Ok((Zeroizing::new(secrets), capsules.digest(domain, &self.said)))
    }
}

/// Encapsulates a secret under both keys of each OT; returns the secrets of side 0 and those of side 1, and a
/// digest of both messages.
///
/// # Errors
/// [`Error::Peer`] when there are not 128 keys.
pub(super) fn offer(
    domain: &Domain,
    rng: &mut Prg,
    keys: &Keys,
) -> Result<([Secrets; 2], Capsules, [u8; 32])> {
    if keys.0.len() != COUNT {
        return Err(Error::peer(format!("{COUNT} masked keys"), format!("{keys:?}")));
    }
    let said = keys.digests(domain);
    let mut secrets = [0, 1].map(|_| Zeroizing::new(Vec::with_capacity(COUNT)));
    let mut capsules = Vec::with_capacity(COUNT);
    for (index, (key, said)) in (0u64..).zip(keys.0.iter().zip(&said)) {
        capsules.push([0, 1].map(|side| {
            let mut seed = Zeroizing::new([0; SECRET]);
            rng.fill(&mut *seed);
            let public = key.open(domain, (index, side), said);
            let (capsule, secret) = encapsulate(&public.into(), *seed);
            secrets[usize::from(side)].push(secret);
            capsule.into()
        }));
    }
    let capsules = Capsules(capsules);
    let transcript = capsules.digest(domain, &keys.digest(domain, &said));
    Ok((secrets, capsules, transcript))
}

/// What [`Keys`] cost when `from` sends them.
pub(crate) fn keys_cost(from: Role) -> Cost {
    Cost::message(from, (COUNT * MASKED) as u64)
}

/// What [`Capsules`] cost when `from` sends them.
pub(crate) fn capsules_cost(from: Role) -> Cost {
    Cost::message(from, (2 * COUNT * CAPSULE) as u64)
}

impl Masked {
    /// Masks `public` so that it is the key of `side` of OT number `index`.
    fn new(
        domain: &Domain,
        (index, side): (u64, u8),
        public: &[u8; VECTOR + MATRIX],
        tweak: &Tweak,
    ) -> Self {
        let (mut key, mut matrix) = ([0; VECTOR], [0; MATRIX]);
        key.copy_from_slice(&public[..VECTOR]);
        matrix.copy_from_slice(&public[VECTOR..]);
        let vector = Element::read(&key).minus(&mask(domain, (index, side), tweak));
        let mut masked = Self { vector, matrix, tweak: *tweak };
        let pad = pad(domain, side, &masked.digest(domain, index));
        masked.tweak.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
        masked
    }

    /// The public key of `side` of OT number `index`; `said` is [`Masked::digest`].
    fn open(
        &self,
        domain: &Domain,
        (index, side): (u64, u8),
        said: &[u8; 32],
    ) -> [u8; VECTOR + MATRIX] {
        let pad = pad(domain, side, said);
        let tweak = std::array::from_fn(|at| self.tweak[at] ^ pad[at]);
        let vector = self.vector.plus(&mask(domain, (index, side), &tweak));
        let mut public = [0; VECTOR + MATRIX];
        public[..VECTOR].copy_from_slice(&vector.encode());
        public[VECTOR..].copy_from_slice(&self.matrix);
        public
    }

    /// A digest of all but the tweak.
    fn digest(&self, domain: &Domain, index: u64) -> [u8; 32] {
        let parts: [&[u8]; 3] = [&index.to_le_bytes(), &self.vector.encode(), &self.matrix];
        domain.digest(b"kem key ", &parts)
    }
}

/// What a side's key is masked with.
fn mask(domain: &Domain, (index, side): (u64, u8), tweak: &Tweak) -> Element {
    Element::expand(&domain.digest(b"kem mask", &[&index.to_le_bytes(), &[side], tweak]))
}

/// What a side's tweak is masked with; `said` names session, direction and OT.
fn pad(domain: &Domain, side: u8, said: &[u8; 32]) -> Tweak {
    let halves = [0, 1].map(|half| domain.digest(b"kem pad ", &[&[side, half], said]));
    let mut pad = [0; TWEAK];
    pad.copy_from_slice(&halves.as_flattened()[..TWEAK]);
    pad
}

impl Keys {
    /// Digests of the masked keys, tweaks left out.
    fn digests(&self, domain: &Domain) -> Vec<[u8; 32]> {
        (0..).zip(&self.0).map(|(index, key)| key.digest(domain, index)).collect()
    }

    /// A digest of the message, out of [`Keys::digests`].
    fn digest(&self, domain: &Domain, digests: &[[u8; 32]]) -> [u8; 32] {
        let tweaks: Vec<u8> = self.0.iter().flat_map(|key| key.tweak).collect();
        domain.digest(b"kem keys", &[digests.as_flattened(), &tweaks])
    }
}

impl Capsules {
    /// Changes one of them.
    #[cfg(test)]
    pub(super) fn spoil(&mut self) {
        self.0[3][1][500] ^= 1;
    }

    /// A digest of both messages, out of one of the keys.
    fn digest(&self, domain: &Domain, keys: &[u8; 32]) -> [u8; 32] {
        domain.digest(b"kem caps", &[keys, self.0.as_flattened().as_flattened()])
    }
}

impl Message for Keys {
    type Shape = usize;
    const TAG: u8 = tags::BASE_KEYS;

    fn bounds(count: &usize) -> (u64, u64) {
        let len = (count * MASKED) as u64;
        (len, len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for key in &self.0 {
            out.extend_from_slice(&key.vector.encode());
            out.extend_from_slice(&key.matrix);
            out.extend_from_slice(&key.tweak);
        }
    }

    fn decode(body: &[u8], count: &usize) -> Result<Self> {
        let (chunks, rest) = body.as_chunks::<MASKED>();
        if chunks.len() != *count || !rest.is_empty() {
            let got = format!("{} bytes", body.len());
            return Err(Error::peer(format!("{count} masked keys"), got));
        }
        let key = |bytes: &[u8; MASKED]| {
            let (mut vector, mut matrix, mut tweak) = ([0; VECTOR], [0; MATRIX], [0; TWEAK]);
            vector.copy_from_slice(&bytes[..VECTOR]);
            matrix.copy_from_slice(&bytes[VECTOR..VECTOR + MATRIX]);
            tweak.copy_from_slice(&bytes[VECTOR + MATRIX..]);
            let vector = Element::decode(&vector)
                .ok_or_else(|| Error::peer("coefficients below 3329", "a larger one"))?;
            Ok(Masked { vector, matrix, tweak })
        };
        chunks.iter().map(key).collect::<Result<_>>().map(Self)
    }
}

impl Message for Capsules {
    type Shape = usize;
    const TAG: u8 = tags::BASE_CAPSULES;

    fn bounds(count: &usize) -> (u64, u64) {
        let len = (count * 2 * CAPSULE) as u64;
        (len, len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_flattened().as_flattened());
    }

    fn decode(body: &[u8], count: &usize) -> Result<Self> {
        let (capsules, rest) = body.as_chunks::<CAPSULE>();
        let (pairs, odd) = capsules.as_chunks::<2>();
        if pairs.len() != *count || !rest.is_empty() || !odd.is_empty() {
            let got = format!("{} bytes", body.len());
            return Err(Error::peer(format!("{count} pairs of capsules"), got));
        }
        Ok(Self(pairs.to_vec()))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} masked keys", self.0.len())
    }
}

impl fmt::Debug for Capsules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs of capsules", self.0.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
