//! RLWE: keys, encryption, responses, decryption, and from phases to shares.

use he::rlwe::committed::Multiplicand;
use he::rlwe::{
    Accumulator, Batch, Fresh, Operand, Params, PublicKey, Response, Row, SecretKey, rescale,
};
use ring::{Random, Seed};

use crate::case::Case;
use crate::run::Run;

pub(super) const CASES: &[Case] = &[
    Case::new("rescale", "stochastic, client", |run| {
        let phases = run.words(COUNT, 37);
        run.kernel("kernel", || rescale::client(&phases, 37, 20).unwrap());
    }),
    Case::new("rescale", "stochastic, server", |run| {
        let masks = run.words(COUNT, 45);
        run.kernel("kernel", || rescale::server(&masks, 45, 20).unwrap());
    }),
    Case::new("rescale", "exact, client", |run| {
        let phases = run.words(COUNT, 37);
        run.kernel("kernel", || rescale::exact_client(&phases, 37, 24).unwrap());
    }),
    Case::new("rescale", "exact, server", |run| {
        let masks = run.words(COUNT, 45);
        run.kernel("kernel", || rescale::exact_server(&masks, 45, 24).unwrap());
    }),
    Case::new("sampler", "ternary: secret key", |run| {
        let mut rng = run.random();
        run.kernel("kernel", || secret_key(&mut rng));
    }),
    Case::new("sampler", "narrow Gaussian: public key", |run| {
        let mut rng = run.random();
        let secret = secret_key(&mut rng);
        run.kernel("kernel", || secret.public_key(&SEED, &mut rng).unwrap());
    }),
    Case::new("sampler", "narrow Gaussian: encryption", |run| {
        let mut rng = run.random();
        let secret = secret_key(&mut rng);
        let values = run.words(DEGREE, PLAIN);
        run.kernel("kernel", || secret.encrypt(params(), &values, PLAIN, &mut rng).unwrap());
    }),
    Case::new("sampler", "ternary, narrow and wide: response", |run| {
        let mut rng = run.random();
        let secret = secret_key(&mut rng);
        let (public, fresh) = sent(run, &secret, &mut rng);
        let share = run.words(DEGREE, PLAIN);
        run.kernel("kernel", || respond(&public, &fresh, &share, &mut rng));
    }),
    Case::new("products", "sums of products with weights that repeat", products),
    Case::new("tags", "tags of a secret key to tags of phases", |run| {
        let words = run.words(2 * DEGREE, 46);
        let words: Vec<u128> =
            words.chunks(2).map(|pair| u128::from(pair[0]) | u128::from(pair[1]) << 46).collect();
        let mut a = run.words(DEGREE, 52);
        run.publish(&mut a);
        run.kernel("kernel", || Multiplicand::new(&words, 92).unwrap().times(&a).unwrap());
    }),
    Case::new("decode", "RLWE decryption, rounding to shares", decryption),
];

const COUNT: usize = 4096;
const DEGREE: usize = 2048;
/// Bits of plaintexts and of responses.
const PLAIN: u32 = 22;
const ANSWER: u32 = 30;
const SEED: Seed = Seed([1; 16]);

fn params() -> Params {
    Params::new(DEGREE, 45).unwrap()
}

fn secret_key(rng: &mut Random) -> SecretKey {
    SecretKey::generate(params(), rng).unwrap()
}

/// The public key and a ciphertext, which cross the wire.
fn sent(run: &mut Run, secret: &SecretKey, rng: &mut Random) -> (PublicKey, Fresh) {
    let mut public = secret.public_key(&SEED, rng).unwrap().body().to_vec();
    run.publish(&mut public);
    let mut fresh = secret.encrypt(params(), &run.words(DEGREE, PLAIN), PLAIN, rng).unwrap();
    run.publish(&mut fresh.seed.0);
    run.publish(&mut fresh.body);
    (PublicKey::new(params(), &SEED, public).unwrap(), fresh)
}

/// The server's answer: the ciphertext plus its share, masked.
fn respond(public: &PublicKey, fresh: &Fresh, share: &[u64], rng: &mut Random) -> Response {
    let keep: Vec<usize> = (0..DEGREE).collect();
    let mut cipher = fresh.expand(params()).unwrap();
    cipher.add_plain(share, PLAIN).unwrap();
    cipher.respond(public, &keep, ANSWER, rng).unwrap().0
}

fn decryption(run: &mut Run) {
    let mut rng = run.random();
    let secret = secret_key(&mut rng);
    let (public, fresh) = sent(run, &secret, &mut rng);
    let share = run.words(DEGREE, PLAIN);
    let mut response = respond(&public, &fresh, &share, &mut rng);
    // The server has sent it.
    run.publish(&mut response.c0);
    run.publish(&mut response.c1);
    let keep: Vec<usize> = (0..DEGREE).collect();
    run.kernel("kernel", || {
        let phases = secret.decrypt(&response, &keep).unwrap();
        rescale::client(&phases, ANSWER, 20).unwrap()
    });
}

/// The server's sum of products of ciphertexts with its share and of weights in X^16 that are transformed at once.
fn products(run: &mut Run) {
    let mut rng = run.random();
    let secret = secret_key(&mut rng);
    let mut operand = |run: &mut Run| -> Operand {
        let (_, fresh) = sent(run, &secret, &mut rng);
        let mut cipher = fresh.expand(params()).unwrap();
        cipher.add_plain(&run.words(DEGREE, PLAIN), PLAIN).unwrap();
        cipher.into_operand().unwrap()
    };
    let operands = [operand(run), operand(run)];
    let powers: Vec<usize> = (0..DEGREE).step_by(16).collect();
    let weights = run.signed(operands.len() * powers.len(), 8);
    let weights: Vec<i32> = weights.into_iter().map(|weight| weight as i32).collect();
    run.kernel("kernel", || {
        let batch = Batch::new(params(), &operands.each_ref()).unwrap();
        let row = Row::transform(params(), 16, &powers, &weights).unwrap().unwrap();
        let mut sum = Accumulator::new(params()).unwrap();
        sum.admit(&batch, &row).unwrap();
        for part in batch.parts() {
            sum.add_part(&part, &batch, &row).unwrap();
        }
        sum.finish().unwrap()
    });
}
