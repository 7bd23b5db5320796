//! What follows from shapes, and what is refused.

use graph::Conv;

use super::super::*;
use crate::linear::coefficient::tests::conv;

/// A kernel in the middle of a larger one: the client's side is the same to the letter.
#[test]
fn the_clients_side_does_not_depend_on_the_kernel() {
    for (small, large) in [
        (conv([3, 4], [12, 12], 3, 1, 2), conv([3, 4], [12, 12], 5, 1, 3)),
        (conv([3, 4], [28, 28], 1, 1, 0), conv([3, 4], [28, 28], 5, 1, 2)),
        (conv([3, 4], [28, 28], 1, 2, 0), conv([3, 4], [28, 28], 3, 2, 1)),
    ] {
        let [small, large] = [small, large].map(|conv| Layer::new(&conv, 8, 24).unwrap());
        let shape = |layer: &Layer| {
            (layer.shape().input, layer.shape().lengths, layer.packing.slots, layer.prime())
        };
        if small.shape().output == large.shape().output {
            assert_eq!(small.packing, large.packing);
            assert_eq!((small.cost(), small.describe()), (large.cost(), large.describe()));
        }
        assert_eq!(shape(&small), shape(&large));
    }
}

#[test]
fn larger_images_and_wider_sums_take_larger_rings() {
    for (side, plain_bits, want) in [
        (5, 20, 4096),
        (60, 20, 4096),
        (64, 20, 8192),
        (100, 20, 16384),
        (170, 20, 32768),
        (5, 40, 8192),
    ] {
        let layer = Layer::new(&conv([2, 3], [side; 2], 3, 1, 1), 8, plain_bits).unwrap();
        assert_eq!(layer.params().degree(), want, "{side} {plain_bits}");
    }
    let narrow = Layer::new(&Conv::fully_connected(4, 4), 2, 5).unwrap();
    assert!(narrow.prime() > 1 << 16 && narrow.params().degree() == 4096);
}

#[test]
fn layers_of_a_network_share_their_prime() {
    let fully_connected = Conv::fully_connected(400, 10);
    let all = [conv([3, 8], [32, 32], 3, 1, 1), conv([8, 8], [7, 9], 3, 2, 1), fully_connected];
    let layers: Vec<Layer> = all.iter().map(|conv| Layer::new(conv, 8, 24).unwrap()).collect();
    let params = layers.iter().map(Layer::params).max_by_key(|params| params.degree()).unwrap();
    let shared = layers.iter().map(|layer| layer.with_params(params).unwrap().prime());
    let primes: std::collections::BTreeSet<u64> = shared.collect();
    assert_eq!(primes.len(), 1);
    assert!(primes.iter().all(|prime| (prime - 1).is_multiple_of(45 * 8192)));
}

#[cfg(target_pointer_width = "64")]
#[test]
fn what_no_ring_holds_is_refused() {
    let plain = conv([3, 8], [4, 4], 3, 1, 1);
    for (conv, want) in [
        (conv([3, 8], [224, 224], 3, 1, 1), "suite `auto`"),
        (conv([3, 8], [1 << 17, 1], 1, 1, 0), "suite `auto`"),
        (conv([3, 8], [4, 4], 7, 1, 1), "no transform"),
        (conv([3, 8], [0, 4], 1, 1, 1), "no transform"),
        (Conv { groups: 2, ..plain.clone() }, "groups"),
        (Conv { groups: 0, ..plain.clone() }, "groups"),
        (Conv { stride: [0, 1], ..plain.clone() }, "no transform"),
        (Conv { padding: [usize::MAX, 0, 1, 1], ..plain.clone() }, "no transform"),
        (Conv { padding: [1 << 40; 4], ..plain.clone() }, "no transform"),
        (Conv { dilation: [1 << 62, 1], ..plain.clone() }, "no transform"),
        (conv([1 << 40, 1 << 20], [1; 2], 1, 1, 0), "ciphertexts"),
        (conv([usize::MAX, usize::MAX], [1; 2], 1, 1, 0), "ciphertexts"),
        (conv([1 << 18, 1 << 18], [32; 2], 1, 1, 0), "products"),
    ] {
        let refused = Layer::new(&conv, 8, 22).unwrap_err().to_string();
        assert!(refused.contains(want), "{conv:?}: {refused}");
    }
    for (held, plain_bits) in [(0, 22), (23, 22), (8, 59), (8, 55)] {
        assert!(Layer::new(&plain, held, plain_bits).is_err());
    }
}
