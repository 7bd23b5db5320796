//! Several inputs in one run.

use super::*;

fn batched(reveal: Reveal, batch: u32, offline: u32) -> Settings {
    let [batch, offline] = [batch, offline].map(NonZeroU32::new);
    Settings { reveal, batch, offline, ..Settings::default() }
}

fn online(report: &Report) -> (u64, u64) {
    let usage = report.phases.online;
    (usage.bytes.client_to_server + usage.bytes.server_to_client, usage.rounds)
}

/// Batches that are full, that lack inputs and that have one, prepared or not.
#[test]
fn batches_give_what_the_interpreter_gives_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(31);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 5);
    let logits = clear(&model, &values);
    let labels: Vec<_> = logits.iter().map(|row| vec![graph::argmax(row) as i64]).collect();
    for (reveal, want) in [(Reveal::Output, logits), (Reveal::Label, labels)] {
        for (batch, offline) in [(1, 0), (3, 0), (4, 0), (8, 0), (2, 1), (4, 3)] {
            let settings = batched(reveal, batch, offline);
            let (answer, server) = run_with(&model, settings, &values);
            assert_eq!(answer.results, want, "{settings:?}");
            let server = server.unwrap();
            assert_eq!((answer.report.inputs, server.inputs), (5, 5));
            costs_as_planned(&answer, &server, 5);
        }
    }
}

#[test]
fn stochastic_rounding_of_a_batch_stays_near_the_interpreter() {
    let mut rng = Random::seeded(32);
    let model = network(&mut rng, Rounding::Stochastic);
    let values = inputs(&mut rng, 4);
    let want = clear(&model, &values);
    for offline in [0, 1] {
        let (answer, server) = run_with(&model, batched(Reveal::Output, 3, offline), &values);
        costs_as_planned(&answer, &server.unwrap(), 4);
        for (got, want) in answer.results.iter().flatten().zip(want.iter().flatten()) {
            assert!((got - want).abs() <= 8, "{got} for {want}");
        }
    }
}

#[test]
fn a_batch_takes_the_rounds_of_one_input_and_fewer_bytes_for_each() {
    let mut rng = Random::seeded(33);
    for rounding in [Rounding::Exact, Rounding::Stochastic] {
        let model = network(&mut rng, rounding);
        for reveal in [Reveal::Output, Reveal::Label] {
            let plan = |batch| Plan::new(model.graph.clone(), batched(reveal, batch, 0)).unwrap();
            let (one_bytes, one) = online(&Report::predicted(&plan(1), 1));
            let (four_bytes, four) = online(&Report::predicted(&plan(4), 4));
            assert_eq!(one, four);
            assert!(four_bytes < 3 * one_bytes, "{four_bytes} of 4 x {one_bytes}");
        }
    }
}

#[test]
fn settings_name_a_batch_only_where_there_is_one() {
    let model = network(&mut Random::seeded(34), Rounding::Exact);
    let offer = |settings| Plan::new(model.graph.clone(), settings).unwrap().offer();
    assert!(!offer(Settings::default()).contains("batch"));
    let four = offer(batched(Reveal::Output, 4, 0));
    assert!(four.contains(r#""batch":4"#), "{four}");
    assert_eq!(Plan::from_offer(&four).unwrap().settings().batch(), 4);
}

/// A batch is taken as full: what a client leaves out of it counts.
#[test]
fn the_budget_of_a_session_holds_for_whole_batches() {
    let mut rng = Random::seeded(35);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), batched(Reveal::Output, 4, 0)).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let values = inputs(&mut rng, 5);
    let shape = [5, 2, SIDE, SIDE];
    for (most, served) in [(7, false), (8, true)] {
        let (ours, theirs) = run_pair(
            |channel| ask(channel, &values, &shape),
            |channel| session(&plan, &prepared, most, channel),
        );
        assert_eq!((ours.value.is_ok(), theirs.value.is_ok()), (served, served));
        if let Err(error) = theirs.value {
            assert!(error.to_string().contains("at most 4 inputs"), "{error}");
        }
    }
}
