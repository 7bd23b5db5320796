//! Words cut into random digits of expectation zero.

use super::{Level, Width};

/// Takes the lowest `bits` bits r of every word off it and writes either r or, with
/// probability `r / 2^bits`, `r - 2^bits`, adding one to the rest of the word. The chance
/// is taken from the `bits` bits of `random` from `shift` on.
pub(crate) fn take(
    level: Level,
    words: &mut [u64],
    random: &[u64],
    shift: u32,
    bits: u32,
    out: &mut [f64],
) {
    match level.0 {
        Width::Scalar => take_each(words, random, shift, bits, out),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { take256(words, random, shift, bits, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { take512(words, random, shift, bits, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => take_each(words, random, shift, bits, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn take256(words: &mut [u64], random: &[u64], shift: u32, bits: u32, out: &mut [f64]) {
    take_each(words, random, shift, bits, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn take512(words: &mut [u64], random: &[u64], shift: u32, bits: u32, out: &mut [f64]) {
    take_each(words, random, shift, bits, out);
}

#[inline(always)]
fn take_each(words: &mut [u64], random: &[u64], shift: u32, bits: u32, out: &mut [f64]) {
    /// With integers below it added, the low bits are the integer.
    const WHOLE: f64 = (1u64 << 52) as f64;
    let low = (1u64 << bits) - 1;
    for ((word, random), out) in words.iter_mut().zip(random).zip(out) {
        let digit = *word & low;
        let up = ((random >> shift) & low).wrapping_sub(digit) >> 63;
        let shifted = digit.wrapping_sub(up << bits).wrapping_add(1 << 51);
        *out = f64::from_bits(shifted | WHOLE.to_bits()) - 1.5 * WHOLE;
        *word = (*word >> bits) + up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn digits_add_up_on_every_level() {
        let mut rng = Random::seeded(1);
        let (words, random) = (rng.uniform(101, 64), rng.uniform(101, 64));
        for bits in [1, 4, 7, 20] {
            for level in Level::available() {
                let (mut rest, mut sums) = (words.clone(), vec![0u64; 101]);
                let mut out = vec![0.5; 101];
                for shift in (0..60).step_by(bits) {
                    take(level, &mut rest, &random, shift as u32, bits as u32, &mut out);
                    assert!(out.iter().all(|d| d.abs() < (1u64 << bits) as f64));
                    for (sum, digit) in sums.iter_mut().zip(&out) {
                        *sum = sum.wrapping_add((*digit as i64 as u64) << shift);
                    }
                }
                let top = 60usize.div_ceil(bits) * bits;
                let all = sums.iter().zip(&rest);
                let all = all
                    .map(|(sum, rest)| sum.wrapping_add(rest.checked_shl(top as u32).unwrap_or(0)));
                assert!(all.eq(words.iter().copied()), "{level:?}");
            }
        }
    }

    #[test]
    fn a_digit_is_zero_on_average() {
        let random: Vec<u64> = (0..16).collect();
        for level in Level::available() {
            for value in 0..16 {
                let (mut words, mut out) = (vec![value; 16], vec![0.5; 16]);
                take(level, &mut words, &random, 0, 4, &mut out);
                assert_eq!(out.iter().sum::<f64>(), 0.0, "{level:?}");
                assert_eq!(words.iter().sum::<u64>(), value);
            }
        }
    }
}
