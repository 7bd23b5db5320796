//! What the client can see of the weights in the noise and slots of a response.
#![allow(clippy::unwrap_used)]

use ring::{Random, Seed};

use super::noise::{Estimate, Load};
use super::radix::MixedRadix;
use super::{Ciphertext, Encoder, Params, PublicKey, SecretKey, Switching};

const BINS: usize = 64;

struct Client {
    encoder: Encoder,
    secret: SecretKey,
    public: PublicKey,
    rng: Random,
}

impl Client {
    fn new() -> Self {
        let params = Params::new(4096, &[50, 50], Switching::Digits(17)).unwrap();
        let mut rng = Random::seeded(11);
        let prime = Encoder::prime_above(&params, 20).unwrap();
        let encoder = Encoder::new(&params, prime).unwrap();
        let secret = SecretKey::generate(&params, &mut rng).unwrap();
        let public = secret.public_key(&Seed([1; 16]), &mut rng).unwrap();
        Self { encoder, secret, public, rng }
    }

    /// `weights` times an input that uses few slots.
    fn product(&mut self, weights: &[u64]) -> Ciphertext {
        let fresh = self.secret.encrypt(&self.encoder, &[1, 2, 3], &mut self.rng).unwrap();
        let plain = self.encoder.plain(weights).unwrap();
        fresh.expand(self.secret.params()).unwrap().multiply(&plain).unwrap()
    }

    fn mask(&mut self) -> Vec<u64> {
        let prime = u128::from(self.encoder.prime());
        let words = self.rng.uniform(4096, 64);
        words.iter().map(|word| ((u128::from(*word) * prime) >> 64) as u64).collect()
    }

    /// The noise's magnitudes as parts of `most`.
    fn noise(&self, cipher: &Ciphertext, most: f64) -> Vec<f64> {
        let slots = self.secret.open(&self.encoder, cipher).unwrap();
        let mut phase = self.secret.phase(cipher).unwrap();
        phase.iter_mut().for_each(|x| *x = -*x);
        self.encoder.add_scaled(&mut phase, &slots).unwrap();
        let params = self.secret.params();
        let radix = MixedRadix::new(params.ring().level, params.primes());
        radix.magnitudes(&mut phase).iter().map(|x| x / most).collect()
    }
}

/// Chi-square against the uniform distribution on \[0, 1), 63 degrees of freedom.
fn chi_square(samples: &[f64]) -> f64 {
    let mut counts = [0.0; BINS];
    for sample in samples {
        counts[((sample * BINS as f64) as usize).min(BINS - 1)] += 1.0;
    }
    let want = samples.len() as f64 / BINS as f64;
    counts.iter().map(|count: &f64| (count - want).powi(2) / want).sum()
}

#[test]
fn noise_and_slots_look_the_same_for_any_weights() {
    let mut client = Client::new();
    let load = Load { plain_bits: 20, rotations_before: 0, terms: 1, rotations_after: 0 };
    let bound = Estimate::of(&client.encoder, &load).unwrap();
    let most = f64::from(bound.flooding().unwrap()).exp2();
    let largest = client.encoder.decode(&vec![client.encoder.prime() / 2; 4096]).unwrap();
    for weights in [vec![], vec![1; 4096], largest.to_vec()] {
        let (mut noise, mut slots) = (Vec::new(), Vec::new());
        for _ in 0..16 {
            let (product, mask) = (client.product(&weights), client.mask());
            let product =
                product.masked(&client.public, &client.encoder, &mask, &bound, &mut client.rng);
            let mut product = product.unwrap();
            for half in &mut product.halves {
                client.secret.params().ring().forward(half);
            }
            noise.extend(client.noise(&product, most));
            let got = client.secret.open(&client.encoder, &product).unwrap();
            let prime = client.encoder.prime() as f64;
            slots.extend(got.iter().skip(3).map(|slot| *slot as f64 / prime));
        }
        // One in 10^7 would be above.
        assert!(chi_square(&noise) < 135.0 && chi_square(&slots) < 135.0);
    }
    // Without flooding one product shows that there are weights at all.
    let plain = client.product(&largest);
    assert!(chi_square(&client.noise(&plain, bound.bits().ceil().exp2())) > 1000.0);
}

#[test]
fn two_responses_have_nothing_in_common() {
    let mut client = Client::new();
    let load = Load { plain_bits: 20, rotations_before: 0, terms: 1, rotations_after: 0 };
    let (product, mask) = (client.product(&[5; 4096]), client.mask());
    let [first, second] = [0, 1].map(|_| {
        let cipher = product.clone();
        cipher.respond(&client.public, &client.encoder, &mask, &load, &mut client.rng).unwrap()
    });
    let same = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    assert!(same(&first.c1, &second.c1) < 3 && same(&first.c0, &second.c0) < 3);
    let [first, second] =
        [first, second].map(|r| client.secret.decrypt(&client.encoder, &r).unwrap());
    assert_eq!(first, second);
}
