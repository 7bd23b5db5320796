//! Products with polynomials of few weights: each weight times the shifted ciphertext,
//! without transforms. A weight polynomial with a handful of coefficients costs less
//! this way than one product in the evaluation basis.
//!
//! Coefficients are held as [bytes](bytes) where the machine multiplies these, and else as [f64](limbs).

use std::fmt;
use std::ops::Range;

use ring::Wiped;
use ring::word::mask;
use zeroize::Zeroizing;

use self::bytes::Bytes;
use self::limbs::Limbs;
use super::cipher::Ciphertext;
use super::params::Params;
use crate::error::{Error, Result, expect_len};
use crate::simd::direct::{self, STEP, Term};
use crate::simd::{Level, convert};

mod bytes;
mod limbs;

/// Results that are computed together.
pub const TOGETHER: usize = direct::TOGETHER;

/// Terms that are added before sums are written: what they read of their ciphertexts stays in the nearest cache, and sums
/// are read and written seldom.
const AT_ONCE: usize = 40;

/// The public side of a layer's products: where weights sit in their polynomials.
#[derive(Clone)]
pub struct Direct {
    params: Params,
    /// Where each shifted factor starts in its extension.
    offsets: Vec<usize>,
    /// Steps of c0 whose coefficients are of use, and all of c1.
    useful: Vec<Range<usize>>,
    whole: Range<usize>,
    limbs: Limbs,
    /// How coefficients are cut, if it is into bytes.
    bytes: Option<Bytes>,
    level: Level,
}

/// Ciphertexts that are ready to be multiplied.
pub struct Factors {
    count: usize,
    held: Held,
}

/// Extended polynomials: -x, then x.
enum Held {
    /// By half and limb: those of all ciphertexts.
    Floats(Vec<Wiped<f64>>),
    /// By half.
    Bytes([Wiped<u8>; 2]),
}

/// Sums of products for [`TOGETHER`] results.
pub struct Sums(Parts);

/// The sums of the results one after another.
enum Parts {
    /// By half and limb, and the terms since the last reduction.
    Floats(Vec<Wiped<f64>>, usize),
    /// By half, mod 2^64.
    Words([Wiped<u64>; 2]),
}

impl Direct {
    /// Plans products with polynomials that have coefficients of magnitude at most
    /// `largest` at `powers` of X only; at most `total` of them meet in one coefficient
    /// of a result. Of c0 the coefficients in `useful` are computed, and maybe others.
    ///
    /// # Errors
    /// [`Error::Shape`] for powers or coefficients of N or more, or weights so large
    /// that no limbs hold the sums.
    pub fn new(
        params: Params,
        powers: &[usize],
        largest: u64,
        total: usize,
        useful: &[usize],
    ) -> Result<Self> {
        let degree = params.degree();
        let above = powers.iter().chain(useful).find(|power| **power >= degree);
        if let Some(above) = above {
            return Err(Error::shape("powers of X", format!("below {degree}"), above));
        }
        let limbs = Limbs::of(params, largest, total)?;
        let offsets = powers.iter().map(|power| degree - power).collect();
        let (useful, level) = (steps(useful), Level::best());
        let bytes = Bytes::of(level, params, largest);
        Ok(Self { params, offsets, useful, whole: 0..degree, limbs, bytes, level })
    }

    /// Multiplications per product with one ciphertext and result, of those by fused multiply-add.
    pub fn work(&self) -> usize {
        let useful: usize = self.useful.iter().map(ExactSizeIterator::len).sum();
        self.offsets.len() * (self.params.degree() + useful) * self.limbs.count()
    }

    /// Returns the coefficients of a weight polynomial.
    pub fn terms(&self) -> usize {
        self.offsets.len()
    }

    /// Makes ciphertexts ready that are multiplied together.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters.
    pub fn factors(&self, ciphers: &[&Ciphertext]) -> Result<Factors> {
        if let Some(other) = ciphers.iter().find(|cipher| cipher.params != self.params) {
            return Err(Error::shape("ciphertext parameters", self.params, other.params));
        }
        let (count, bits) = (ciphers.len(), self.params.modulus_bits());
        let half = |half: usize| -> Vec<&[u64]> {
            ciphers.iter().map(|cipher| [&*cipher.c0, &*cipher.c1][half]).collect()
        };
        let held = match &self.bytes {
            Some(cut) => Held::Bytes([0, 1].map(|at| cut.extend(bits, &half(at)))),
            None => {
                let limbs = |at| self.limbs.extend(self.level, bits, &half(at));
                Held::Floats([0, 1].into_iter().flat_map(limbs).collect())
            }
        };
        Ok(Factors { count, held })
    }

    /// Returns the empty sums.
    pub fn zero(&self) -> Sums {
        let numbers = TOGETHER * self.params.degree();
        if self.bytes.is_some() {
            return Sums(Parts::Words([0; 2].map(|zero| Wiped::new(vec![zero; numbers]))));
        }
        let part = |_| Wiped::new(vec![0.0; numbers]);
        Sums(Parts::Floats((0..2 * self.limbs.count()).map(part).collect(), 0))
    }

    /// Adds to each of the [`TOGETHER`] results the products of `factors` and its polynomials.
    /// `weights` has for each ciphertext the results' coefficients at the first power, then at the
    /// second, and so on. Zeros are not treated specially.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong number of weights, or sums of another plan.
    pub fn accumulate(&self, sums: &mut Sums, factors: &Factors, weights: &[i32]) -> Result<()> {
        expect_len("weights", factors.count * TOGETHER * self.offsets.len(), weights.len())?;
        let (weights, _) = weights.as_chunks::<TOGETHER>();
        match (&mut sums.0, &factors.held, &self.bytes) {
            (Parts::Words(sums), Held::Bytes(x), Some(cut)) => {
                self.add_bytes(sums, x, *cut, weights);
                Ok(())
            }
            (Parts::Floats(sums, terms), Held::Floats(x), None) => {
                self.add_floats((sums, terms), x, weights);
                Ok(())
            }
            _ => Err(Error::shape("sums and factors", "of this plan", "others")),
        }
    }

    /// The steps whose coefficients are computed of each half.
    fn ranges(&self) -> [&[Range<usize>]; 2] {
        [&self.useful, std::slice::from_ref(&self.whole)]
    }

    fn add_bytes(
        &self,
        sums: &mut [Wiped<u64>; 2],
        x: &[Wiped<u8>; 2],
        cut: Bytes,
        weights: &[[i32; TOGETHER]],
    ) {
        for (plane, shift) in cut.planes() {
            let terms = cut.terms(plane, &self.offsets, weights);
            for ((sums, x), ranges) in sums.iter_mut().zip(x).zip(self.ranges()) {
                for range in ranges {
                    for terms in terms.chunks(AT_ONCE) {
                        let (x, range) = ((x.as_slice(), cut.layout), range.clone());
                        direct::bytes::multiply_add(self.level, sums, x, (terms, shift), range);
                    }
                }
            }
        }
    }

    fn add_floats(
        &self,
        (sums, terms): (&mut [Wiped<f64>], &mut usize),
        x: &[Wiped<f64>],
        weights: &[[i32; TOGETHER]],
    ) {
        let extended = 2 * self.params.degree();
        let starts = weights.chunks(self.offsets.len().max(1)).enumerate();
        let starts = starts.flat_map(|(at, _)| self.offsets.iter().map(move |o| at * extended + o));
        let all = starts.zip(weights);
        let all = all.map(|(offset, weights)| Term { offset, weights: weights.map(f64::from) });
        let all: Zeroizing<Vec<Term>> = Zeroizing::new(all.collect());
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let most = match self.limbs {
                Limbs::One { between } => {
                    if *terms >= between {
                        self.reduce(sums);
                        *terms = 0;
                    }
                    between - *terms
                }
                Limbs::Two => usize::MAX,
            };
            let now = rest.len().min(most).min(AT_ONCE);
            let (first, later) = rest.split_at(now);
            let limbs = self.limbs.count();
            let ranges =
                self.ranges().into_iter().flat_map(|ranges| std::iter::repeat_n(ranges, limbs));
            for ((sums, x), ranges) in sums.iter_mut().zip(x).zip(ranges) {
                for range in ranges {
                    direct::multiply_add(self.level, sums, x, first, range.clone());
                }
            }
            *terms += now;
            rest = later;
        }
    }

    fn reduce(&self, sums: &mut [Wiped<f64>]) {
        let modulus = (1u64 << self.params.modulus_bits().min(63)) as f64;
        sums.iter_mut().for_each(|part| direct::reduce(self.level, part, modulus));
    }

    /// Returns the results. Coefficients of c0 that are of no use may be anything.
    ///
    /// # Errors
    /// None for sums of this plan.
    pub fn finish(&self, sums: &Sums) -> Result<Vec<Ciphertext>> {
        let others = || Error::shape("sums", "of this plan", "others");
        let result = |b: usize| {
            let half = |half: usize| self.values(sums, half, b).ok_or_else(others);
            Ok(Ciphertext { params: self.params, c0: half(0)?, c1: half(1)? })
        };
        (0..TOGETHER).map(result).collect()
    }

    /// A half of a result.
    fn values(&self, sums: &Sums, half: usize, result: usize) -> Option<Vec<u64>> {
        let (degree, bits) = (self.params.degree(), self.params.modulus_bits());
        let range = result * degree..(result + 1) * degree;
        match &sums.0 {
            Parts::Words(parts) => {
                let sums = parts.get(half)?.get(range)?;
                Some(sums.iter().map(|sum| sum & mask(bits)).collect())
            }
            Parts::Floats(parts, _) => {
                let (limbs, low) = (self.limbs.count(), self.limbs.low_bits(bits));
                let mut values = vec![0u64; degree];
                for limb in 0..limbs {
                    let part = parts.get(half * limbs + limb)?.get(range.clone())?;
                    let shift = if limb == 0 { 0 } else { low };
                    convert::add_shifted(self.level, &mut values, part, shift, bits);
                }
                Some(values)
            }
        }
    }
}

/// Ranges of whole steps that hold all of `useful`, ascending.
fn steps(useful: &[usize]) -> Vec<Range<usize>> {
    let mut found: Vec<usize> = useful.iter().map(|i| i / STEP).collect();
    found.sort_unstable();
    found.dedup();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for step in found {
        let (start, end) = (step * STEP, (step + 1) * STEP);
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Direct({}, {} terms)", self.params, self.offsets.len())
    }
}

impl fmt::Debug for Factors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factors(<hidden>)")
    }
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sums(<hidden>)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
