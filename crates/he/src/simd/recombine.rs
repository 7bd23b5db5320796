//! Residues mod two primes to the integers they stand for.

use super::modulus::Modulus;
use super::ntt::Factor;
use super::vector::Vector;
use super::{Level, Width};

/// Two primes below 2^50.
pub(crate) struct Recombine {
    primes: [u64; 2],
    /// The inverse of the first prime mod the second.
    inverse: Factor,
}

impl Recombine {
    /// `inverse` is that of the first prime mod the second.
    pub(crate) fn new(primes: [u64; 2], inverse: u64) -> Self {
        Self { primes, inverse: Factor::new(inverse, primes[1]) }
    }

    /// The low 64 bits of the integers of least magnitude that are `x` mod the first prime
    /// and `y` mod the second, both centred, for integers of magnitude at most 2^98 and
    /// primes of 50 bits. Leaves something else in `y`.
    ///
    /// # Panics
    /// For different lengths, or such as vectors do not fill.
    pub(crate) fn words(&self, level: Level, x: &[f64], y: &mut [f64]) -> Vec<u64> {
        assert!(x.len() == y.len() && x.len().is_multiple_of(level.lanes()));
        let Factor { value, quotient } = self.inverse;
        differences(level, x, y, value, quotient, self.primes[1] as f64);
        let mut words = vec![0; x.len()];
        combine(level, x, y, self.primes[0], &mut words);
        words
    }
}

kernel! {
    /// `(y - x) * value` mod the prime, centred, in place of y.
    differences = difference_each(
        x: &[f64], y: &mut [f64], value: f64, quotient: f64, prime: f64,
    )
}

/// # Safety
/// The instructions of `V`.
#[inline(always)]
unsafe fn difference_each<V: Vector>(
    x: &[f64],
    y: &mut [f64],
    value: f64,
    quotient: f64,
    prime: f64,
) {
    let chunks = x.chunks_exact(V::LANES).zip(y.chunks_exact_mut(V::LANES));
    for (x, y) in chunks {
        // SAFETY: the caller's promise; both chunks are a vector long.
        unsafe {
            let modulus = Modulus::<V>::new(prime);
            let difference = V::load(y.as_ptr()).sub(V::load(x.as_ptr()));
            let product = modulus.times(difference, V::splat(value), V::splat(quotient));
            modulus.centred(product).store(y.as_mut_ptr());
        }
    }
}

/// `x + prime * t` mod 2^64 for integers of magnitude below 2^50.
fn combine(level: Level, x: &[f64], t: &[f64], prime: u64, words: &mut [u64]) {
    match level.0 {
        Width::Scalar => combine_each(x, t, prime, words),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { combine256(x, t, prime, words) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { combine512(x, t, prime, words) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => combine_each(x, t, prime, words),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn combine256(x: &[f64], t: &[f64], prime: u64, words: &mut [u64]) {
    combine_each(x, t, prime, words);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn combine512(x: &[f64], t: &[f64], prime: u64, words: &mut [u64]) {
    combine_each(x, t, prime, words);
}

#[inline(always)]
fn combine_each(x: &[f64], t: &[f64], prime: u64, words: &mut [u64]) {
    /// With integers below 2^51 added, the low bits tell them.
    const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
    let integer = |value: f64| (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits());
    for ((x, t), word) in x.iter().zip(t).zip(words) {
        *word = integer(*x).wrapping_add(prime.wrapping_mul(integer(*t)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ntt::power;
    use super::*;
    use ring::Random;

    const PRIMES: [u64; 2] = [1_125_899_906_629_633, 1_125_899_906_826_241];

    /// `value` mod the prime, centred.
    fn residue(value: i128, prime: u64) -> f64 {
        let prime = i128::from(prime);
        let least = value.rem_euclid(prime);
        (if least > prime / 2 { least - prime } else { least }) as f64
    }

    #[test]
    fn integers_come_back_on_every_level() {
        let [p, q] = PRIMES;
        let recombine = Recombine::new(PRIMES, power(p, q - 2, q));
        let mut rng = Random::seeded(1);
        let words = rng.uniform(400, 64);
        let random = words.chunks(2).map(|pair| {
            let wide = i128::from(pair[0] as i64) << 34 | i128::from(pair[1] >> 30);
            wide.clamp(-(1 << 98), 1 << 98)
        });
        let edges = [0, 1, -1, 1 << 98, -(1 << 98), i128::from(p), -i128::from(q)];
        let edges = edges.into_iter().chain([i128::from(p / 2), -i128::from(q / 2) - 1]);
        let small = rng.uniform(15, 60).into_iter().map(i128::from);
        let values: Vec<i128> = random.chain(edges).chain(small).collect();
        assert!(values.len().is_multiple_of(8));
        for level in Level::available() {
            let [x, mut y] =
                PRIMES.map(|prime| values.iter().map(|v| residue(*v, prime)).collect::<Vec<_>>());
            let got = recombine.words(level, &x, &mut y);
            let want: Vec<u64> = values.iter().map(|value| *value as u64).collect();
            assert_eq!(got, want, "{level:?}");
        }
    }
}
