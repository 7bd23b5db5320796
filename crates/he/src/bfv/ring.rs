//! The ring Z\[X\]/(X^N + 1) mod several primes, and the order of its values.
//!
//! A polynomial mod a prime has N values, at the odd powers of a 2N-th root r. The
//! canonical order, of slots and of everything that is sent, has r^(3^j) at j in row 0
//! and its inverse at j in row 1, N/2 to a row. X -> X^(3^k) then turns both rows left by
//! k, and X -> X^-1 swaps them. Transforms have an order of their own that depends on
//! the machine: it is found by transforming X.

use std::collections::HashMap;

use ring::{Prg, Seed};

use super::values::Values;
use crate::error::{Error, Result};
use crate::simd::ntt::{Transform, power, root};
use crate::simd::residue::{self, Permutation};
use crate::simd::{Level, convert};

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
    slots: Permutation,
    /// The value of each slot.
    places: Permutation,
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

    /// The order in which the prime's transform leaves the values.
    pub(crate) fn order(&self) -> Order {
        Order::of(&self.of_x(), root(self.transform.degree(), self.value), self.value)
    }

    /// Uniform values of a public seed: words of the prime's bits, those of the prime or
    /// more left out.
    pub(crate) fn uniform(&self, seed: &Seed, domain: u64, count: usize) -> Vec<u64> {
        let mut prg = Prg::new(seed, domain);
        let mut values = prg.uniform(count, self.bits);
        // Mostly there is nothing to leave out.
        while values.len() < count || values.iter().any(|word| *word >= self.value) {
            values.retain(|word| *word < self.value);
            values.extend(prg.uniform(count - values.len(), self.bits));
        }
        values
    }

    /// Integers below the prime, centred; `places` tells where each comes from.
    pub(crate) fn load(&self, out: &mut [f64], words: &[u64], places: &Permutation) {
        let level = self.transform.level();
        let mut centred = Values::zero(words.len());
        convert::from_words(level, words, self.value, &mut centred);
        residue::gather(out, &centred, places);
    }

    /// Centred values as integers below the prime; `places` tells where each comes from.
    pub(crate) fn store(&self, values: &[f64], places: &Permutation) -> Vec<u64> {
        let level = self.transform.level();
        let mut ordered = Values::zero(values.len());
        residue::gather(&mut ordered, values, places);
        let mut words = vec![0; values.len()];
        convert::to_words(level, &ordered, self.value, &mut words);
        words
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

/// A residue of magnitude below the prime as an integer below it. In constant time: the operator
/// `as` would compare the residue with the bounds of an i64.
pub(crate) fn canonical(value: f64, prime: u64) -> u64 {
    /// With integers below 2^51 in magnitude added, the low bits tell them.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    let integer = (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits());
    integer.wrapping_add(prime & ((integer as i64) >> 63) as u64)
}

impl Order {
    /// The order of a transform that maps X to `values`, all of them odd powers of `root`.
    pub(crate) fn of(values: &[u64], root: u64, prime: u64) -> Self {
        let row = values.len() / 2;
        let cube = |x: &u64| Some(power(*x, 3, prime));
        let rows = [root, power(root, prime - 2, prime)];
        let powers = rows.into_iter().flat_map(|x| std::iter::successors(Some(x), cube).take(row));
        let slots: HashMap<u64, u32> = powers.zip(0..).collect();
        let slots: Vec<u32> =
            values.iter().map(|value| slots.get(value).copied().unwrap_or_default()).collect();
        let places = inverse(slots.iter().copied());
        Self { places: Permutation::new(places), slots: Permutation::new(slots) }
    }

    /// The slot of each value.
    pub(crate) const fn slots(&self) -> &Permutation {
        &self.slots
    }

    /// The value of each slot.
    pub(crate) const fn places(&self) -> &Permutation {
        &self.places
    }

    /// Where the values of a turned polynomial come from.
    pub(crate) fn turned(&self, turn: Turn) -> Permutation {
        let place = |slot: u32| self.places.places().get(slot as usize).copied();
        Permutation::new(self.sources(turn).filter_map(place).collect())
    }

    /// The slots where the values of a turned polynomial come from, and for every slot the
    /// value that it goes to.
    pub(crate) fn turned_slots(&self, turn: Turn) -> [Permutation; 2] {
        let slots = self.sources(turn).collect();
        let places = inverse(self.sources(turn));
        [slots, places].map(Permutation::new)
    }

    fn sources(&self, turn: Turn) -> impl ExactSizeIterator<Item = u32> {
        let slots = self.slots.places();
        slots.iter().map(move |slot| turn.source(*slot as usize, slots.len() / 2) as u32)
    }
}

fn inverse(permutation: impl ExactSizeIterator<Item = u32>) -> Vec<u32> {
    let mut inverse = vec![0; permutation.len()];
    for (to, from) in permutation.zip(0..) {
        if let Some(entry) = inverse.get_mut(to as usize) {
            *entry = from;
        }
    }
    inverse
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
