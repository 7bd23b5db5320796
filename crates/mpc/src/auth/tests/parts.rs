//! Relations of several rings, linear maps, sizes, and what is refused.

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use ot::ideal::deal;
use ring::Random;
use wire::testing::run_pair;
use wire::{Cost, Error};

use super::super::values::ones;
use super::super::*;
use super::{Case, K, P, RELU, SKIP};
use crate::garbled::checked::{self, Checked};
use crate::share::Share;

/// Relations of several moduli in one check.
#[test]
fn relations_of_several_rings_are_checked_together() {
    let mut rng = Random::seeded(31);
    let keys = MacKeys::new(1, &mut rng);
    for wrong in [None, Some((0, 11)), Some((1, 25)), Some((1, 0))] {
        let mut lists = Vec::new();
        for (list, zero_bits) in [12u32, 26].into_iter().enumerate() {
            let modulus = zero_bits + ALPHA_BITS;
            let mut values: Vec<u128> = (0..50).map(|_| rng.block() << zero_bits).collect();
            if let Some((_, bit)) = wrong.filter(|(at, _)| *at == list) {
                values[7] ^= 1 << bit;
            }
            lists.push(tagged(&mut rng, values, modulus, &keys));
        }
        let masks = (0..COMBINATIONS).map(|_| rng.block()).collect();
        let (masks, mask_keys) = tagged(&mut rng, masks, ALPHA_BITS, &keys);
        let (values, betas): (Vec<Values>, Vec<Keys>) = lists.into_iter().unzip();
        let [mut first, mut second] = [rng.child(), rng.child()];
        let (client, server) = run_pair(
            |ch| check_client(ch, &values, &masks, None, &mut first),
            |ch| check_server(ch, &betas, &mask_keys, None, &keys, &mut second),
        );
        match wrong {
            None => {
                assert_eq!(client.cost, check_cost(66, None));
                assert!(client.value.is_ok() && server.value.is_ok());
            }
            // The client sees that its own values are wrong and opens nothing.
            Some(_) => assert!(matches!(client.value, Err(Error::Internal(_)))),
        }
    }
}

fn tagged(rng: &mut Random, values: Vec<u128>, modulus: u32, keys: &MacKeys) -> (Values, Keys) {
    let betas = Keys::new(values.iter().map(|_| rng.block()).collect(), modulus);
    let tags = betas.tags_of(&values, keys).to_vec();
    (Values::new(values, tags, modulus), betas)
}

#[test]
fn linear_maps_keep_tags() {
    let mut rng = Random::seeded(32);
    let keys = MacKeys::new(1, &mut rng);
    let words = |rng: &mut Random| (0..9).map(|_| rng.block()).collect::<Vec<u128>>();
    let [a, b] = [0; 2].map(|_| {
        let values = words(&mut rng);
        tagged(&mut rng, values, 66, &keys)
    });
    let constants = words(&mut rng);
    let twice = |x: &[u128]| x.iter().map(|x| x.wrapping_mul(3)).collect::<Vec<u128>>();
    let values = a.0.linear(twice).less(&b.0).unwrap().plus(&constants).raised(90).unwrap();
    let betas = a.1.linear(twice).less(&b.1).unwrap().plus(&constants, &keys).raised(90).unwrap();
    assert_eq!(*betas.tags_of(&values.values, &keys), values.tags);
    assert_eq!((values.modulus(), betas.modulus(), values.len()), (90, 90, 9));
    let wanted =
        a.0.values[0].wrapping_mul(3).wrapping_sub(b.0.values[0]).wrapping_add(constants[0]);
    assert_eq!(values.values[0], wanted << 24 & ones(90));
    assert!(a.0.raised(65).is_err() && a.1.less(&betas).is_err());
    assert!(!format!("{values:?} {betas:?}").contains(&values.values[0].to_string()));
}

/// Bytes for each 12-bit ReLU with 8 bits out, as the page says them.
#[test]
fn a_relu_takes_the_bytes_said() {
    let count = 8000;
    let plan = Checked::map(count, (K, SKIP), K - SKIP, RELU, P).unwrap();
    let tags = BitTags::new(count, K, K + ALPHA_BITS).unwrap();
    assert_eq!(plan.and_gates(), 14);
    let per = |cost: Cost| cost.bytes() as f64 / count as f64;
    assert!((per(plan.cost()) - 548.25).abs() < 0.1);
    assert!((per(tag_cost(&tags)) - 126.25).abs() < 0.1);
    assert!((per(commit_cost(K as usize, count)) - 2.5).abs() < 0.01);
}

#[test]
fn shares_and_bits_of_other_plans_are_refused() {
    let case = Case::new(1);
    let (sender, receiver) = deal(&mut Random::seeded(1), 40);
    let keys = MacKeys::new(*sender.delta(), &mut Random::seeded(2));
    let (client, server) = run_pair(
        |ch| {
            let bits = random(receiver, 20, 2).unwrap();
            let plan = BitTags::new(2, 21, 61).unwrap();
            tag_client(ch, &plan, &bits).map(drop)
        },
        |ch| {
            let bits = accept_random(sender, 20, 2).unwrap();
            let mut rng = Random::seeded(3);
            let plan = BitTags::new(2, 21, 61).unwrap();
            assert!(matches!(
                tag_server(ch, &plan, &keys, &bits, &mut rng),
                Err(Error::Internal(_))
            ));
            let share = Share::new(vec![0; 3], K);
            checked::server(ch, &case.relu, &keys, &bits, (&share, &[]), &mut rng).map(drop)
        },
    );
    assert!(client.value.is_err());
    assert!(matches!(server.value, Err(Error::Misuse(_))));
    assert!(Checked::map(3, (20, 21), 4, RELU, P).is_err());
    assert!(Checked::map(3, (20, 8), 13, RELU, P).is_err());
    assert!(Checked::map(3, (20, 8), 12, RELU, 45).is_err());
}
