//! Every argument of small functions, wide ones about the curve and at the bounds.

use graph::functions::curve::{self, Numbers};

use super::clipped::Clipped;
use super::*;
use crate::testing::{computed, split};
use ring::Random;
use ring::word::signed;

fn table(bits: u32, entry: impl Fn(i64) -> i64) -> curve::Curve {
    curve::Curve::of(&Numbers::Table((0..1 << bits).map(|z| entry(z) as u64).collect())).unwrap()
}

/// Chords of a function.
fn lines([pieces, drop]: [u32; 2], value: impl Fn(f64) -> f64) -> curve::Curve {
    let fraction = drop + 1;
    let one = f64::from(1 << fraction);
    let at = |piece: i64| (value((piece << drop) as f64) * one).round() as i64;
    let starts = (0..1 << pieces).map(|piece| at(piece) as u64 + (1 << drop)).collect();
    let slopes = (0..1 << pieces).map(|piece| (at(piece + 1) - at(piece)) >> drop).collect();
    curve::Curve::of(&Numbers::Lines { drop, fraction, starts, slopes }).unwrap()
}

fn check(bits: u32, function: &functions::Fold, out_bits: u32, values: &[i64], radix: Radix) {
    let mut rng = Random::seeded(70);
    let plan = Fold::new(values.len(), bits, function, out_bits, radix).unwrap();
    let (client, server) = split(&mut rng, values, bits);
    let want = values.iter().map(|x| signed(function.clear(*x) as u64, out_bits));
    let want = want.collect::<Vec<_>>();
    let (turns, shallow) = (plan.clone().in_turns(), plan.clone().shallow());
    let even = matches!(function.argument, Argument::Even | Argument::Odd { .. });
    let fewer = 2 * u64::from(even && function.relu);
    assert!(turns.cost().rounds + fewer <= plan.cost().rounds, "{turns:?}");
    assert!(turns.cost().bytes() <= plan.cost().bytes(), "{turns:?}");
    for plan in [plan, turns, shallow] {
        let price = (plan.demand(), plan.cost());
        let run = |ch: &mut Channel, x: &Share, ots| run(ch, &plan, x, ots);
        let got = computed(&mut rng, price, [&client, &server], run);
        assert_eq!(got, want, "{function:?} {bits} to {out_bits}");
    }
}

fn new(
    magnitude: u32,
    argument: Argument,
    flags: [bool; 2],
    base: i64,
    curve: curve::Curve,
) -> functions::Fold {
    functions::Fold::new(magnitude, argument, flags, base, curve).unwrap()
}

/// One of each form, by tables and by lines.
fn functions_of_each_form() -> Vec<functions::Fold> {
    let (plain, bump, below) = ([false; 2], [true, true], [true, false]);
    let falling = |z: f64| 40.0 / (1.0 + z / 9.0);
    let span = Argument::Odd { span: 200 };
    vec![
        new(3, Argument::Even, bump, 0, table(3, |z| [0, 1, 2, 2, 1, 1, 0, 0][z as usize])),
        new(3, Argument::Even, below, -2, table(3, |z| [5, 4, 3, 2, 1, 1, 1, 0][z as usize])),
        new(4, Argument::Even, plain, 3, table(4, |z| z * z)),
        new(4, Argument::Odd { span: 127 }, plain, 0, table(4, |z| 63 - 4 * z)),
        new(4, Argument::Odd { span: 126 }, plain, -63, table(4, |z| 63 - 4 * z)),
        new(2, Argument::Odd { span: 0 }, plain, 1, table(2, |_| 0)),
        new(3, Argument::Negative, bump, 0, table(3, |z| z)),
        new(3, Argument::Negative, plain, -4, table(3, |z| 9 - z)),
        new(3, Argument::Whole, plain, -5, table(4, |z| z * z / 4)),
        new(3, Argument::Whole, bump, 0, table(4, |z| [z, 3][usize::from(z > 3)])),
        new(7, Argument::Even, below, 0, lines([4, 3], falling)),
        new(7, span, plain, -100, lines([3, 4], |z| 2.4 * falling(z))),
        new(6, Argument::Negative, bump, 0, lines([4, 2], |z| 40.0 - falling(z))),
        new(6, Argument::Whole, plain, -7, lines([3, 4], |z| 2.0 * z)),
    ]
}

#[test]
fn every_value_of_narrow_shares_comes_out_as_in_the_clear() {
    for (at, function) in functions_of_each_form().iter().enumerate() {
        let bits = function.magnitude + 3;
        let edge = (1i64 << (bits - 1)) - (1 << function.magnitude);
        let values: Vec<i64> = (-edge..=edge).collect();
        let radix = Radix::ALL[at % 4];
        let [least, most] = function.ends();
        let narrow = (most - least).max(1).ilog2() + 1;
        let holds = narrow.max(function.magnitude);
        for out_bits in [2, holds - 1, holds, holds + 2, 30] {
            check(bits, function, out_bits, &values, radix);
        }
    }
}

#[test]
fn a_clip_and_a_table_give_the_same() {
    let mut rng = Random::seeded(82);
    for function in functions_of_each_form() {
        let last = 1i64 << function.magnitude;
        for (bits, out_bits) in [(function.magnitude + 3, 12), (30, 40), (63, 63)] {
            let edge = (1i64 << (bits - 1)) - last - 1;
            let mut values: Vec<i64> = (-2 * last..2 * last).filter(|x| x.abs() <= edge).collect();
            values.extend([-edge, edge]);
            let plan = Clipped::new(values.len(), bits, &function, out_bits, Radix::Four).unwrap();
            let (client, server) = split(&mut rng, &values, bits);
            let price = (plan.demand(), plan.cost());
            let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                plan.run(ch, std::slice::from_ref(x), ots)
            });
            assert_eq!(got, values.iter().map(|x| function.clear(*x)).collect::<Vec<_>>());
        }
    }
    let new = |magnitude, bits, out_bits| {
        let curve = table(magnitude, |_| 1);
        let function = new(magnitude, Argument::Even, [true, false], 0, curve);
        Clipped::new(1, bits, &function, out_bits, Radix::Four).is_err()
    };
    assert!(new(8, 12, 12) && new(7, 9, 12) && new(7, 10, 6) && new(7, 10, 64) && new(7, 64, 12));
    assert!(!new(7, 10, 9));
}

#[test]
fn wide_values_about_the_curve_and_at_the_bounds() {
    let mut rng = Random::seeded(81);
    for function in functions_of_each_form() {
        for (bits, out_bits) in [(24, 24), (63, 63), (40, 20)] {
            let last = 1i64 << function.magnitude;
            let edge = (1i64 << (bits - 1)) - last;
            let mut values: Vec<i64> = (-2 * last..2 * last).collect();
            values.extend([-edge, 1 - edge, edge - 1, edge]);
            let random = rng.uniform(300, bits).into_iter().map(|word| signed(word, bits));
            values.extend(random.filter(|x| x.abs() <= edge));
            check(bits, &function, out_bits, &values, Radix::Sixteen);
        }
    }
}

#[test]
fn prices_are_near_the_costs() {
    let count = 10_000;
    for function in functions_of_each_form() {
        let (magnitude, [least, most]) = (function.magnitude, function.ends());
        let out_bits = (most - least).max(1).ilog2() + 3;
        let plan = Fold::new(count, magnitude + 4, &function, out_bits, Radix::Four).unwrap();
        let compared = plan.comparison.cost(count).bytes();
        let each = (8 * (plan.cost().bytes() - compared)) as f64 / count as f64;
        let [bits, rounds] = function.price();
        let price = bits as f64;
        assert!(price < 1.5 * each + 24.0 && each < 1.5 * price, "{function:?}: {price} {each}");
        let exact = plan.cost().rounds as usize;
        assert!(rounds.abs_diff(exact) <= 6, "{function:?}: {rounds} {exact}");
    }
}

#[test]
fn misfits_are_refused() {
    let function = new(3, Argument::Even, [true, true], 0, table(3, |z| z / 7));
    let new = |bits, out_bits| Fold::new(1, bits, &function, out_bits, Radix::Four).is_err();
    assert!(new(5, 9) && new(64, 9) && new(9, 0) && new(9, 64));
    assert!(!new(6, 4) && !new(63, 63));
}
