//! Products of several ciphertexts and polynomials in a power of X, added to a sum together.
//!
//! Ciphertexts lie beside each other block by block, and so do weights, so that both are read in order: where many
//! sums take products of the same ciphertexts, memory bounds them.

use std::ops::Range;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::cipher::{Accumulator, Operand, Stored, Weights};
use super::compact::Compact;
use super::ntt::Kernel;
use super::params::Params;
use crate::error::{Error, Result};
use crate::simd::ntt::many::{BLOCK, Factors, LEAST_SIZE, each};

/// Values of a transform that are worked on together: of so few that those of the ciphertexts stay in the
/// second-level cache.
const PART: usize = 512;

/// Ciphertexts in the evaluation basis that are multiplied together.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Batch {
    #[zeroize(skip)]
    params: Params,
    count: usize,
    bits: u32,
    /// The values of c0 and c1 mod both primes. In each block one ciphertext follows the other.
    values: [[Vec<f64>; 2]; 2],
}

/// One polynomial in X^step for each ciphertext of a batch, in the evaluation basis.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Row {
    count: usize,
    step: usize,
    /// The sum of the L1 norms.
    norm: u64,
    /// For both primes: for each block the values that differ, one polynomial after the other.
    values: [Vec<f64>; 2],
}

impl Batch {
    /// Puts ciphertexts of one kind beside each other.
    ///
    /// # Errors
    /// [`Error::Shape`] for ciphertexts of other parameters, or known mod one prime only.
    pub fn new(params: Params, operands: &[&Operand]) -> Result<Self> {
        if let Some(other) = operands.iter().find(|operand| operand.params != params) {
            return Err(Error::shape("operand parameters", params, other.params));
        }
        if operands.iter().any(|operand| operand.c0.primes() != 2 || operand.c1.primes() != 2) {
            return Err(Error::shape("primes of an operand", "2", "fewer"));
        }
        let degree = params.degree();
        let mut values = [(); 2].map(|()| [(); 2].map(|()| vec![0.0; operands.len() * degree]));
        for (i, operand) in operands.iter().enumerate() {
            for (values, poly) in values.iter_mut().zip([&operand.c0, &operand.c1]) {
                for (values, residues) in values.iter_mut().zip(&poly.residues) {
                    let to = values.chunks_exact_mut(BLOCK).skip(i).step_by(operands.len());
                    to.zip(residues.chunks_exact(BLOCK))
                        .for_each(|(to, from)| to.copy_from_slice(from));
                }
            }
        }
        let bits = operands.iter().map(|operand| operand.c0.bits).max().unwrap_or(1);
        Ok(Self { params, count: operands.len(), bits, values })
    }

    /// Returns the parts into which sums of products are divided.
    pub fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let degree = self.params.degree();
        (0..degree).step_by(PART).map(move |start| start..degree.min(start + PART))
    }
}

impl Row {
    /// Puts weights beside each other, if they are polynomials in the same power of X whose transforms repeat enough.
    pub fn new(params: Params, weights: &[&Weights]) -> Option<Self> {
        let compact: Vec<&Compact> =
            weights.iter().map(|weights| weights.compact()).collect::<Option<_>>()?;
        let mut row = Self::blank(params, compact.first()?.step, compact.len())?;
        if compact.iter().any(|other| other.step != row.step) {
            return None;
        }
        row.norm = weights.iter().fold(0, |norm: u64, weights| norm.saturating_add(weights.norm));
        compact.into_iter().enumerate().for_each(|(place, compact)| row.put(place, compact));
        Some(row)
    }

    /// Transforms polynomials in X^step, if these repeat enough: of each in turn the coefficients at the same
    /// `powers` of X, the others being zero.
    ///
    /// # Errors
    /// The errors of [`Weights::in_power`].
    pub fn transform(
        params: Params,
        step: usize,
        powers: &[usize],
        values: &[i32],
    ) -> Result<Option<Self>> {
        let count = values.len() / powers.len().max(1);
        let Some(mut row) = Self::blank(params, step, count) else { return Ok(None) };
        let kernel = Kernel::of(params.degree())?;
        let mut coefficients = Zeroizing::new(vec![0; params.degree() / step]);
        let mut compact = Compact { residues: Vec::new(), step };
        for (place, values) in values.chunks_exact(powers.len().max(1)).enumerate() {
            for (power, value) in powers.iter().zip(values) {
                if let Some(to) = coefficients.get_mut(power / step) {
                    *to = i64::from(*value);
                }
            }
            row.norm = row.norm.saturating_add(Weights::norm(params, &coefficients)?);
            kernel.compact_again(&coefficients, &mut compact);
            row.put(place, &compact);
        }
        Ok(Some(row))
    }

    /// Polynomials that are zero, if others in X^step repeat enough.
    fn blank(params: Params, step: usize, count: usize) -> Option<Self> {
        let fits = step.is_power_of_two() && (LEAST_SIZE..=params.degree()).contains(&step);
        let len = params.degree() / BLOCK * count * each(step.max(1));
        fits.then(|| Self { count, step, norm: 0, values: [(); 2].map(|()| vec![0.0; len]) })
    }

    /// Puts a polynomial at its place.
    fn put(&mut self, place: usize, compact: &Compact) {
        let (each, count, again) = (each(self.step), self.count, self.step.div_ceil(BLOCK));
        for (values, residues) in self.values.iter_mut().zip(&compact.residues) {
            if each > 1 {
                let to = values.chunks_exact_mut(each).skip(place).step_by(count);
                to.zip(residues.chunks_exact(each)).for_each(|(to, from)| to.copy_from_slice(from));
                continue;
            }
            // One value for a block, or for several.
            for (blocks, value) in values.chunks_exact_mut(count * again).zip(residues) {
                blocks.iter_mut().skip(place).step_by(count).for_each(|to| *to = *value);
            }
        }
    }
}

impl Weights {
    /// The transform, where only some of its values are kept.
    const fn compact(&self) -> Option<&Compact> {
        match &self.poly {
            Stored::Compact(compact) => Some(compact),
            Stored::Whole(_) => None,
        }
    }
}

impl Accumulator {
    /// Makes room for the products of a batch and a row, which are then added part by part ([`Accumulator::add_part`]).
    ///
    /// # Errors
    /// The errors of [`Accumulator::accumulate`], and [`Error::Shape`] for a row of another length than the batch.
    pub fn admit(&mut self, batch: &Batch, row: &Row) -> Result<()> {
        if batch.params != self.params {
            return Err(Error::shape("operand parameters", self.params, batch.params));
        }
        if batch.count != row.count {
            return Err(Error::shape("weights of a batch", batch.count, row.count));
        }
        let kernel = Kernel::of(self.params.degree())?;
        kernel.admit(&mut self.c0, batch.bits, row.norm)?;
        kernel.admit(&mut self.c1, batch.bits, row.norm)
    }

    /// Adds a part of the products of a batch and a row that were admitted, one of [`Batch::parts`].
    ///
    /// # Errors
    /// None for an accumulator that exists.
    pub fn add_part(&mut self, part: &Range<usize>, batch: &Batch, row: &Row) -> Result<()> {
        let kernel = Kernel::of(self.params.degree())?;
        let (count, size, each) = (batch.count, row.step, each(row.step));
        let blocks = part.start / BLOCK * count..part.end / BLOCK * count;
        for (sum, values) in [&mut self.c0, &mut self.c1].into_iter().zip(&batch.values) {
            for (prime, (values, repeated)) in values.iter().zip(&row.values).enumerate() {
                let values =
                    values.get(blocks.start * BLOCK..blocks.end * BLOCK).unwrap_or_default();
                let repeated =
                    repeated.get(blocks.start * each..blocks.end * each).unwrap_or_default();
                kernel.add_part(sum, prime, part, Factors { count, values, repeated, size });
            }
        }
        Ok(())
    }
}
