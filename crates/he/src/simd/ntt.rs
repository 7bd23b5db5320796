//! Negacyclic number-theoretic transforms mod a prime below 2^50, on vectors of f64.
//!
//! Cooley and Tukey's butterflies forward, Gentleman and Sande's back, with the powers of
//! the 2N-th root in bit-reversed order, so that nothing is permuted (Longa and Naehrig,
//! "Speeding up the number theoretic transform", CANS 2016). Residues are integers held
//! as f64, centred but for a small factor. A product mod p takes the rounded quotient
//! `x * (w/p)` and then the exact `x*w - q*p` (Dekker's splitting, with fused
//! multiply-add; van der Hoeven, Lecerf, Quintin, "Modular SIMD arithmetic", 2016).
//! Rounding makes the quotient at most 3/4 off while factors that vary are below 2^52, so
//! that a product is at most 3/4 of the prime; until then nothing is reduced.
//! The last levels, inside a vector, run on transposed blocks: values stay in that order
//! until the transform back, and products do not mind.

#[cfg(target_arch = "x86_64")]
mod integers;
pub(crate) mod many;
mod passes;

use super::{Level, Width};
use passes::{backward, forward, multiply_add};

/// Sums of products that are not reduced in between.
pub(crate) const LAZY: usize = 4;

/// A constant factor with its quotient by the prime.
#[derive(Clone, Copy)]
pub(crate) struct Factor {
    /// The factor, centred mod the prime.
    pub(crate) value: f64,
    /// The factor divided by the prime.
    pub(crate) quotient: f64,
}

impl Factor {
    /// `value` mod `prime`, from below it.
    pub(crate) fn new(value: u64, prime: u64) -> Self {
        let centred = if value > prime / 2 { value as i64 - prime as i64 } else { value as i64 };
        Self { value: centred as f64, quotient: centred as f64 / prime as f64 }
    }
}

/// The transform of one degree and prime.
pub(crate) struct Transform {
    prime: f64,
    degree: usize,
    level: Level,
    /// Forward and back, per level and block.
    factors: [Vec<Factor>; 2],
    /// Forward and back: the same of the levels inside a vector, in the order in which
    /// the transform forward reads them; value and quotient of as many lanes in turn.
    inner: [Vec<f64>; 2],
    /// What the last level back multiplies sums and differences by: 1/N, and that times
    /// the root.
    last: [Factor; 2],
    /// Levels that may follow one another without reducing values, forward and back.
    lazy: [u32; 2],
}

impl Transform {
    /// For a power of two `degree`, twice the square of the lanes of a vector at least, and a prime below
    /// 2^50 that is 1 mod `2*degree`.
    ///
    /// # Panics
    /// For another degree: blocks would not be whole.
    pub(crate) fn new(level: Level, degree: usize, prime: u64) -> Self {
        assert!(degree.is_power_of_two() && degree >= 2 * level.lanes().pow(2));
        let root = root(degree, prime);
        let factors: [Vec<Factor>; 2] = [root, power(root, prime - 2, prime)]
            .map(|root| powers(root, degree, prime).map(|x| Factor::new(x, prime)).collect());
        let lanes = level.lanes();
        let inner = [0, 1].map(|i| inner(&factors[i], degree, lanes));
        let part = power(degree as u64, prime - 2, prime);
        let quarter = power(root, prime - 1 - degree as u64 / 2, prime);
        let difference = (u128::from(part) * u128::from(quarter) % u128::from(prime)) as u64;
        let last = [part, difference].map(|factor| Factor::new(factor, prime));
        Self { prime: prime as f64, degree, level, factors, inner, last, lazy: lazy(prime) }
    }

    /// The instructions it runs on.
    pub(crate) const fn level(&self) -> Level {
        self.level
    }

    /// The prime.
    pub(crate) const fn prime(&self) -> f64 {
        self.prime
    }

    /// Calls of [`Transform::multiply_add`] between two reductions: [`LAZY`] or, mod smaller
    /// primes, as many as stay below 2^52.
    pub(crate) const fn lazy_products(&self) -> usize {
        if self.prime < (1u64 << 48) as f64 { 4 * LAZY } else { LAZY }
    }

    /// N.
    pub(crate) const fn degree(&self) -> usize {
        self.degree
    }

    /// Coefficients of magnitude at most 1.5 p to values in the evaluation basis, in an
    /// order of its own, centred.
    ///
    /// # Panics
    /// For another length.
    pub(crate) fn forward(&self, values: &mut [f64]) {
        self.forward_filled(values, self.degree);
    }

    /// Transforms values that are zero from `filled` on, a power of two. This saves the levels
    /// of longer blocks.
    ///
    /// # Panics
    /// For another length, or a prefix that is none or no power of two.
    pub(crate) fn forward_filled(&self, values: &mut [f64], filled: usize) {
        assert!(values.len() == self.degree && filled.is_power_of_two() && filled <= self.degree);
        let filled = filled.max(self.level.lanes());
        let (prefix, rest) = values.split_at_mut(filled);
        rest.chunks_exact_mut(filled).for_each(|block| block.copy_from_slice(prefix));
        match self.level.0 {
            // SAFETY: a vector of one needs no instructions; the length was checked.
            Width::Scalar => unsafe { forward::<f64>(self, values, filled) },
            // SAFETY: the level says that the instructions exist; the length was checked.
            #[cfg(target_arch = "x86_64")]
            Width::Fma256 => unsafe { forward256(self, values, filled) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Width::Fma512 => unsafe { forward512(self, values, filled) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!(),
        }
    }

    /// Which value of a polynomial in X^size, `size` a power of two, stands at a place of its
    /// transform: the last levels change nothing, so values come in blocks of that size.
    pub(crate) fn block_of(&self, place: usize, size: usize) -> usize {
        let lanes = self.level.lanes();
        let (block, inside) = (place / (lanes * lanes), place % (lanes * lanes));
        let natural = block * lanes * lanes + inside % lanes * lanes + inside / lanes;
        natural / size
    }

    /// The transform of a polynomial in X^size out of its values in the order of
    /// [`Transform::block_of`].
    pub(crate) fn spread(&self, values: &[f64], size: usize, whole: &mut [f64]) {
        let lanes = self.level.lanes();
        if size >= lanes * lanes {
            let blocks = whole.chunks_exact_mut(size).zip(values);
            blocks.for_each(|(block, value)| block.fill(*value));
            return;
        }
        match lanes {
            8 if size >= 8 => repeat::<8, 64>(values, size, whole),
            4 if size >= 4 => repeat::<4, 16>(values, size, whole),
            _ => {
                for (place, value) in whole.iter_mut().enumerate() {
                    *value = values.get(self.block_of(place, size)).copied().unwrap_or(0.0);
                }
            }
        }
    }

    /// The inverse of [`Transform::forward`]; values of magnitude at most p/2 both ways.
    ///
    /// # Panics
    /// For another length.
    pub(crate) fn backward(&self, values: &mut [f64]) {
        assert_eq!(values.len(), self.degree);
        match self.level.0 {
            // SAFETY: as in `forward`.
            Width::Scalar => unsafe { backward::<f64>(self, values) },
            // SAFETY: as in `forward`.
            #[cfg(target_arch = "x86_64")]
            Width::Fma256 => unsafe { backward256(self, values) },
            // SAFETY: as in `forward`.
            #[cfg(target_arch = "x86_64")]
            Width::Fma512 => unsafe { backward512(self, values) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!(),
        }
    }

    /// Adds the products of `a` and `b`, of magnitude at most p/2, to sums that fewer than
    /// [`Transform::lazy_products`] calls have added to since they were zero or reduced.
    ///
    /// # Panics
    /// For other lengths.
    pub(crate) fn multiply_add(&self, sums: &mut [f64], a: &[f64], b: &[f64]) {
        assert!([sums.len(), a.len(), b.len()] == [self.degree; 3]);
        match self.level.0 {
            // SAFETY: as in `forward`.
            Width::Scalar => unsafe { multiply_add::<f64>(self, sums, a, b) },
            // SAFETY: as in `forward`.
            #[cfg(target_arch = "x86_64")]
            Width::Fma256 => unsafe { multiply_add256(self, sums, a, b) },
            // SAFETY: as in `forward`.
            #[cfg(target_arch = "x86_64")]
            Width::Fma512 => unsafe { multiply_add512(self, sums, a, b) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!(),
        }
    }

    /// Centres values below 2^52 in magnitude: at most p/2.
    ///
    /// # Panics
    /// For another length.
    pub(crate) fn reduce(&self, values: &mut [f64]) {
        super::direct::reduce(self.level, values, self.prime);
    }
}

/// [`Transform::spread`] where the vectors of a block are alike: of `LANES` values, as many
/// to a block of `SQUARE`.
fn repeat<const LANES: usize, const SQUARE: usize>(values: &[f64], size: usize, whole: &mut [f64]) {
    let each = SQUARE / size;
    let blocks = whole.as_chunks_mut::<SQUARE>().0.iter_mut().zip(values.chunks_exact(each));
    for (block, values) in blocks {
        let mut vector = [0.0; LANES];
        let groups = vector.chunks_exact_mut(LANES / each).zip(values);
        groups.for_each(|(group, value)| group.iter_mut().for_each(|lane| *lane = *value));
        block.as_chunks_mut::<LANES>().0.iter_mut().for_each(|lanes| *lanes = vector);
    }
}

macro_rules! enable {
    ($features:literal, $vector:ty, $forward:ident, $backward:ident, $multiply_add:ident) => {
        /// # Safety
        /// The features; the transform's lengths.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $forward(transform: &Transform, values: &mut [f64], filled: usize) {
            // SAFETY: the caller's promise.
            unsafe { forward::<$vector>(transform, values, filled) }
        }

        /// # Safety
        /// The features; the transform's lengths.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $backward(transform: &Transform, values: &mut [f64]) {
            // SAFETY: the caller's promise.
            unsafe { backward::<$vector>(transform, values) }
        }

        /// # Safety
        /// The features; the transform's lengths.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $multiply_add(transform: &Transform, sums: &mut [f64], a: &[f64], b: &[f64]) {
            // SAFETY: the caller's promise.
            unsafe { multiply_add::<$vector>(transform, sums, a, b) }
        }
    };
}

enable!("avx2,fma", std::arch::x86_64::__m256d, forward256, backward256, multiply_add256);
enable!("avx512f,avx512dq", std::arch::x86_64::__m512d, forward512, backward512, multiply_add512);

/// Levels between two reductions. Forward a value grows by 3/4 of a prime in each, from
/// 3/2, back it doubles from 3/4; what is multiplied has to stay below 2^52.
const fn lazy(prime: u64) -> [u32; 2] {
    match u64::BITS - prime.leading_zeros() {
        50.. => [4, 2],
        49 => [9, 3],
        bits => [16, 52 - bits],
    }
}

/// The factors of the levels inside a vector: block by block of `lanes` vectors, level
/// by level, pair of halves by pair; a lane for each vector of the block.
fn inner(factors: &[Factor], degree: usize, lanes: usize) -> Vec<f64> {
    let mut inner = Vec::new();
    for block in 0..degree / (lanes * lanes) {
        let mut half = lanes / 2;
        while half > 0 {
            let pairs = lanes / (2 * half);
            for pair in 0..pairs {
                let lane = |lane: usize| {
                    let vector = block * lanes + lane;
                    factors.get(degree / (2 * half) + vector * pairs + pair)
                };
                inner.extend((0..lanes).filter_map(lane).map(|factor| factor.value));
                inner.extend((0..lanes).filter_map(lane).map(|factor| factor.quotient));
            }
            half /= 2;
        }
    }
    inner
}

pub(crate) const fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let (mut result, mut square) = (1u128, base as u128);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % modulus as u128;
        }
        square = square * square % modulus as u128;
        exponent >>= 1;
    }
    result as u64
}

/// The powers 0 to N-1 of `root` in bit-reversed order, mod a prime below 2^62.
pub(crate) fn powers(root: u64, degree: usize, prime: u64) -> impl Iterator<Item = u64> {
    // The quotient by it is known, up to one (Shoup).
    let quotient = ((u128::from(root) << 64) / u128::from(prime)) as u64;
    let next = |x: &u64| {
        let quotient = ((u128::from(*x) * u128::from(quotient)) >> 64) as u64;
        let product = x.wrapping_mul(root).wrapping_sub(quotient.wrapping_mul(prime));
        Some(if product < prime { product } else { product - prime })
    };
    let ascending: Vec<u64> = std::iter::successors(Some(1), next).take(degree).collect();
    let unused = usize::BITS - degree.trailing_zeros();
    (0..degree).filter_map(move |i| ascending.get(i.reverse_bits() >> unused).copied())
}

/// A primitive 2N-th root of one.
pub(crate) fn root(degree: usize, prime: u64) -> u64 {
    let order = 2 * degree as u64;
    let candidates = (2..).map(|base| power(base, (prime - 1) / order, prime));
    let mut roots = candidates.filter(|root| power(*root, degree as u64, prime) == prime - 1);
    roots.next().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    /// Primes of 50, 49, 48, 36 and 21 bits that are 1 mod 2^16.
    const PRIMES: [u64; 5] = [
        1_125_899_904_679_937,
        562_949_952_700_417,
        281_474_976_317_441,
        68_718_428_161,
        1_769_473,
    ];

    fn lists(degree: usize, prime: u64) -> [Vec<i64>; 4] {
        let half = (prime / 2) as i64;
        let words = Random::seeded(3).uniform(degree, 50).into_iter();
        let random = words.map(|word| (word % prime) as i64 - half).collect();
        let alternating = (0..degree).map(|i| if i % 3 == 0 { half } else { -half }).collect();
        [random, vec![half; degree], alternating, vec![prime as i64; degree]]
    }

    /// Congruent to `sign * want` and centred.
    #[track_caller]
    fn expect(got: f64, want: i64, prime: u64) {
        assert!(got.abs() <= prime as f64 / 2.0 + 1.0 && got.fract() == 0.0, "{got} mod {prime}");
        assert_eq!((got as i64 - want) % prime as i64, 0, "mod {prime}");
    }

    #[test]
    fn short_polynomials_transform_like_others() {
        for (prime, degree) in
            PRIMES.into_iter().flat_map(|p| [128, 2048, 4096, 8192].map(|n| (p, n)))
        {
            for level in Level::available() {
                let transform = Transform::new(level, degree, prime);
                for filled in (0..=degree.ilog2()).map(|bits| 1 << bits) {
                    for list in lists(degree, prime) {
                        let mut values: Vec<f64> = list.iter().map(|x| *x as f64).collect();
                        values[filled..].fill(0.0);
                        transform.forward_filled(&mut values, filled);
                        transform.backward(&mut values);
                        let want = list.iter().take(filled).copied();
                        let want = want.chain(std::iter::repeat(0));
                        values.iter().zip(want).for_each(|(x, want)| expect(*x, want, prime));
                    }
                }
            }
        }
    }

    #[test]
    fn there_and_back_and_times_x() {
        for (prime, degree) in
            PRIMES.into_iter().flat_map(|p| [128, 2048, 8192, 32768].map(|n| (p, n)))
        {
            for level in Level::available() {
                let transform = Transform::new(level, degree, prime);
                let mut x = vec![0.0; degree];
                x[1] = 1.0;
                transform.forward(&mut x);
                for list in lists(degree, prime) {
                    let mut values: Vec<f64> = list.iter().map(|x| *x as f64).collect();
                    transform.forward(&mut values);
                    let mut moved = vec![0.0; degree];
                    transform.multiply_add(&mut moved, &values, &x);
                    transform.backward(&mut values);
                    transform.backward(&mut moved);
                    values.iter().zip(&list).for_each(|(x, want)| expect(*x, *want, prime));
                    moved[1..].iter().zip(&list).for_each(|(x, want)| expect(*x, *want, prime));
                    expect(moved[0], -list[degree - 1], prime);
                }
            }
        }
    }
}
