//! Secret samples, in time that does not depend on them.

use ring::{Prg, Random, Seed};
use zeroize::Zeroizing;

use crate::simd::Level;
use crate::simd::gauss::{Aliases, add_samples};

/// Deviation of the narrow Gaussian: the RLWE error.
pub(crate) const NARROW: f64 = 3.2;

/// Deviation of the wide Gaussian: sqrt(sum of LEVELS^2) * 3.2, just below 2^12.
pub(crate) const WIDE: f64 = 4095.19;

/// Deviation of the covering Gaussian, of [`LEVELS`] and [`COVERING`]: just below 2^18.
pub(crate) const COVER: f64 = 262_143.82;

/// `TABLE[k]` = 2^63 * P(|X| <= k) for the discrete Gaussian of deviation 3.2,
/// rounded; the rest of the tail is below 2^-63.
const TABLE: [u64; 29] = [
    0x0ff5_2b40_64a1_f258,
    0x2e5a_25d4_026f_ff6e,
    0x489a_e268_2e3d_b9bb,
    0x5d2b_c20d_e6f9_5106,
    0x6bc8_694a_862f_cdcf,
    0x7532_d898_e9d1_95da,
    0x7ab3_96c9_80f5_facb,
    0x7d9e_4e8f_6717_ea70,
    0x7f05_4956_150a_592b,
    0x7fa1_ce99_f8db_f691,
    0x7fdf_b3f0_0a8f_3398,
    0x7ff5_e6f7_c97d_68d9,
    0x7ffd_1f95_b372_bd36,
    0x7fff_40f7_f7ae_dc64,
    0x7fff_d2e6_2d05_7ef0,
    0x7fff_f650_3aaa_2875,
    0x7fff_fe1b_ab99_a744,
    0x7fff_ffaa_0140_ce53,
    0x7fff_fff2_1f8a_3a77,
    0x7fff_fffd_f723_01f4,
    0x7fff_ffff_ba9f_d472,
    0x7fff_ffff_f79b_78ce,
    0x7fff_ffff_ff13_f6f9,
    0x7fff_ffff_ffe8_748a,
    0x7fff_ffff_fffd_de24,
    0x7fff_ffff_ffff_d320,
    0x7fff_ffff_ffff_fca7,
    0x7fff_ffff_ffff_ffc6,
    0x7fff_ffff_ffff_fffc,
];

/// The discrete Gaussian of deviation 3.2.
const ALIASES: Aliases = Aliases::new(&TABLE);

/// Multipliers of the narrow samples that add up to a wide one.
///
/// Adding c * X (X narrow) to a Gaussian of deviation s is within a relative
/// 2 * exp(-2 pi^2 / ((c/s)^2 + 1/3.2^2)) of a Gaussian at every point (Micciancio
/// and Walter, "Gaussian sampling over the integers", CRYPTO 2017, section 4).
/// The worst level is the first, with 2^-57.
const LEVELS: [i32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1135];

/// Multipliers of the samples that make a wide Gaussian a covering one, each about half the deviation that
/// is there.
const COVERING: [i32; 7] = [2048, 4096, 8192, 16_384, 32_768, 65_536, 31_369];

/// `count` integers uniform below 2^bits, expanded from a public seed.
pub(crate) fn expand(seed: &Seed, domain: u64, count: usize, bits: u32) -> Vec<u64> {
    Prg::new(seed, domain).uniform(count, bits)
}

/// `count` integers uniform below 2^bits.
pub(crate) fn uniform(rng: &mut Random, count: usize, bits: u32) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(rng.uniform(count, bits))
}

/// `count` values of {-1, 0, 1}, uniform up to 2^-63.
pub(crate) fn ternary(rng: &mut Random, count: usize) -> Zeroizing<Vec<i64>> {
    let digit = |word: &u64| ((u128::from(*word) * 3) >> 64) as i64 - 1;
    Zeroizing::new(words(rng, count).iter().map(digit).collect())
}

/// `count` samples of the discrete Gaussian of deviation [`NARROW`].
pub(crate) fn narrow(rng: &mut Random, count: usize) -> Zeroizing<Vec<i64>> {
    combine(rng, count, &LEVELS[..1])
}

/// `count` samples of deviation [`WIDE`], close to a discrete Gaussian ([`LEVELS`]).
pub(crate) fn wide(rng: &mut Random, count: usize) -> Zeroizing<Vec<i64>> {
    combine(rng, count, &LEVELS)
}

/// `count` samples of deviation [`COVER`], close to a discrete Gaussian.
pub(crate) fn cover(rng: &mut Random, count: usize) -> Zeroizing<Vec<i64>> {
    let levels: Vec<i32> = LEVELS.into_iter().chain(COVERING).collect();
    combine(rng, count, &levels)
}

/// Words are drawn in multiples of this; the rest of the last ones is dropped.
const DRAWN: usize = 8;

/// Sums of `levels` times independent narrow samples.
fn combine(rng: &mut Random, count: usize, levels: &[i32]) -> Zeroizing<Vec<i64>> {
    let mut sums = Zeroizing::new(vec![0; count]);
    for factor in levels {
        let words = words(rng, count.next_multiple_of(DRAWN));
        add_samples(Level::best(), &mut sums, &words, &ALIASES, *factor);
    }
    sums
}

fn words(prg: &mut Prg, count: usize) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(prg.uniform(count, u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 1 << 20;

    fn moments(samples: &[i64]) -> (f64, f64) {
        let count = samples.len() as f64;
        let mean = samples.iter().map(|x| *x as f64).sum::<f64>() / count;
        let square = samples.iter().map(|x| (*x as f64 - mean).powi(2)).sum::<f64>() / count;
        (mean, square.sqrt())
    }

    #[test]
    fn table_is_the_discrete_gaussian() {
        let weight = |k: i32| (-f64::from(k * k) / (2.0 * NARROW * NARROW)).exp();
        let total: f64 = (-60..=60).map(weight).sum();
        let mut sum = 0.0;
        for (k, entry) in TABLE.iter().enumerate() {
            sum += if k == 0 { 1.0 } else { 2.0 * weight(k as i32) };
            assert!((sum / total - *entry as f64 / 2f64.powi(63)).abs() < 1e-14, "entry {k}");
        }
        assert!(TABLE.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn aliases_have_the_probabilities_of_the_table() {
        let masses = ALIASES.masses();
        let mut below = 0;
        for (k, bound) in TABLE.into_iter().chain([1 << 63]).enumerate() {
            assert_eq!(masses[k], bound - below, "magnitude {k}");
            below = bound;
        }
        assert!(masses[TABLE.len() + 1..].iter().all(|mass| *mass == 0));
    }

    #[test]
    fn samples_have_their_moments() {
        let mut rng = Random::seeded(1);
        let error = 6.0 / (COUNT as f64).sqrt();
        for (samples, deviation) in [
            (narrow(&mut rng, COUNT), NARROW),
            (wide(&mut rng, COUNT / 16), WIDE),
            (cover(&mut rng, COUNT / 16), COVER),
            (ternary(&mut rng, COUNT), (2f64 / 3.0).sqrt()),
        ] {
            let scale = (COUNT as f64 / samples.len() as f64).sqrt();
            let (mean, got) = moments(&samples);
            assert!(mean.abs() < error * scale * deviation, "mean {mean} at {deviation}");
            assert!((got / deviation - 1.0).abs() < error * scale, "{got} at {deviation}");
        }
    }

    #[test]
    fn narrow_samples_follow_the_distribution() {
        let mut counts = [0f64; 41];
        for sample in narrow(&mut Random::seeded(2), COUNT).iter() {
            counts[(sample + 20) as usize] += 1.0;
        }
        let weight = |k: usize| (-(k as f64 - 20.0).powi(2) / (2.0 * NARROW * NARROW)).exp();
        let total: f64 = (0..41).map(weight).sum();
        let chi: f64 = (8..33)
            .map(|k| {
                let want = COUNT as f64 * weight(k) / total;
                (counts[k] - want).powi(2) / want
            })
            .sum();
        assert!(chi < 60.0, "chi-square {chi} with 24 degrees of freedom");
    }

    #[test]
    fn the_wide_deviation_is_that_of_its_levels() {
        let square = |level: &i32| i64::from(*level).pow(2);
        let squares: i64 = LEVELS.iter().map(square).sum();
        assert!((NARROW * (squares as f64).sqrt() - WIDE).abs() < 0.01);
        let covering = squares + COVERING.iter().map(square).sum::<i64>();
        assert!((NARROW * (covering as f64).sqrt() - COVER).abs() < 0.01);
        let mut before: f64 = NARROW;
        for level in &LEVELS[1..] {
            let spread = (f64::from(*level) / before).powi(2) + NARROW.powi(-2);
            assert!(2.0 * (-2.0 * std::f64::consts::PI.powi(2) / spread).exp() < 2f64.powi(-56));
            before = before.hypot(NARROW * f64::from(*level));
        }
    }
}
