//! The transform mod a plaintext prime of 50 to 60 bits, on integers.

use ring::word::spread;

use crate::simd::ntt::{power, powers, root};

/// Integers mod a prime below 2^60.
#[derive(Clone, Copy)]
struct Modulus(u64);

/// A constant factor and its quotient by the prime, times 2^64 (Shoup).
#[derive(Clone, Copy)]
struct Factor {
    value: u64,
    quotient: u64,
}

/// The transform of one degree and prime.
pub(crate) struct Transform {
    modulus: Modulus,
    /// Forward and back, per level and block.
    factors: [Vec<Factor>; 2],
    /// 1/N.
    last: Factor,
}

impl Modulus {
    /// `x` from below twice the prime.
    const fn reduced(self, x: u64) -> u64 {
        let less = x.wrapping_sub(self.0);
        less.wrapping_add(self.0 & spread(less >> 63))
    }

    const fn times(self, x: u64, factor: Factor) -> u64 {
        let quotient = ((x as u128 * factor.quotient as u128) >> 64) as u64;
        let product = x.wrapping_mul(factor.value);
        self.reduced(product.wrapping_sub(quotient.wrapping_mul(self.0)))
    }

    fn factor(self, value: u64) -> Factor {
        Factor { value, quotient: ((u128::from(value) << 64) / u128::from(self.0)) as u64 }
    }
}

impl Transform {
    pub(crate) fn new(degree: usize, prime: u64) -> Self {
        let modulus = Modulus(prime);
        let root = root(degree, prime);
        let factors = [root, power(root, prime - 2, prime)]
            .map(|root| powers(root, degree, prime).map(|x| modulus.factor(x)).collect());
        let last = modulus.factor(power(degree as u64, prime - 2, prime));
        Self { modulus, factors, last }
    }

    /// Coefficients below the prime to values, in bit-reversed order.
    pub(crate) fn forward(&self, values: &mut [u64]) {
        let [factors, _] = &self.factors;
        let mut half = values.len() / 2;
        while half > 0 {
            let blocks = values.len() / (2 * half);
            let factors = factors.iter().skip(blocks);
            for (block, factor) in values.chunks_exact_mut(2 * half).zip(factors) {
                let (low, high) = block.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    let (u, v) = (*low, self.modulus.times(*high, *factor));
                    *low = self.modulus.reduced(u + v);
                    *high = self.modulus.reduced(u + self.modulus.0 - v);
                }
            }
            half /= 2;
        }
    }

    /// The inverse of [`Transform::forward`].
    pub(crate) fn backward(&self, values: &mut [u64]) {
        let [_, factors] = &self.factors;
        let mut half = 1;
        while half < values.len() {
            let blocks = values.len() / (2 * half);
            let factors = factors.iter().skip(blocks);
            for (block, factor) in values.chunks_exact_mut(2 * half).zip(factors) {
                let (low, high) = block.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    let (u, v) = (*low, *high);
                    *low = self.modulus.reduced(u + v);
                    *high = self.modulus.times(u + self.modulus.0 - v, *factor);
                }
            }
            half *= 2;
        }
        values.iter_mut().for_each(|x| *x = self.modulus.times(*x, self.last));
    }

    /// All of `values` times `factor`.
    pub(crate) fn scale(&self, values: &mut [u64], factor: u64) {
        let factor = self.modulus.factor(factor);
        values.iter_mut().for_each(|x| *x = self.modulus.times(*x, factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_products_of_x() {
        let (degree, prime) = (2048, (1 << 60) - (1 << 14) * 3);
        let prime = (0..).map(|i| prime + 1 - i * 4096).find(|n| crate::bfv::is_prime(*n));
        let prime: u64 = prime.unwrap_or(0);
        let transform = Transform::new(degree, prime);
        let values: Vec<u64> = (0..degree as u64).map(|i| power(7, i, prime)).collect();
        let mut moved = values.clone();
        transform.forward(&mut moved);
        assert!(moved.iter().all(|x| *x < prime) && moved != values);
        let mut x = vec![0; degree];
        x[1] = 1;
        transform.forward(&mut x);
        for (moved, x) in moved.iter_mut().zip(&x) {
            *moved = (u128::from(*moved) * u128::from(*x) % u128::from(prime)) as u64;
        }
        transform.backward(&mut moved);
        assert_eq!(moved[1..], values[..degree - 1]);
        assert_eq!(moved[0], prime - values[degree - 1]);
        transform.scale(&mut moved, 2);
        assert_eq!(moved[1], 2);
    }
}
