//! Transforms and packing on slots in the clear.

use graph::Conv;
use proptest::prelude::*;
use ring::Random;

use super::super::layer::Layer;
use super::super::weights::weight_slots;
use crate::linear::coefficient::tests::{clear, conv, shapes};
use crate::linear::falcon::filters::Filters;
use crate::linear::testing::{centred, integers, small_shapes};

/// What `layer` computes on slots without encryption.
fn computed(layer: &Layer, x: &[i64], weight: &[i32], bias: &[i64]) -> Vec<i64> {
    let (packing, transform) = (&layer.packing, &layer.transform);
    let (prime, modulus) = (layer.prime(), transform.modulus());
    let filters = Filters::new(&layer.conv, weight, bias, layer.plain_bits()).unwrap();
    let words: Vec<u64> = x.iter().map(|x| modulus.of_signed(*x)).collect();
    let pieces = (0..packing.pieces()).map(|piece| packing.input_slots(piece, &words, transform));
    let pieces: Vec<_> = pieces.collect();
    let mut results = vec![0; layer.outputs()];
    for response in 0..packing.responses() {
        let mut sums = vec![0u64; packing.slots];
        for (piece, slots) in pieces.iter().enumerate() {
            let weights = weight_slots(layer, &filters, response, piece);
            for ((sum, x), w) in sums.iter_mut().zip(slots.iter()).zip(weights.iter()) {
                let product = u128::from(*x) * u128::from(*w) % u128::from(prime);
                *sum = modulus.add(*sum, product as u64);
            }
        }
        packing.collect(response, &sums, transform, &mut results);
    }
    results.into_iter().map(|y| centred(y, prime)).collect()
}

fn check(conv: &Conv, plain_bits: u32, seed: u64) {
    let layer = Layer::new(conv, 8, plain_bits).unwrap();
    let mut rng = Random::seeded(seed);
    let x = integers(&mut rng, layer.inputs(), 8);
    let count = conv.out_channels * conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let weight: Vec<i32> = integers(&mut rng, count, 8).into_iter().map(|w| w as i32).collect();
    let zeros = vec![0; conv.out_channels];
    let want = clear(conv, &x, &weight, &zeros);
    assert!(computed(&layer, &x, &weight, &zeros) == want, "{conv:?}, {}", layer.describe());
}

/// Grids that overlap with their padding in every way, strides, dilation, groups.
pub(super) fn more_shapes() -> Vec<Conv> {
    let more = vec![
        conv([2, 2], [3, 3], 2, 1, 4),
        Conv { padding: [0, 1, 3, 2], ..conv([2, 3], [7, 5], 3, 2, 0) },
        Conv { padding: [3, 0, 0, 4], dilation: [2, 3], ..conv([2, 3], [7, 9], 3, 1, 0) },
        Conv { kernel: [1, 5], padding: [0, 2, 0, 2], ..conv([2, 3], [1, 30], 1, 1, 0) },
        Conv { groups: 3, ..conv([6, 9], [5, 5], 3, 1, 1) },
        // Filters as large as the input.
        conv([20, 11], [5, 5], 5, 1, 0),
        conv([64, 10], [7, 7], 7, 1, 0),
        Conv::fully_connected(300, 20),
        Conv::fully_connected(20, 300),
        Conv::fully_connected(784, 128),
        Conv::fully_connected(5000, 3),
        Conv::fully_connected(1, 1),
    ];
    small_shapes().into_iter().chain(more).collect()
}

#[test]
fn every_shape_is_computed() {
    for (seed, conv) in shapes().iter().chain(&more_shapes()).enumerate() {
        check(conv, 28, seed as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_shapes_are_computed(
        channels in [1usize..9, 1usize..9],
        side in [1usize..20, 1usize..20],
        kernel in [1usize..6, 1usize..6],
        stride in [1usize..4, 1usize..4],
        dilation in [1usize..3, 1usize..3],
        padding in [0usize..4, 0usize..4, 0usize..4, 0usize..4],
        bits in 22u32..45,
        seed: u64,
    ) {
        let conv = Conv {
            in_channels: channels[0],
            in_height: side[0],
            in_width: side[1],
            out_channels: channels[1],
            kernel,
            stride,
            padding,
            dilation,
            groups: 1,
        };
        prop_assume!(conv.out_height() > 0 && conv.out_width() > 0);
        check(&conv, bits, seed);
    }
}
