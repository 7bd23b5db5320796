//! The ring Z\[X\]/(X^N + 1) mod several primes, and the order of its values.
//!
//! A polynomial mod a prime has N values, at the odd powers of a 2N-th root r. The
//! canonical order, of slots and of everything that is sent, has r^(3^j) at j in row 0
//! and its inverse at j in row 1, N/2 to a row. X -> X^(3^k) then turns both rows left by
//! k, and X -> X^-1 swaps them. Transforms have an order of their own that depends on
//! the machine: it is found by transforming X.

use std::collections::HashMap;

use ring::word::spread;
use ring::{Prg, Seed};

use crate::error::{Error, Result};
use crate::simd::Level;
use crate::simd::ntt::{Transform, power, root};

/// A prime 1 mod 2N below 2^50 and its transform.
pub(crate) struct Prime {
    pub(crate) value: u64,
    /// Bits of the prime.
    pub(crate) bits: u32,
    pub(crate) transform: Transform,
}

/// Between the order of a transform and that of slots.
pub(crate) struct Order {
    /// The slot of each value.
    slots: Vec<u32>,
    /// The value of each slot.
    places: Vec<u32>,
}

/// A permutation of slots that an automorphism of the ring makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Both rows left by so much.
    Left(usize),
    /// The rows change places.
    Swap,
}

/// All primes of a parameter set.
pub(crate) struct Ring {
    pub(crate) degree: usize,
    pub(crate) level: Level,
    pub(crate) primes: Vec<Prime>,
    pub(crate) order: Order,
}

impl Prime {
    pub(crate) fn new(value: u64, degree: usize, level: Level) -> Self {
        let bits = u64::BITS - value.leading_zeros();
        Self { value, bits, transform: Transform::new(level, degree, value) }
    }

    pub(crate) const fn float(&self) -> f64 {
        self.transform.prime()
    }

    /// 1/x.
    pub(crate) fn inverse(&self, x: u64) -> u64 {
        power(x % self.value, self.value - 2, self.value)
    }

    /// The product.
    pub(crate) fn product(&self, x: u64, y: u64) -> u64 {
        (u128::from(x) * u128::from(y) % u128::from(self.value)) as u64
    }

    /// The transform of X, mod the prime.
    fn of_x(&self) -> Vec<u64> {
        let mut values = vec![0.0; self.transform.degree()];
        values.iter_mut().skip(1).take(1).for_each(|x| *x = 1.0);
        self.transform.forward(&mut values);
        values.iter().map(|x| canonical(*x, self.value)).collect()
    }

    /// Its order.
    pub(crate) fn order(&self) -> Order {
        Order::of(&self.of_x(), root(self.transform.degree(), self.value), self.value)
    }

    /// Uniform values of a public seed: words of the prime's bits, those of the prime or
    /// more left out.
    pub(crate) fn uniform(&self, seed: &Seed, domain: u64, count: usize) -> Vec<u64> {
        let mut prg = Prg::new(seed, domain);
        let mut values = Vec::with_capacity(count);
        while values.len() < count {
            let words = prg.uniform(count - values.len(), self.bits);
            values.extend(words.into_iter().filter(|word| *word < self.value));
        }
        values
    }

    /// Integers below the prime, `places` telling where each comes from, centred.
    pub(crate) fn load(&self, out: &mut [f64], words: &[u64], places: &[u32]) {
        let half = self.value / 2;
        for (out, place) in out.iter_mut().zip(places) {
            let word = words.get(*place as usize).copied().unwrap_or_default();
            let above = spread(half.wrapping_sub(word) >> 63);
            *out = word.wrapping_sub(self.value & above) as i64 as f64;
        }
    }

    /// Centred values as integers below the prime, `places` telling where each comes
    /// from.
    pub(crate) fn store(&self, values: &[f64], places: &[u32]) -> Vec<u64> {
        let word = |place: &u32| {
            canonical(values.get(*place as usize).copied().unwrap_or_default(), self.value)
        };
        places.iter().map(word).collect()
    }

    /// Whether a peer's words are N integers below the prime.
    ///
    /// # Errors
    /// [`Error::Shape`] when they are not.
    pub(crate) fn check(&self, what: &'static str, words: &[u64]) -> Result<()> {
        let degree = self.transform.degree();
        if words.len() == degree && words.iter().all(|word| *word < self.value) {
            Ok(())
        } else {
            let wanted = format!("{degree} integers below {}", self.value);
            Err(Error::shape(what, wanted, format!("{} others", words.len())))
        }
    }
}

/// A residue of magnitude below the prime as an integer below it.
pub(crate) fn canonical(value: f64, prime: u64) -> u64 {
    let value = value as i64;
    (value as u64).wrapping_add(prime & (value >> 63) as u64)
}

impl Order {
    /// Of a transform that maps X to `values`, all of them odd powers of `root`.
    pub(crate) fn of(values: &[u64], root: u64, prime: u64) -> Self {
        let row = values.len() / 2;
        let cube = |x: &u64| Some(power(*x, 3, prime));
        let rows = [root, power(root, prime - 2, prime)];
        let powers = rows.into_iter().flat_map(|x| std::iter::successors(Some(x), cube).take(row));
        let slots: HashMap<u64, u32> = powers.zip(0..).collect();
        let slots: Vec<u32> =
            values.iter().map(|value| slots.get(value).copied().unwrap_or_default()).collect();
        Self { places: inverse(&slots), slots }
    }

    /// The slot of each value.
    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The value of each slot.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places
    }

    /// Where the values of a turned polynomial come from.
    pub(crate) fn turned(&self, turn: Turn) -> Vec<u32> {
        self.sources(turn).map(|slot| self.place(slot)).collect()
    }

    /// The slots where the values of a turned polynomial come from.
    pub(crate) fn sources(&self, turn: Turn) -> impl Iterator<Item = u32> {
        let row = self.slots.len() / 2;
        self.slots.iter().map(move |slot| turn.source(*slot as usize, row) as u32)
    }

    fn place(&self, slot: u32) -> u32 {
        self.places.get(slot as usize).copied().unwrap_or_default()
    }
}

fn inverse(slots: &[u32]) -> Vec<u32> {
    let mut places = vec![0; slots.len()];
    for (slot, place) in slots.iter().zip(0..) {
        if let Some(entry) = places.get_mut(*slot as usize) {
            *entry = place;
        }
    }
    places
}

impl Turn {
    /// The slot whose value comes to `slot`.
    pub(crate) const fn source(self, slot: usize, row: usize) -> usize {
        match self {
            Self::Left(step) => slot / row * row + (slot + step) % row,
            Self::Swap => (slot + row) % (2 * row),
        }
    }

    /// The turn back.
    pub(crate) const fn back(self, row: usize) -> Self {
        match self {
            Self::Left(step) => Self::Left(row - step),
            Self::Swap => Self::Swap,
        }
    }

    /// Tells turns apart in the domains of generators.
    pub(crate) const fn number(self, row: usize) -> usize {
        match self {
            Self::Left(step) => step,
            Self::Swap => row,
        }
    }
}

impl Ring {
    pub(crate) fn new(degree: usize, primes: &[u64], level: Level) -> Result<Self> {
        let primes: Vec<Prime> =
            primes.iter().map(|prime| Prime::new(*prime, degree, level)).collect();
        let order = primes.first().map(Prime::order);
        let order = order.ok_or_else(|| Error::shape("ciphertext primes", "at least one", 0))?;
        Ok(Self { degree, level, primes, order })
    }

    /// To the evaluation basis, the residues of each of the first primes in turn.
    pub(crate) fn forward(&self, values: &mut [f64]) {
        for (prime, values) in self.primes.iter().zip(values.chunks_exact_mut(self.degree)) {
            prime.transform.forward(values);
        }
    }

    /// Back to coefficients.
    pub(crate) fn backward(&self, values: &mut [f64]) {
        for (prime, values) in self.primes.iter().zip(values.chunks_exact_mut(self.degree)) {
            prime.transform.backward(values);
        }
    }
}

/// The domain of a generator of public values: what for, which key, digit and prime.
pub(crate) const fn domain(use_: &[u8; 4], key: usize, digit: usize, prime: usize) -> u64 {
    let tag = u32::from_le_bytes(*use_) as u64;
    tag | (key as u64 & 0xffff) << 32 | (digit as u64 & 0xff) << 48 | (prime as u64 & 0xff) << 56
}
