//! Integers mod a power of two as centred f64, and back.

use ring::word::mask;

use super::{Level, Width};

/// Writes `values` mod 2^bits, centred, to `out`; exact for up to 53 bits.
pub(crate) fn centred(level: Level, values: &[u64], bits: u32, out: &mut [f64]) {
    match level.0 {
        Width::Scalar => centred_each(values, bits, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { centred256(values, bits, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { centred512(values, bits, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => centred_each(values, bits, out),
    }
}

/// Integers below 2^62 in magnitude mod a prime below 2^50, about half of it at most.
pub(crate) fn residues(level: Level, values: &[i64], prime: u64, out: &mut [f64]) {
    match level.0 {
        Width::Scalar => residues_each(values, prime, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { residues256(values, prime, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { residues512(values, prime, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => residues_each(values, prime, out),
    }
}

/// Words mod 2^bits, centred, mod a prime of 50 bits, about half of it at most.
pub(crate) fn wide(level: Level, values: &[u64], bits: u32, prime: u64, out: &mut [f64]) {
    match level.0 {
        Width::Scalar => wide_each(values, bits, prime, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { wide256(values, bits, prime, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { wide512(values, bits, prime, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => wide_each(values, bits, prime, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide256(values: &[u64], bits: u32, prime: u64, out: &mut [f64]) {
    wide_each(values, bits, prime, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn wide512(values: &[u64], bits: u32, prime: u64, out: &mut [f64]) {
    wide_each(values, bits, prime, out);
}

/// The quotient is below 2^14, so that it is a half off at most, and very little.
#[inline(always)]
fn wide_each(values: &[u64], bits: u32, prime: u64, out: &mut [f64]) {
    /// Adding and subtracting it rounds to an integer, which the low bits tell.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    let (unused, inverse) = (u64::BITS - bits, 1.0 / prime as f64);
    for (out, value) in out.iter_mut().zip(values) {
        let value = ((value << unused) as i64) >> unused;
        let rounded = value as f64 * inverse + ROUND;
        let quotient = rounded.to_bits().wrapping_sub(ROUND.to_bits());
        let rest = (value as u64).wrapping_sub(quotient.wrapping_mul(prime));
        *out = f64::from_bits(rest.wrapping_add(ROUND.to_bits())) - ROUND;
    }
}

/// 2^52: with integers below it added, the low bits are the integer.
const WHOLE: f64 = (1u64 << 52) as f64;

/// Integers of magnitude below 2^51.
pub(crate) fn small(level: Level, values: &[i64], out: &mut [f64]) {
    match level.0 {
        Width::Scalar => small_each(values, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { small256(values, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { small512(values, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => small_each(values, out),
    }
}

/// Integers below a prime below 2^50, centred.
pub(crate) fn from_words(level: Level, words: &[u64], prime: u64, out: &mut [f64]) {
    match level.0 {
        Width::Scalar => from_words_each(words, prime, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { from_words256(words, prime, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { from_words512(words, prime, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => from_words_each(words, prime, out),
    }
}

/// Residues above minus a prime below 2^50, and below it, as integers below it.
pub(crate) fn to_words(level: Level, values: &[f64], prime: u64, out: &mut [u64]) {
    match level.0 {
        Width::Scalar => to_words_each(values, prime, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { to_words256(values, prime, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { to_words512(values, prime, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => to_words_each(values, prime, out),
    }
}

/// Adds integers of magnitude below 2^53, times 2^shift, to words mod 2^bits.
pub(crate) fn add_shifted(level: Level, words: &mut [u64], values: &[f64], shift: u32, bits: u32) {
    match level.0 {
        Width::Scalar | Width::Fma256 => add_each(words, values, shift, bits),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { add512(words, values, shift, bits) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => add_each(words, values, shift, bits),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn centred256(values: &[u64], bits: u32, out: &mut [f64]) {
    centred_each(values, bits, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn centred512(values: &[u64], bits: u32, out: &mut [f64]) {
    centred_each(values, bits, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn add512(words: &mut [u64], values: &[f64], shift: u32, bits: u32) {
    add_each(words, values, shift, bits);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn from_words256(words: &[u64], prime: u64, out: &mut [f64]) {
    from_words_each(words, prime, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn from_words512(words: &[u64], prime: u64, out: &mut [f64]) {
    from_words_each(words, prime, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn to_words256(values: &[f64], prime: u64, out: &mut [u64]) {
    to_words_each(values, prime, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn to_words512(values: &[f64], prime: u64, out: &mut [u64]) {
    to_words_each(values, prime, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn small256(values: &[i64], out: &mut [f64]) {
    small_each(values, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn small512(values: &[i64], out: &mut [f64]) {
    small_each(values, out);
}

#[inline(always)]
fn small_each(values: &[i64], out: &mut [f64]) {
    for (out, value) in out.iter_mut().zip(values) {
        let shifted = (*value as u64).wrapping_add(1 << 51);
        *out = f64::from_bits(shifted | WHOLE.to_bits()) - 1.5 * WHOLE;
    }
}

#[inline(always)]
fn from_words_each(words: &[u64], prime: u64, out: &mut [f64]) {
    let half = prime / 2;
    for (out, word) in out.iter_mut().zip(words) {
        let above = ((half.wrapping_sub(*word) as i64) >> 63) as u64;
        // From 2^51 on, so that the sum with 2^52 keeps the exponent.
        let shifted = word.wrapping_sub(prime & above).wrapping_add(1 << 51);
        *out = f64::from_bits(shifted | WHOLE.to_bits()) - 1.5 * WHOLE;
    }
}

#[inline(always)]
fn to_words_each(values: &[f64], prime: u64, out: &mut [u64]) {
    for (out, value) in out.iter_mut().zip(values) {
        let integer = (value + 1.5 * WHOLE).to_bits().wrapping_sub((1.5 * WHOLE).to_bits());
        *out = integer.wrapping_add(prime & ((integer as i64) >> 63) as u64);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn residues256(values: &[i64], prime: u64, out: &mut [f64]) {
    residues_each(values, prime, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn residues512(values: &[i64], prime: u64, out: &mut [f64]) {
    residues_each(values, prime, out);
}

/// The quotient is below 2^43 for primes above 2^19, so that it is a half off at most,
/// and very little.
#[inline(always)]
fn residues_each(values: &[i64], prime: u64, out: &mut [f64]) {
    /// Adding and subtracting it rounds to an integer.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    let inverse = 1.0 / prime as f64;
    for (out, value) in out.iter_mut().zip(values) {
        let quotient = ((*value as f64 * inverse + ROUND) - ROUND) as i64;
        *out = value.wrapping_sub(quotient.wrapping_mul(prime as i64)) as f64;
    }
}

#[inline(always)]
fn centred_each(values: &[u64], bits: u32, out: &mut [f64]) {
    let unused = u64::BITS - bits;
    for (out, value) in out.iter_mut().zip(values) {
        *out = (((value << unused) as i64) >> unused) as f64;
    }
}

#[inline(always)]
fn add_each(words: &mut [u64], values: &[f64], shift: u32, bits: u32) {
    let mask = mask(bits);
    for (word, value) in words.iter_mut().zip(values) {
        *word = word.wrapping_add((*value as i64 as u64) << shift) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;
    use ring::word::signed;

    #[test]
    fn there_and_back_on_every_level() {
        let mut rng = Random::seeded(4);
        for bits in [1, 24, 36, 52, 53] {
            let values = rng.uniform(100, bits);
            for level in Level::available() {
                let mut out = vec![0.5; 100];
                centred(level, &values, bits, &mut out);
                let want: Vec<f64> = values.iter().map(|v| signed(*v, bits) as f64).collect();
                assert_eq!(out, want, "{level:?}");
                let mut back = vec![3; 100];
                add_shifted(level, &mut back, &out, 2, bits + 5);
                let want = values.iter().map(|v| {
                    (signed(*v, bits) as u64).wrapping_mul(4).wrapping_add(3) & mask(bits + 5)
                });
                assert_eq!(back, want.collect::<Vec<_>>(), "{level:?}");
            }
        }
    }

    #[test]
    fn small_integers_on_every_level() {
        let mut rng = Random::seeded(9);
        let inside = rng.uniform(100, 52).into_iter().map(|word| signed(word, 52));
        let values: Vec<i64> = inside.chain([0, -1, 1 - (1 << 51), (1 << 51) - 1]).collect();
        for level in Level::available() {
            let mut out = vec![0.5; values.len()];
            small(level, &values, &mut out);
            assert!(out.iter().zip(&values).all(|(out, value)| *out == *value as f64));
        }
    }

    #[test]
    fn integers_mod_a_prime_on_every_level() {
        let mut rng = Random::seeded(5);
        let values: Vec<i64> = rng.uniform(100, 63).iter().map(|w| signed(*w, 63)).collect();
        for prime in [1_032_193, 68_718_428_161, 1_125_899_906_826_241] {
            for level in Level::available() {
                let mut out = vec![0.5; 100];
                residues(level, &values, prime, &mut out);
                for (out, value) in out.iter().zip(&values) {
                    assert!(out.abs() <= prime as f64 / 2.0 + 1.0, "{level:?}");
                    assert_eq!((*out as i64 - value) % prime as i64, 0, "{level:?}");
                }
            }
        }
    }

    #[test]
    fn wide_words_mod_a_prime_on_every_level() {
        let mut rng = Random::seeded(6);
        for (bits, prime) in [(51, 1_125_899_906_629_633), (64, 1_125_899_906_826_241u64)] {
            let half = 1u64 << (bits - 1);
            let edges = [0, 1, half, half - 1, mask(bits), prime / 2, prime / 2 + 1, prime];
            let values: Vec<u64> = rng.uniform(100, bits).into_iter().chain(edges).collect();
            for level in Level::available() {
                let mut out = vec![0.5; values.len()];
                wide(level, &values, bits, prime, &mut out);
                for (out, value) in out.iter().zip(&values) {
                    assert!(out.abs() <= prime as f64 / 2.0 + 1.0, "{level:?}");
                    let rest = i128::from(signed(*value, bits)) - *out as i128;
                    assert_eq!(rest % i128::from(prime), 0, "{level:?}");
                }
            }
        }
    }

    #[test]
    fn residues_there_and_back_on_every_level() {
        for prime in [1_032_193, 68_718_428_161, 1_125_899_906_826_241u64] {
            let mut rng = Random::seeded(8);
            let inside = rng.uniform(100, 50).into_iter().map(|word| word % prime);
            let words: Vec<u64> =
                inside.chain([0, 1, prime / 2, prime / 2 + 1, prime - 1]).collect();
            for level in Level::available() {
                let mut values = vec![0.5; words.len()];
                from_words(level, &words, prime, &mut values);
                for (value, word) in values.iter().zip(&words) {
                    let above = if *word > prime / 2 { prime as i64 } else { 0 };
                    assert_eq!(*value, (*word as i64 - above) as f64, "{level:?}");
                }
                let mut back = vec![9; words.len()];
                to_words(level, &values, prime, &mut back);
                assert_eq!(back, words, "{level:?}");
            }
        }
    }
}
