//! How many bits a digit of a comparison has by default. Everything here depends on public sizes
//! only, so both parties choose alike.

use pricing::fixed::message::ROUND_BYTES;

use crate::arithmetic::extend::{Extend, Sign};
use crate::boolean::compare::{Comparison, Radix};
use crate::estimate::{Reference, bytes};
use crate::nonlinear::relu::Relu;
use crate::protocol::Protocol;

impl Radix {
    /// Picks the fastest radix for `count` comparisons of `bits` bits on the link and machine of
    /// [`pricing::fixed`].
    pub fn fastest(count: usize, bits: u32) -> Self {
        let bits = bits.clamp(1, 63);
        let time = |radix: &Self| {
            let plan = Comparison::carry(bits, *radix);
            Reference::nanoseconds(&plan.demand(count), plan.cost(count))
        };
        Self::ALL.into_iter().min_by_key(time).unwrap_or(Self::Four)
    }

    /// Picks the fastest radix for `count` ReLUs, estimated likewise. Two levels of a tree that
    /// saturates may take more digits than a plain one of as many bits.
    pub fn of_relu(count: usize, bits: u32, saturate: Option<u32>, out_bits: u32) -> Self {
        let time = |radix: &Self| {
            let plan = Relu::new(count, bits, saturate, out_bits, *radix);
            plan.map_or(u64::MAX, |plan| Reference::nanoseconds(&plan.demand(), plan.cost()))
        };
        Self::ALL.into_iter().min_by_key(time).unwrap_or(Self::Four)
    }

    /// Picks the radix of fewest bytes for `count` extensions from `bits` to `out_bits`, when a
    /// round counts as [`ROUND_BYTES`].
    pub fn leanest(count: usize, bits: u32, out_bits: u32) -> Self {
        let weight = |radix: &Self| {
            let plan = Extend::new(count, bits, out_bits, Sign::Unknown, *radix);
            plan.map_or(u64::MAX, |plan| {
                let (demand, cost) = (plan.demand(), plan.cost());
                bytes(&demand, cost).saturating_add(cost.rounds.saturating_mul(ROUND_BYTES))
            })
        };
        Self::ALL.into_iter().min_by_key(weight).unwrap_or(Self::Four)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pricing::fixed::message::{
        COMPARED_BITS, COMPARISON_ROUNDS, EXTENDED_BITS, EXTENSION_ROUNDS,
    };

    use pricing::fixed::link;
    use wire::Role;

    use super::*;

    /// Asserts that an estimate lies within a factor of two of what the protocol costs.
    fn assert_near(estimate: usize, exact: u64, what: &str) {
        let ratio = estimate as f64 / exact as f64;
        assert!((0.5..=2.0).contains(&ratio), "{what}: {estimate} for {exact}");
    }

    #[test]
    fn prices_of_messages_are_near_the_protocols() {
        let count = 100_000;
        let each = |plan: &Extend| 8 * plan.cost().bytes() / count as u64;
        for bits in [8, 12, 16, 20] {
            let (out_bits, added) = (bits + 8, 8);
            let radix = Radix::leanest(count, bits, out_bits);
            let unknown = Extend::new(count, bits, out_bits, Sign::Unknown, radix).unwrap();
            let compared = bits as usize * COMPARED_BITS + EXTENDED_BITS + added;
            assert_near(compared, each(&unknown), "compared");
            let rounds = COMPARISON_ROUNDS + bits.ilog2() as usize;
            assert_near(rounds, unknown.cost().rounds, "rounds");
            let known = Extend::new(count, bits, out_bits, Sign::NonNegative, radix).unwrap();
            assert_near(added + EXTENDED_BITS, each(&known), "extended");
            assert_eq!(EXTENSION_ROUNDS as u64, known.cost().rounds);
        }
    }

    #[test]
    fn plain_plans_are_for_a_wide_network() {
        let (round_trip, bandwidth) = wire::Link::WAN.figures();
        assert!((round_trip - link::ROUND_TRIP_NANOSECONDS as f64 * 1e-9).abs() < 1e-12);
        assert!((bandwidth - link::BITS_PER_SECOND as f64).abs() < 1e-3);
    }

    #[test]
    fn many_extensions_take_one_direction_and_little_else() {
        let count = 100_000;
        let radix = Radix::leanest(count, 8, 16);
        let plan = Extend::new(count, 8, 16, Sign::Unknown, radix).unwrap();
        assert_eq!(plan.demand().cots(Role::Client), 0);
        assert!(bytes(&plan.demand(), plan.cost()) <= 1_040_000);
        assert_eq!(plan.cost().rounds, 5);
    }

    #[test]
    fn the_leaner_plan_is_taken_and_few_extensions_save_rounds() {
        for count in [10, 10_000, 1_000_000] {
            for radix in Radix::ALL {
                let plan = |sender| Extend::sent_by(sender, count, [8, 16], Sign::Unknown, radix);
                let price = |plan: Extend| bytes(&plan.demand(), plan.cost());
                let least = [None, Some(Role::Server)].map(|s| price(plan(s).unwrap()));
                let chosen = Extend::new(count, 8, 16, Sign::Unknown, radix).unwrap();
                assert_eq!(Some(price(chosen)), least.into_iter().min());
            }
        }
        assert_eq!(Radix::leanest(1000, 8, 16), Radix::Sixteen);
    }

    #[test]
    fn pricing_takes_no_time_that_a_peer_could_choose() {
        let start = std::time::Instant::now();
        for count in [1 << 22, 1 << 28, usize::MAX] {
            Extend::new(count, 12, 40, Sign::Unknown, Radix::Two).unwrap();
        }
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }

    #[test]
    fn few_comparisons_save_rounds_and_many_save_work() {
        assert_eq!(Radix::fastest(1, 15), Radix::Sixteen);
        assert_ne!(Radix::fastest(10_000_000, 15), Radix::Sixteen);
        assert!(Radix::ALL.contains(&Radix::fastest(0, 1)));
    }
}
