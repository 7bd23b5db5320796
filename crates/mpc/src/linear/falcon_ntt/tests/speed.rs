//! The server's work beside GAZELLE's.

use graph::Conv;
use ring::Random;

use super::super::{Layer, Measurement};
use crate::linear::coefficient::tests::conv;
use crate::linear::{Timed, slots};

const BITS: u32 = 8;

/// Milliseconds up to the masks, and with masks, flooding and packing; the fastest of several.
struct Times {
    computed: f64,
    answered: f64,
}

fn fastest(run: impl Fn() -> std::time::Duration) -> f64 {
    (0..7).map(|_| run().as_secs_f64() * 1e3).fold(f64::INFINITY, f64::min)
}

fn answered(timed: Timed) -> std::time::Duration {
    timed.preparing + timed.online
}

fn timed(conv: &Conv) -> [Times; 2] {
    let taps = conv.in_channels * conv.kernel[0] * conv.kernel[1];
    let plain_bits = 2 * BITS + taps.ilog2() + 1;
    let mut rng = Random::seeded(1);
    let weight: Vec<i32> =
        rng.uniform(taps * conv.out_channels, 8).iter().map(|w| *w as i32 - 128).collect();
    let layer = slots::Layer::new(conv, slots::Protocol::Gazelle, BITS, plain_bits, None).unwrap();
    let gazelle = slots::Measurement::new(&layer, &weight, &mut rng).unwrap();
    let layer = Layer::new(conv, BITS, plain_bits).unwrap();
    let falcon = Measurement::new(&layer, &weight, &mut rng).unwrap();
    [
        Times {
            computed: fastest(|| gazelle.run().unwrap().0),
            answered: fastest(|| answered(gazelle.timed(&mut Random::seeded(2)).unwrap())),
        },
        Times {
            computed: fastest(|| falcon.run().unwrap().0),
            answered: fastest(|| answered(falcon.timed(&mut Random::seeded(2)).unwrap())),
        },
    ]
}

/// The layers of the paper's table 2: at least five times less work online.
#[test]
fn the_server_works_a_fifth_of_gazelles_time() {
    for conv in [
        conv([1, 5], [28, 28], 5, 1, 0),
        conv([32, 32], [16, 16], 3, 1, 1),
        Conv::fully_connected(2048, 1),
        Conv::fully_connected(1024, 16),
    ] {
        let [gazelle, falcon] = timed(&conv);
        let times = |gazelle, falcon| format!("{conv:?}: {gazelle} and {falcon} ms");
        let text = times(gazelle.computed, falcon.computed);
        assert!(gazelle.computed > 5.0 * falcon.computed, "{text}");
        // Other work on the machine shows in short runs.
        let text = times(gazelle.answered, falcon.answered);
        assert!(gazelle.answered > 3.0 * falcon.answered, "{text}");
    }
}

/// 64 channels of 32x32 pixels, as they are padded: there and back.
#[test]
fn transforms_take_little_time() {
    let conv = conv([64, 64], [32, 32], 3, 1, 1);
    let layer = Layer::new(&conv, BITS, 27).unwrap();
    let x = slots::uniform(&mut Random::seeded(3), layer.inputs(), layer.prime());
    let pieces = layer.ciphertexts().0;
    let time = fastest(|| {
        let start = std::time::Instant::now();
        for piece in 0..pieces {
            layer.packing.input_slots(piece, &x, &layer.transform);
        }
        start.elapsed()
    });
    assert!(time < 30.0, "{:?}: {time} ms", layer.shape());
}
