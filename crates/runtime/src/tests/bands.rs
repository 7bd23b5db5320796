//! Scores of which clients learn the band or the sign alone: private results against the
//! interpreter, costs against the plan, and edges that a client cannot tell apart.

use super::distinguish::{SESSIONS, told_apart, views};
use super::*;
use graph::Ensemble;

/// A tree on two features whose leaves are -2, -0.5, 0 and 1.75; of two results the first is the
/// negative of the second.
fn scores(results: usize) -> Model {
    let [one, half] = [1.0f32, 0.5].map(f32::to_bits);
    let values: Vec<f64> = [0.0, 0.0, 0.0, -2.0, -0.5, 0.0, 1.75]
        .into_iter()
        .flat_map(|value| if results == 1 { vec![value] } else { vec![-value, value] })
        .collect();
    let text = format!(
        r#"{{"name":"scores","features":2,"outputs":{results},"values":{results},
        "base":[{}],"divisor":1.0,"ties_left":false,"trees":[{{
        "feature":[0,1,1,-1,-1,-1,-1],"threshold":[{one},{half},{half},0,0,0,0],
        "missing_left":[true,false,true,false,false,false,false],
        "left":[1,3,5,0,0,0,0],"right":[2,4,6,0,0,0,0],"value":{values:?}}}]}}"#,
        vec!["0.0"; results].join(",")
    );
    Ensemble::from_json(&text).unwrap().lower("auto").unwrap()
}

/// Rows that reach each leaf, from the least to the largest.
const ROWS: [f32; 8] = [0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 1.0];

#[test]
fn private_bands_are_the_interpreters_at_the_planned_cost() {
    let usual = Settings { reveal: Reveal::Bucket, ..Settings::default() };
    let batch = Settings { batch: NonZeroU32::new(3), ..usual };
    let offline = Settings { offline: NonZeroU32::new(2), ..usual };
    for (edges, bands) in [
        (&[0.0][..], [0, 0, 1, 1]),
        (&[-2.0, -0.75, -0.25, 1.75], [1, 2, 3, 4]),
        (&[-1e9, 5.0, 1e9], [1, 1, 1, 1]),
    ] {
        for results in [1, 2] {
            let model = scores(results).banded(edges).unwrap();
            assert_eq!(clear(&model, &ROWS), bands.map(|band| vec![band]));
            for settings in [usual, batch, offline] {
                let (answer, server) = run_with(&model, settings, &ROWS);
                assert_eq!(answer.results, bands.map(|band| vec![band]), "{settings:?}");
                costs_as_planned(&answer, &server.unwrap(), 4);
            }
        }
    }
}

#[test]
fn the_label_of_a_single_result_is_whether_it_is_above_zero() {
    let label = Settings { reveal: Reveal::Label, ..Settings::default() };
    for settings in [label, Settings { batch: NonZeroU32::new(3), ..label }] {
        let (answer, server) = run_with(&scores(1), settings, &ROWS);
        assert_eq!(answer.results, [0, 0, 0, 1].map(|label| vec![label]));
        costs_as_planned(&answer, &server.unwrap(), 4);
    }
}

#[test]
fn a_client_cannot_tell_edges_between_which_its_score_lies() {
    let [near, far] = [[-0.75, 0.5], [-1e9, 1e9]].map(|edges| scores(1).banded(&edges).unwrap());
    assert_eq!(graph::digest(&near.graph), graph::digest(&far.graph));
    let input = near.graph.quantize_input(&[0.0, 1.0]).unwrap();
    let left = views(&near, Reveal::Bucket, &input, 0..SESSIONS, Role::Client);
    let right = views(&far, Reveal::Bucket, &input, SESSIONS..2 * SESSIONS, Role::Client);
    assert_eq!(told_apart(&left, &right), None);
}

#[test]
fn buckets_of_a_graph_without_edges_are_refused() {
    let settings = Settings { reveal: Reveal::Bucket, ..Settings::default() };
    let refused = Plan::new(scores(1).graph, settings).unwrap_err().to_string();
    assert!(refused.contains("does not end with"), "{refused}");
}
