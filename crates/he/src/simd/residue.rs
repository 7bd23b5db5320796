//! Residues mod a prime below 2^50, held as centred f64: sums, products, changes of
//! prime, digits, permutations.
//!
//! Lists are as long as a ring degree, a multiple of every vector's lanes. "Centred" is
//! half the prime in magnitude up to the rounding of a quotient.

use super::modulus::Modulus;
use super::ntt::Factor;
use super::vector::Vector;

kernel! {
    /// `a + b`, centred.
    ///
    /// # Panics
    /// Here and below for lengths that differ or are no multiple of the lanes.
    add = add_body(prime: f64, a: &mut [f64], b: &[f64])
}
kernel! {
    /// `a - b`, centred.
    subtract = subtract_body(prime: f64, a: &mut [f64], b: &[f64])
}
kernel! {
    /// `out = a * b`, centred, of centred factors.
    multiply = multiply_body(prime: f64, out: &mut [f64], a: &[f64], b: &[f64])
}
kernel! {
    /// `sums + x * factor`, centred, for centred sums and `x` below 2^50 in magnitude.
    add_scaled = add_scaled_body(prime: f64, sums: &mut [f64], x: &[f64], factor: Factor)
}
kernel! {
    /// `sums - a * b`, centred, of centred ones.
    subtract_product = subtract_product_body(prime: f64, sums: &mut [f64], a: &[f64], b: &[f64])
}
kernel! {
    /// `x * factor`, centred, for `x` below 2^50 in magnitude.
    scale = scale_body(prime: f64, x: &mut [f64], factor: Factor)
}
kernel! {
    /// `out = x * factor`, centred, for `x` below 2^50 in magnitude.
    scaled = scaled_body(prime: f64, out: &mut [f64], x: &[f64], factor: Factor)
}
kernel! {
    /// `out = (x - y) * factor`, centred, of centred ones.
    scale_difference = scale_difference_body(prime: f64, out: &mut [f64], x: &[f64], y: &[f64], factor: Factor)
}
kernel! {
    /// `a + b - c`, centred, of centred ones.
    add_subtract = add_subtract_body(prime: f64, a: &mut [f64], b: &[f64], c: &[f64])
}
kernel! {
    /// Integers below 2^52 in magnitude, centred mod the prime.
    lift = lift_body(prime: f64, out: &mut [f64], x: &[f64])
}
kernel! {
    /// Takes the centred last digit to the base, a power of two, off each number: the
    /// digit to `digits`, and what is left is divided by the base.
    split = split_body(base: f64, digits: &mut [f64], rest: &mut [f64])
}

/// # Safety
/// Here and below the instructions of `V`. The lengths are checked at the start, so
/// that all places are inside the lists.
#[inline(always)]
unsafe fn add_body<V: Vector>(prime: f64, a: &mut [f64], b: &[f64]) {
    let length = checked::<V>(a.len(), &[b.len()]);
    let (a, b) = (a.as_mut_ptr(), b.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            modulus.centred(V::load(a.add(at)).add(V::load(b.add(at)))).store(a.add(at));
        }
    }
}

#[inline(always)]
unsafe fn subtract_body<V: Vector>(prime: f64, a: &mut [f64], b: &[f64]) {
    let length = checked::<V>(a.len(), &[b.len()]);
    let (a, b) = (a.as_mut_ptr(), b.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            modulus.centred(V::load(a.add(at)).sub(V::load(b.add(at)))).store(a.add(at));
        }
    }
}

#[inline(always)]
unsafe fn add_subtract_body<V: Vector>(prime: f64, a: &mut [f64], b: &[f64], c: &[f64]) {
    let length = checked::<V>(a.len(), &[b.len(), c.len()]);
    let (a, b, c) = (a.as_mut_ptr(), b.as_ptr(), c.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            let sum = V::load(a.add(at)).add(V::load(b.add(at))).sub(V::load(c.add(at)));
            modulus.centred(sum).store(a.add(at));
        }
    }
}

#[inline(always)]
unsafe fn multiply_body<V: Vector>(prime: f64, out: &mut [f64], a: &[f64], b: &[f64]) {
    let length = checked::<V>(out.len(), &[a.len(), b.len()]);
    let (out, a, b) = (out.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            modulus.product(V::load(a.add(at)), V::load(b.add(at))).store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn add_scaled_body<V: Vector>(prime: f64, sums: &mut [f64], x: &[f64], factor: Factor) {
    let length = checked::<V>(sums.len(), &[x.len()]);
    let (sums, x) = (sums.as_mut_ptr(), x.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
        for at in (0..length).step_by(V::LANES) {
            let product = modulus.times(V::load(x.add(at)), value, quotient);
            modulus.centred(product.add(V::load(sums.add(at)))).store(sums.add(at));
        }
    }
}

#[inline(always)]
unsafe fn subtract_product_body<V: Vector>(prime: f64, sums: &mut [f64], a: &[f64], b: &[f64]) {
    let length = checked::<V>(sums.len(), &[a.len(), b.len()]);
    let (sums, a, b) = (sums.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            let product = modulus.product(V::load(a.add(at)), V::load(b.add(at)));
            modulus.centred(V::load(sums.add(at)).sub(product)).store(sums.add(at));
        }
    }
}

#[inline(always)]
unsafe fn scale_body<V: Vector>(prime: f64, x: &mut [f64], factor: Factor) {
    let length = checked::<V>(x.len(), &[]);
    let x = x.as_mut_ptr();
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
        for at in (0..length).step_by(V::LANES) {
            let product = modulus.times(V::load(x.add(at)), value, quotient);
            modulus.centred(product).store(x.add(at));
        }
    }
}

#[inline(always)]
unsafe fn scaled_body<V: Vector>(prime: f64, out: &mut [f64], x: &[f64], factor: Factor) {
    let length = checked::<V>(out.len(), &[x.len()]);
    let (out, x) = (out.as_mut_ptr(), x.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
        for at in (0..length).step_by(V::LANES) {
            let product = modulus.times(V::load(x.add(at)), value, quotient);
            modulus.centred(product).store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn scale_difference_body<V: Vector>(
    prime: f64,
    out: &mut [f64],
    x: &[f64],
    y: &[f64],
    factor: Factor,
) {
    let length = checked::<V>(out.len(), &[x.len(), y.len()]);
    let (out, x, y) = (out.as_mut_ptr(), x.as_ptr(), y.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
        for at in (0..length).step_by(V::LANES) {
            let difference = V::load(x.add(at)).sub(V::load(y.add(at)));
            modulus.centred(modulus.times(difference, value, quotient)).store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn lift_body<V: Vector>(prime: f64, out: &mut [f64], x: &[f64]) {
    let length = checked::<V>(out.len(), &[x.len()]);
    let (out, x) = (out.as_mut_ptr(), x.as_ptr());
    // SAFETY: the caller's promise and the check above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            modulus.centred(V::load(x.add(at))).store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn split_body<V: Vector>(base: f64, digits: &mut [f64], rest: &mut [f64]) {
    let length = checked::<V>(rest.len(), &[digits.len()]);
    let (digits, rest) = (digits.as_mut_ptr(), rest.as_mut_ptr());
    // SAFETY: the caller's promise and the check above. The base is a power of two:
    // all steps are exact.
    unsafe {
        let modulus = Modulus::<V>::new(base);
        let inverse = V::splat(1.0 / base);
        for at in (0..length).step_by(V::LANES) {
            let x = V::load(rest.add(at));
            let digit = modulus.centred(x);
            digit.store(digits.add(at));
            x.sub(digit).mul(inverse).store(rest.add(at));
        }
    }
}

/// The length, when all are equal and whole vectors.
#[inline(always)]
pub(super) fn checked<V: Vector>(length: usize, others: &[usize]) -> usize {
    assert!(others.iter().all(|other| *other == length) && length.is_multiple_of(V::LANES));
    length
}

/// Places below their number.
pub(crate) struct Permutation(Vec<u32>);

impl Permutation {
    /// # Panics
    /// For places that are not below their number.
    pub(crate) fn new(places: Vec<u32>) -> Self {
        assert!(places.iter().all(|place| (*place as usize) < places.len()));
        Self(places)
    }

    /// The places.
    pub(crate) fn places(&self) -> &[u32] {
        &self.0
    }
}

/// `out[i] = from[permutation[i]]`. One by one: many machines gather no faster.
///
/// # Panics
/// For lengths that differ.
pub(crate) fn gather(out: &mut [f64], from: &[f64], permutation: &Permutation) {
    assert!([out.len(), from.len()] == [permutation.0.len(); 2]);
    for (out, place) in out.iter_mut().zip(&permutation.0) {
        // SAFETY: places are below their number, which is that of `from`.
        *out = unsafe { *from.get_unchecked(*place as usize) };
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::simd::Level;
    use ring::Random;

    pub(in crate::simd) const PRIMES: [u64; 3] = [1_125_899_906_826_241, 68_718_428_161, 1_032_193];
    pub(in crate::simd) const DEGREE: usize = 128;

    /// Centred residues, the extremes among them.
    pub(in crate::simd) fn residues(rng: &mut Random, prime: u64) -> Vec<i64> {
        let half = (prime / 2) as i64;
        let words = rng.uniform(DEGREE - 4, 50).into_iter();
        let inside = words.map(|word| (word % prime) as i64 - half);
        inside.chain([half, -half, 0, 1]).collect()
    }

    pub(in crate::simd) fn floats(values: &[i64]) -> Vec<f64> {
        values.iter().map(|x| *x as f64).collect()
    }

    #[track_caller]
    pub(in crate::simd) fn congruent(got: &[f64], want: impl Iterator<Item = i128>, prime: u64) {
        for (got, want) in got.iter().zip(want) {
            assert!(got.abs() <= 0.75 * prime as f64, "{got} mod {prime}");
            assert_eq!((*got as i128 - want) % i128::from(prime), 0, "{got} mod {prime}");
        }
    }

    #[test]
    fn every_level_equals_integers() {
        let mut rng = Random::seeded(6);
        for (level, prime) in Level::available().into_iter().flat_map(|l| PRIMES.map(|p| (l, p))) {
            let [a, b] = [0, 1].map(|_| residues(&mut rng, prime));
            let [x, y] = [&a, &b].map(|values| floats(values));
            let pairs = || a.iter().zip(&b).map(|(a, b)| (i128::from(*a), i128::from(*b)));
            let (float, factor) = (prime as f64, Factor::new(prime - 5, prime));
            let mut out = x.clone();
            add(level, float, &mut out, &y);
            congruent(&out, pairs().map(|(a, b)| a + b), prime);
            out.copy_from_slice(&x);
            subtract(level, float, &mut out, &y);
            congruent(&out, pairs().map(|(a, b)| a - b), prime);
            out.copy_from_slice(&x);
            add_subtract(level, float, &mut out, &y, &x);
            congruent(&out, pairs().map(|(_, b)| b), prime);
            multiply(level, float, &mut out, &x, &y);
            congruent(&out, pairs().map(|(a, b)| a * b), prime);
            out.copy_from_slice(&y);
            add_scaled(level, float, &mut out, &x, factor);
            congruent(&out, pairs().map(|(a, b)| b - 5 * a), prime);
            out.copy_from_slice(&y);
            subtract_product(level, float, &mut out, &x, &y);
            congruent(&out, pairs().map(|(a, b)| b - a * b), prime);
            scale_difference(level, float, &mut out, &x, &y, factor);
            congruent(&out, pairs().map(|(a, b)| 5 * (b - a)), prime);
            scaled(level, float, &mut out, &x, factor);
            congruent(&out, pairs().map(|(a, _)| -5 * a), prime);
            out.copy_from_slice(&x);
            scale(level, float, &mut out, factor);
            congruent(&out, pairs().map(|(a, _)| -5 * a), prime);
            lift(level, PRIMES[1] as f64, &mut out, &x);
            congruent(&out, pairs().map(|(a, _)| a), PRIMES[1]);
        }
    }

    #[test]
    fn digits_add_up() {
        let mut rng = Random::seeded(7);
        let a = residues(&mut rng, PRIMES[0]);
        for level in Level::available() {
            let (mut rest, mut digits) = (floats(&a), vec![0.0; DEGREE]);
            split(level, 2f64.powi(17), &mut digits, &mut rest);
            for ((digit, rest), a) in digits.iter().zip(&rest).zip(&a) {
                assert!(digit.abs() <= 65536.0, "{level:?}");
                assert_eq!(*rest as i64 * (1 << 17) + *digit as i64, *a, "{level:?}");
            }
        }
    }

    #[test]
    fn permutations_permute() {
        let places: Vec<u32> = (0..DEGREE as u32).map(|i| i * 37 % DEGREE as u32).collect();
        let from: Vec<f64> = (0..DEGREE).map(|i| i as f64).collect();
        let permutation = Permutation::new(places);
        let mut out = vec![-1.0; DEGREE];
        gather(&mut out, &from, &permutation);
        assert!(out.iter().zip(permutation.places()).all(|(x, p)| *x == f64::from(*p)));
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn places_beyond_the_list_are_refused() {
        Permutation::new(vec![0, 1, 3]);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn lists_of_different_lengths_are_refused() {
        add(Level::best(), 97.0, &mut [0.0; 64], &[0.0; 56]);
    }
}
