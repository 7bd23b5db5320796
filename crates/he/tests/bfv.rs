//! BFV against integers: slot by slot, every operation, on plaintext primes of 17 to 60
//! bits.
#![allow(clippy::unwrap_used)]

#[path = "common/bfv.rs"]
mod common;

use common::Client;
use proptest::prelude::*;
use ring::{Random, Seed};
use tacit_he::bfv::noise::{self, Load};
use tacit_he::bfv::{
    Accumulator, Ciphertext, Encoder, Fresh, Params, PublicKey, RotationKeys, Switching,
};

impl Client {
    #[track_caller]
    fn expect(&self, cipher: &Ciphertext, slots: &[u64]) -> f64 {
        let got = self.secret.open(&self.encoder, cipher).unwrap();
        assert!(got[..slots.len()] == *slots, "p of {} bits", self.encoder.bits());
        self.secret.noise(&self.encoder, cipher, slots).unwrap()
    }

    /// Slot by slot mod p.
    fn each(&self, a: &[u64], b: &[u64], f: impl Fn(u128, u128, u128) -> u128) -> Vec<u64> {
        let p = u128::from(self.encoder.prime());
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| (f(u128::from(*a), u128::from(*b), p) % p) as u64).collect()
    }

    fn times(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        self.each(a, b, |a, b, _| a * b)
    }

    fn plus(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        self.each(a, b, |a, b, _| a + b)
    }
}

/// Both rows left.
fn rotated(slots: &[u64], step: usize) -> Vec<u64> {
    let (first, second) = slots.split_at(slots.len() / 2);
    let turn = |row: &[u64]| {
        let mut row = row.to_vec();
        row.rotate_left(step);
        row
    };
    [turn(first), turn(second)].concat()
}

fn swapped(slots: &[u64]) -> Vec<u64> {
    let (first, second) = slots.split_at(slots.len() / 2);
    [second, first].concat()
}

fn small() -> Params {
    Params::new(4096, &[35, 35, 36], Switching::Digits(13)).unwrap()
}

fn special() -> Params {
    Params::new(8192, &[42, 43, 43, 43], Switching::Special(43)).unwrap()
}

#[test]
fn sums_and_products_are_slotwise() {
    for (params, bits) in
        [(small(), 17), (small(), 22), (small(), 30), (special(), 45), (special(), 60)]
    {
        let mut client = Client::new(&params, bits - 1);
        let [a, b, c] = [client.slots(), client.slots(), client.slots()];
        let (mut x, y) = (client.encrypt(&a), client.encrypt(&b));
        client.expect(&x, &a);
        x.add_slots(&client.encoder, &c).unwrap();
        let a = client.plus(&a, &c);
        client.expect(&x, &a);
        let product = x.multiply(&client.encoder.plain(&c).unwrap()).unwrap();
        client.expect(&product, &client.times(&a, &c));
        let mut sum = product.clone();
        sum.add(&y).unwrap();
        let want = client.plus(&client.times(&a, &c), &b);
        client.expect(&sum, &want);
        sum.sub(&y).unwrap();
        sum.sub(&product).unwrap();
        client.expect(&sum, &vec![0; a.len()]);
    }
}

#[test]
fn accumulated_products_are_those_added_one_by_one() {
    for (params, count) in [(small(), 35), (special(), 17)] {
        accumulated(&params, count);
    }
    accumulated(&Params::new(4096, &[50, 50], Switching::Digits(17)).unwrap(), 11);
}

fn accumulated(params: &Params, count: usize) {
    let mut client = Client::new(params, 20);
    let mut sum = Accumulator::new(&client.params);
    let mut want = vec![0; client.params.degree()];
    for _ in 0..count {
        let (a, b) = (client.slots(), client.slots());
        let (x, plain) = (client.encrypt(&a), client.encoder.plain(&b).unwrap());
        sum.multiply_add(&x, &plain).unwrap();
        want = client.plus(&want, &client.times(&a, &b));
    }
    client.expect(&sum.finish(), &want);
}

#[test]
fn few_slots_leave_the_rest_zero() {
    let mut client = Client::new(&small(), 22);
    let mut slots = vec![5, 6, 7];
    let x = client.encrypt(&slots);
    slots.resize(client.params.degree(), 0);
    client.expect(&x, &slots);
}

#[test]
fn rotations_turn_rows_under_both_ways_of_switching() {
    let digits = Params::new(4096, &[50, 50], Switching::Digits(17)).unwrap();
    let whole = Params::new(4096, &[35, 36], Switching::Special(35)).unwrap();
    for params in [digits, whole, special()] {
        let mut client = Client::new(&params, 20);
        let steps = [1, 5, params.row() - 1, 1024];
        let seed = Seed([3; 16]);
        let ours = client.secret.rotation_keys(&steps, true, &seed, &mut client.rng).unwrap();
        let bodies = ours.bodies();
        let layout = RotationKeys::layout(&params, &steps, true).unwrap();
        let fits = |(body, (count, bits)): (&Vec<u64>, &(usize, u32))| {
            body.len() == *count && body.iter().all(|word| word >> bits == 0)
        };
        assert_eq!(bodies.len(), layout.len());
        assert!(bodies.iter().zip(&layout).all(fits));
        let keys = RotationKeys::new(&params, &steps, true, &seed, &bodies).unwrap();
        assert!(keys.bodies() == bodies);
        let a = client.slots();
        let x = client.encrypt(&a);
        let hoisted = x.hoist();
        for step in [0].into_iter().chain(steps) {
            client.expect(&x.rotate(&keys, step).unwrap(), &rotated(&a, step));
            client.expect(&hoisted.rotate(&keys, step).unwrap(), &rotated(&a, step));
        }
        client.expect(&x.swap_rows(&keys).unwrap(), &swapped(&a));
        client.expect(&hoisted.swap_rows(&keys).unwrap(), &swapped(&a));
        assert!(x.rotate(&keys, 2).is_err() && x.rotate(&keys, params.row()).is_err());
    }
}

#[test]
fn rotation_steps_are_checked() {
    let params = small();
    for steps in [&[0][..], &[1, 1], &[2048], &[usize::MAX]] {
        assert!(RotationKeys::layout(&params, steps, false).is_err());
    }
    assert!(RotationKeys::layout(&params, &[], false).unwrap().is_empty());
    assert!(RotationKeys::new(&params, &[1], false, &Seed([0; 16]), &[]).is_err());
}

#[test]
fn rotation_keys_come_one_at_a_time() {
    let params = small();
    let mut client = Client::new(&params, 23);
    let (steps, seed) = ([1, 7], Seed([4; 16]));
    let keys = client.secret.rotation_bodies(&steps, true, &seed, &mut client.rng).unwrap();
    let keys: Vec<Vec<Vec<u64>>> = keys.collect();
    let layout = RotationKeys::layout(&params, &steps, true).unwrap();
    assert_eq!(keys.iter().map(Vec::len).collect::<Vec<_>>(), [layout.len() / 3; 3]);
    let mut incoming = RotationKeys::incoming(&params, &steps, true, &seed).unwrap();
    assert!(incoming.add(&keys[0][1..]).is_err());
    for key in &keys {
        incoming.add(key).unwrap();
    }
    assert!(incoming.add(&keys[0]).is_err());
    let keys = keys.concat();
    let whole = incoming.whole().unwrap();
    assert!(whole.bodies() == keys);
    let a = client.slots();
    let x = client.encrypt(&a);
    client.expect(&x.rotate(&whole, 7).unwrap(), &rotated(&a, 7));
    for few in [&keys[..0], &keys[..2 * layout.len() / 3]] {
        assert!(RotationKeys::new(&params, &steps, true, &seed, few).is_err());
    }
}

#[test]
fn a_peers_integers_are_checked() {
    let mut client = Client::new(&small(), 22);
    let good = client.secret.encrypt(&client.encoder, &[1], &mut client.rng).unwrap();
    let edit = |change: fn(&mut Fresh)| {
        let mut fresh = good.clone();
        change(&mut fresh);
        fresh.expand(&client.params)
    };
    assert!(edit(|_| {}).is_ok());
    assert!(edit(|fresh| fresh.body[0][7] = 1 << 36).is_err());
    assert!(edit(|fresh| fresh.body[2][7] = u64::MAX).is_err());
    assert!(edit(|fresh| fresh.body[1].truncate(4095)).is_err());
    assert!(edit(|fresh| fresh.body.truncate(2)).is_err());
    let key = client.secret.public_key(&Seed([1; 16]), &mut client.rng).unwrap();
    let mut bodies = key.bodies();
    assert!(PublicKey::new(&client.params, &Seed([1; 16]), &bodies).is_ok());
    bodies[0][0] = u64::MAX;
    assert!(PublicKey::new(&client.params, &Seed([1; 16]), &bodies).is_err());
    let p = client.encoder.prime();
    for slots in [vec![p], vec![u64::MAX], vec![1 << 63], vec![0; 4097]] {
        assert!(client.encoder.plain(&slots).is_err());
        assert!(client.secret.encrypt(&client.encoder, &slots, &mut client.rng).is_err());
    }
    let other = Client::new(&special(), 22);
    assert!(good.expand(&other.params).is_err());
    let cipher = good.expand(&client.params).unwrap();
    assert!(cipher.multiply(&other.encoder.plain(&[1]).unwrap()).is_err());
}

#[test]
fn plaintext_primes_are_checked() {
    let params = small();
    for prime in [0, 1, 65536, 65537 * 8192 + 2, (1 << 60) + 8193] {
        assert!(Encoder::new(&params, prime).is_err(), "{prime}");
    }
    assert_eq!(Encoder::prime_above(&params, 16).unwrap(), 65537);
    for bits in [16, 22, 45, 58] {
        let prime = Encoder::prime_with(&params, bits, 45).unwrap();
        assert!(prime >= 1 << bits && (prime - 1).is_multiple_of(45 * 2 * params.degree() as u64));
        assert!(Encoder::new(&params, prime).is_ok());
    }
    for divisor in [0, 1 << 40, u64::MAX] {
        assert!(Encoder::prime_with(&params, 22, divisor).is_err());
    }
    assert!(Encoder::prime_above(&params, 12).is_err());
    assert!(Encoder::prime_above(&params, 60).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn responses_carry_masked_results(bits in 16u32..26, terms in 1usize..9, seed: u64) {
        let params = Params::new(4096, &[35, 35, 36], Switching::Digits(18)).unwrap();
        let mut client = Client::new(&params, bits);
        client.rng = Random::seeded(seed);
        let public = client.secret.public_key(&Seed([1; 16]), &mut client.rng).unwrap();
        let mut sum = Accumulator::new(&params);
        let mut want = vec![0; params.degree()];
        for _ in 0..terms {
            let (a, b) = (client.slots(), client.slots());
            sum.multiply_add(&client.encrypt(&a), &client.encoder.plain(&b).unwrap()).unwrap();
            want = client.plus(&want, &client.times(&a, &b));
        }
        let mask = client.slots();
        let load = Load { plain_bits: bits, rotations_before: 0, terms, rotations_after: 0 };
        let response =
            sum.finish().respond(&public, &client.encoder, &mask, &load, &mut client.rng).unwrap();
        prop_assert_eq!(response.bits, noise::response_bits(&client.encoder));
        let got = client.secret.decrypt(&client.encoder, &response).unwrap();
        prop_assert!(*got == client.plus(&want, &mask));
    }
}

#[test]
fn a_public_key_encrypts_too() {
    for (degree, moduli, switching) in [
        (2048, &[50][..], Switching::Digits(17)),
        (4096, &[50, 50], Switching::Digits(17)),
        (8192, &[43, 43, 44], Switching::Special(44)),
    ] {
        let params = Params::new(degree, moduli, switching).unwrap();
        let mut client = Client::new(&params, 17);
        let public = client.secret.public_key(&Seed([3; 16]), &mut client.rng).unwrap();
        let slots = client.slots();
        let cipher = public.encrypt(&client.encoder, &slots, &mut client.rng).unwrap();
        let noise = client.expect(&cipher, &slots);
        let deviation = 3.2 * (4.0 * degree as f64 / 3.0).sqrt();
        assert!((deviation.log2()..(9.6 * deviation).log2()).contains(&noise), "{noise}");
        let again = public.encrypt(&client.encoder, &slots, &mut client.rng).unwrap();
        assert_ne!(client.secret.noise(&client.encoder, &again, &slots).unwrap(), noise);
    }
}
