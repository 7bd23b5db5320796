//! Integers mod a prime below 2^62, in time that does not depend on them.

use he::bfv::{Encoder, Params};
use ring::Random;
use wire::{Error, Result};
use zeroize::Zeroizing;

/// `a + b mod prime`, both reduced.
pub(in crate::linear) fn add(a: u64, b: u64, prime: u64) -> u64 {
    let over = (a + b).wrapping_sub(prime);
    // All ones where the sum was below the prime.
    let below = ((over as i64) >> 63) as u64;
    over.wrapping_add(prime & below)
}

/// `-a mod prime`, of a reduced a.
pub(in crate::linear) fn negate(a: u64, prime: u64) -> u64 {
    add(prime - a, 0, prime)
}

/// The residue of a signed integer of less than the prime's magnitude.
pub(in crate::linear) fn lift(value: i64, prime: u64) -> u64 {
    (value as u64).wrapping_add(prime & (value >> 63) as u64)
}

/// `count` residues, uniform up to 2^-66 each.
pub(in crate::linear) fn uniform(
    rng: &mut Random,
    count: usize,
    prime: u64,
) -> Zeroizing<Vec<u64>> {
    let words = Zeroizing::new(rng.uniform(2 * count, u64::BITS));
    let (pairs, _) = words.as_chunks::<2>();
    let scaled = pairs.iter().map(|[low, high]| {
        let (low, high) = (u128::from(*low), u128::from(*high));
        let prime = u128::from(prime);
        ((high * prime + ((low * prime) >> 64)) >> 64) as u64
    });
    Zeroizing::new(scaled.collect())
}

/// Refuses shares that are not `count` residues, and keys of other parameters than `encoder`'s.
///
/// # Errors
/// [`Error::Misuse`] then.
pub(in crate::linear) fn check(
    x: &[u64],
    count: usize,
    encoder: &Encoder,
    params: &Params,
) -> Result<()> {
    // Every share is looked at, so that the time does not tell which one is too large.
    let most = encoder.prime() - 1;
    let excess = x.iter().fold(0, |any, value| any | value | most.wrapping_sub(*value));
    if x.len() != count || excess >> 63 != 0 {
        return Err(Error::misuse("shares that do not fit their linear layer"));
    }
    if params != encoder.params() {
        return Err(Error::misuse("a key that does not fit the layer"));
    }
    Ok(())
}

/// The server's share of a result, bias minus mask, by one bias for each channel.
pub(in crate::linear) fn biased(bias: &[i64], masks: &[u64], prime: u64) -> Zeroizing<Vec<u64>> {
    let each = masks.len() / bias.len().max(1);
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(lift(*b, prime), each));
    let shares = masks.iter().zip(biases).map(|(mask, b)| add(negate(*mask, prime), b, prime));
    Zeroizing::new(shares.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_that_of_residues() {
        for prime in [5u64, 12289, (1 << 61) - 1] {
            let edges = [0, 1, 2, prime / 2, prime - 2, prime - 1];
            for a in edges {
                assert_eq!(add(a, negate(a, prime), prime), 0);
                assert_eq!(lift(a as i64, prime), a);
                assert_eq!(lift(-(a as i64), prime), negate(a, prime));
                for b in edges {
                    let sum = (u128::from(a) + u128::from(b)) % u128::from(prime);
                    assert_eq!(u128::from(add(a, b, prime)), sum);
                }
            }
        }
    }

    #[test]
    fn residues_are_uniform() {
        let (prime, count) = (12289u64, 1 << 16);
        let mut bins = [0f64; 16];
        for residue in uniform(&mut Random::seeded(1), count, prime).iter() {
            assert!(*residue < prime);
            bins[(residue * 16 / prime) as usize] += 1.0;
        }
        let expected = count as f64 / 16.0;
        let statistic: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(statistic < 50.0, "chi-square {statistic} of 15 degrees of freedom");
    }
}
