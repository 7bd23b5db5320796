//! Products of ciphertexts, and back from three halves to two.
//!
//! Both factors are extended to more primes, multiplied over the integers, scaled by p/q
//! and rounded; the third half is switched from s^2 to s.
//! Source: Halevi, Polyakov, Shoup (CT-RSA 2019), sections 2 and 4.

use std::fmt;

use ring::{Random, Seed};

use super::cipher::{Ciphertext, add};
use super::encoder::Encoder;
use super::extension::Extension;
use super::key::SecretKey;
use super::params::{Params, largest_primes};
use super::ring::{Ring, domain};
use super::switch::{Digits, Rows, SwitchKey, digits};
use super::values::Values;
use crate::error::{Result, expect_len};
use crate::simd::ntt::Factor;
use crate::simd::residue;

/// Separates the uniform halves of the key from every other use of a seed.
const PRODUCT: &[u8; 4] = b"bfvm";

/// Bits of the primes that factors are extended to: transforms mod larger ones reduce more
/// often.
const WIDE: u32 = 48;

/// A key that switches from s^2 to s.
pub struct RelinearizationKey {
    params: Params,
    key: SwitchKey,
}

/// Multiplies ciphertexts of some parameters and a plaintext prime.
pub struct Multiplier {
    params: Params,
    /// The primes that factors are extended to.
    wide: Ring,
    up: Extension,
    /// Extends p*x mod q, centred.
    remainder: Extension,
    down: Extension,
    /// For each wide prime the factors p and 1/q.
    scales: Vec<[Factor; 2]>,
}

/// A polynomial in the evaluation basis: mod the ciphertext primes, mod the wide ones.
struct Extended {
    narrow: Values,
    wide: Values,
}

impl RelinearizationKey {
    /// From the agreed seed and the bodies that the client sent.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other lengths, or integers beyond their primes.
    pub fn new(params: &Params, seed: &Seed, bodies: &[Vec<u64>]) -> Result<Self> {
        let segments = params.extended().count() * digits(params);
        expect_len("segments of the relinearization key", segments, bodies.len())?;
        let domain = |digit, prime| domain(PRODUCT, 0, digit, prime);
        let key = SwitchKey::new(params, params.ring().order.slots(), domain, seed, bodies)?;
        Ok(Self { params: params.clone(), key })
    }

    /// Returns the segments that are sent: integers, and bits of each.
    pub fn layout(params: &Params) -> Vec<(usize, u32)> {
        SwitchKey::layout(params)
    }

    /// Returns the integers to send, in the segments of [`RelinearizationKey::layout`].
    pub fn bodies(&self) -> Vec<Vec<u64>> {
        self.key.bodies(&self.params, self.params.ring().order.places())
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }
}

impl SecretKey {
    /// Returns the key for products. One for each seed.
    ///
    /// # Errors
    /// None for parameters that exist.
    pub fn relinearization_key(&self, seed: &Seed, rng: &mut Random) -> Result<RelinearizationKey> {
        let target = |i: usize| {
            let secret = self.at(i);
            let mut square = Values::zero(secret.len());
            if let Some(prime) = self.params().ring().primes.get(i) {
                let level = self.params().ring().level;
                residue::multiply(level, prime.float(), &mut square, secret, secret);
            }
            square
        };
        let domain = |digit, prime| domain(PRODUCT, 0, digit, prime);
        RelinearizationKey::new(self.params(), seed, &self.switch_key(target, domain, seed, rng))
    }
}

impl Multiplier {
    /// For ciphertexts of these parameters, those of the encoder or with fewer primes.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for parameters of another ring, or when there are not
    /// enough primes.
    pub fn new(params: &Params, encoder: &Encoder) -> Result<Self> {
        encoder.params().check_covers("encoder parameters", params)?;
        let (degree, level) = (params.degree(), params.ring().level);
        // Of p*N*q each product with p/q is less than half.
        let bits = params.modulus_bits() + encoder.bits() + degree.ilog2() + 1;
        let count = bits.div_ceil(WIDE - 1) as usize;
        let taken: Vec<u64> = params.ring().primes.iter().map(|prime| prime.value).collect();
        let wide = Ring::new(degree, &largest_primes(degree, &vec![WIDE; count], &taken)?, level)?;
        let (narrow, prime) = (params.primes(), encoder.prime());
        let scale = |wide: &super::ring::Prime| {
            let modulus =
                narrow.iter().fold(1, |x, other| wide.product(x, other.value % wide.value));
            let factors = [prime % wide.value, wide.inverse(modulus)];
            factors.map(|x| Factor::new(x, wide.value))
        };
        Ok(Self {
            up: Extension::new(level, narrow, &wide.primes, 1),
            remainder: Extension::new(level, narrow, &wide.primes, prime),
            down: Extension::new(level, &wide.primes, narrow, 1),
            scales: wide.primes.iter().map(scale).collect(),
            params: params.clone(),
            wide,
        })
    }

    /// Returns the product of two ciphertexts, slot by slot.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn multiply(
        &self,
        a: &Ciphertext,
        b: &Ciphertext,
        key: &RelinearizationKey,
    ) -> Result<Ciphertext> {
        self.check(a, key)?;
        self.check(b, key)?;
        let [a0, a1] = a.halves.each_ref().map(|half| self.extend(half));
        let [b0, b1] = b.halves.each_ref().map(|half| self.extend(half));
        let mut cross = self.tensor(&a0, &b1);
        self.add(&mut cross, &self.tensor(&a1, &b0));
        Ok(self.finish([self.tensor(&a0, &b0), cross, self.tensor(&a1, &b1)], key))
    }

    /// Returns the square of a ciphertext, slot by slot.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn square(&self, a: &Ciphertext, key: &RelinearizationKey) -> Result<Ciphertext> {
        self.check(a, key)?;
        let [a0, a1] = a.halves.each_ref().map(|half| self.extend(half));
        let mut cross = self.tensor(&a0, &a1);
        double(self.params.ring(), &mut cross.narrow);
        double(&self.wide, &mut cross.wide);
        Ok(self.finish([self.tensor(&a0, &a0), cross, self.tensor(&a1, &a1)], key))
    }

    fn check(&self, cipher: &Ciphertext, key: &RelinearizationKey) -> Result<()> {
        self.params.check("ciphertext parameters", &cipher.params)?;
        key.params.check_covers("relinearization key parameters", &cipher.params)
    }

    fn extend(&self, half: &Values) -> Extended {
        let mut coefficients = half.clone();
        self.params.ring().backward(&mut coefficients);
        let mut wide = self.up.apply(&mut coefficients);
        self.wide.forward(&mut wide);
        Extended { narrow: half.clone(), wide }
    }

    fn tensor(&self, a: &Extended, b: &Extended) -> Extended {
        Extended {
            narrow: multiply(self.params.ring(), &a.narrow, &b.narrow),
            wide: multiply(&self.wide, &a.wide, &b.wide),
        }
    }

    fn add(&self, sum: &mut Extended, other: &Extended) {
        let degree = self.params.degree();
        add(&self.params, &mut sum.narrow, &other.narrow);
        let parts = sum.wide.chunks_exact_mut(degree).zip(other.wide.chunks_exact(degree));
        for (prime, (sum, other)) in self.wide.primes.iter().zip(parts) {
            residue::add(self.wide.level, prime.float(), sum, other);
        }
    }

    /// Scales, rounds and switches the last half.
    fn finish(&self, tensor: [Extended; 3], key: &RelinearizationKey) -> Ciphertext {
        let [mut c0, mut c1, c2] = tensor.map(|half| self.scale(half));
        let ring = self.params.ring();
        ring.forward(&mut c0);
        ring.forward(&mut c1);
        let digits = Digits::of_coefficients(&self.params, c2);
        let mut halves = Rows::once(&digits, None).switch(&self.params, &key.key, &c0);
        add(&self.params, &mut halves[1], &c1);
        Ciphertext { params: self.params.clone(), halves }
    }

    /// round(p*x/q) mod the ciphertext primes, coefficients: with r the centred remainder
    /// of p*x by q it is (p*x - r)/q mod the wide primes.
    fn scale(&self, mut x: Extended) -> Values {
        let degree = self.params.degree();
        self.params.ring().backward(&mut x.narrow);
        self.wide.backward(&mut x.wide);
        let remainder = self.remainder.apply(&mut x.narrow);
        let mut scaled = Values::zero(x.wide.len());
        let parts = x.wide.chunks_exact_mut(degree).zip(remainder.chunks_exact(degree));
        let outs = scaled.chunks_exact_mut(degree).zip(parts);
        for ((prime, [plain, inverse]), (out, (x, r))) in
            self.wide.primes.iter().zip(&self.scales).zip(outs)
        {
            residue::scale(self.wide.level, prime.float(), x, *plain);
            residue::scale_difference(self.wide.level, prime.float(), out, x, r, *inverse);
        }
        self.down.apply(&mut scaled)
    }
}

fn multiply(ring: &Ring, a: &[f64], b: &[f64]) -> Values {
    let mut out = Values::zero(a.len());
    let factors = a.chunks_exact(ring.degree).zip(b.chunks_exact(ring.degree));
    let parts = out.chunks_exact_mut(ring.degree).zip(factors);
    for (prime, (out, (a, b))) in ring.primes.iter().zip(parts) {
        residue::multiply(ring.level, prime.float(), out, a, b);
    }
    out
}

fn double(ring: &Ring, values: &mut [f64]) {
    for (prime, part) in ring.primes.iter().zip(values.chunks_exact_mut(ring.degree)) {
        residue::scale(ring.level, prime.float(), part, Factor::new(2, prime.value));
    }
}

impl fmt::Debug for RelinearizationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelinearizationKey({})", self.params)
    }
}

impl fmt::Debug for Multiplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Multiplier({})", self.params)
    }
}
