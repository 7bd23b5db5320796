//! Both parties on small rings, exhaustively, and at the bounds.

use gc::Builder;
use ring::word::{mask, signed};
use ring::{Modulus, Random};
use wire::Error;

use super::shape::Entrance;
use super::*;
use crate::correlations::Correlations;
use crate::share::Share;
use crate::testing::{both, both_real, shares_of};

const FUNCTIONS: [Function; 8] = [
    Function { drop: 0, floor: false, clip: None },
    Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 2 }) },
    Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 20 }) },
    Function { drop: 1, floor: false, clip: None },
    Function { drop: 2, floor: true, clip: Some(Clip { low: -1, saturate: 1 }) },
    Function { drop: 2, floor: false, clip: Some(Clip { low: 0, saturate: 1 }) },
    Function { drop: 1, floor: false, clip: Some(Clip { low: -2, saturate: 2 }) },
    Function { drop: 0, floor: false, clip: Some(Clip { low: 3, saturate: 1 }) },
];

fn prime(value: u64) -> Ring {
    Ring::Prime(Modulus::new(value).unwrap())
}

/// A share's words as they are.
fn share(words: Vec<u64>, ring: Ring) -> Share {
    Share::new(words, ring.bits())
}

fn opened(ring: Ring, client: &Share, server: &Share) -> Vec<u64> {
    client.words().iter().zip(server.words()).map(|(c, s)| ring.add(*c, *s)).collect()
}

/// The value that a sum of shares stands for, the one closest to zero.
fn centred(ring: Ring, word: u64) -> i64 {
    match ring {
        Ring::Power(bits) => signed(word, bits),
        Ring::Prime(p) if word > p.value() / 2 => word as i64 - p.value() as i64,
        Ring::Prime(_) => word as i64,
    }
}

fn applied(then: Function, x: i64) -> i64 {
    let half = if then.drop == 0 || then.floor { 0 } else { 1 << (then.drop - 1) };
    let rounded = (x + half) >> then.drop;
    then.clip.map_or(rounded, |c| rounded.clamp(c.low, c.low + mask(c.saturate) as i64))
}

/// Shares of `values` in `ring`.
fn split(rng: &mut Random, values: &[i64], ring: Ring) -> (Share, Share) {
    let ours: Vec<u64> = values.iter().map(|_| ring.draw(rng.block())).collect();
    let theirs = values.iter().zip(&ours).map(|(v, c)| ring.subtract(ring.of_signed(*v), *c));
    let theirs = theirs.collect();
    (share(ours, ring), share(theirs, ring))
}

/// Runs `plan`, whose cost must be as said, and adds up the outputs.
fn play(rng: &mut Random, plan: &Garbled, client: &Share, server: &Share) -> Vec<Vec<u64>> {
    let price = (plan.demand(), plan.cost());
    let [c, s] = shares_of(rng, price, [client, server], |ch, x, ots| run_all(ch, plan, x, ots));
    let rings = plan.circuits.batch().rings();
    c.iter().zip(&s).zip(rings).map(|((c, s), ring)| opened(*ring, c, s)).collect()
}

#[test]
fn every_pair_of_small_shares() {
    let mut rng = Random::seeded(91);
    for from in [Ring::Power(5), prime(17), prime(31), prime(29)] {
        let all = match from {
            Ring::Power(bits) => 1 << bits,
            Ring::Prime(p) => p.value(),
        };
        for (then, width) in FUNCTIONS.into_iter().flat_map(|then| [(then, 3), (then, 4)]) {
            if then.offset().is_ok_and(|o| Entrance::signed(from, width, o, then.drop).is_err()) {
                continue;
            }
            let fits = |pair: &(u64, u64)| {
                let x = centred(from, from.add(pair.0, pair.1));
                (-(1 << (width - 1))..1 << (width - 1)).contains(&x)
            };
            let pairs = (0..all).flat_map(|c| (0..all).map(move |s| (c, s))).filter(fits);
            let (c, s): (Vec<u64>, Vec<u64>) = pairs.unzip();
            let (client, server) = (share(c, from), share(s, from));
            let x = opened(from, &client, &server).into_iter().map(|word| centred(from, word));
            let x: Vec<i64> = x.collect();
            for to in [Ring::Power(9), prime(65_537)] {
                let plan = Garbled::map(x.len(), from, width, then, to).unwrap();
                let got = play(&mut rng, &plan, &client, &server);
                let want = x.iter().map(|x| to.of_signed(applied(then, *x)));
                assert_eq!(got[0], want.collect::<Vec<_>>(), "{from:?} {then:?}");
            }
        }
    }
}

#[test]
fn bounds_of_wide_values() {
    let mut rng = Random::seeded(92);
    let mut tried = 0;
    for (from, width) in [
        (Ring::Power(20), 19),
        (Ring::Power(64), 60),
        (prime(1_316_638_721), 30),
        (prime(0x0fff_ffff_fffc_0001), 59),
        (prime(1_032_193), 19),
    ] {
        let top = 1i64 << (width - 1);
        let mut values = vec![0, 1, -1, top - 1, 2 - top, top / 2, -top / 2];
        values.extend(rng.uniform(30, width).iter().map(|word| signed(*word, width) | 1));
        let (client, server) = split(&mut rng, &values, from);
        let clip = |saturate| Some(Clip { low: 0, saturate });
        for then in [
            Function { drop: 0, floor: false, clip: None },
            Function { drop: 0, floor: false, clip: clip(8) },
            Function { drop: 11, floor: false, clip: clip(8) },
            Function { drop: 11, floor: false, clip: Some(Clip { low: -100, saturate: 9 }) },
            Function { drop: width - 2, floor: false, clip: None },
        ] {
            let to = Ring::Power(61);
            let plan = Garbled::map(values.len(), from, width, then, to);
            let Ok(plan) = plan else { continue };
            let got = play(&mut rng, &plan, &client, &server);
            let want = values.iter().map(|x| to.of_signed(applied(then, *x)));
            assert_eq!(got[0], want.collect::<Vec<_>>(), "{from:?} {then:?}");
            tried += 1;
        }
    }
    assert_eq!(tried, 25);
}

#[test]
fn maxima_of_windows_that_overlap_and_differ() {
    let mut rng = Random::seeded(93);
    for from in [Ring::Power(11), prime(1_032_193)] {
        let mut values: Vec<i64> =
            rng.uniform(40, 10).iter().map(|word| signed(*word, 10)).collect();
        values[..4].copy_from_slice(&[511, -512, -512, -511]);
        let (client, server) = split(&mut rng, &values, from);
        let mut windows: Vec<Vec<usize>> = (0..30).map(|w| vec![w, w + 1, w + 5, w + 9]).collect();
        windows.extend([vec![1], vec![1, 2], vec![39, 0, 3]]);
        for then in FUNCTIONS {
            let plan = Garbled::maximum(40, &windows, from, 10, then, Ring::Power(12)).unwrap();
            assert_eq!((plan.inputs(), plan.outputs()), (40, windows.len()));
            let got = play(&mut rng, &plan, &client, &server);
            let largest = |window: &Vec<usize>| window.iter().map(|at| values[*at]).max();
            let want = windows.iter().map(|w| applied(then, largest(w).unwrap()) as u64 & 4095);
            assert_eq!(got[0], want.collect::<Vec<_>>(), "{from:?} {then:?}");
        }
    }
}

#[test]
fn position_and_value_of_the_largest() {
    let mut rng = Random::seeded(94);
    for (rows, classes) in [(1, 1), (1, 2), (3, 5), (1, 33), (2, 64)] {
        for from in [Ring::Power(6), prime(65_537)] {
            let values: Vec<i64> =
                rng.uniform(rows * classes, 4).iter().map(|word| *word as i64 * 4 - 32).collect();
            let (client, server) = split(&mut rng, &values, from);
            let (to, value) = (Ring::Power(7), prime(257));
            let plan = Garbled::top(rows, classes, from, 6, to, Some(value)).unwrap();
            let got = play(&mut rng, &plan, &client, &server);
            for (row, values) in values.chunks(classes).enumerate() {
                let largest = values.iter().max().unwrap();
                let at = values.iter().position(|value| value == largest).unwrap();
                assert_eq!((got[0][row], got[1][row]), (at as u64, value.of_signed(*largest)));
            }
        }
    }
}

/// AND gates of `bits` reconstruction, maxima and ReLUs as they are said to be.
#[test]
fn gates_are_as_few_as_said() {
    let relu = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 60 }) };
    let same = Function::default();
    for width in [8usize, 20, 30] {
        let (ring, w) = (Ring::Power(width as u32), width as u32);
        let map = |then, ring| Garbled::map(1, ring, w, then, ring).unwrap().and_gates();
        assert_eq!(map(same, ring), width - 1);
        assert_eq!(map(relu, ring), 2 * (width - 1));
        let modulus = prime(0x0fff_ffff_fffc_0001);
        assert_eq!(map(same, modulus), 60 + width - 1);
        let pool = Garbled::maximum(4, &[vec![0, 1, 2, 3]], ring, w, relu, ring).unwrap();
        assert_eq!(pool.and_gates(), 4 * (width - 1) + 3 * 2 * width + (width - 1));
    }
}

/// FALCON's order: one ReLU for a window instead of four, 75 % of them saved. Maxima of
/// values without sign would have two gates less each.
#[test]
fn pooling_before_relu_saves_three_relus_of_four() {
    let relu = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 60 }) };
    for width in [8u32, 20, 30] {
        let ring = Ring::Power(width);
        let after = Garbled::maximum(4, &[vec![0, 1, 2, 3]], ring, width, relu, ring).unwrap();
        let entrance = Entrance::signed(ring, width, 0, 0).unwrap();
        let mut builder = Builder::new();
        let rectified = (0..4).map(|_| {
            let moved = entrance.reconstruct(&mut builder);
            let mut positive = builder.clamp(&moved, 60);
            positive.push(gc::Wire::ZERO);
            (positive, Vec::new())
        });
        let rectified = rectified.collect();
        let (largest, _) = builder.largest(rectified).unwrap();
        builder.output(&largest, false);
        let before = builder.finish().unwrap().and_gates();
        let one_relu = width as usize - 1;
        assert_eq!(before - after.and_gates(), 3 * one_relu - 3 * 2);
    }
}

type Prepare =
    fn(&mut wire::Channel, &[Circuits], Correlations, &mut Random) -> wire::Result<Vec<Prepared>>;

fn prepared(ch: &mut wire::Channel, demand: &crate::Demand, rng: Random) -> Vec<Prepared> {
    prepared_by(prepare, ch, demand, rng)
}

fn prepared_by(
    prepare: Prepare,
    ch: &mut wire::Channel,
    demand: &crate::Demand,
    mut rng: Random,
) -> Vec<Prepared> {
    let (sending, receiving) = ot::ideal::deal_pads(&mut Random::seeded(3), &demand.circuit_jobs());
    let ots = match ch.role() {
        wire::Role::Client => Correlations::new(sending, vec![]),
        wire::Role::Server => Correlations::new(vec![], receiving),
    };
    prepare(ch, &demand.circuits, ots, &mut rng).unwrap()
}

#[test]
fn real_ots_and_several_circuits_in_one_preparation() {
    let values: Vec<i64> = (-20..20).map(|x| 12 * x).collect();
    let mut rng = Random::seeded(95);
    let from = prime(65_537);
    let then = Function { drop: 2, floor: false, clip: Some(Clip { low: 0, saturate: 5 }) };
    let (client, server) = split(&mut rng, &values, from);
    let relu = Garbled::map(values.len(), from, 9, then, Ring::Power(8)).unwrap();
    let top = Garbled::top(1, values.len(), Ring::Power(8), 6, Ring::Power(6), None).unwrap();
    let demand = relu.demand() + top.demand();
    assert_eq!(demand.circuit_jobs().len(), 2);
    let (c, s) = wire::testing::run_pair(
        |ch| prepared(ch, &demand, Random::seeded(1)),
        |ch| prepared(ch, &demand, Random::seeded(2)),
    );
    assert_eq!((c.cost, s.cost), (prepare_cost(&demand.circuits), c.cost));
    assert_eq!((c.cost.rounds, prepare_cost(&[]).rounds), (2, 0));
    assert!(demand.table_bytes() > 32 * (relu.and_gates() + top.and_gates()));
    let through = |ch: &mut wire::Channel, share: &Share, mut ots: Correlations| {
        let now = ots.split(ch.role(), &relu.demand()).unwrap();
        let rectified = run(ch, &relu, share, now).unwrap();
        run(ch, &top, &rectified, ots).unwrap()
    };
    let (c, s) =
        both_real(5, &demand, |ch, p| through(ch, &client, p), |ch, p| through(ch, &server, p));
    let at = opened(Ring::Power(6), &c.value, &s.value);
    let wanted: Vec<i64> = values.iter().map(|x| applied(then, *x)).collect();
    let largest = wanted.iter().max().unwrap();
    assert_eq!(at[0], wanted.iter().position(|x| x == largest).unwrap() as u64);
}

/// Tables of more than goes aside at a time, and a few that are needed soon.
#[test]
fn tables_that_go_aside_are_the_same_bytes_and_rounds() {
    let values: Vec<i64> = (-2000..2000).map(|x| x % 250).collect();
    let mut rng = Random::seeded(97);
    let then = Function { drop: 2, floor: false, clip: Some(Clip { low: 0, saturate: 15 }) };
    let (from, to) = (Ring::Power(12), Ring::Power(8));
    let (client, server) = split(&mut rng, &values, from);
    let relu = Garbled::map(values.len(), from, 9, then, to).unwrap();
    let top = Garbled::top(1, 40, to, 6, Ring::Power(6), None).unwrap();
    let demand = relu.demand() + top.demand();
    let [messages, tables] = prepare_aside_costs(&demand.circuits);
    assert!(tables.client_to_server > 1 << 20 && messages.rounds == 2);
    let party = |ch: &mut wire::Channel, prepare, share: &Share, seed| {
        let made = prepared_by(prepare, ch, &demand, Random::seeded(seed));
        let mut all = Correlations::default().with_circuits(made);
        let now = all.split(ch.role(), &relu.demand()).unwrap();
        let rectified = run(ch, &relu, share, now).unwrap();
        let first = Share::new(rectified.words()[..40].to_vec(), rectified.bits());
        (run(ch, &top, &first, all).unwrap(), rectified)
    };
    let [at_once, aside] = [prepare as Prepare, prepare_aside].map(|prepare| {
        wire::testing::run_pair(
            |ch| party(ch, prepare, &client, 1),
            |ch| party(ch, prepare, &server, 2),
        )
    });
    assert_eq!(at_once.0.value, aside.0.value);
    assert_eq!(at_once.1.value, aside.1.value);
    let cost = prepare_cost(&demand.circuits).then(relu.cost()).then(top.cost());
    assert_eq!((at_once.0.cost, aside.0.cost, aside.1.cost), (cost, cost, cost));
    let len = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).collect::<Vec<_>>();
    assert_ne!(len(&at_once.0.frames), len(&aside.0.frames), "in another order");
    let opened = opened(to, &aside.0.value.1, &aside.1.value.1);
    assert_eq!(opened[7], applied(then, values[7]) as u64);
}

#[test]
fn other_circuits_than_prepared_are_misuse() {
    let mut rng = Random::seeded(96);
    let plan = |count| {
        Garbled::map(count, Ring::Power(8), 8, Function::default(), Ring::Power(9)).unwrap()
    };
    let (two, three) = (plan(2), plan(3));
    let x = Share::new(vec![1, 2, 3], 8);
    let (c, s) = both(
        &mut rng,
        &two.demand(),
        |ch, ots| run(ch, &three, &x, ots),
        |ch, ots| run(ch, &three, &x.narrow(7).unwrap(), ots),
    );
    assert!(matches!(c.value, Err(Error::Misuse(_))));
    assert!(matches!(s.value, Err(Error::Misuse(_))));
}

#[test]
fn plans_without_room_are_refused() {
    let (power, to) = (Ring::Power, Ring::Power(8));
    let map = |from, width, drop, clip| {
        Garbled::map(1, from, width, Function { drop, floor: false, clip }, to).is_err()
    };
    assert!(map(power(8), 9, 0, None));
    assert!(map(power(8), 8, 1, None), "rounding may carry into a ninth bit");
    assert!(!map(power(9), 8, 1, None));
    assert!(map(power(8), 0, 0, None) && map(power(65), 8, 0, None));
    assert!(map(prime(17), 5, 0, None) && !map(prime(17), 4, 0, None));
    assert!(map(power(8), 8, 0, Some(Clip { low: 0, saturate: 0 })));
    assert!(map(power(64), 8, 30, Some(Clip { low: 1 << 40, saturate: 4 })));
    assert!(Garbled::map(0, power(8), 8, Function::default(), to).is_err());
    let windows = |windows: &[Vec<usize>]| {
        Garbled::maximum(3, windows, power(8), 8, Function::default(), to).is_err()
    };
    assert!(windows(&[]) && windows(&[vec![]]) && windows(&[vec![3]]) && !windows(&[vec![2]]));
    assert!(Garbled::top(1, 0, power(8), 8, to, None).is_err());
    assert!(Garbled::top(0, 4, power(8), 8, to, None).is_err());
}
