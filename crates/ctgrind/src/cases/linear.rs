//! A linear layer with its rescale, both ends: encrypted shares, products with weights, masks.

use graph::{Conv, Linear, Rounding};
use he::rlwe::{Params, SecretKey, TABLE};
use mpc::linear::coefficient::{Layer, ServerWeights, Worker, client, server};
use ring::{Random, Seed};

use super::inputs::share;
use crate::case::Case;
use crate::run::{End, Run};

pub(super) const CASES: &[Case] = &[
    Case::new("decode", "linear layer, stochastic rounding", |run| {
        layer(run, Rounding::Stochastic);
    }),
    Case::new("decode", "linear layer, exact rounding", |run| layer(run, Rounding::Exact)),
];

const INPUTS: usize = 32;
const OUTPUTS: usize = 8;
const BITS: u32 = 23;

fn layer(run: &mut Run, rounding: Rounding) {
    let conv = Conv::fully_connected(INPUTS, OUTPUTS);
    let linear = Linear {
        conv,
        accumulator_bits: BITS,
        weight_bits: 8,
        shift: 9,
        rounding,
        addend: None,
        choice: None,
        square_bits: None,
    };
    let layer = Layer::new(&linear, BITS - 9, 1).unwrap();
    let degree = layer.params().degree();
    let most = TABLE.iter().find(|(known, _)| *known == degree).unwrap().1;
    let key = |rng: &mut Random| SecretKey::generate(Params::new(degree, most).unwrap(), rng);
    let asks = |end: &mut End| {
        let key = key(&mut end.dealer).unwrap();
        let (x, mut rng) = (share(end, INPUTS, BITS), end.run.random());
        let mut worker = Worker { rng: &mut rng, threads: 1 };
        end.kernel(|channel| client(channel, &layer, &key, &x, None, &mut worker).unwrap());
    };
    let answers = |end: &mut End| {
        let secret = key(&mut end.dealer).unwrap();
        let mut public =
            secret.public_key(&Seed([9; 16]), &mut end.dealer).unwrap().body().to_vec();
        // The client has sent it.
        end.run.publish(&mut public);
        let params = Params::new(degree, most).unwrap();
        let public = he::rlwe::PublicKey::new(params, &Seed([9; 16]), public).unwrap();
        let weight = end.run.signed(INPUTS * OUTPUTS, 8);
        let weight: Vec<i32> = weight.into_iter().map(|w| w as i32).collect();
        let bias = end.run.signed(OUTPUTS, 12);
        let (x, mut rng) = (share(end, INPUTS, BITS), end.run.random());
        let mut worker = Worker { rng: &mut rng, threads: 1 };
        end.kernel(|channel| {
            let weights = ServerWeights::new(&layer, &weight, &bias, &mut (1 << 20)).unwrap();
            server(channel, &layer, &public, &weights, &x, None, &mut worker).unwrap()
        });
    };
    run.ends(asks, answers);
}
