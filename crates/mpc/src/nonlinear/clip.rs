//! Values kept between two bounds, ReLU6 among them.
//!
//! | | |
//! |---|---|
//! | In | shares of `y` mod 2^bits with `high - 2^(bits-1) < y < low + 2^(bits-1)`; correlations |
//! | Out | shares of `min(max(y, low), high)` mod 2^out_bits, any out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | two comparisons of bits - 1 at once, then 3*out_bits + 3 bits, with extension out_bits + 2*k + 4 for an h of k bits |
//! | Paper | CrypTFlow2 (sign by carry), SiRNN (extension); fused as in ENGINE section 4 |
//!
//! For `t = y - low` and `h = high - low` the bits `[t >= 0]` and `[h - t >= 0]` are
//! never both 0, so `[0 <= t <= h]` is their exclusive nor: no gate. Bounds 0 and
//! `2^a - 1` are cheaper in `relu.rs`.

use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clamp::Inside;
use crate::share::{Share, server_only, sign_of};

/// The public plan of one clipped layer.
#[derive(Clone, Debug)]
pub struct Clip {
    count: usize,
    bits: u32,
    low: i64,
    /// From the lower bound to the upper.
    span: u64,
    comparison: Comparison,
    inside: Inside,
}

impl Clip {
    /// Plans `count` elements from `bits` (2 to 63) to `out_bits` (1 to 63), kept in `[low, high]`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths out of range, or bounds in the wrong order or
    /// further apart than `2^(bits-1) - 1`.
    pub fn new(
        count: usize,
        bits: u32,
        [low, high]: [i64; 2],
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let widths = (2..=63).contains(&bits) && (1..=63).contains(&out_bits);
        if !widths || count.checked_mul(2).is_none() {
            return Err(Error::misuse("a clip of these sizes"));
        }
        let span = high.checked_sub(low).and_then(|span| u64::try_from(span).ok());
        let span = span.filter(|span| *span <= mask(bits - 1));
        let span = span.ok_or_else(|| Error::misuse("a clip with these bounds"))?;
        let comparison = Comparison::carry(bits - 1, radix);
        let cap = Some(span & mask(out_bits));
        let inside = Inside { count, bits, cap, out_bits, asks: Role::Client };
        Ok(Self { count, bits, low, span, comparison, inside })
    }

    /// Returns the correlations that a run consumes.
    pub fn demand(&self) -> Demand {
        self.comparison.demand(2 * self.count) + self.inside.demand()
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        let first = self.comparison.last_sender();
        self.comparison.cost(2 * self.count).then(self.inside.cost(first))
    }

    /// This party's summands of `t`, then of `h - t`.
    fn distances(&self, role: Role, y: &Share) -> Share {
        let low = server_only(role, self.low as u64);
        let above = y.words().iter().map(|word| word.wrapping_sub(low));
        let span = server_only(role, self.span);
        let below = above.clone().map(|t| span.wrapping_sub(t));
        Share::new(above.chain(below).collect(), self.bits)
    }

    /// Shares of `[t >= 0]` and of `[0 <= t <= h]`.
    fn indicators(&self, role: Role, distances: &[u64], carries: &Bits) -> Zeroizing<[Bits; 2]> {
        let mut signs = sign_of(role, distances, self.bits);
        signs.xor(carries);
        let part = |skip: usize| signs.iter().skip(skip).take(self.count).collect::<Bits>();
        let (positive, below) = (part(0), part(self.count));
        let mut inside = below;
        inside.xor(&positive);
        if role == Role::Server {
            inside = inside.not();
        }
        Zeroizing::new([positive, inside])
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Clip, y: &Share, mut ots: Correlations) -> Result<Share> {
    y.check(plan.count, plan.bits, "clip")?;
    let (role, count) = (channel.role(), plan.count);
    let distances = plan.distances(role, y);
    let found = compare::of_share(channel, &plan.comparison, &distances, &mut ots)?;
    let indicators = plan.indicators(role, distances.words(), &found.greater);
    let [positive, inside] = &*indicators;
    let above = distances.words().get(..count).unwrap_or_default();
    let first = plan.comparison.last_sender();
    let clipped = plan.inside.run(channel, first, above, [positive, inside], ots)?;
    let low = server_only(role, plan.low as u64);
    let words = clipped.words().iter().map(|word| word.wrapping_add(low)).collect();
    Ok(Share::new(words, plan.inside.out_bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;
    use ring::word::signed;

    fn check(plan: &Clip, bounds: [i64; 2], client: &Share, server: &Share, rng: &mut Random) {
        let price = (plan.demand(), plan.cost());
        let got = computed(rng, price, [client, server], |ch, x, ots| run(ch, plan, x, ots));
        let values = Share::reconstruct(client, server).into_iter();
        let want = values.map(|y| y.clamp(bounds[0], bounds[1]) as u64);
        let want = want.map(|y| signed(y, plan.inside.out_bits));
        assert_eq!(got, want.collect::<Vec<_>>(), "{bounds:?}");
    }

    fn legal(value: i64, bounds: [i64; 2], bits: u32) -> bool {
        let half = 1i64 << (bits - 1);
        bounds[1] - half < value && value < bounds[0] + half
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(42);
        for bits in 2..=6u32 {
            let half = 1i64 << (bits - 1);
            for bounds in
                [[0, half - 1], [0, 0], [-1, half / 2], [-half / 2, -1], [1 - half / 2, half / 2]]
            {
                if bounds[1] - bounds[0] >= half {
                    continue;
                }
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let pairs = pairs.filter(|(x, y)| legal(signed(x + y, bits), bounds, bits));
                let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                for out_bits in [1, bits, bits + 1, 20] {
                    let plan = Clip::new(client.len(), bits, bounds, out_bits, Radix::Four);
                    check(&plan.unwrap(), bounds, &client, &server, &mut rng);
                }
            }
        }
    }

    #[test]
    fn wide_values_at_the_bounds() {
        let mut rng = Random::seeded(43);
        for (bits, bounds, out_bits) in
            [(12, [0, 96], 12), (16, [-100, 5000], 20), (40, [-1, 1], 50), (63, [-9, 1 << 60], 63)]
        {
            let [low, high] = bounds;
            let half = 1i64 << (bits - 1);
            let mut values = vec![low, high, low - 1, high + 1, 0, high - half + 1];
            values.push(low + (half - 1));
            values.extend(rng.uniform(200, bits).iter().map(|word| signed(*word, bits)));
            values.retain(|value| legal(*value, bounds, bits) && (-half..half).contains(value));
            let (client, server) = split(&mut rng, &values, bits);
            for radix in [Radix::Two, Radix::Sixteen] {
                let plan = Clip::new(values.len(), bits, bounds, out_bits, radix).unwrap();
                check(&plan, bounds, &client, &server, &mut rng);
            }
        }
    }

    #[test]
    fn bounds_out_of_order_or_reach_are_refused() {
        for bounds in [[1, 0], [0, 8], [i64::MIN, i64::MAX], [i64::MIN, 0]] {
            assert!(Clip::new(1, 4, bounds, 4, Radix::Four).is_err(), "{bounds:?}");
        }
        assert!(Clip::new(1, 64, [0, 1], 4, Radix::Four).is_err());
        assert!(Clip::new(1, 4, [0, 1], 64, Radix::Four).is_err());
    }
}
