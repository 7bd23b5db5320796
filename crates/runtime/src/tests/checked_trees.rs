//! Decision trees against a client that sends anything.

use std::num::NonZeroU32;

use graph::trees::Layouts;
use graph::{Ensemble, Model};
use wire::Error;

use super::checked_cheats::{Cheat, cheating};
use super::trees::{rows, shallow, sums_of, tree};
use super::{clear, costs_as_planned, run, run_with};
use crate::plan::{Plan, Reveal, Settings};

fn lowered(ensemble: &Ensemble) -> Model {
    ensemble.lower_with("checked", Layouts::Shallow).unwrap()
}

#[test]
fn leaves_are_the_interpreters_at_the_planned_cost() {
    // Of more leaves than one output of a circuit has bits.
    let thresholds: Vec<f32> = (0..75).map(|at| at as f32 / 16.0 - 1.0).collect();
    let large = sums_of(1, vec![tree(&thresholds, true), tree(&[0.5], false)]);
    let rows = rows();
    let some = &rows[..15];
    for model in shallow().iter().chain([&large]).map(lowered) {
        let (answer, server) = run(&model, Reveal::Output, some);
        assert_eq!(answer.results, clear(&model, some));
        costs_as_planned(&answer, &server.unwrap(), some.len() / 3);
    }
}

#[test]
fn prepared_and_batched_leaves_are_the_interpreters_at_the_planned_cost() {
    let rows = rows();
    let some = &rows[..9];
    let two = NonZeroU32::new(2);
    for (offline, batch) in [(two, None), (None, two), (two, two)] {
        let settings = Settings { offline, batch, ..Settings::default() };
        for model in shallow().iter().map(lowered) {
            let (answer, server) = run_with(&model, settings, some);
            assert_eq!(answer.results, clear(&model, some));
            costs_as_planned(&answer, &server.unwrap(), some.len() / 3);
        }
    }
}

#[test]
fn clients_that_cheat_get_no_leaf_and_are_named() {
    let model = lowered(&sums_of(1, vec![tree(&[0.0, 1.0, 2.0], true); 2]));
    let input = vec![model.graph.quantize_input(&[1.5, 0.0, 0.0]).unwrap()];
    for cheat in
        [Cheat::Phase(0, 1), Cheat::Phase(0, 1 << 40), Cheat::Correction, Cheat::Opening(1)]
    {
        let (client, server) = cheating((&model, cheat == Cheat::Correction), cheat, &input);
        assert!(client.is_err(), "{cheat:?}");
        assert!(matches!(&server, Err(Error::Peer { .. })), "{cheat:?}: {server:?}");
    }
}

#[test]
fn trees_without_a_checked_form_are_refused_with_advice() {
    let long: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let deep = sums_of(1, vec![tree(&long, false)]);
    let texts = [
        deep.lower_with("checked", Layouts::Shallow).unwrap_err().to_string(),
        Plan::new(deep.lower("checked").unwrap().graph, Settings::default())
            .unwrap_err()
            .to_string(),
        Plan::new(
            lowered(&shallow()[3]).graph,
            Settings { reveal: Reveal::Label, ..Settings::default() },
        )
        .unwrap_err()
        .to_string(),
    ];
    for text in texts {
        assert!(text.contains("--secure-against client"), "{text}");
    }
}
