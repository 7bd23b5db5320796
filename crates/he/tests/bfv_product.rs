//! Products of ciphertexts and fewer primes, against integers.
#![allow(clippy::unwrap_used)]

#[path = "common/bfv.rs"]
mod common;

use common::Client;
use ring::Seed;
use tacit_he::Error;
use tacit_he::bfv::noise::{Estimate, Load};
use tacit_he::bfv::{
    Ciphertext, Encoder, Multiplier, Params, RelinearizationKey, Scalar, SecretKey, Switching,
};

fn client(degree: usize, moduli: &[u32], switching: Switching, bits: u32) -> Client {
    Client::new(&Params::new(degree, moduli, switching).unwrap(), bits)
}

impl Client {
    fn encrypted(&mut self) -> (Vec<u64>, Ciphertext) {
        let slots = self.slots();
        let cipher = self.encrypt(&slots);
        (slots, cipher)
    }

    fn times(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let p = u128::from(self.encoder.prime());
        a.iter().zip(b).map(|(a, b)| (u128::from(*a) * u128::from(*b) % p) as u64).collect()
    }

    #[track_caller]
    fn expect(&self, cipher: &Ciphertext, slots: &[u64], bound: &Estimate) -> f64 {
        assert!(*self.secret.open(&self.encoder, cipher).unwrap() == slots);
        let noise = self.secret.noise(&self.encoder, cipher, slots).unwrap();
        let bits = bound.bits();
        assert!(noise <= bits && bits < noise + 12.0, "{noise}, bound {bits}, {}", self.params);
        noise
    }

    fn fresh(&self) -> Estimate {
        Estimate::fresh(&self.encoder)
    }
}

#[test]
fn products_are_slotwise_and_may_be_multiplied_again() {
    for (switching, bits) in [
        (Switching::Special(43), 17),
        (Switching::Special(43), 30),
        (Switching::Digits(22), 20),
        (Switching::Digits(44), 20),
    ] {
        let mut client = client(8192, &[42, 43, 43, 43], switching, bits);
        let seed = Seed([4; 16]);
        let ours = client.secret.relinearization_key(&seed, &mut client.rng).unwrap();
        let bodies = ours.bodies();
        let layout = RelinearizationKey::layout(&client.params);
        assert!(bodies.iter().zip(&layout).all(|(b, (n, w))| b.len() == *n && b[0] >> w == 0));
        assert_eq!(bodies.len(), layout.len());
        let key = RelinearizationKey::new(&client.params, &seed, &bodies).unwrap();
        assert!(key.bodies() == bodies);
        let multiplier = Multiplier::new(&client.params, &client.encoder).unwrap();
        let ((a, x), (b, y)) = (client.encrypted(), client.encrypted());
        let product = multiplier.multiply(&x, &y, &key).unwrap();
        let want = client.times(&a, &b);
        let bound = client.fresh().product(&client.fresh());
        client.expect(&product, &want, &bound);
        let square = multiplier.square(&product, &key).unwrap();
        client.expect(&square, &client.times(&want, &want), &bound.clone().product(&bound));
        assert!(RelinearizationKey::new(&client.params, &seed, &bodies[1..]).is_err());
    }
}

#[test]
fn wide_plaintext_primes_multiply_too() {
    let mut client = client(16384, &[50; 6], Switching::Special(50), 59);
    let key = client.secret.relinearization_key(&Seed([4; 16]), &mut client.rng).unwrap();
    let multiplier = Multiplier::new(&client.params, &client.encoder).unwrap();
    let ((a, x), (b, y)) = (client.encrypted(), client.encrypted());
    let bound = client.fresh().product(&client.fresh());
    client.expect(&multiplier.multiply(&x, &y, &key).unwrap(), &client.times(&a, &b), &bound);
}

#[test]
fn fewer_primes_hold_the_same_slots_under_the_same_keys() {
    for switching in [Switching::Special(43), Switching::Digits(15)] {
        let mut client = client(8192, &[42, 43, 43, 43], switching, 18);
        let (seed, rng) = (Seed([4; 16]), &mut client.rng);
        let key = client.secret.relinearization_key(&seed, rng).unwrap();
        let keys = client.secret.rotation_keys(&[5], true, &seed, rng).unwrap();
        let public = client.secret.public_key(&seed, rng).unwrap();
        let multiplier = Multiplier::new(&client.params, &client.encoder).unwrap();
        let ((a, x), (b, y)) = (client.encrypted(), client.encrypted());
        let product = multiplier.multiply(&x, &y, &key).unwrap();
        let mut want = client.times(&a, &b);
        let mut bound = client.fresh().product(&client.fresh());
        let before = client.expect(&product, &want, &bound);
        let mut less = product.drop_modulus().unwrap();
        bound = bound.dropped().unwrap();
        let after = client.expect(&less, &want, &bound);
        assert!(after < before - 15.0 && after < 12.0, "{before} to {after}");
        less = less.rotate(&keys, 5).unwrap().swap_rows(&keys).unwrap();
        want.rotate_left(4096);
        want.chunks_mut(4096).for_each(|row| row.rotate_left(5));
        bound = bound.rotated().rotated();
        client.expect(&less, &want, &bound);
        let smaller = Multiplier::new(less.params(), &client.encoder).unwrap();
        less = smaller.square(&less, &key).unwrap();
        want = client.times(&want, &want);
        bound = bound.clone().product(&bound);
        client.expect(&less, &want, &bound);
        less = less.multiply(&client.encoder.plain(&a).unwrap()).unwrap();
        less.add_slots(&client.encoder, &b).unwrap();
        want = client.times(&want, &a);
        let prime = client.encoder.prime();
        want.iter_mut().zip(&b).for_each(|(want, b)| *want = (*want + b) % prime);
        client.expect(&less, &want, &bound.times_plain());
        assert!(less.add(&x).is_err() && multiplier.square(&less, &key).is_err());
        let noise = Estimate::fresh(&client.encoder).dropped().unwrap().dropped().unwrap();
        let x = x.drop_modulus().unwrap().drop_modulus().unwrap();
        let (mask, rng) = (vec![7; 8192], &mut client.rng);
        let load = Load { plain_bits: 18, rotations_before: 0, terms: 0, rotations_after: 0 };
        let refused = x.clone().respond(&public, &client.encoder, &mask, &load, rng);
        assert!(matches!(refused, Err(Error::Shape { .. })));
        let response = x.respond_within(&public, &client.encoder, &mask, &noise, rng).unwrap();
        let got = client.secret.decrypt(&client.encoder, &response).unwrap();
        assert!(got.iter().zip(&a).all(|(got, a)| *got == (a + 7) % prime));
    }
}

#[test]
fn integers_multiply_all_slots_and_grow_noise_by_themselves_only() {
    let mut client = client(8192, &[42, 43, 43, 43], Switching::Special(43), 20);
    let prime = client.encoder.prime();
    let (a, x) = client.encrypted();
    let (b, y) = client.encrypted();
    let mut sum = Ciphertext::zero(&client.params);
    sum.add_scaled(&x, &Scalar::new(&client.params, 15)).unwrap();
    sum.add_scaled(&y, &Scalar::new(&client.params, -7)).unwrap();
    let pairs = a.iter().zip(&b);
    let want: Vec<u64> = pairs.map(|(a, b)| (15 * a + (prime - b) * 7) % prime).collect();
    client.expect(&sum, &want, &client.fresh().scaled(15.0 * 15.0 + 7.0 * 7.0));
    let less = x.drop_modulus().unwrap();
    let mut sum = Ciphertext::zero(less.params());
    sum.add_scaled(&less, &Scalar::new(&client.params, 3)).unwrap();
    assert!(sum.add_scaled(&x, &Scalar::new(&client.params, 3)).is_err());
    let want: Vec<u64> = a.iter().map(|a| 3 * a % prime).collect();
    assert!(*client.secret.open(&client.encoder, &sum).unwrap() == want);
}

#[test]
fn secrets_are_kept_as_coefficients() {
    let mut client = client(4096, &[35, 35], Switching::Special(36), 20);
    let (slots, cipher) = client.encrypted();
    let kept = client.secret.coefficients();
    assert!(kept.len() == 4096 && kept.contains(&1) && kept.contains(&-1));
    let again = SecretKey::from_coefficients(&client.params, &kept).unwrap();
    assert!(*again.open(&client.encoder, &cipher).unwrap() == slots);
    let mut large = kept.to_vec();
    large[7] = 2;
    for wrong in [&large, &kept[1..].to_vec()] {
        assert!(matches!(
            SecretKey::from_coefficients(&client.params, wrong),
            Err(Error::Shape { .. })
        ));
    }
}

#[test]
fn plaintext_primes_are_different_and_of_the_ring() {
    let params = Params::new(8192, &[42, 43, 43, 43], Switching::Special(43)).unwrap();
    let primes = Encoder::primes_above(&params, 20, 3).unwrap();
    assert!(primes.windows(2).all(|pair| pair[0] < pair[1]) && primes[0] >= 1 << 20);
    assert!(primes.iter().all(|prime| Encoder::new(&params, *prime).is_ok()));
    assert!(Encoder::primes_above(&params, 13, 1).is_err());
}
