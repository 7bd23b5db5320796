//! Noise against its bounds, and what a response tells about it.
#![allow(clippy::unwrap_used)]

#[path = "common/bfv.rs"]
mod common;

use common::Client;
use ring::{Random, Seed};
use tacit_he::Error;
use tacit_he::bfv::noise::{self, Estimate, Load};
use tacit_he::bfv::{
    Accumulator, Blinding, Ciphertext, Encoder, Params, PublicKey, RotationKeys, Switching,
};

/// A bound may be this many bits above what is measured.
const SLACK: f64 = 12.0;

/// A client and the keys that its server holds.
struct Pair {
    client: Client,
    public: PublicKey,
    keys: RotationKeys,
}

impl Pair {
    fn new(params: &Params, bits: u32) -> Self {
        let mut client = Client::new(params, bits);
        let Client { secret, rng, .. } = &mut client;
        let public = secret.public_key(&Seed([1; 16]), rng).unwrap();
        let keys = secret.rotation_keys(&[1, 2], false, &Seed([2; 16]), rng).unwrap();
        Self { client, public, keys }
    }

    #[track_caller]
    fn within(&self, cipher: &Ciphertext, load: Load) {
        let slots = self.client.secret.open(&self.client.encoder, cipher).unwrap();
        let measured = self.client.secret.noise(&self.client.encoder, cipher, &slots).unwrap();
        let bound = noise::bound(&self.client.encoder, &load).unwrap();
        let fits = measured <= bound && bound < measured + SLACK;
        assert!(fits, "measured {measured}, bound {bound}, {load:?}, {}", self.client.params);
    }
}

fn both() -> [(Params, u32); 4] {
    let params =
        |degree, moduli: &[u32], switching| Params::new(degree, moduli, switching).unwrap();
    [
        (params(4096, &[50, 50], Switching::Digits(17)), 22),
        (params(4096, &[35, 35], Switching::Special(36)), 17),
        (params(8192, &[42, 43, 43, 43], Switching::Special(43)), 45),
        (params(8192, &[50, 50, 50, 50], Switching::Digits(25)), 30),
    ]
}

#[test]
fn noise_stays_below_its_bound_and_near_it() {
    for (params, plain_bits) in both() {
        let mut pair = Pair::new(&params, plain_bits);
        let none = Load { plain_bits, rotations_before: 0, terms: 0, rotations_after: 0 };
        let slots = pair.client.slots();
        let fresh = pair.client.encrypt(&slots);
        pair.within(&fresh, none);
        let rotated = fresh.rotate(&pair.keys, 1).unwrap();
        pair.within(&rotated, Load { rotations_before: 1, ..none });
        let twice = rotated.rotate(&pair.keys, 2).unwrap();
        pair.within(&twice, Load { rotations_before: 2, ..none });
        let plain = pair.client.encoder.plain(&slots).unwrap();
        let one = Load { terms: 1, ..none };
        pair.within(&fresh.multiply(&plain).unwrap(), one);
        pair.within(&twice.multiply(&plain).unwrap(), Load { rotations_before: 2, ..one });
        // The weights that carry most: every coefficient at half the prime.
        let half = vec![pair.client.encoder.prime() / 2; params.degree()];
        let extreme = pair.client.encoder.decode(&half).unwrap();
        let largest = fresh.multiply(&pair.client.encoder.plain(&extreme).unwrap()).unwrap();
        pair.within(&largest, one);
        let mut sum = Accumulator::new(&params);
        for _ in 0..30 {
            let (input, weights) = (pair.client.slots(), pair.client.slots());
            let plain = pair.client.encoder.plain(&weights).unwrap();
            sum.multiply_add(&pair.client.encrypt(&input), &plain).unwrap();
        }
        let mut sum = sum.finish();
        let mut load = Load { terms: 30, ..none };
        pair.within(&sum, load);
        for step in [2, 1] {
            sum.add(&sum.rotate(&pair.keys, step).unwrap()).unwrap();
            load = load.folded(1);
            pair.within(&sum, load);
        }
        assert_eq!(load, Load { terms: 30, ..none }.folded(2));
    }
}

#[test]
fn rotations_of_one_input_add_up_as_those_of_many() {
    for (params, plain_bits) in both() {
        let mut pair = Pair::new(&params, plain_bits);
        let slots = pair.client.slots();
        let hoisted = pair.client.encrypt(&slots).hoist();
        let mut sum = Accumulator::new(&params);
        // One weight for all: products as correlated as they can be.
        let plain = pair.client.encoder.plain(&slots).unwrap();
        for step in [0, 1, 2] {
            sum.multiply_add(&hoisted.rotate(&pair.keys, step).unwrap(), &plain).unwrap();
        }
        let load = Load { plain_bits, rotations_before: 1, terms: 3, rotations_after: 0 };
        pair.within(&sum.finish(), load);
    }
}

#[test]
fn parameters_that_are_chosen_decrypt() {
    for (plain_bits, terms, before, after, rotations) in [
        (22, 16, 0, 7, true),
        (22, 16, 0, 0, false),
        (20, 64, 1, 3, true),
        (30, 200, 1, 0, true),
        (45, 9, 1, 9, true),
    ] {
        let load = Load { plain_bits, rotations_before: before, terms, rotations_after: after };
        let (params, bits) = noise::choose(&load, rotations).unwrap();
        let mut pair = Pair::new(&params, plain_bits);
        let mut sum = Accumulator::new(&params);
        let (input, weights) = (pair.client.slots(), pair.client.slots());
        let hoisted = pair.client.encrypt(&input).hoist();
        let plain = pair.client.encoder.plain(&weights).unwrap();
        for term in 0..terms {
            let rotated = hoisted.rotate(&pair.keys, (term % 3) * before.min(1)).unwrap();
            sum.multiply_add(&rotated, &plain).unwrap();
        }
        let sum = sum.finish();
        let want = pair.client.secret.open(&pair.client.encoder, &sum).unwrap();
        let mask = vec![0; params.degree()];
        let response =
            sum.respond(&pair.public, &pair.client.encoder, &mask, &load, &mut pair.client.rng);
        let response = response.unwrap();
        assert_eq!(response.bits, bits);
        assert_eq!(
            pair.client.secret.decrypt(&pair.client.encoder, &response).unwrap(),
            want,
            "{params}"
        );
    }
    let small = Load { plain_bits: 22, rotations_before: 0, terms: 16, rotations_after: 0 };
    assert_eq!(noise::choose(&small, true).unwrap().0.degree(), 4096);
    let huge = Load { plain_bits: 58, ..small };
    assert!(matches!(noise::choose(&huge, true), Err(Error::TooLarge(_))));
}

/// Every response of the candidates is flooded by as much as its modulus has room for.
#[test]
fn flooding_takes_the_room_that_there_is() {
    let flooded = |plain_bits, terms| {
        let load = Load { plain_bits, rotations_before: 0, terms, rotations_after: 0 };
        let (params, _) = noise::choose(&load, false).unwrap();
        let prime = Encoder::prime_above(&params, plain_bits).unwrap();
        let encoder = Encoder::new(&params, prime).unwrap();
        let estimate = Estimate::of(&encoder, &load).unwrap();
        let above = estimate.flooded().unwrap();
        let whole = estimate.bits().ceil() as u32 + above;
        assert_eq!(estimate.flooding().unwrap(), whole);
        let left = estimate.budget() - f64::from(above);
        (params.degree(), above, left)
    };
    for (plain_bits, terms) in [(18, 1), (20, 1), (20, 4096), (22, 64), (26, 64), (30, 4096)] {
        let (degree, above, left) = flooded(plain_bits, terms);
        assert!((noise::FLOODING..=noise::MOST_FLOODING).contains(&above), "{degree}: {above}");
        // A bit more and rounding would have no room, unless there is enough for all.
        let full = above == noise::MOST_FLOODING;
        assert!(left > 1.0 && (full || left < 3.0), "{degree}: {above} bits, {left} left");
    }
}

#[test]
fn responses_that_cannot_be_flooded_are_refused() {
    let params = Params::new(4096, &[35, 35], Switching::Special(36)).unwrap();
    let mut pair = Pair::new(&params, 22);
    let slots = pair.client.slots();
    let load = Load { plain_bits: 22, rotations_before: 0, terms: 1, rotations_after: 0 };
    let mut respond = |mask: &[u64], load: &Load| {
        let fresh =
            pair.client.secret.encrypt(&pair.client.encoder, &slots, &mut pair.client.rng).unwrap();
        let cipher = fresh.expand(&params).unwrap();
        cipher.respond(&pair.public, &pair.client.encoder, mask, load, &mut pair.client.rng)
    };
    assert!(matches!(respond(&[0; 4096], &load), Err(Error::TooLarge(_))));
    let lighter = Load { terms: 0, ..load };
    assert!(matches!(respond(&[0; 4095], &lighter), Err(Error::Shape { .. })));
    assert!(matches!(respond(&[u64::MAX; 4096], &lighter), Err(Error::Shape { .. })));
    assert!(matches!(
        respond(&[0; 4096], &Load { plain_bits: 20, ..lighter }),
        Err(Error::Shape { .. })
    ));
}

/// To the bit, from the same randomness; not with less flooding than there must be.
#[test]
fn prepared_responses_are_those_made_at_once() {
    for (params, bits) in [
        (Params::new(4096, &[35, 35, 36], Switching::Digits(25)).unwrap(), 24),
        (Params::new(8192, &[43, 43, 44], Switching::Special(44)).unwrap(), 30),
    ] {
        let mut pair = Pair::new(&params, bits);
        let slots = pair.client.slots();
        let plain = pair.client.encoder.plain(&slots).unwrap();
        let cipher = pair.client.encrypt(&slots).multiply(&plain).unwrap();
        let load = Load { plain_bits: bits, rotations_before: 0, terms: 1, rotations_after: 0 };
        let seeded = || Random::seeded(4);
        let at_once = cipher.clone().respond(
            &pair.public,
            &pair.client.encoder,
            &slots,
            &load,
            &mut seeded(),
        );
        let blinding =
            Blinding::prepare(&pair.public, &pair.client.encoder, &slots, &load, &mut seeded())
                .unwrap();
        let prepared =
            cipher.clone().respond_prepared(&pair.client.encoder, &load, blinding).unwrap();
        assert_eq!(prepared, at_once.unwrap());

        let less = Load { terms: 0, ..load };
        let blinding =
            Blinding::prepare(&pair.public, &pair.client.encoder, &slots, &less, &mut seeded())
                .unwrap();
        let refused = cipher.respond_prepared(&pair.client.encoder, &load, blinding).unwrap_err();
        assert!(refused.to_string().contains("flooding"), "{refused}");
    }
}

#[test]
fn responses_of_other_shapes_are_refused() {
    let params = Params::new(4096, &[50, 50], Switching::Digits(17)).unwrap();
    let mut pair = Pair::new(&params, 22);
    let load = Load { plain_bits: 22, rotations_before: 0, terms: 0, rotations_after: 0 };
    let mask = pair.client.slots();
    let cipher = pair.client.encrypt(&[]);
    let response = cipher
        .respond(&pair.public, &pair.client.encoder, &mask, &load, &mut pair.client.rng)
        .unwrap();
    assert_eq!(*pair.client.secret.decrypt(&pair.client.encoder, &response).unwrap(), mask);
    let refused = |change: fn(&mut tacit_he::bfv::Response)| {
        let mut other = response.clone();
        change(&mut other);
        pair.client.secret.decrypt(&pair.client.encoder, &other).is_err()
    };
    assert!(refused(|r| r.c1[0] = 1 << r.bits[0]));
    assert!(refused(|r| r.c0[0] = u64::MAX));
    assert!(refused(|r| r.c0.truncate(9)));
    assert!(refused(|r| r.bits = [64, 64]));
    assert!(refused(|r| r.bits = [20, 30]));
    assert!(refused(|r| r.bits = [0, 0]));
}
