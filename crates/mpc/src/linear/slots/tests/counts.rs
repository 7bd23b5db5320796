//! Operation counts against closed forms.

use graph::Conv;

use super::super::{Layer, Operations, Protocol};
use crate::linear::coefficient::tests::conv;
use crate::linear::slots::plan::Rows;

const BOTH: [Protocol; 2] = [Protocol::Gazelle, Protocol::Gala];

fn count(conv: &Conv, protocol: Protocol, slots: usize) -> Operations {
    Layer::new(conv, protocol, 8, 22, Some(slots)).unwrap().operations()
}

fn rotations(conv: &Conv, slots: usize) -> [usize; 2] {
    BOTH.map(|protocol| count(conv, protocol, slots).rotations)
}

/// Powers of two: the published formulas to the unit.
#[test]
fn matrix_products_take_what_the_papers_say() {
    for slots in [512usize, 2048, 4096] {
        for inputs in (0..=slots.ilog2()).map(|log| 1usize << log) {
            for outputs in (0..=slots.ilog2()).map(|log| 1usize << log) {
                let conv = Conv::fully_connected(inputs, outputs);
                let products = (inputs * outputs).div_ceil(slots);
                let sums = (slots / outputs).ilog2() as usize;
                assert_eq!(rotations(&conv, slots), [sums + products - 1, products - 1]);
                for protocol in BOTH {
                    let [counted, published] = [
                        count(&conv, protocol, slots).rotations,
                        protocol.published_rotations(&conv, slots).unwrap(),
                    ];
                    assert_eq!(counted, published);
                }
                let gazelle = count(&conv, Protocol::Gazelle, slots);
                assert_eq!(gazelle.hoisted, products - 1);
                assert_eq!(gazelle.multiplications, products);
                assert_eq!(gazelle.additions, products - 1 + sums);
                let gala = count(&conv, Protocol::Gala, slots);
                assert_eq!((gala.hoisted, gala.multiplications), (0, products));
                assert_eq!(gala.additions, products - 1);
            }
        }
    }
    assert_eq!(rotations(&Conv::fully_connected(128, 16), 2048), [7, 0]);
}

/// 784 inputs have no single ciphertext in which 49 products of 2048 slots make 128 outputs:
/// each input would need 128/49 places. Divided inputs take fewer rotations than published.
#[test]
fn the_perceptron_takes_less_than_the_papers_say() {
    let layers = [[784, 128], [128, 128], [128, 10]].map(|[i, o]| Conv::fully_connected(i, o));
    let published = BOTH.map(|protocol| {
        let each = layers.iter().map(|conv| protocol.published_rotations(conv, 2048).unwrap());
        each.sum::<usize>()
    });
    assert_eq!(published, [70, 55]);
    let counted = layers.each_ref().map(|conv| rotations(conv, 2048));
    assert_eq!(counted, [[50, 31], [11, 7], [7, 0]]);
}

#[test]
fn divided_inputs_never_take_more_rotations_than_published() {
    for inputs in (1..3000).step_by(97) {
        for outputs in [1, 3, 10, 100, 1000, 2048, 2500] {
            let conv = Conv::fully_connected(inputs, outputs);
            for protocol in BOTH {
                let published = protocol.published_rotations(&conv, 2048).unwrap();
                let counted = count(&conv, protocol, 2048).rotations;
                assert!(counted <= published, "{inputs} to {outputs}: {counted} {published}");
            }
        }
    }
}

/// Channels that fill ciphertexts: the published formulas to the unit, unless rotating the
/// inputs by the diagonals takes GALA even less.
#[test]
fn convolutions_take_what_the_papers_say() {
    for (side, kernel) in [(4usize, 3usize), (8, 3), (8, 5), (16, 3), (32, 3), (32, 1)] {
        let held = 2048 / (side * side);
        for inputs in [held, 2 * held, 4 * held] {
            for outputs in [held, 2 * held, 4 * held, 8 * held] {
                let conv = conv([inputs, outputs], [side; 2], kernel, 1, kernel / 2);
                let (pieces, blocks, taps) = (inputs / held, outputs / held, kernel * kernel);
                let gazelle = pieces * (taps - 1) + pieces * blocks * (held - 1);
                let grouped = pieces * (taps - 1) + blocks * (held - 1);
                let gala = grouped.min(pieces * (taps * held - 1));
                assert_eq!(rotations(&conv, 2048), [gazelle, gala], "{conv:?}");
                let published = BOTH.map(|protocol| protocol.published_rotations(&conv, 2048));
                assert_eq!(published, [Ok(gazelle), Ok(grouped)]);
                for protocol in BOTH {
                    let products = pieces * blocks * taps * held;
                    assert_eq!(count(&conv, protocol, 2048).multiplications, products);
                }
            }
        }
    }
    let named = conv([128, 128], [16, 16], 3, 1, 1);
    assert_eq!(rotations(&named, 2048), [1920, 240]);
    assert_eq!(count(&named, Protocol::Gala, 2048).hoisted, 128);
    // Both rows of a ring: half the responses.
    let both = Rows { slots: 2048, count: 2 };
    let counted = BOTH.map(|protocol| protocol.plan(&named, both).unwrap().1.rotations);
    assert_eq!(counted, [128 + 16 * 8 * 7, 128 + 8 * 7]);
}

/// Fewer channels than fit: `together*copies` takes the place of c_n. Padded to powers of
/// two, c_i*c_o/c_n diagonals are left, and c_n/c_o partial sums.
#[test]
fn convolutions_with_few_channels_have_fewer_diagonals() {
    // 8 places, 3 channels in: two pairs of copies, 4 together: 2 diagonals, 2 sums.
    let few = conv([3, 4], [16, 16], 3, 1, 1);
    assert_eq!(rotations(&few, 2048), [8 + 1 + 1, 8 + 1]);
    // One channel in: 8 copies, no diagonals.
    assert_eq!(rotations(&conv([1, 64], [16, 16], 5, 1, 2), 2048), [24, 24]);
    // One channel out: 8 sums.
    assert_eq!(rotations(&conv([64, 1], [16, 16], 3, 1, 1), 2048), [8 * 8 + 3, 8 * 8]);
    // 12 channels: a full piece, and one of 4 channels in pairs of copies. GALA rotates them
    // as inputs, once for both responses.
    assert_eq!(rotations(&conv([12, 16], [16, 16], 1, 1, 0), 2048), [2 * (7 + 3), 7 + 3]);
}

/// The layers of a bottleneck network of `blocks` on 32x32 pixels: channels, side, kernel.
fn bottlenecks(blocks: [usize; 4]) -> Vec<Conv> {
    let mut layers = vec![conv([3, 64], [32; 2], 3, 1, 1)];
    let mut channels = 64;
    for (stage, count) in blocks.into_iter().enumerate() {
        let (inner, side) = (64 << stage, 32 >> stage);
        for block in 0..count {
            let stride = if block == 0 && stage > 0 { 2 } else { 1 };
            let before = [side * stride; 2];
            layers.push(conv([channels, inner], before, 1, 1, 0));
            layers.push(conv([inner, inner], before, 3, stride, 1));
            layers.push(conv([inner, 4 * inner], [side; 2], 1, 1, 0));
            if block == 0 {
                layers.push(conv([channels, 4 * inner], before, 1, stride, 0));
            }
            channels = 4 * inner;
        }
    }
    layers.push(Conv::fully_connected(channels, 10));
    layers
}

#[test]
fn deep_networks_are_counted_without_weights() {
    let layers = bottlenecks([3, 8, 36, 3]);
    assert_eq!(layers.len(), 156);
    let [gazelle, gala] = BOTH.map(|protocol| {
        let each = layers.iter().map(|conv| {
            let counted = count(conv, protocol, 2048);
            assert!(counted.rotations <= protocol.published_rotations(conv, 2048).unwrap());
            counted
        });
        each.sum::<Operations>()
    });
    assert!(gazelle.rotations > 25 * gala.rotations);
    assert_eq!(gazelle.multiplications, gala.multiplications);
}

#[cfg(target_pointer_width = "64")]
#[test]
fn layers_that_no_row_holds_are_refused() {
    let large = conv([3, 8], [150, 150], 3, 1, 1);
    for (conv, slots, want) in [
        (large.clone(), Some(2048), "suite `auto`"),
        (large, None, "suite `auto`"),
        (conv([3, 8], [64, 64], 3, 1, 1), Some(2048), "a larger ring"),
        (conv([3, 8], [4, 4], 3, 1, 1), Some(100), "a power of two"),
        (conv([3, 8], [4, 4], 7, 1, 1), None, "no place in slots"),
        (Conv { groups: 2, ..conv([3, 8], [4, 4], 3, 1, 1) }, None, "groups"),
        (conv([1 << 40, 1 << 20], [1; 2], 1, 1, 0), None, "ciphertexts"),
        (conv([1 << 18, 1 << 18], [32; 2], 1, 1, 0), None, "products"),
    ] {
        let refused = Layer::new(&conv, Protocol::Gala, 8, 22, slots).unwrap_err().to_string();
        assert!(refused.contains(want), "{refused}");
    }
    for (input, plain) in [(0, 22), (23, 22), (8, 60)] {
        let conv = conv([3, 8], [4, 4], 3, 1, 1);
        assert!(Layer::new(&conv, Protocol::Gala, input, plain, None).is_err());
    }
}
