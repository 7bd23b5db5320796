//! Products of every small pair of values and shares, and of wide ones at the bounds.

use ring::Random;
use ring::word::{mask, signed};

use super::*;
use crate::testing::{both, split};

const SIGNS: [Sign; 4] = [Sign::Unknown, Sign::Unsigned, Sign::NonNegative, Sign::Spare];

/// The value that a sum of shares stands for, if the sign allows it.
fn value(sum: u64, factor: Factor) -> Option<i64> {
    let Factor { bits, sign } = factor;
    match sign {
        Sign::Unsigned => Some((sum & mask(bits)) as i64),
        Sign::Unknown => Some(signed(sum, bits)),
        Sign::NonNegative => Some(signed(sum, bits)).filter(|value| *value >= 0),
        Sign::Spare => {
            let quarter = 1i64 << (bits - 2);
            Some(signed(sum, bits)).filter(|value| (-quarter..quarter).contains(value))
        }
    }
}

fn check(plan: &Multiply, client: [&Share; 2], server: [&Share; 2], rng: &mut Random) {
    let (c, s) = both(
        rng,
        &plan.demand(),
        |ch, ots| run(ch, plan, client[0], client[1], ots),
        |ch, ots| run(ch, plan, server[0], server[1], ots),
    );
    assert_eq!(c.cost, plan.cost());
    let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
    let values = |at: usize| {
        let sums = client[at].words().iter().zip(server[at].words());
        sums.map(move |(c, s)| value(c + s, plan.factors[at]).unwrap())
    };
    let want =
        values(0).zip(values(1)).map(|(x, y)| signed(x.wrapping_mul(y) as u64, plan.out_bits));
    assert_eq!(got, want.collect::<Vec<_>>(), "{:?} to {}", plan.factors, plan.out_bits);
}

/// Every combination of both parties' shares of both factors.
fn exhaust(factors: [Factor; 2], out_bits: u32, radix: Radix, rng: &mut Random) {
    let [m, n] = factors.map(|factor| factor.bits);
    let all = (0..1u64 << (2 * (m + n))).map(|word| {
        let (x, y) = (word & mask(2 * m), word >> (2 * m));
        [x & mask(m), x >> m, y & mask(n), y >> n]
    });
    let legal = all.filter(|[a, b, c, d]| {
        value(a + b, factors[0]).is_some() && value(c + d, factors[1]).is_some()
    });
    let rows: Vec<[u64; 4]> = legal.collect();
    let share = |at: usize, bits| Share::new(rows.iter().map(|row| row[at]).collect(), bits);
    let [a, b, c, d] = [share(0, m), share(1, m), share(2, n), share(3, n)];
    let plan = Multiply::new(rows.len(), factors, out_bits, radix).unwrap();
    check(&plan, [&a, &c], [&b, &d], rng);
}

#[test]
fn every_pair_of_small_shares() {
    let mut rng = Random::seeded(36);
    for (m, n) in [(1, 1), (1, 3), (2, 2), (3, 2), (3, 3)] {
        for signs in SIGNS.iter().flat_map(|a| SIGNS.map(|b| [*a, b])) {
            let [first, second] = signs;
            let factors = [Factor { bits: m, sign: first }, Factor { bits: n, sign: second }];
            if !factors.iter().all(|factor| factor.fits()) {
                continue;
            }
            for out_bits in [1, 2, m, n + 1, m + n, m + n + 3] {
                exhaust(factors, out_bits, Radix::Four, &mut rng);
            }
        }
    }
}

#[test]
fn every_pair_of_values_of_six_bits() {
    let mut rng = Random::seeded(37);
    for (m, n) in [(6, 6), (6, 4), (5, 6)] {
        for (sign, radix) in SIGNS.into_iter().zip(Radix::ALL) {
            let factors = [m, n].map(|bits| Factor { bits, sign });
            let pairs = (0..1u64 << m).flat_map(|x| (0..1u64 << n).map(move |y| [x, y]));
            let values =
                pairs.filter_map(|[x, y]| Some([value(x, factors[0])?, value(y, factors[1])?]));
            let (x, y): (Vec<_>, Vec<_>) = values.map(|[x, y]| (x, y)).unzip();
            for out_bits in [4, 6, 9, 12, 15] {
                let (a, b) = split(&mut rng, &x, m);
                let (c, d) = split(&mut rng, &y, n);
                let plan = Multiply::new(x.len(), factors, out_bits, radix).unwrap();
                check(&plan, [&a, &c], [&b, &d], &mut rng);
            }
        }
    }
}

#[test]
fn wide_values_at_the_bounds() {
    let mut rng = Random::seeded(38);
    for (m, n, out_bits) in [
        (8, 8, 16),
        (8, 12, 20),
        (30, 10, 25),
        (31, 32, 63),
        (63, 63, 63),
        (20, 5, 33),
        (63, 2, 62),
    ] {
        for sign in SIGNS {
            let factors = [m, n].map(|bits| Factor { bits, sign });
            let [x, y] = factors.map(|factor| {
                let edge = 1u64 << (factor.bits - 1);
                let mut words = vec![0, 0, edge - 1, edge - 1, edge, edge, edge / 2];
                words.extend(rng.uniform(100, factor.bits));
                let least = (edge / 2).max(1) - 1;
                let low = |word: u64| value(word, factor).unwrap_or((word & least) as i64);
                words.into_iter().map(low).collect::<Vec<i64>>()
            });
            let (a, b) = split(&mut rng, &x, m);
            let (c, d) = split(&mut rng, &y, n);
            let plan = Multiply::new(x.len(), factors, out_bits, Radix::Four).unwrap();
            check(&plan, [&a, &c], [&b, &d], &mut rng);
        }
    }
}

#[test]
fn a_known_sign_saves_the_comparisons() {
    let cost = |sign| {
        let factors = [Factor { bits: 8, sign }; 2];
        Multiply::new(1000, factors, 16, Radix::Four).unwrap().cost()
    };
    let (known, open) = (cost(Sign::NonNegative), cost(Sign::Unknown));
    assert!(
        known.client_to_server + known.server_to_client
            < open.client_to_server + open.server_to_client
    );
    // Each party opens what it chooses and what it offers.
    assert_eq!(known.rounds, 2);
}

#[test]
fn misfits_are_refused() {
    let factor = |bits| Factor { bits, sign: Sign::Unknown };
    for (m, n, out_bits) in [(0, 4, 4), (4, 64, 4), (4, 4, 0), (4, 4, 64)] {
        let factors = [factor(m), factor(n)];
        assert!(matches!(Multiply::new(1, factors, out_bits, Radix::Four), Err(Error::Misuse(_))));
    }
    let plan = Multiply::new(2, [factor(4), factor(5)], 9, Radix::Four).unwrap();
    let (x, y) = (Share::new(vec![1; 2], 4), Share::new(vec![1; 2], 5));
    let (c, s) = wire::testing::run_pair(
        |ch| run(ch, &plan, &y, &x, Correlations::default()),
        |ch| run(ch, &plan, &x, &y, Correlations::default()),
    );
    assert!(matches!(c.value, Err(Error::Misuse(_))));
    assert!(matches!(s.value, Err(Error::Misuse(_))));
}
