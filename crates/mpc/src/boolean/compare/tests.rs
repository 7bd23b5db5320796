//! Every pair of small integers, wide ones near the carry.

use super::*;
use crate::testing::both;
use ring::Random;

fn check(plan: &Comparison, client: &[u64], server: &[u64], rng: &mut Random) {
    let count = client.len();
    let operands = |role, words| plan.operand(role, words);
    let (c, s) = both(
        rng,
        &plan.demand(count),
        |ch, ots| run(ch, plan, &operands(Role::Client, client), ots),
        |ch, ots| run(ch, plan, &operands(Role::Server, server), ots),
    );
    assert_eq!(c.cost, plan.cost(count));
    let (ours, theirs) = (c.value.unwrap(), s.value.unwrap());
    for (i, (x, y)) in client.iter().zip(server).enumerate() {
        let sum = x + y;
        assert_eq!(ours.greater.get(i) ^ theirs.greater.get(i), sum >> plan.bits, "{x} + {y}");
        if plan.middle_zero.is_some() {
            let middle = (sum & mask(plan.bits)) >> plan.low;
            assert_eq!(
                ours.middle_zero.get(i) ^ theirs.middle_zero.get(i),
                u64::from(middle == 0),
                "{x} + {y}"
            );
            if plan.upper_half.is_some() {
                let half = u64::from(middle == 0) & (sum >> (plan.low - 1));
                assert_eq!(ours.upper_half.get(i) ^ theirs.upper_half.get(i), half, "{x} + {y}");
            }
            if plan.interior.is_some() {
                let inside = u64::from(middle == 0 && sum & mask(plan.low) > 0);
                assert_eq!(ours.interior.get(i) ^ theirs.interior.get(i), inside, "{x} + {y}");
            }
        }
    }
}

#[test]
fn all_small_pairs_compare() {
    let mut rng = Random::seeded(1);
    for radix in Radix::ALL.into_iter().chain(Radix::without_width()) {
        for bits in 1..=6u32 {
            let all: Vec<(u64, u64)> =
                (0..1 << bits).flat_map(|x| (0..1 << bits).map(move |y| (x, y))).collect();
            let (x, y): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let carry = Comparison::carry(bits, radix);
            check(&carry, &x, &y, &mut rng);
            check(&carry.asked_by(Role::Server), &x, &y, &mut rng);
            for low in 1..bits {
                let plan = Comparison::with_middle(low, bits, radix);
                check(&plan, &x, &y, &mut rng);
                check(&plan.clone().asked_by(Role::Server), &x, &y, &mut rng);
                check(&plan.gates_from(Some(Role::Server)), &x, &y, &mut rng);
                if low > 1 {
                    check(&Comparison::with_halves(low, bits, radix, false), &x, &y, &mut rng);
                    let plan = Comparison::with_halves(low, bits, radix, true);
                    check(&plan, &x, &y, &mut rng);
                    check(&plan.asked_by(Role::Server), &x, &y, &mut rng);
                }
            }
        }
    }
}

#[test]
fn wide_digits_compare() {
    let mut rng = Random::seeded(4);
    let radices = (5..=8).map(|bits| Radix::of_bits(bits).unwrap());
    for (radix, bits) in radices.flat_map(|radix| [5u32, 8, 11, 17].map(|bits| (radix, bits))) {
        let (mut x, mut y) = (rng.uniform(200, bits), rng.uniform(200, bits));
        y.extend(x.iter().map(|x| (mask(bits) - x + 1) & mask(bits)).collect::<Vec<_>>());
        x.extend(x.clone());
        check(&Comparison::carry(bits, radix), &x, &y, &mut rng);
        check(&Comparison::with_middle(3, bits, radix), &x, &y, &mut rng);
        check(&Comparison::with_halves(3, bits, radix, false), &x, &y, &mut rng);
    }
    assert!(Radix::of_bits(0).is_err() && Radix::of_bits(9).is_err());
}

#[test]
fn wide_pairs_compare() {
    let mut rng = Random::seeded(2);
    for (low, bits) in [(8, 12), (13, 29), (40, 62), (1, 31)] {
        let (mut x, mut y) = (rng.uniform(100, bits), rng.uniform(100, bits));
        let near: Vec<u64> = x.iter().map(|x| (mask(bits) - x + 1) & mask(bits)).collect();
        y.extend(near);
        x.extend(x.clone());
        check(&Comparison::with_middle(low, bits, Radix::Four), &x, &y, &mut rng);
        for plan in [
            Comparison::with_middle(low, bits, Radix::Chain),
            Comparison::carry(bits, Radix::Chain),
            Comparison::with_halves(low.max(2), bits, Radix::Chain, true),
            Comparison::carry(bits, Radix::Ripple),
            Comparison::with_middle(low, bits, Radix::Ripple).gates_from(Some(Role::Server)),
            Comparison::with_halves(low.max(2), bits, Radix::Ripple, true),
        ] {
            check(&plan, &x, &y, &mut rng);
        }
        check(&Comparison::carry(bits, Radix::Four), &x, &y, &mut rng);
        check(&Comparison::with_halves(low.max(2), bits, Radix::Sixteen, false), &x, &y, &mut rng);
        check(&Comparison::with_halves(low.max(2), bits, Radix::Eight, true), &x, &y, &mut rng);
    }
}

#[test]
fn carries_take_the_fewest_bits_and_a_round_each() {
    let bits_of = |plan: &Comparison| 8 * plan.cost(8000).bytes() / 8000;
    for bits in [4, 8, 11, 16, 31, 63] {
        let plan = Comparison::carry(bits, Radix::Ripple);
        // An OT of 8 entries, and a gate for each bit above.
        assert_eq!(bits_of(&plan), u64::from(3 + 7 + 4 * (bits - 3)));
        assert_eq!(plan.cost(8000).rounds, u64::from(2 + bits - 3));
        for radix in Radix::ALL.into_iter().chain([Radix::Chain]) {
            assert!(bits_of(&plan) < bits_of(&Comparison::carry(bits, radix)), "{bits} {radix:?}");
        }
    }
    let saturating = Comparison::with_middle(8, 11, Radix::Ripple);
    assert_eq!(bits_of(&saturating), 3 + 7 + 4 * 8 + 4 * 2);
    assert_eq!(saturating.cost(8000).rounds, 10);
}
