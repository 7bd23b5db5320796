//! Products with polynomials of few weights: each weight times the shifted ciphertext,
//! without transforms. A weight polynomial with a handful of coefficients costs less
//! this way than one product in the evaluation basis.
//!
//! Coefficients are centred and held as f64, which are exact below 2^53. When a modulus
//! leaves too little room above it, coefficients are split into two limbs.

use std::fmt;
use std::ops::Range;

use ring::Wiped;
use ring::word::{mask, signed};
use zeroize::Zeroizing;

use super::cipher::Ciphertext;
use super::params::Params;
use crate::error::{Error, Result, expect_len};
use crate::simd::direct::{self, STEP, Term};
use crate::simd::{Level, convert};

/// Results that are computed together.
pub const TOGETHER: usize = direct::TOGETHER;

/// Sums stay below this in magnitude.
const ROOM: u64 = 1 << 52;

/// Fewer terms between two reductions make two limbs cheaper than one.
const LEAST_BETWEEN: u64 = 8;

/// The public side of a layer's products: where weights sit in their polynomials.
#[derive(Clone)]
pub struct Direct {
    params: Params,
    /// Where each shifted factor starts in its extension.
    offsets: Vec<usize>,
    /// Steps of c0 whose coefficients are of use.
    useful: Vec<Range<usize>>,
    limbs: Limbs,
    level: Level,
}

/// How coefficients are held.
#[derive(Clone, Copy)]
enum Limbs {
    /// Whole; sums are reduced after so many terms.
    One { between: usize },
    /// The low half and the rest; sums never need reducing.
    Two,
}

/// A ciphertext that is ready to be multiplied.
pub struct Factor {
    /// By half and limb: -x, then x.
    extended: Vec<Wiped<f64>>,
}

/// Sums of products for [`TOGETHER`] results.
pub struct Sums {
    /// By half and limb: the results one after another.
    parts: Vec<Wiped<f64>>,
    /// Terms since the last reduction.
    terms: usize,
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
        Ok(Self { params, offsets, useful: steps(useful), limbs, level: Level::best() })
    }

    /// Multiplications per product with one ciphertext and result.
    pub fn work(&self) -> usize {
        let useful: usize = self.useful.iter().map(ExactSizeIterator::len).sum();
        self.offsets.len() * (self.params.degree() + useful) * self.limbs.count()
    }

    /// Returns the coefficients of a weight polynomial.
    pub fn terms(&self) -> usize {
        self.offsets.len()
    }

    /// Makes a ciphertext ready.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters.
    pub fn factor(&self, cipher: &Ciphertext) -> Result<Factor> {
        if cipher.params != self.params {
            return Err(Error::shape("ciphertext parameters", self.params, cipher.params));
        }
        let halves = [&cipher.c0, &cipher.c1];
        let split =
            |half: &Vec<u64>| self.limbs.split(self.level, half, self.params.modulus_bits());
        let extended = halves.into_iter().flat_map(split).collect();
        Ok(Factor { extended })
    }

    /// Returns the empty sums.
    pub fn zero(&self) -> Sums {
        let part = || Wiped::new(vec![0.0; TOGETHER * self.params.degree()]);
        Sums { parts: (0..2 * self.limbs.count()).map(|_| part()).collect(), terms: 0 }
    }

    /// Adds to each of the [`TOGETHER`] results `factor` times its polynomial.
    /// `weights` has the results' coefficients at the first power, then at the second,
    /// and so on. Zeros are not treated specially.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong number of weights.
    pub fn accumulate(&self, sums: &mut Sums, factor: &Factor, weights: &[i32]) -> Result<()> {
        expect_len("weights", TOGETHER * self.offsets.len(), weights.len())?;
        let (weights, _) = weights.as_chunks::<TOGETHER>();
        let terms = self.offsets.iter().zip(weights);
        let terms = terms
            .map(|(offset, weights)| Term { offset: *offset, weights: weights.map(f64::from) });
        let terms: Zeroizing<Vec<Term>> = Zeroizing::new(terms.collect());
        let mut rest = terms.as_slice();
        while !rest.is_empty() {
            let now = match self.limbs {
                Limbs::One { between } => {
                    if sums.terms >= between {
                        self.reduce(sums);
                    }
                    rest.len().min(between - sums.terms)
                }
                Limbs::Two => rest.len(),
            };
            let (first, later) = rest.split_at(now);
            self.add(sums, factor, first);
            sums.terms += now;
            rest = later;
        }
        Ok(())
    }

    fn add(&self, sums: &mut Sums, factor: &Factor, terms: &[Term]) {
        let (degree, limbs) = (self.params.degree(), self.limbs.count());
        for (i, (part, x)) in sums.parts.iter_mut().zip(&factor.extended).enumerate() {
            if i < limbs {
                for range in &self.useful {
                    direct::multiply_add(self.level, part, x, terms, range.clone());
                }
            } else {
                direct::multiply_add(self.level, part, x, terms, 0..degree);
            }
        }
    }

    fn reduce(&self, sums: &mut Sums) {
        let modulus = (1u64 << self.params.modulus_bits().min(63)) as f64;
        for part in &mut sums.parts {
            direct::reduce(self.level, part, modulus);
        }
        sums.terms = 0;
    }

    /// Returns the results. Coefficients of c0 that are of no use may be anything.
    ///
    /// # Errors
    /// None for sums of this plan.
    pub fn finish(&self, sums: &Sums) -> Result<Vec<Ciphertext>> {
        let (degree, bits, limbs) =
            (self.params.degree(), self.params.modulus_bits(), self.limbs.count());
        let low = self.limbs.low_bits(bits);
        let results = (0..TOGETHER).map(|b| {
            let half = |half: usize| {
                let mut values = vec![0u64; degree];
                for limb in 0..limbs {
                    let part = sums.parts.get(half * limbs + limb);
                    let part = part.and_then(|part| part.get(b * degree..(b + 1) * degree));
                    let part =
                        part.ok_or_else(|| Error::shape("sums", "of this plan", "others"))?;
                    let shift = if limb == 0 { 0 } else { low };
                    convert::add_shifted(self.level, &mut values, part, shift, bits);
                }
                Ok(values)
            };
            Ok(Ciphertext { params: self.params, c0: half(0)?, c1: half(1)? })
        });
        results.collect()
    }
}

impl Limbs {
    fn of(params: Params, largest: u64, total: usize) -> Result<Self> {
        let bits = params.modulus_bits();
        let (largest, total) = (largest.max(1), total.max(1) as u64);
        // Reduced sums are at most half the modulus, and so is each coefficient.
        let room = if bits <= 52 { (ROOM >> (bits - 1)).saturating_sub(1) / largest } else { 0 };
        if room >= LEAST_BETWEEN.min(total) {
            return Ok(Self::One { between: room as usize });
        }
        let limb = 1u64 << (bits.div_ceil(2) - 1);
        let fits = largest.checked_mul(total).and_then(|sum| sum.checked_mul(limb));
        if fits.is_some_and(|sum| sum <= ROOM) {
            Ok(Self::Two)
        } else {
            Err(Error::shape("weights", "sums below 2^52 in limbs", "more"))
        }
    }

    const fn count(self) -> usize {
        match self {
            Self::One { .. } => 1,
            Self::Two => 2,
        }
    }

    /// Bits of the low limb.
    const fn low_bits(self, bits: u32) -> u32 {
        match self {
            Self::One { .. } => bits,
            Self::Two => bits.div_ceil(2),
        }
    }

    /// Centred limbs, the low one first, extended.
    fn split(self, level: Level, values: &[u64], bits: u32) -> Vec<Wiped<f64>> {
        let low = self.low_bits(bits);
        let mut limbs = vec![extend(level, values, low)];
        if matches!(self, Self::Two) {
            let rest = |value: &u64| value.wrapping_sub(signed(*value & mask(low), low) as u64);
            let rest: Vec<u64> = values.iter().map(|value| rest(value) >> low).collect();
            limbs.push(extend(level, &Zeroizing::new(rest), bits - low));
        }
        limbs
    }
}

/// -x, then x, of the centred x: a negacyclic shift is a window of it.
fn extend(level: Level, x: &[u64], bits: u32) -> Wiped<f64> {
    let mut extended = Wiped::new(vec![0.0; 2 * x.len()]);
    let (negative, positive) = extended.split_at_mut(x.len());
    convert::centred(level, x, bits, positive);
    negative.iter_mut().zip(positive).for_each(|(to, x)| *to = -*x);
    extended
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

impl fmt::Debug for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factor(<hidden>)")
    }
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sums(<hidden>)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::Random;

    use super::*;
    use crate::rlwe::{Accumulator, Weights};

    /// Both kernels on `factors` random ciphertexts.
    fn check(degree: usize, bits: u32, largest: i64, powers: &[usize], factors: usize) {
        let params = Params::new(degree, bits).unwrap();
        let mut rng = Random::seeded(u64::from(bits));
        let useful: Vec<usize> = (100..300).chain([degree - 1]).collect();
        let total = factors * powers.len();
        let mut plan = Direct::new(params, powers, largest as u64, total, &useful).unwrap();
        for level in Level::available() {
            plan.level = level;
            let mut sums = plan.zero();
            let mut want: Vec<_> =
                (0..TOGETHER).map(|_| Accumulator::new(params).unwrap()).collect();
            for i in 0..factors {
                let mut draw = || {
                    let mut half = rng.uniform(degree, bits);
                    half[..2].copy_from_slice(&[mask(bits), 1 << (bits - 1)]);
                    half
                };
                let cipher = Ciphertext { params, c0: draw(), c1: draw() };
                let weights: Vec<i32> = (0..TOGETHER * powers.len())
                    .map(|j| if i == 0 { largest as i32 } else { (j as i32 % 7 - 3) * 5 })
                    .map(|w| w.clamp(-largest as i32, largest as i32))
                    .collect();
                plan.accumulate(&mut sums, &plan.factor(&cipher).unwrap(), &weights).unwrap();
                let operand = cipher.into_operand().unwrap();
                for (b, want) in want.iter_mut().enumerate() {
                    let mut dense = vec![0; degree];
                    for (power, row) in powers.iter().zip(weights.as_chunks::<TOGETHER>().0) {
                        dense[*power] = i64::from(row[b]);
                    }
                    want.accumulate(&operand, &Weights::new(params, &dense).unwrap()).unwrap();
                }
            }
            let got = plan.finish(&sums).unwrap();
            for (got, want) in got.iter().zip(want) {
                let want = want.finish().unwrap();
                assert_eq!(got.c1, want.c1, "{level:?}");
                assert!(useful.iter().all(|i| got.c0[*i] == want.c0[*i]), "{level:?}");
            }
        }
    }

    #[test]
    fn sums_equal_those_of_the_transforms() {
        check(2048, 35, 127, &[0, 1, 2, 30, 31, 32, 2047], 5);
        check(2048, 24, 1, &[5], 1);
        check(4096, 44, 127, &(0..60).map(|i| 67 * i).collect::<Vec<_>>(), 3);
        check(2048, 52, 127, &[3, 700, 1400], 9);
        check(4096, 64, 32_767, &[0, 4095], 4);
    }

    #[test]
    fn few_terms_between_reductions_mean_two_limbs() {
        let limbs = |bits, largest, total| {
            Limbs::of(Params::new(4096, bits).unwrap(), largest, total).map(Limbs::count)
        };
        assert_eq!(limbs(36, 127, 10_000).unwrap(), 1);
        assert_eq!(limbs(43, 127, 10_000).unwrap(), 1);
        assert_eq!(limbs(44, 127, 10_000).unwrap(), 2);
        assert_eq!(limbs(64, 127, 10_000).unwrap(), 2);
        assert!(limbs(64, 1 << 20, 10_000).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let params = Params::new(2048, 30).unwrap();
        assert!(Direct::new(params, &[2048], 1, 1, &[0]).is_err());
        assert!(Direct::new(params, &[1], 1, 1, &[2048]).is_err());
        let plan = Direct::new(params, &[1], 1, 1, &[0]).unwrap();
        let other = Params::new(2048, 31).unwrap();
        let zeros = || vec![0; 2048];
        let cipher = Ciphertext { params: other, c0: zeros(), c1: zeros() };
        assert!(plan.factor(&cipher).is_err());
        let cipher = Ciphertext { params, c0: zeros(), c1: zeros() };
        let factor = plan.factor(&cipher).unwrap();
        assert!(plan.accumulate(&mut plan.zero(), &factor, &[1; 5]).is_err());
    }
}
