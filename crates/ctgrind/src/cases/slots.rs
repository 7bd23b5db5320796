//! BFV with slots: keys, encryption, flooded responses, decryption and decoding.

use he::bfv::noise::Load;
use he::bfv::{Encoder, Params, PublicKey, Response, SecretKey, Switching};
use ring::{Random, Seed};

use crate::case::Case;
use crate::run::Run;

pub(super) const CASES: &[Case] = &[
    Case::new("sampler", "BFV: secret and public key", keys),
    Case::new("sampler", "BFV: encryption", encryption),
    Case::new("sampler", "BFV: flooded response", response),
    Case::new("decode", "BFV: decryption and decoding", decryption),
];

const DEGREE: usize = 4096;
const BITS: u32 = 22;
const LOAD: Load = Load { plain_bits: BITS, rotations_before: 0, terms: 1, rotations_after: 0 };

struct Setup {
    params: Params,
    encoder: Encoder,
    secret: SecretKey,
}

impl Setup {
    fn new(rng: &mut Random) -> Self {
        let params = Params::new(DEGREE, &[50, 50], Switching::Digits(17)).unwrap();
        let prime = Encoder::prime_above(&params, BITS).unwrap();
        let encoder = Encoder::new(&params, prime).unwrap();
        let secret = SecretKey::generate(&params, rng).unwrap();
        Self { params, encoder, secret }
    }

    /// The public key, which the client sends.
    fn public(&self, run: &Run, rng: &mut Random) -> PublicKey {
        let seed = Seed([1; 16]);
        let mut bodies = self.secret.public_key(&seed, rng).unwrap().bodies();
        bodies.iter_mut().for_each(|body| run.publish(body));
        PublicKey::new(&self.params, &seed, &bodies).unwrap()
    }

    /// A fresh ciphertext and the answer to it, which cross the wire.
    fn answer(&self, run: &mut Run) -> Response {
        let mut rng = run.random();
        let slots = run.words(DEGREE, BITS);
        let public = self.public(run, &mut rng);
        let cipher = public.encrypt(&self.encoder, &slots, &mut rng).unwrap();
        cipher.respond(&public, &self.encoder, &slots, &LOAD, &mut rng).unwrap()
    }
}

fn keys(run: &mut Run) {
    let mut rng = run.random();
    run.kernel("kernel", || {
        let setup = Setup::new(&mut rng);
        setup.secret.public_key(&Seed([1; 16]), &mut rng).unwrap()
    });
}

fn encryption(run: &mut Run) {
    let mut rng = run.random();
    let setup = Setup::new(&mut rng);
    let slots = run.words(DEGREE, BITS);
    run.kernel("kernel", || setup.secret.encrypt(&setup.encoder, &slots, &mut rng).unwrap());
}

fn response(run: &mut Run) {
    let setup = Setup::new(&mut run.random());
    run.kernel_of("kernel", |run| setup.answer(run));
}

fn decryption(run: &mut Run) {
    let setup = Setup::new(&mut run.random());
    let mut response = setup.answer(run);
    // The server has sent it.
    run.publish(&mut response.c0);
    run.publish(&mut response.c1);
    run.kernel("kernel", || setup.secret.decrypt(&setup.encoder, &response).unwrap());
}
