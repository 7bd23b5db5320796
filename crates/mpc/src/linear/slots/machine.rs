//! What the protocols are written against: a machine that computes on ciphertexts and
//! counts what it does.

use std::sync::atomic::{AtomicUsize, Ordering};

use he::bfv::Params;
use wire::Result;

use crate::linear::lola;
use pricing::{Unit, Work};

/// Operations on ciphertexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Rotations of slots, each with a key switch.
    pub rotations: usize,
    /// Rotations among them that share the decomposition of their ciphertext.
    pub hoisted: usize,
    /// Products of a ciphertext and plain slots.
    pub multiplications: usize,
    /// Sums of two ciphertexts.
    pub additions: usize,
    /// Exchanges of the two rows of slots.
    pub swaps: usize,
}

impl Operations {
    /// Returns what they take under `params`.
    pub fn work(&self, params: &Params) -> Work {
        let counted = lola::Operations {
            hoisted: self.hoisted,
            rotations: self.rotations - self.hoisted.min(self.rotations) + self.swaps,
            plains: self.multiplications,
            ..lola::Operations::default()
        };
        Work::of(Unit::Slotted, 1e12 * counted.seconds(params, 0))
    }
}

impl std::ops::Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rotations: self.rotations + other.rotations,
            hoisted: self.hoisted + other.hoisted,
            multiplications: self.multiplications + other.multiplications,
            additions: self.additions + other.additions,
            swaps: self.swaps + other.swaps,
        }
    }
}

impl std::iter::Sum for Operations {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| sum + one)
    }
}

/// The place of weights: a diagonal, with all of its shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// The response.
    pub(super) response: usize,
    /// The input ciphertext.
    pub(super) piece: usize,
    /// The diagonal.
    pub(super) diagonal: usize,
}

/// Ciphertexts of one kind, and the weights that they are multiplied with.
pub(super) trait Evaluator: Sync {
    /// n slots, encrypted or not.
    type Cipher: Send + Sync;
    /// A ciphertext that is ready for several rotations.
    type Hoisted: Send + Sync;
    /// A sum of products that is being made.
    type Sum: Send + Sync;

    /// Prepares several rotations of `cipher`.
    fn hoist(&self, cipher: &Self::Cipher) -> Result<Self::Hoisted>;
    /// Rotates to the left by `step`: slot t becomes what slot t + step was.
    fn rotate_hoisted(&self, hoisted: &Self::Hoisted, step: usize) -> Result<Self::Cipher>;
    /// Rotates to the left by `step`.
    fn rotate(&self, cipher: &Self::Cipher, step: usize) -> Result<Self::Cipher>;
    /// A sum of nothing.
    fn sum(&self) -> Result<Self::Sum>;
    /// Adds the products of `factors` with the weights at `at`, one for each shift.
    fn multiply_add(&self, sum: &mut Self::Sum, factors: &[&Self::Cipher], at: At) -> Result<()>;
    /// The sum.
    fn finish(&self, sum: Self::Sum) -> Result<Self::Cipher>;
    /// Adds `other` to `cipher`.
    fn add(&self, cipher: &mut Self::Cipher, other: &Self::Cipher) -> Result<()>;
}

/// A sum of products and how many there are.
pub(super) struct Sum<E: Evaluator> {
    inner: E::Sum,
    terms: usize,
}

/// An evaluator that counts. It does everything itself: nothing is left uncounted.
pub(super) struct Machine<E> {
    evaluator: E,
    rotations: AtomicUsize,
    hoisted: AtomicUsize,
    multiplications: AtomicUsize,
    additions: AtomicUsize,
}

impl<E: Evaluator> Machine<E> {
    /// Nothing done yet.
    pub(super) fn new(evaluator: E) -> Self {
        let [rotations, hoisted, multiplications, additions] =
            std::array::from_fn(|_| AtomicUsize::new(0));
        Self { evaluator, rotations, hoisted, multiplications, additions }
    }

    /// What was done so far.
    pub(super) fn operations(&self) -> Operations {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Operations {
            rotations: read(&self.rotations),
            hoisted: read(&self.hoisted),
            multiplications: read(&self.multiplications),
            additions: read(&self.additions),
            swaps: 0,
        }
    }

    pub(super) fn hoist(&self, cipher: &E::Cipher) -> Result<E::Hoisted> {
        self.evaluator.hoist(cipher)
    }

    pub(super) fn rotate_hoisted(&self, hoisted: &E::Hoisted, step: usize) -> Result<E::Cipher> {
        count(&self.rotations, 1);
        count(&self.hoisted, 1);
        self.evaluator.rotate_hoisted(hoisted, step)
    }

    pub(super) fn rotate(&self, cipher: &E::Cipher, step: usize) -> Result<E::Cipher> {
        count(&self.rotations, 1);
        self.evaluator.rotate(cipher, step)
    }

    pub(super) fn sum(&self) -> Result<Sum<E>> {
        Ok(Sum { inner: self.evaluator.sum()?, terms: 0 })
    }

    pub(super) fn multiply_add(
        &self,
        sum: &mut Sum<E>,
        factors: &[&E::Cipher],
        at: At,
    ) -> Result<()> {
        count(&self.multiplications, factors.len());
        sum.terms += factors.len();
        self.evaluator.multiply_add(&mut sum.inner, factors, at)
    }

    pub(super) fn finish(&self, sum: Sum<E>) -> Result<E::Cipher> {
        count(&self.additions, sum.terms.saturating_sub(1));
        self.evaluator.finish(sum.inner)
    }

    pub(super) fn add(&self, cipher: &mut E::Cipher, other: &E::Cipher) -> Result<()> {
        count(&self.additions, 1);
        self.evaluator.add(cipher, other)
    }
}

fn count(counter: &AtomicUsize, by: usize) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// An evaluator without data: only the counts are of interest.
pub(super) struct Counting;

impl Evaluator for Counting {
    type Cipher = ();
    type Hoisted = ();
    type Sum = ();

    fn hoist(&self, (): &()) -> Result<()> {
        Ok(())
    }
    fn rotate_hoisted(&self, (): &(), _: usize) -> Result<()> {
        Ok(())
    }
    fn rotate(&self, (): &(), _: usize) -> Result<()> {
        Ok(())
    }
    fn sum(&self) -> Result<()> {
        Ok(())
    }
    fn multiply_add(&self, (): &mut (), _: &[&()], _: At) -> Result<()> {
        Ok(())
    }
    fn finish(&self, (): ()) -> Result<()> {
        Ok(())
    }
    fn add(&self, (): &mut (), (): &()) -> Result<()> {
        Ok(())
    }
}
