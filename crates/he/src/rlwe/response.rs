//! The server's answer: re-randomised, masked, shortened.

use std::fmt;

use ring::Random;
use ring::word::mask;
use zeroize::Zeroizing;

use super::cipher::Ciphertext;
use super::key::PublicKey;
use super::ntt::Kernel;
use super::sample;
use crate::error::{Error, Result};

/// Samples of e0.
type Sampler = fn(&mut Random, usize) -> Zeroizing<Vec<i64>>;

/// What the client gets: N integers of K' bits and one more per kept coefficient.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The half that the secret multiplies: N integers mod 2^K'.
    pub c1: Vec<u64>,
    /// The masked half, kept coefficients only, mod 2^K'.
    pub c0: Vec<u64>,
    /// K', at most the modulus bits.
    pub bits: u32,
}

impl Ciphertext {
    /// Answers with the coefficients `keep` (ascending) at `bits` = K' bits, and
    /// returns the mask R mod 2^K at these coefficients.
    ///
    /// Adds a fresh encryption of zero (u ternary, e1 of deviation 3.2, e0 of
    /// deviation 2^12) and R. A coefficient of c0 that is not kept never leaves, so
    /// neither its mask nor its error is drawn. c1 is rounded to K' bits; c0 is
    /// floored, which together with [`super::rescale`] makes the rescaled result's
    /// expected error exactly zero.
    ///
    /// # Errors
    /// [`Error::Shape`] for a key of another degree or a smaller modulus, a `keep`
    /// that is empty, out of range or out of order, or a wrong width. There is no
    /// way to get a response that is not re-randomised.
    pub fn respond(
        self,
        key: &PublicKey,
        keep: &[usize],
        bits: u32,
        rng: &mut Random,
    ) -> Result<(Response, Zeroizing<Vec<u64>>)> {
        self.respond_with(key, keep, bits, (sample::wide, rng))
    }

    /// [`Ciphertext::respond`] with an e0 of deviation 2^18, which makes the noise a coarse hint whatever the
    /// errors of the public key are, as long as they are from -32 to 31.
    ///
    /// # Errors
    /// As [`Ciphertext::respond`].
    pub fn respond_covered(
        self,
        key: &PublicKey,
        keep: &[usize],
        bits: u32,
        rng: &mut Random,
    ) -> Result<(Response, Zeroizing<Vec<u64>>)> {
        self.respond_with(key, keep, bits, (sample::cover, rng))
    }

    fn respond_with(
        self,
        key: &PublicKey,
        keep: &[usize],
        bits: u32,
        (wide, rng): (Sampler, &mut Random),
    ) -> Result<(Response, Zeroizing<Vec<u64>>)> {
        self.params.check_within(&key.params())?;
        self.params.check_bits("response bits", bits)?;
        let degree = self.params.degree();
        check_keep(keep, degree)?;
        let kernel = Kernel::of(degree)?;
        let u = kernel.signed(&sample::ternary(rng, degree), key.a.primes());
        let blind = |half| kernel.product(half, &u, degree as u64).map(Zeroizing::new);
        let (blind0, blind1) = (blind(&key.b)?, blind(&key.a)?);
        let c1 = self.shorten_c1(&blind1, bits, rng);
        let (c0, hidden) = self.shorten_c0(&blind0, keep, bits, (wide, rng));
        Ok((Response { c1, c0, bits }, hidden))
    }

    fn shorten_c1(&self, blind: &[u64], bits: u32, rng: &mut Random) -> Vec<u64> {
        let modulus_bits = self.params.modulus_bits();
        let drop = modulus_bits - bits;
        let half = (1u64 << drop) >> 1;
        let error = sample::narrow(rng, self.c1.len());
        let terms = self.c1.iter().zip(blind).zip(error.iter());
        let sums = terms.map(|((c, b), e)| c.wrapping_add(*b).wrapping_add(*e as u64));
        sums.map(|sum| (sum.wrapping_add(half) & mask(modulus_bits)) >> drop).collect()
    }

    fn shorten_c0(
        &self,
        blind: &[u64],
        keep: &[usize],
        bits: u32,
        (wide, rng): (Sampler, &mut Random),
    ) -> (Vec<u64>, Zeroizing<Vec<u64>>) {
        let modulus_bits = self.params.modulus_bits();
        let hidden = sample::uniform(rng, keep.len(), modulus_bits);
        let error = wide(rng, keep.len());
        let terms = keep.iter().zip(hidden.iter()).zip(error.iter());
        let sums = terms.map(|((index, r), e)| {
            let at = |half: &[u64]| half.get(*index).copied().unwrap_or_default();
            at(&self.c0).wrapping_add(at(blind)).wrapping_add(*e as u64).wrapping_add(*r)
        });
        let c0 = sums.map(|sum| (sum & mask(modulus_bits)) >> (modulus_bits - bits)).collect();
        (c0, hidden)
    }
}

fn check_keep(keep: &[usize], degree: usize) -> Result<()> {
    let ascending = keep.windows(2).all(|pair| pair[0] < pair[1]);
    match keep.last() {
        Some(last) if ascending && *last < degree => Ok(()),
        _ => Err(Error::shape(
            "kept coefficients",
            format!("ascending indices below {degree}, at least one"),
            format!("{} indices", keep.len()),
        )),
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Response(<{} coefficients of {} bits>)", self.c0.len(), self.bits)
    }
}
