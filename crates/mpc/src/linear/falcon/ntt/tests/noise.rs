//! Noise of responses against its bound.

use graph::Conv;
use he::bfv::SecretKey;
use he::bfv::noise::bound;
use ring::Random;

use super::super::server::Products;
use super::super::weights::weight_slots;
use super::super::*;
use crate::linear::coefficient::tests::conv;
use crate::linear::falcon::filters::Filters;
use crate::linear::residues::uniform;

/// Bits of the largest noise of all responses, on uniform slots, and of the bound.
fn measure(layer: &Layer, weight: &[i32]) -> (f64, f64) {
    let mut rng = Random::seeded(21);
    let key = SecretKey::generate(layer.params(), &mut rng).unwrap();
    let bias = vec![0; layer.shape().output[0]];
    let weights = ServerWeights::new(layer, weight, &bias, &mut 0).unwrap();
    let filters = Filters::new(&layer.conv, weight, &bias, layer.plain_bits()).unwrap();
    let prime = u128::from(layer.prime());
    let x = uniform(&mut rng, layer.inputs(), layer.prime());
    let mut products = Products::new(layer, &weights, 2);
    let mut want = vec![vec![0u64; layer.slots()]; layer.ciphertexts().1];
    for piece in 0..layer.ciphertexts().0 {
        let slots = layer.packing.input_slots(piece, &x, &layer.transform);
        let fresh = key.encrypt(layer.encoder(), &slots, &mut rng).unwrap();
        products.push(piece, fresh.expand(layer.params()).unwrap()).unwrap();
        for (response, want) in want.iter_mut().enumerate() {
            let weights = weight_slots(layer, &filters, response, piece);
            for ((want, x), w) in want.iter_mut().zip(slots.iter()).zip(weights.iter()) {
                let sum = u128::from(*want) + u128::from(*x) * u128::from(*w);
                *want = (sum % prime) as u64;
            }
        }
    }
    let noise = products.take().zip(&want).map(|((response, sum), want)| {
        let cipher = products.finish(response, sum).unwrap();
        key.noise(layer.encoder(), &cipher, want).unwrap()
    });
    (noise.fold(0.0, f64::max), bound(layer.encoder(), &layer.load()).unwrap())
}

/// Random weights, and weights that are all alike.
#[test]
fn noise_stays_within_its_bound() {
    for conv in [
        conv([40, 9], [16, 16], 3, 1, 1),
        conv([9, 40], [16, 16], 3, 1, 1),
        Conv::fully_connected(784, 30),
        Conv::fully_connected(9000, 2),
    ] {
        let count = conv.out_channels * conv.in_channels * conv.kernel[0] * conv.kernel[1];
        let mut rng = Random::seeded(22);
        let random = rng.uniform(count, 10).into_iter().map(|word| word as i32 - 512).collect();
        for weight in [random, vec![511; count]] {
            let layer = Layer::new(&conv, 8, 24).unwrap();
            let (noise, bound) = measure(&layer, &weight);
            let text = format!("{noise:.1} of {bound:.1} bits, {}", layer.describe());
            assert!(noise <= bound, "{text}");
            assert!(noise > bound - 12.0 || conv.is_fully_connected(), "{text}");
        }
    }
}
