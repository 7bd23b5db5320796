//! Sums of products mod a prime below 2^50: of digits and keys, of residues that change
//! primes. Lists are as in [`super::residue`].

use super::modulus::Modulus;
use super::ntt::{Factor, LAZY};
use super::residue::checked;
use super::vector::Vector;

kernel! {
    /// `out = sum of values[i] * inverses[i]`, rounded: lists as long as `out` one after
    /// another, sums below 2^50.
    quotients = quotients_body(out: &mut [f64], values: &[f64], inverses: &[f64])
}
kernel! {
    /// `out = sum of values[i] * factors[i]`, centred, and `quotients` times the last
    /// factor: lists as long as `out` one after another, of magnitude below 2^50.
    combine = combine_body(prime: f64, out: &mut [f64], values: &[f64], quotients: &[f64], factors: &[Factor])
}
kernel! {
    /// `first = sum of digits[d] * keys[d][0]`, centred, and `second` with `keys[d][1]`:
    /// lists one after another, of each key its halves. There may be more keys than digits.
    inner = inner_body(
        prime: f64, first: &mut [f64], second: &mut [f64], digits: &[f64], keys: &[f64],
    )
}

/// # Safety
/// Here and below the instructions of `V`. The lengths are checked at the start, so
/// that all places are inside the lists.
#[inline(always)]
unsafe fn quotients_body<V: Vector>(out: &mut [f64], values: &[f64], inverses: &[f64]) {
    let length = checked::<V>(out.len(), &[]);
    assert_eq!(values.len(), inverses.len() * length);
    let (out, values) = (out.as_mut_ptr(), values.as_ptr());
    // SAFETY: the caller's promise and the checks above.
    unsafe {
        let modulus = Modulus::<V>::new(1.0);
        for at in (0..length).step_by(V::LANES) {
            let mut sum = V::splat(0.0);
            for (i, inverse) in inverses.iter().enumerate() {
                sum = V::load(values.add(i * length + at)).mul_add(V::splat(*inverse), sum);
            }
            modulus.rounded(sum).store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn combine_body<V: Vector>(
    prime: f64,
    out: &mut [f64],
    values: &[f64],
    quotients: &[f64],
    factors: &[Factor],
) {
    let length = checked::<V>(out.len(), &[quotients.len()]);
    let count = values.len() / length.max(1);
    assert!(factors.len() == count + 1 && values.len() == count * length);
    let (out, values, quotients) = (out.as_mut_ptr(), values.as_ptr(), quotients.as_ptr());
    // SAFETY: the caller's promise and the checks above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        for at in (0..length).step_by(V::LANES) {
            let mut sum = V::splat(0.0);
            for (i, factor) in factors.iter().enumerate() {
                let from = if i < count { values.add(i * length) } else { quotients };
                let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
                sum = sum.add(modulus.times(V::load(from.add(at)), value, quotient));
                if i % LAZY == LAZY - 1 {
                    sum = modulus.centred(sum);
                }
            }
            modulus.centred(sum).store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn inner_body<V: Vector>(
    prime: f64,
    first: &mut [f64],
    second: &mut [f64],
    digits: &[f64],
    keys: &[f64],
) {
    let degree = checked::<V>(first.len(), &[second.len()]);
    let count = digits.len() / degree.max(1);
    assert!(digits.len() == count * degree && keys.len() >= 2 * count * degree);
    let (to_first, to_second) = (first.as_mut_ptr(), second.as_mut_ptr());
    let (digits, keys) = (digits.as_ptr(), keys.as_ptr());
    // SAFETY: the caller's promise and the checks above.
    unsafe {
        let modulus = Modulus::<V>::new(prime);
        let inverse = V::splat(1.0 / prime);
        for at in (0..degree).step_by(V::LANES) {
            let (mut first, mut second) = (V::splat(0.0), V::splat(0.0));
            for d in 0..count {
                let digit = V::load(digits.add(d * degree + at));
                let quotient = digit.mul(inverse);
                let key = keys.add(2 * d * degree + at);
                first = first.add(modulus.times(V::load(key), digit, quotient));
                second = second.add(modulus.times(V::load(key.add(degree)), digit, quotient));
                if d % LAZY == LAZY - 1 {
                    (first, second) = (modulus.centred(first), modulus.centred(second));
                }
            }
            modulus.centred(first).store(to_first.add(at));
            modulus.centred(second).store(to_second.add(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;
    use crate::simd::residue::tests::{DEGREE, PRIMES, congruent, floats, residues};
    use ring::Random;

    #[test]
    fn combinations_of_lists() {
        let mut rng = Random::seeded(10);
        for (level, prime) in Level::available().into_iter().flat_map(|l| PRIMES.map(|p| (l, p))) {
            for count in [1, 3, 6] {
                let lists: Vec<i64> =
                    (0..count).flat_map(|_| residues(&mut rng, PRIMES[0])).collect();
                let values = floats(&lists);
                let inverses = vec![1.0 / PRIMES[0] as f64; count];
                let mut quotients = vec![0.5; DEGREE];
                super::quotients(level, &mut quotients, &values, &inverses);
                let lists = &lists;
                let sum = |n: usize| (0..count).map(move |i| i128::from(lists[i * DEGREE + n]));
                for (n, quotient) in quotients.iter().enumerate() {
                    let exact = sum(n).sum::<i128>() as f64 / PRIMES[0] as f64;
                    assert!((quotient - exact).abs() <= 0.5 + 1e-9 && quotient.fract() == 0.0);
                }
                let scalars: Vec<u64> = (0..=count as u64).map(|i| prime - 3 - i).collect();
                let factors: Vec<Factor> = scalars.iter().map(|x| Factor::new(*x, prime)).collect();
                let mut out = vec![0.5; DEGREE];
                combine(level, prime as f64, &mut out, &values, &quotients, &factors);
                let want = (0..DEGREE).map(|n| {
                    let terms = sum(n).chain([quotients[n] as i128]).zip(3i128..);
                    terms.map(|(x, k)| -x * k).sum()
                });
                congruent(&out, want, prime);
            }
        }
    }

    #[test]
    fn inner_products_of_any_number_of_digits() {
        let mut rng = Random::seeded(8);
        for (level, prime) in Level::available().into_iter().flat_map(|l| PRIMES.map(|p| (l, p))) {
            for count in [1, 2, 4, 5, 11] {
                let mut list =
                    |n: usize| (0..n).flat_map(|_| residues(&mut rng, prime)).collect::<Vec<i64>>();
                let (digits, keys) = (list(count), list(2 * count));
                let mut sums = vec![3.0; 2 * DEGREE];
                let (first, second) = sums.split_at_mut(DEGREE);
                inner(level, prime as f64, first, second, &floats(&digits), &floats(&keys));
                let want = (0..2 * DEGREE).map(|at| {
                    let (half, n) = (at / DEGREE, at % DEGREE);
                    let product = |d: usize| {
                        let key = keys[(2 * d + half) * DEGREE + n];
                        i128::from(digits[d * DEGREE + n]) * i128::from(key)
                    };
                    (0..count).map(product).sum()
                });
                congruent(&sums, want, prime);
            }
        }
    }
}
