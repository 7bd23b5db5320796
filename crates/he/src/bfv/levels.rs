//! Every level of vector instructions gives the same integers.
#![allow(clippy::unwrap_used)]

use ring::{Random, Seed};

use super::noise::Load;
use super::{Encoder, Params, RotationKeys, SecretKey, Switching};
use crate::simd::Level;

/// Everything that is sent, and the result.
fn run(level: Level, degree: usize, moduli: &[u32], switching: Switching) -> Vec<Vec<u64>> {
    let params = Params::at_level(degree, moduli, switching, level).unwrap();
    let mut rng = Random::seeded(9);
    let encoder = Encoder::new(&params, Encoder::prime_above(&params, 17).unwrap()).unwrap();
    let secret = SecretKey::generate(&params, &mut rng).unwrap();
    let (seed, steps) = (Seed([7; 16]), [3, 64]);
    let public = secret.public_key(&seed, &mut rng).unwrap();
    let sent = secret.rotation_keys(&steps, true, &seed, &mut rng).unwrap().bodies();
    let keys = RotationKeys::new(&params, &steps, true, &seed, &sent).unwrap();
    let slots = rng.uniform(degree, 17);
    let fresh = secret.encrypt(&encoder, &slots, &mut rng).unwrap();
    let cipher = fresh.expand(&params).unwrap();
    let cipher = cipher.multiply(&encoder.plain(&slots).unwrap()).unwrap();
    let cipher = cipher.rotate(&keys, 3).unwrap().swap_rows(&keys).unwrap();
    let load = Load { plain_bits: 17, rotations_before: 0, terms: 1, rotations_after: 2 };
    let response = cipher.respond(&public, &encoder, &slots, &load, &mut rng).unwrap();
    let result = secret.decrypt(&encoder, &response).unwrap().to_vec();
    let prime = encoder.prime();
    for (slot, result) in result.iter().enumerate() {
        let row = degree / 2;
        let from = (slot + row) % degree / row * row + (slot + 3) % row;
        let want = (slots[from] * slots[from] + slots[slot]) % prime;
        assert_eq!(*result, want, "slot {slot}");
    }
    let words = [sent, public.bodies(), fresh.body, vec![response.c1, response.c0, result]];
    words.concat()
}

#[test]
fn nothing_that_is_sent_depends_on_the_level() {
    for (degree, moduli, switching) in [
        (4096, &[50, 50][..], Switching::Digits(13)),
        (8192, &[43, 44, 44], Switching::Special(45)),
        (32768, &[40, 45, 50], Switching::Special(50)),
    ] {
        let all: Vec<_> =
            Level::available().into_iter().map(|l| run(l, degree, moduli, switching)).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "N = {degree}");
    }
}
