//! The start that Comet publishes, in the clear: shares flooded by a large number, whose
//! floating-point bits, halved and negated, add up to a first guess of an inverse square root
//! (sections 3.2 and 3.3).
//!
//! Both shares then have an exponent that is public, and mantissas that say next to nothing
//! about x: the guess is a constant, whatever x. And as masks are as small as what they mask,
//! shares tell x (`mpc::comet::flooding`).

/// By how much a straight line misses the logarithm, on average (section 4.3: 0x5f3759df).
const LINE: f64 = 0.045_046_6;

/// The public numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flooding {
    /// What floods; 2^13 in the paper.
    pub flood: f64,
    /// The exponent of most values, calibrated.
    pub common: f64,
}

impl Flooding {
    /// With the paper's flood, of values about `2^common`.
    pub fn published(common: f64) -> Self {
        Self { flood: 8192.0, common }
    }

    /// Returns both shares of `x` for this mask.
    pub fn shares(&self, x: f64, mask: f64) -> [f64; 2] {
        [self.flood + mask, x - mask - self.flood]
    }

    /// Returns the first guess of `1/sqrt(x)`, from what each party makes of its share (equation
    /// 10).
    pub fn start(&self, shares: [f64; 2]) -> f64 {
        let [own, other] = shares.map(|share| logarithm(share.abs()) / -4.0);
        let compensated = (logarithm(self.flood) - self.common) / 2.0;
        power(own + other - 0.5 - LINE / 2.0 + compensated)
    }
}

/// `e + m` of `2^e * (1 + m)`: what floating-point bits say.
fn logarithm(v: f64) -> f64 {
    let bits = v.to_bits() as f64 / (1u64 << 52) as f64;
    bits - 1023.0
}

/// The number whose bits say that.
fn power(logarithm: f64) -> f64 {
    f64::from_bits(((logarithm + 1023.0).clamp(1.0, 2046.0) * (1u64 << 52) as f64) as u64)
}

/// Iterations from `y` until it is within `error` of `1/sqrt(x)`, relatively; none when it
/// takes more than 20 or diverges.
pub fn iterations(x: f64, mut y: f64, error: f64) -> Option<u32> {
    for done in 0..=20 {
        if (y * x.sqrt() - 1.0).abs() <= error {
            return Some(done);
        }
        y *= (3.0 - x * y * y) / 2.0;
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::functions::newton::{affine, balanced};
    use ring::Random;

    /// Values between 1/16 and 4, as activations' squares are.
    fn values(rng: &mut Random) -> Vec<(f64, f64)> {
        let random = rng.uniform(2000, 32);
        let unit = |word: &u64| *word as f64 / (1u64 << 32) as f64;
        let pairs = random.chunks_exact(2);
        pairs.map(|p| (0.0625 * 64f64.powf(unit(&p[0])), 8.0 * unit(&p[1]) - 4.0)).collect()
    }

    #[test]
    fn the_published_start_is_a_constant() {
        let flooding = Flooding::published(-2.0);
        let starts = values(&mut Random::seeded(96));
        let starts = starts.iter().map(|(x, mask)| flooding.start(flooding.shares(*x, *mask)));
        let (low, high) = starts.fold((f64::MAX, 0f64), |(low, high), y| (low.min(y), high.max(y)));
        assert!(high / low < 1.3 && low > 0.0, "{low} {high}");
    }

    #[test]
    fn without_flooding_the_start_depends_on_the_mask_and_diverges() {
        let plain = Flooding { flood: 0.0, common: 0.0 };
        let guess = |x: f64, mask: f64| {
            let [own, other] = [mask, x - mask].map(|share| logarithm(share.abs()) / -4.0);
            power(own + other - 0.5 - LINE / 2.0)
        };
        assert!(plain.shares(3.1, 3.098)[1] < 0.01);
        assert!(iterations(3.1, guess(3.1, 3.099_999_999), 0.01).is_none());
    }

    #[test]
    fn the_affine_start_needs_no_more_iterations_than_the_best_flooding() {
        for (ratio, error) in
            [(4.0, 0.01), (16.0, 0.03), (16.0, 0.001), (64.0, 0.05), (64.0, 0.005)]
        {
            let xs: Vec<f64> =
                (0..=200).map(|i| 0.0625 * f64::powf(ratio, f64::from(i) / 200.0)).collect();
            let worst = |start: &dyn Fn(f64) -> f64| {
                let needed = xs.iter().map(|x| iterations(*x, start(*x), error));
                needed.max_by_key(|needed| needed.unwrap_or(u32::MAX)).flatten()
            };
            let [a, b] = affine(0.0625, 0.0625 * ratio);
            let own = worst(&|x| a - b * x).unwrap();
            let published = (-24..=16).filter_map(|common| {
                let flooding = Flooding::published(f64::from(common) / 4.0);
                worst(&|x| flooding.start(flooding.shares(x, 1.0)))
            });
            let published = published.min().unwrap();
            assert!(own <= published, "{ratio} {error}: {own} {published}");
            // With constants that leave errors on both sides it needs fewer still.
            let first = ((a - b * 0.0625) * 0.25 - 1.0).abs();
            let errors = std::iter::successors(Some(first), |last| Some(balanced(*last).1));
            let ours = errors.take_while(|left| *left > error).count() as u32;
            assert!(ours <= own && ours <= 4, "{ratio} {error}: {ours} {own}");
        }
    }
}
