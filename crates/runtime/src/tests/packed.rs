//! Suites gazelle and gala.

use std::time::{Duration, Instant};

use super::*;

const SUITES: [&str; 2] = ["gazelle", "gala"];

/// The small network, with a residual, for a suite.
fn packed(rng: &mut Random, suite: &str) -> Model {
    let mut model = network(rng, Rounding::Exact);
    model.graph.suite = suite.into();
    model
}

#[test]
fn packed_slots_give_what_the_interpreter_gives_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(41);
    for suite in SUITES {
        let model = packed(&mut rng, suite);
        let values = inputs(&mut rng, 3);
        let logits = clear(&model, &values);
        let labels: Vec<_> = logits.iter().map(|row| vec![graph::argmax(row) as i64]).collect();
        for (reveal, want) in [(Reveal::Output, logits), (Reveal::Label, labels)] {
            let (answer, server) = run(&model, reveal, &values);
            assert_eq!(answer.results, want, "{suite}");
            costs_as_planned(&answer, &server.unwrap(), 3);
        }
    }
}

#[test]
fn what_the_client_knows_enters_the_prime_without_a_word() {
    let mut rng = Random::seeded(42);
    let model = packed(&mut rng, "gala");
    let report = Report::predicted(&Plan::new(model.graph, Settings::default()).unwrap(), 1);
    let bytes = |name: &str| {
        let row = report.layers.iter().find(|row| row.name == name).unwrap();
        row.usage.bytes.client_to_server + row.usage.bytes.server_to_client
    };
    assert_eq!(bytes("conv1 (enter)"), 0);
    assert!(bytes("conv2 (enter)") > 0 && bytes("conv1 (leave)") > 0);
    let counted = report.layers.iter().filter(|row| row.operations.is_some());
    assert_eq!(counted.map(|row| row.name.as_str()).collect::<Vec<_>>(), ["conv1", "conv2", "fc"]);
}

#[test]
fn rotation_keys_are_work_of_the_setup_and_what_comes_first_is_counted_once() {
    let mut rng = Random::seeded(44);
    let units = |plan: &Plan, inputs: usize, kernel: pricing::Unit| -> f64 {
        plan.parts(inputs).iter().map(|part| part.spent.work.units(kernel)).sum()
    };
    for suite in SUITES.into_iter().chain(["auto"]) {
        let plan = Plan::new(packed(&mut rng, suite).graph, Settings::default()).unwrap();
        let keyed = units(&plan, 1, pricing::Unit::Keyed);
        let first = plan.parts(1).first().map(|part| part.spent.work).unwrap();
        assert_eq!(keyed > 0.0, suite != "auto", "{suite}");
        for (kernel, once) in [
            (pricing::Unit::Keyed, first.units(pricing::Unit::Keyed)),
            (pricing::Unit::Start, 1.0),
            (pricing::Unit::Touched, units(&plan, 1, pricing::Unit::Touched)),
        ] {
            let again = units(&plan, 3, kernel);
            assert!((again - once).abs() < 1e-9, "{suite} {}: {again} {once}", kernel.name());
        }
        assert!(units(&plan, 1, pricing::Unit::Touched) > 0.0);
    }
}

#[test]
fn other_suites_batches_and_stores_are_refused() {
    let mut rng = Random::seeded(43);
    let mut model = packed(&mut rng, "gala");
    let two = NonZeroU32::new(2);
    for settings in [
        Settings { batch: two, ..Settings::default() },
        Settings { offline: two, ..Settings::default() },
    ] {
        let refused = Plan::new(model.graph.clone(), settings).unwrap_err().to_string();
        assert!(refused.contains("one by one"), "{refused}");
    }
    model.graph.suite = "magic".into();
    let refused = Plan::new(model.graph, Settings::default()).unwrap_err().to_string();
    assert!(refused.contains("use one of auto, ufo, gala, gazelle"), "{refused}");
}

/// Matrix products whose rotation keys would fill memory, and layers of very many products.
#[test]
fn a_plan_cannot_make_a_client_make_keys_without_bound() {
    for (suite, channels, side, kernel) in [
        ("gazelle", 8192, 1, 1),
        ("gazelle", 8192, 8, 3),
        ("gala", 8192, 8, 3),
        ("gala", 2, 1 << 12, 3),
        ("gazelle", 1, 64, 63),
    ] {
        let offer = hostile::layer_offer(suite, channels, side, kernel);
        let began = Instant::now();
        assert!(Plan::from_offer(&offer).is_err(), "{suite} {channels} {side} {kernel}");
        assert!(began.elapsed() < Duration::from_secs(10), "{suite} {channels} {side} {kernel}");
    }
    // A million products are within bounds, and priced at once.
    let offer = hostile::layer_offer("gala", 4096, 8, 3);
    let began = Instant::now();
    assert!(Plan::from_offer(&offer).is_ok());
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// Keys that were flipped, cut or exchanged end the session with the client named.
#[test]
fn a_tampered_key_is_noticed() {
    let mut rng = Random::seeded(44);
    let model = packed(&mut rng, "gala");
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let values = inputs(&mut rng, 1);
    // Hello, consent, public key, rotations.
    for (frame, how) in [(2, Tamper::Truncate), (2, Tamper::Retag), (3, Tamper::Oversize)] {
        let (_, server) = run_tampered(
            Some((Role::Client, frame, how)),
            |channel| {
                let shape = [1, 2, SIDE, SIDE];
                let progress = &mut |_, _| {};
                predict(
                    channel,
                    Request {
                        values: &values,
                        shape: &shape,
                        threads: 1,
                        accept_leakage: false,
                        keys: None,
                        asking: Asking::default(),
                        progress,
                    },
                )
            },
            |channel| session(&plan, &prepared, usize::MAX, channel),
        );
        assert!(matches!(server.value, Err(Error::Peer { .. })), "{frame} {how:?}");
    }
}
