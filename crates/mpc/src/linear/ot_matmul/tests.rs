//! Both parties in memory, for every kind of weights.

use proptest::prelude::*;
use ring::Random;
use ring::word::mask;
use wire::Role;

use super::*;
use crate::correlations::Demand;
use crate::testing::{both, both_real, both_tampered};

/// Weights of a kind and the numbers that choose them.
fn draw(rng: &mut Random, count: usize, importance: &[i64], offset: i64) -> (Vec<i32>, Vec<u32>) {
    let chosen: Vec<u32> =
        rng.uniform(count, importance.len() as u32).iter().map(|word| *word as u32).collect();
    let weight = |chosen: &u32| {
        let bits = importance.iter().enumerate();
        let sum: i64 = bits.map(|(bit, worth)| i64::from(chosen >> bit & 1) * worth).sum();
        (offset + sum) as i32
    };
    (chosen.iter().map(weight).collect(), chosen)
}

fn expected(plan: &Product, weights: &[i32], x: &[u64]) -> Vec<u64> {
    let mut all = Vec::new();
    for line in 0..plan.lines() {
        let place = line / plan.rows;
        for column in 0..plan.columns {
            let term = |i: usize| {
                let x = x[(place * plan.inner + i) * plan.columns + column];
                x.wrapping_mul(weights[line * plan.inner + i] as u64)
            };
            let sum = (0..plan.inner).map(term).fold(0, u64::wrapping_add);
            all.push(sum & mask(plan.bits));
        }
    }
    all
}

type Shares = Result<Zeroizing<Vec<u64>>>;

fn client_share(ch: &mut Channel, plan: &Product, x: &Right, mut ots: Correlations) -> Shares {
    let mut all = without_bits(plan, x);
    let mut bits = Vec::new();
    for (part, demand) in plan.demands().iter().enumerate() {
        let ots = ots.split(Role::Client, demand)?;
        let asked = ask(ch, plan, part, None, ots)?;
        bits.extend_from_slice(&client(ch, plan, part, x, asked, 1 + part % 2)?);
    }
    all.iter_mut().zip(bits).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
    Ok(all)
}

fn server_share(
    ch: &mut Channel,
    plan: &Product,
    weights: &Weights,
    mut ots: Correlations,
) -> Shares {
    let mut all = Zeroizing::new(Vec::new());
    for (part, demand) in plan.demands().iter().enumerate() {
        let ots = ots.split(Role::Server, demand)?;
        let asked = ask(ch, plan, part, Some(weights), ots)?;
        all.extend_from_slice(&server(ch, plan, part, weights, asked, 1 + part % 2)?);
    }
    Ok(all)
}

fn check(seed: u64, sides: [usize; 4], bits: u32, importance: &[i64], offset: i64) {
    let mut rng = Random::seeded(seed);
    let plan = Product::new(sides, bits, importance, offset).unwrap();
    let (full, chosen) = draw(&mut rng, plan.lines() * plan.inner, importance, offset);
    let words = rng.uniform(plan.inputs(), bits);
    let x = Right::new(&words, bits);
    let weights = Weights::new(&plan, full.clone(), &chosen).unwrap();
    let demand: Demand = plan.demands().into_iter().sum();
    let (ours, theirs) = both(
        &mut rng,
        &demand,
        |ch, ots| client_share(ch, &plan, &x, ots).unwrap(),
        |ch, ots| server_share(ch, &plan, &weights, ots).unwrap(),
    );
    assert_eq!(ours.cost, plan.costs().into_iter().flatten().collect(), "{plan:?}");
    let sums = ours.value.iter().zip(theirs.value.iter());
    let got: Vec<u64> = sums.map(|(a, b)| a.wrapping_add(*b) & mask(bits)).collect();
    let want = expected(&plan, &full, &words);
    assert_eq!(got, want, "{plan:?}");
    assert_eq!(*known(&plan, &weights, &x, 2), want);
}

fn twos(bits: u32) -> Vec<i64> {
    let mut importance: Vec<i64> = (0..bits).map(|bit| 1 << bit).collect();
    *importance.last_mut().unwrap() *= -1;
    importance
}

#[test]
fn weights_of_every_kind() {
    for bits in 1..=8 {
        check(bits.into(), [2, 3, 5, 7], 13, &twos(bits), 0);
    }
    for (importance, offset) in
        [(&[2][..], -1), (&[1, -1], 0), (&[1, 2, -8], 0), (&[3, 5, -6], 7), (&[1 << 14, 1], 0)]
    {
        check(9, [3, 2, 4, 9], 13, importance, offset);
    }
    check(10, [4, 1, 1, 50], 24, &twos(12), 0);
}

#[test]
fn vectors_are_packed_in_blocks_of_whole_bytes() {
    // Several blocks, the last one cut short; vectors longer than a block, of odd lengths.
    for (sides, blocks) in [([1, 1, 3000, 3], 2), ([1, 2, 9, 2500], 5), ([1, 1, 11, 9001], 2)] {
        let [_, _, inner, columns] = sides;
        let block = sender::block(columns);
        assert_eq!(inner.div_ceil(block), blocks, "{sides:?}");
        assert!((block * columns).is_multiple_of(8) && !inner.is_multiple_of(block));
        for bits in [7, 19, 37] {
            check(bits.into(), sides, bits, &[1, 2, -4], 1);
        }
    }
}

#[test]
fn rings_of_every_width_and_odd_sizes() {
    for bits in 1..=40 {
        check(bits.into(), [1, 2, 3, 1 + bits as usize % 11], bits, &[1, 2, -4], 1);
    }
    for sides in [[1, 1, 1, 1], [1, 10, 64, 1], [5, 1, 1, 33], [2, 3, 4, 65]] {
        check(50, sides, 17, &twos(3), 0);
        check(51, sides, 62, &twos(3), 0);
    }
}

#[test]
fn long_rows_are_cut_and_many_rows_are_made_in_parts() {
    // A piece has 2^23 bits, a part 2^21 OTs.
    check(60, [1, 2, 40, 30_000], 12, &twos(2), 0);
    let plan = Product::new([1, 3, 1 << 20, 1], 12, &[1, -2], 0).unwrap();
    assert_eq!(plan.parts(), [0..1, 1..2, 2..3]);
    check(61, [1, 2, (1 << 20) + 5, 1], 8, &[1, -2], 0);
}

#[test]
fn corrections_of_one_bit_are_all_that_is_sent() {
    let plan = Product::new([16, 32, 16, 256], 12, &[1, -2], 0).unwrap();
    let cost: wire::Cost = plan.costs().into_iter().flatten().collect();
    let payload = 16 * 32 * 16 * 256 * (12 + 11) / 8;
    assert_eq!(plan.ots(), 16 * 32 * 16 * 2);
    assert!(cost.client_to_server < payload + 100 && cost.client_to_server > payload);
    assert_eq!((cost.server_to_client, cost.rounds), (5 + 16 * 32 * 16 * 2 / 8, 2));
}

#[test]
fn nonsense_is_refused() {
    for (sides, bits, importance) in [
        ([0, 1, 1, 1], 8, &[1][..]),
        ([1, 1, usize::MAX, 2], 8, &[1]),
        ([1, 1 << 16, 1 << 16, 1], 8, &[1]),
        ([1; 4], 0, &[1]),
        ([1; 4], 63, &[1]),
        ([1; 4], 8, &[]),
        ([1, 1 << 23, 1, 1], 8, &[1]),
    ] {
        assert!(Product::new(sides, bits, importance, 0).is_err());
    }
    let plan = Product::new([1, 2, 3, 4], 8, &[1], 0).unwrap();
    assert!(Weights::new(&plan, vec![0; 5], &[0; 6]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_weights_and_sizes(
        seed: u64,
        sides in prop::array::uniform4(1usize..9),
        bits in 2u32..40,
        importance in prop::collection::vec((-300i64..300).prop_filter("no zero", |i| *i != 0), 1..9),
        offset in -9i64..9,
    ) {
        check(seed, sides, bits, &importance, offset);
    }
}

#[test]
fn real_ots_give_the_same() {
    let plan = Product::new([2, 3, 5, 40], 14, &twos(3), -1).unwrap();
    let mut rng = Random::seeded(70);
    let (full, chosen) = draw(&mut rng, plan.lines() * plan.inner, &twos(3), -1);
    let words = rng.uniform(plan.inputs(), 14);
    let x = Right::new(&words, 14);
    let weights = Weights::new(&plan, full.clone(), &chosen).unwrap();
    let (ours, theirs) = both_real(
        71,
        &plan.demands().into_iter().sum(),
        |ch, ots| client_share(ch, &plan, &x, ots).unwrap(),
        |ch, ots| server_share(ch, &plan, &weights, ots).unwrap(),
    );
    let sums = ours.value.iter().zip(theirs.value.iter());
    let got: Vec<u64> = sums.map(|(a, b)| a.wrapping_add(*b) & mask(14)).collect();
    assert_eq!(got, expected(&plan, &full, &words));
}

#[test]
fn damaged_frames_are_the_peers_fault() {
    use wire::testing::Tamper;
    let plan = Product::new([1, 2, 3, 3], 7, &twos(2), 0).unwrap();
    let mut rng = Random::seeded(80);
    let (full, chosen) = draw(&mut rng, plan.lines() * plan.inner, &twos(2), 0);
    let x = Right::new(&rng.uniform(plan.inputs(), 7), 7);
    let weights = Weights::new(&plan, full, &chosen).unwrap();
    let demand = plan.demands().into_iter().sum();
    for how in [Tamper::Truncate, Tamper::Retag, Tamper::Oversize, Tamper::Close] {
        for role in [Role::Client, Role::Server] {
            let (ours, theirs) = both_tampered(
                &mut rng,
                Some((role, 0, how)),
                &demand,
                |ch, ots| client_share(ch, &plan, &x, ots).is_err(),
                |ch, ots| server_share(ch, &plan, &weights, ots).is_err(),
            );
            assert!(ours.value || theirs.value, "{how:?} by {role:?}");
        }
    }
}
