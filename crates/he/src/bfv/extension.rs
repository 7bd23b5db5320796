//! From residues mod some primes to residues mod others.
//!
//! An integer x, |x| < q/2, with residues x_i is the sum of y_i * q/q_i less v*q, where
//! y_i = x_i * (q/q_i)^-1 mod q_i, centred, and v the rounded sum of y_i/q_i: exact but
//! where that sum is so near to a half that x and x - q are the same to whoever asks.
//! Source: Halevi, Polyakov, Shoup, "An improved RNS variant of the BFV homomorphic
//! encryption scheme" (CT-RSA 2019), section 2.

use super::ring::Prime;
use super::values::Values;
use crate::simd::ntt::Factor;
use crate::simd::{Level, residue, sums};

/// From the product of some primes to others.
pub(crate) struct Extension {
    level: Level,
    from: Vec<From>,
    to: Vec<To>,
}

struct From {
    prime: f64,
    /// (q/q_i)^-1, times what every integer is multiplied by before.
    factor: Factor,
}

struct To {
    prime: f64,
    /// q/q_i for every i, and -q.
    factors: Vec<Factor>,
}

impl Extension {
    /// Extends x * `scale` mod q, centred.
    pub(crate) fn new(level: Level, from: &[Prime], to: &[Prime], scale: u64) -> Self {
        let without = |modulus: &Prime, skipped: Option<usize>| {
            let rest = from.iter().enumerate().filter(|(j, _)| Some(*j) != skipped);
            rest.fold(1, |x, (_, other)| modulus.product(x, other.value % modulus.value))
        };
        let source = |(i, prime): (usize, &Prime)| {
            let inverse = prime.inverse(without(prime, Some(i)));
            let factor = prime.product(inverse, scale % prime.value);
            From { prime: prime.float(), factor: Factor::new(factor, prime.value) }
        };
        let target = |prime: &Prime| {
            let parts = (0..from.len()).map(|i| without(prime, Some(i)));
            let whole = prime.value - without(prime, None);
            let factors = parts.chain([whole]).map(|x| Factor::new(x, prime.value)).collect();
            To { prime: prime.float(), factors }
        };
        let (from, to) = (from.iter().enumerate().map(source).collect(), to.iter().map(target));
        Self { level, to: to.collect(), from }
    }

    /// Residues mod each prime in turn; what is given is scaled in place.
    pub(crate) fn apply(&self, values: &mut [f64]) -> Values {
        let degree = values.len() / self.from.len().max(1);
        for (from, values) in self.from.iter().zip(values.chunks_exact_mut(degree)) {
            residue::scale(self.level, from.prime, values, from.factor);
        }
        let inverses: Vec<f64> = self.from.iter().map(|from| 1.0 / from.prime).collect();
        let mut quotients = Values::zero(degree);
        sums::quotients(self.level, &mut quotients, values, &inverses);
        let mut out = Values::zero(degree * self.to.len());
        for (to, out) in self.to.iter().zip(out.chunks_exact_mut(degree)) {
            sums::combine(self.level, to.prime, out, values, &quotients, &to.factors);
        }
        out
    }
}
