//! Polynomials in X^step, whose transforms have `step` equal values each and are kept once.
//!
//! The first levels of such a transform are those of one of the smaller degree N/step by the same roots, and
//! the others only repeat values: a polynomial of weights is transformed in the time of a short one.

use std::ops::Range;
use std::sync::OnceLock;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::ntt::{Kernel, PRIMES, Transformed};
use crate::simd::convert;
use crate::simd::ntt::Transform;

/// Logarithms of the degrees of smaller transforms.
const SMALLER: Range<u32> = 5..12;

/// Transforms of smaller degrees for both primes, by the logarithm of the degree, built on first use.
#[derive(Default)]
pub(super) struct Smaller([OnceLock<[Transform; 2]>; SMALLER.end as usize]);

/// A polynomial in X^step in the evaluation basis: one of `step` equal values each.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Compact {
    pub(super) residues: Vec<Vec<f64>>,
    pub(super) step: usize,
}

impl Kernel {
    /// [`Kernel::signed`] for both primes, of a polynomial in X^step, `step` a power of two, of which these are
    /// the coefficients of the powers of X^step.
    pub(crate) fn compact(&self, coefficients: &[i64], step: usize) -> Compact {
        let mut compact = Compact { residues: Vec::new(), step };
        self.compact_again(coefficients, &mut compact);
        compact
    }

    /// [`Kernel::compact`] over another polynomial in the same power of X, whose memory it takes.
    ///
    /// The first levels of its transform are those of a transform of the smaller degree by the same roots, and
    /// the others only repeat values.
    pub(super) fn compact_again(&self, coefficients: &[i64], compact: &mut Compact) {
        let Some(transforms) = self.of_degree(coefficients.len()) else {
            *compact = self.compact_of_whole(coefficients, compact.step);
            return;
        };
        let mut turned = Zeroizing::new(vec![0.0; coefficients.len()]);
        compact.residues.resize_with(transforms.len(), Vec::new);
        for (transform, residues) in transforms.iter().zip(&mut compact.residues) {
            convert::small(self.level, coefficients, &mut turned);
            transform.forward(&mut turned);
            residues.resize(turned.len(), 0.0);
            for (place, value) in turned.iter().enumerate() {
                if let Some(residue) = residues.get_mut(transform.block_of(place, 1)) {
                    *residue = *value;
                }
            }
        }
    }

    /// The transforms of a smaller degree that is a power of two, where there are some.
    fn of_degree(&self, degree: usize) -> Option<&[Transform; 2]> {
        let bits = degree.checked_ilog2().filter(|bits| SMALLER.contains(bits))?;
        let level = self.level.for_degree(degree);
        let build = || PRIMES.map(|prime| Transform::new(level, degree, prime));
        self.smaller.0.get(bits as usize).map(|cell| cell.get_or_init(build))
    }

    /// [`Kernel::compact`] by the transform of the ring's degree.
    fn compact_of_whole(&self, coefficients: &[i64], step: usize) -> Compact {
        let mut all = vec![0; coefficients.len() * step];
        all.iter_mut().step_by(step).zip(coefficients).for_each(|(to, from)| *to = *from);
        let whole = self.signed(&all, PRIMES.len());
        all.zeroize();
        let residues = self.transforms.iter().zip(&whole.residues).map(|(transform, whole)| {
            let mut residues = vec![0.0; whole.len() / step];
            for (place, value) in whole.iter().enumerate() {
                if let Some(residue) = residues.get_mut(transform.block_of(place, step)) {
                    *residue = *value;
                }
            }
            residues
        });
        Compact { residues: residues.collect(), step }
    }

    /// The whole of a polynomial in X^step, written over `whole`.
    pub(crate) fn expand(&self, compact: &Compact, whole: &mut Transformed) {
        let transforms = self.transforms.iter().zip(&compact.residues);
        for ((transform, residues), whole) in transforms.zip(&mut whole.residues) {
            transform.spread(residues, compact.step, whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::Random;
    use ring::word::signed;

    use crate::rlwe::ntt::tests::kernels;

    #[test]
    fn polynomials_in_a_power_are_kept_compact() {
        let mut rng = Random::seeded(9);
        for (degree, step) in
            [(2048, 2), (2048, 16), (2048, 32), (2048, 64), (4096, 128), (2048, 128)]
        {
            for (_, kernel) in kernels(degree) {
                let words = rng.uniform(degree / step, 20);
                let powers: Vec<i64> = words.into_iter().map(|w| signed(w, 20)).collect();
                let mut values = vec![0; degree];
                values.iter_mut().step_by(step).zip(&powers).for_each(|(v, w)| *v = *w);
                let compact = kernel.compact(&powers, step);
                assert_eq!(compact.residues.iter().map(Vec::len).sum::<usize>(), 2 * degree / step);
                let mut whole = kernel.blank();
                kernel.expand(&compact, &mut whole);
                assert_eq!(whole.residues, kernel.signed(&values, 2).residues);
            }
        }
    }
}
