//! Numbers that a client adds to results before their label is found.

use super::*;
use crate::plan::Reveal;

#[test]
fn a_label_is_that_of_the_results_with_what_the_client_adds() {
    let mut rng = Random::seeded(61);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 4);
    let results = clear(&model, &values);
    let output = &model.graph.tensors[model.graph.output];
    let (classes, format) = (output.len(), output.format);
    let most = 1i64 << (format.bits - 3);
    let noise: Vec<i64> = rng
        .uniform(4 * classes, 32)
        .into_iter()
        .map(|word| word as i64 % (2 * most + 1) - most)
        .collect();
    let label = |row: &[i64], added: &[i64]| {
        let sums: Vec<i64> = row.iter().zip(added).map(|(a, b)| a + b).collect();
        let best = sums.iter().max().unwrap();
        vec![sums.iter().position(|sum| sum == best).unwrap() as i64]
    };
    let rows = results.iter().zip(noise.chunks(classes));
    let want: Vec<Vec<i64>> = rows.clone().map(|(row, added)| label(row, added)).collect();
    let plain = rows.map(|(row, _)| label(row, &vec![0; classes]));
    assert_ne!(want, plain.collect::<Vec<_>>());
    let real = |places: &[i64]| -> Vec<f32> {
        places.iter().map(|place| (*place as f64 * format.scale) as f32).collect()
    };
    for offline in [0, 1] {
        let settings = Settings { reveal: Reveal::Label, ..offering(offline) };
        let (got, _) = with_session(&model, settings, 4, |mut open| {
            let too_much = [real(&[most * 2]), real(&vec![0; classes - 1])].concat();
            for wrong in [&real(&noise)[..classes - 1], &too_much, &[f32::NAN; 1]] {
                let refused = open.predict_with(&values[..ONE], &SHAPE, wrong).unwrap_err();
                assert!(matches!(refused, Error::Misuse(_)), "{refused}");
            }
            let each = values
                .chunks(ONE)
                .zip(noise.chunks(classes))
                .flat_map(|(one, added)| open.predict_with(one, &SHAPE, &real(added)).unwrap());
            let labels: Vec<_> = each.collect();
            open.finish().unwrap();
            labels
        });
        assert_eq!(got, want);
        let shown = Settings { reveal: Reveal::Output, ..settings };
        let (refused, _) = with_session(&model, shown, 1, |mut open| {
            open.predict_with(&values[..ONE], &SHAPE, &real(&noise[..classes])).unwrap_err()
        });
        assert!(refused.to_string().contains("label is revealed"), "{refused}");
    }
}
