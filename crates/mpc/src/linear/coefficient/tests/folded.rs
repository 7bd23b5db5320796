//! Layers whose inputs come folded.

use super::*;

/// A case in another plan of its layer.
fn planned(case: &mut Case, layer: Layer) {
    let weights = ServerWeights::new(&layer, &case.weight, &case.bias, &mut (1 << 20)).unwrap();
    case.weights = Arc::new(weights.keeping(&case.weight));
    case.layer = layer;
}

#[test]
fn every_folded_plan_gives_the_products_at_its_cost() {
    let mut rng = Random::seeded(51);
    let mut seen = [0; 2];
    for (i, conv) in shapes().iter().enumerate() {
        let (images, addend) = (1 + i % 3, (i % 2 == 0).then_some(37));
        for (rounding, seen) in [Rounding::Exact, Rounding::Stochastic].into_iter().zip(&mut seen) {
            let mut case = batch(images, conv, rounding, addend, false, &mut rng);
            let all: Vec<Layer> = (1..=MOST_FOLDINGS)
                .filter_map(|place| {
                    Layer::folded(&case.linear, case.layer.out_bits, images, place).ok()
                })
                .collect();
            // A plan of each shape, another one of the next.
            let Some(layer) = all.get(i % all.len().max(1)) else { continue };
            assert!(layer.levels() > 0 && layer.describe().contains("of up to"));
            planned(&mut case, layer.clone());
            check(&case);
            *seen += 1;
        }
    }
    assert!(seen[0] > 5 && seen[1] > 10, "{seen:?}");
}

/// Bytes both ways of a layer by itself, and folded as often as that saves bytes.
#[test]
fn bytes_of_named_layers_are_pinned() {
    let matrix = Conv { in_height: 128, ..Conv::fully_connected(768, 768) };
    let spectrum = Conv { kernel: [1, 256], stride: [1, 128], ..conv([1, 258], [1, 640], 1, 1, 0) };
    let named = [
        ("128 to 512", Conv::fully_connected(128, 512), [80_266, 21_850]),
        ("256 to 512", Conv::fully_connected(256, 512), [114_353, 32_106]),
        ("512 to 1000", Conv::fully_connected(512, 1000), [238_754, 86_760]),
        ("spectra of 640 samples", spectrum, [133_663, 37_823]),
        ("3x3 at 8, 64 channels", conv([64; 2], [8; 2], 3, 1, 1), [200_122, 72_778]),
        ("3x3 at 16, 32 channels", conv([32; 2], [16; 2], 3, 1, 1), [200_634, 132_234]),
        ("matrix product", matrix, [3_075_092, 1_008_394]),
    ];
    let bytes = |conv: &Conv| {
        let linear = super::pinned::linear(conv);
        let out_bits = linear.accumulator_bits - linear.shift;
        let folded =
            (1..=MOST_FOLDINGS).filter_map(|m| Layer::folded(&linear, out_bits, 1, m).ok());
        let least = folded.map(|layer| layer.cost().bytes()).min();
        [Layer::new(&linear, out_bits, 1).unwrap().cost().bytes(), least.unwrap()]
    };
    let found = named.each_ref().map(|(name, conv, _)| (*name, bytes(conv)));
    assert_eq!(found, named.map(|(name, _, bytes)| (name, bytes)));
}

#[test]
fn threads_change_no_byte_of_folded_layers() {
    let mut rng = Random::seeded(52);
    let conv = Conv::fully_connected(3000, 500);
    let mut case = batch(1, &conv, Rounding::Stochastic, None, false, &mut rng);
    let folded = |m| Layer::folded(&case.linear, case.layer.out_bits, 1, m).ok();
    let layer = (1..=MOST_FOLDINGS).find_map(folded).unwrap();
    assert!(layer.packing.inputs() > 5);
    planned(&mut case, layer);
    let first = run(&case, None);
    for threads in [2, 5] {
        case.threads = threads;
        same_bytes(&first, run(&case, None));
    }
}

#[test]
fn other_keys_are_refused() {
    let mut rng = Random::seeded(53);
    let conv = Conv::fully_connected(128, 512);
    let mut case = batch(1, &conv, Rounding::Stochastic, None, false, &mut rng);
    let folded = |m| Layer::folded(&case.linear, case.layer.out_bits, 1, m).unwrap();
    let (one, two) = (folded(1), folded(2));
    let (_, public, unfold) = keys(&one, 1);
    let held = ServerKeys { public: &public, unfold: unfold.as_ref() };
    assert!(one.check_keys(&held).is_ok() && two.check_keys(&held).is_err());
    assert!(one.check_keys(&ServerKeys::from(&public)).is_err());
    for place in [0, MOST_FOLDINGS + 1] {
        assert!(Layer::folded(&case.linear, case.layer.out_bits, 1, place).is_err());
    }
    // A tighter bound on the weights never takes more bytes.
    case.linear.square_bits = Some(Linear::bits_of_squares(&case.weight, 512));
    let least = |linear: &Linear| {
        let all = (1..=MOST_FOLDINGS)
            .filter_map(|m| Layer::folded(linear, case.layer.out_bits, 1, m).ok());
        all.map(|layer| layer.cost().bytes()).min().unwrap()
    };
    let bounded = least(&case.linear);
    assert!(bounded <= least(&Linear { square_bits: None, ..case.linear.clone() }));
}

#[test]
fn extremes_stay_inside_the_bounds_of_folded_layers() {
    let mut rng = Random::seeded(54);
    let conv = conv([16, 8], [10, 10], 3, 1, 1);
    let mut case = batch(1, &conv, Rounding::Stochastic, None, true, &mut rng);
    let folded = |m| Layer::folded(&case.linear, case.layer.out_bits, 1, m).ok();
    let layer = (1..=MOST_FOLDINGS).rev().find_map(folded).unwrap();
    planned(&mut case, layer);
    check(&case);
}

#[test]
fn transcripts_of_folded_layers_are_pinned() {
    let mut rng = Random::seeded(55);
    let conv = Conv::fully_connected(64, 64);
    let mut case = batch(1, &conv, Rounding::Exact, None, false, &mut rng);
    let folded = |m| Layer::folded(&case.linear, case.layer.out_bits, 1, m).ok();
    let layer = (1..=MOST_FOLDINGS).find_map(folded).unwrap();
    planned(&mut case, layer);
    pin("coefficient folded", &run(&case, None));
    pin("coefficient folded ahead", &run_preprocessed(&case));
}
