//! Slots, plaintext polynomials, and how these meet the ciphertext modulus.

use std::fmt;

use zeroize::Zeroizing;

use super::params::{Params, is_prime};
use super::ring::{Order, Prime};
use super::values::Values;
use super::wide;
use crate::error::{Error, Result};
use crate::simd::ntt::{Factor, root};
use crate::simd::{convert, residue};

/// Largest bits of a plaintext prime.
pub const PLAIN_BITS: u32 = 60;

/// A plaintext prime p, and the map between N slots mod p and polynomials.
pub struct Encoder {
    params: Params,
    prime: u64,
    basis: Basis,
    /// The product of the first so many ciphertext primes, mod p.
    moduli: Vec<u64>,
    /// -1/p mod each ciphertext prime.
    inverses: Vec<Factor>,
}

enum Basis {
    /// Below 2^50.
    Narrow(Prime, Order),
    Wide(wide::Transform, Order),
}

/// Centred coefficients mod p.
enum Coefficients {
    /// Below 2^49.
    Narrow(Values),
    Wide(Zeroizing<Vec<i64>>),
}

/// A plaintext that ciphertexts are multiplied by: values of the polynomial with centred
/// coefficients mod every ciphertext prime.
pub struct Plain {
    params: Params,
    pub(crate) values: Values,
}

impl Encoder {
    /// For a prime 1 mod 2N of at most [`PLAIN_BITS`] bits.
    ///
    /// # Errors
    /// [`Error::Shape`] for any other number or a ciphertext prime.
    pub fn new(params: &Params, prime: u64) -> Result<Self> {
        let degree = params.degree();
        let order = 2 * degree as u64;
        let taken = params.extended().any(|(_, other)| other.value == prime);
        if prime % order != 1 || prime >> PLAIN_BITS != 0 || taken || !is_prime(prime) {
            let wanted = format!("a prime 1 mod {order} below 2^60, not a ciphertext prime");
            return Err(Error::shape("plaintext prime", wanted, prime));
        }
        let next = |product: &mut u64, other: &Prime| {
            let reduced = u128::from(other.value % prime);
            *product = (u128::from(*product) * reduced % u128::from(prime)) as u64;
            Some(*product)
        };
        let moduli = params.primes().iter().scan(1, next).collect();
        let inverses = params.primes().iter().map(|other| {
            let negative = other.value - other.inverse(prime);
            Factor::new(negative, other.value)
        });
        let inverses = inverses.collect();
        Ok(Self {
            params: params.clone(),
            prime,
            basis: Basis::of(params, prime),
            moduli,
            inverses,
        })
    }

    /// Returns the smallest prime of at least 2^bits that is 1 mod 2N and no ciphertext prime.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer bits than 2N or more than 59.
    pub fn prime_above(params: &Params, bits: u32) -> Result<u64> {
        Self::prime_with(params, bits, 1)
    }

    /// Returns the prime of [`Encoder::prime_above`] that is also 1 mod the odd number `divisor`,
    /// so that there are roots of unity of that order.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer bits than 2N or more than 59, and when there is no such prime.
    pub fn prime_with(params: &Params, bits: u32, divisor: u64) -> Result<u64> {
        let order = 2 * params.degree() as u64;
        if !(order.ilog2()..PLAIN_BITS).contains(&bits) {
            let wanted = format!("{} to 59", order.ilog2());
            return Err(Error::shape("plaintext bits", wanted, bits));
        }
        let none = || Error::shape("plaintext bits", "those of a prime 1 mod 2N", bits);
        let step = order.checked_mul(divisor).filter(|step| (1..1 << 40).contains(step));
        let step = step.ok_or_else(none)?;
        let first = (1u64 << bits).div_ceil(step) * step + 1;
        let candidates = (0..1u64 << 16).map(|i| first + i * step);
        let mut small = candidates.take_while(|n| n >> PLAIN_BITS == 0);
        let taken = |n: u64| params.extended().any(|(_, other)| other.value == n);
        small.find(|n| is_prime(*n) && !taken(*n)).ok_or_else(none)
    }

    /// Returns the `count` smallest primes of at least 2^bits that are 1 mod 2N and no ciphertext
    /// primes, ascending: residues mod all of them stand for integers below their product.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer bits than 2N or more than 59, and when there are not so many.
    pub fn primes_above(params: &Params, bits: u32, count: usize) -> Result<Vec<u64>> {
        let first = Self::prime_above(params, bits)?;
        let order = 2 * params.degree();
        let taken = |n: &u64| params.extended().any(|(_, other)| other.value == *n);
        let candidates = (first..1 << PLAIN_BITS).step_by(order).take(1 << 16);
        let primes: Vec<u64> =
            candidates.filter(|n| is_prime(*n) && !taken(n)).take(count).collect();
        let enough = primes.len() == count;
        enough.then_some(primes).ok_or_else(|| Error::shape("plaintext primes", count, "fewer"))
    }

    /// Returns the plaintext prime p.
    pub const fn prime(&self) -> u64 {
        self.prime
    }

    /// Returns the number of bits of the plaintext prime.
    pub const fn bits(&self) -> u32 {
        u64::BITS - self.prime.leading_zeros()
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the polynomial with at most N `slots` below p (row 0, then row 1, the rest zero): N
    /// coefficients, centred.
    ///
    /// # Errors
    /// [`Error::Shape`] for too many slots or integers of p or more.
    pub fn encode(&self, slots: &[u64]) -> Result<Zeroizing<Vec<i64>>> {
        self.check(slots)?;
        Ok(match self.coefficients(slots, 1) {
            Coefficients::Narrow(x) => Zeroizing::new(x.iter().map(|x| *x as i64).collect()),
            Coefficients::Wide(x) => x,
        })
    }

    /// Returns the N slots below p of a polynomial with N coefficients below p.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of coefficients or integers of p or more.
    pub fn decode(&self, coefficients: &[u64]) -> Result<Zeroizing<Vec<u64>>> {
        crate::error::expect_len("coefficients", self.params.degree(), coefficients.len())?;
        self.check(coefficients)?;
        match &self.basis {
            Basis::Narrow(prime, order) => {
                let mut values = Values::zero(coefficients.len());
                let level = self.params.ring().level;
                convert::from_words(level, coefficients, self.prime, &mut values);
                prime.transform.forward(&mut values);
                Ok(Zeroizing::new(prime.store(&values, order.places())))
            }
            Basis::Wide(transform, order) => {
                let mut values = Zeroizing::new(coefficients.to_vec());
                transform.forward(&mut values);
                let slot = |place: &u32| values.get(*place as usize).copied().unwrap_or_default();
                Ok(Zeroizing::new(order.places().places().iter().map(slot).collect()))
            }
        }
    }

    /// Returns what ciphertexts are multiplied by.
    ///
    /// # Errors
    /// The errors of [`Encoder::encode`].
    pub fn plain(&self, slots: &[u64]) -> Result<Plain> {
        self.check(slots)?;
        let coefficients = self.coefficients(slots, 1);
        let (degree, level) = (self.params.degree(), self.params.ring().level);
        let mut plain = Plain::zero(&self.params);
        for (prime, values) in self.params.primes().iter().zip(plain.values.chunks_mut(degree)) {
            match &coefficients {
                Coefficients::Narrow(x) => residue::lift(level, prime.float(), values, x),
                Coefficients::Wide(x) => convert::residues(level, x, prime.value, values),
            }
        }
        self.params.ring().forward(&mut plain.values);
        Ok(plain)
    }

    /// Adds round(q*m/p) to `sums`, coefficients mod each of the first primes in turn,
    /// q being their product. The result is centred.
    ///
    /// With r the centred remainder of q*m by p that is (q*m - r)/p, mod every prime
    /// -r/p: there is no term of q mod p left.
    ///
    /// # Errors
    /// The errors of [`Encoder::encode`].
    pub(crate) fn add_scaled(&self, sums: &mut [f64], slots: &[u64]) -> Result<()> {
        self.check(slots)?;
        let (degree, level) = (self.params.degree(), self.params.ring().level);
        let count = sums.len() / degree;
        let modulus = self.moduli.get(count.wrapping_sub(1)).copied().unwrap_or_default();
        let remainders = self.coefficients(slots, modulus);
        let mut residues = Values::zero(degree);
        let primes = self.params.primes().iter().zip(&self.inverses);
        for ((prime, factor), sums) in primes.zip(sums.chunks_exact_mut(degree)) {
            let x = match &remainders {
                Coefficients::Narrow(x) => x,
                Coefficients::Wide(x) => {
                    convert::residues(level, x, prime.value, &mut residues);
                    &residues
                }
            };
            residue::add_scaled(level, prime.float(), sums, x, *factor);
        }
        Ok(())
    }

    /// The centred coefficients of `factor` times the polynomial with these slots.
    fn coefficients(&self, slots: &[u64], factor: u64) -> Coefficients {
        let degree = self.params.degree();
        match &self.basis {
            Basis::Narrow(prime, order) => {
                let mut values = Values::zero(degree);
                let mut all = Zeroizing::new(vec![0; degree]);
                all.iter_mut().zip(slots).for_each(|(to, slot)| *to = *slot);
                prime.load(&mut values, &all, order.slots());
                let factor = Factor::new(factor, self.prime);
                residue::scale(self.params.ring().level, prime.float(), &mut values, factor);
                prime.transform.backward(&mut values);
                Coefficients::Narrow(values)
            }
            Basis::Wide(transform, order) => {
                let value = |slot: &u32| slots.get(*slot as usize).copied().unwrap_or_default();
                let mut values: Zeroizing<Vec<u64>> =
                    Zeroizing::new(order.slots().places().iter().map(value).collect());
                transform.backward(&mut values);
                transform.scale(&mut values, factor);
                let half = self.prime / 2;
                let centred = |x: &u64| {
                    let above = ring::word::spread(half.wrapping_sub(*x) >> 63);
                    x.wrapping_sub(self.prime & above) as i64
                };
                Coefficients::Wide(Zeroizing::new(values.iter().map(centred).collect()))
            }
        }
    }

    fn check(&self, slots: &[u64]) -> Result<()> {
        let degree = self.params.degree();
        // Constant time: all are looked at, whichever is too large.
        let excess =
            slots.iter().fold(0, |any, slot| any | slot | (self.prime - 1).wrapping_sub(*slot));
        if slots.len() <= degree && excess >> 63 == 0 {
            Ok(())
        } else {
            let wanted = format!("at most {degree} integers below {}", self.prime);
            Err(Error::shape("slots", wanted, format!("{} others", slots.len())))
        }
    }
}

impl Basis {
    fn of(params: &Params, prime: u64) -> Self {
        let degree = params.degree();
        if prime >> 50 == 0 {
            let prime = Prime::new(prime, degree, params.ring().level);
            let order = prime.order();
            return Self::Narrow(prime, order);
        }
        let transform = wide::Transform::new(degree, prime);
        let mut x = vec![0; degree];
        x.iter_mut().skip(1).take(1).for_each(|x| *x = 1);
        transform.forward(&mut x);
        let order = Order::of(&x, root(degree, prime), prime);
        Self::Wide(transform, order)
    }
}

impl Plain {
    fn zero(params: &Params) -> Self {
        Self {
            params: params.clone(),
            values: Values::zero(params.degree() * params.primes().len()),
        }
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the memory that one takes, in bytes.
    pub fn bytes(params: &Params) -> usize {
        8 * params.degree() * params.primes().len()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoder({}, p = {})", self.params, self.prime)
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plain(<hidden>)")
    }
}
