//! Packings of more bytes and less work.

use super::*;

#[test]
fn every_packing_gives_the_products_at_its_cost() {
    let mut rng = Random::seeded(41);
    let sizes = [300, 500, 640, 768, 1000, 1024].into_iter();
    let sizes = sizes.flat_map(|inputs| [64, 100, 130, 200].map(|outputs| [inputs, outputs]));
    let mut several = 0;
    for [inputs, outputs] in sizes {
        let conv = Conv::fully_connected(inputs, outputs);
        let mut case = batch(1, &conv, Rounding::Stochastic, Some(3), false, &mut rng);
        let all = Layer::packings(&case.linear, case.layer.out_bits, 1).unwrap();
        assert!((1..=MOST_PACKINGS).contains(&all.len()));
        assert_eq!(all[0].describe(), case.layer.describe());
        assert!(all.windows(2).all(|two| two[0].cost().bytes() < two[1].cost().bytes()));
        several += usize::from(all.len() > 1);
        for layer in all.into_iter().skip(1) {
            let weights = ServerWeights::new(&layer, &case.weight, &case.bias, &mut (1 << 20));
            case.weights = Arc::new(weights.unwrap().keeping(&case.weight));
            case.layer = layer;
            check(&case);
        }
    }
    assert!(several > 0);
}

#[test]
fn few_bytes_are_little_work_in_most_shapes() {
    let mut rng = Random::seeded(42);
    for shape in shapes() {
        let case = batch(1, &shape, Rounding::Stochastic, None, false, &mut rng);
        let all = Layer::packings(&case.linear, case.layer.out_bits, 1).unwrap();
        assert_eq!(all.len(), 1, "{shape:?}");
    }
}

/// What a server is said to hold of transforms is what weights take, and those of many rows stand far apart.
#[test]
fn transforms_take_the_memory_that_is_said() {
    let mut rng = Random::seeded(43);
    let mut found = [0; 2];
    for inputs in [1, 4, 16, 32] {
        let conv = Conv::fully_connected(576, 1536);
        let case = batch(inputs, &conv, Rounding::Stochastic, None, false, &mut rng);
        for layer in Layer::packings(&case.linear, case.layer.out_bits, inputs).unwrap() {
            let most = 1 << 30;
            let mut left = most;
            ServerWeights::new(&layer, &case.weight, &case.bias, &mut left).unwrap();
            assert_eq!(most - left, transform_bytes(&layer), "{}", layer.describe());
            found[usize::from(transforms_soon(&layer))] += usize::from(left < most);
        }
    }
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
}

/// Weights that many positions share, as those of a vocabulary, stand in a power of X: their transforms are short,
/// so that products take less work in the evaluation basis though no server keeps all of them.
#[test]
fn a_vocabulary_is_multiplied_in_the_evaluation_basis() {
    for positions in [8, 32] {
        let conv = Conv { in_height: positions, ..Conv::fully_connected(30_522, 384) };
        let linear = Linear {
            conv,
            accumulator_bits: 16,
            weight_bits: 16,
            shift: 4,
            rounding: Rounding::Stochastic,
            addend: None,
            choice: None,
            square_bits: None,
        };
        let layer = Layer::new(&linear, 12, 1).unwrap();
        assert!(layer.describe().contains("transforms"), "{}", layer.describe());
        assert_eq!(transform_bytes(&layer), 0);
    }
}
