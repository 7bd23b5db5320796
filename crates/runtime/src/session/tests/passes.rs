//! Runs of several inputs that follow each other.

use graph::Model;

use super::*;
use crate::plan::Reveal;
use crate::plan::options::OptionsByStep;
use crate::session::estimate::Inputs;
use crate::tests::decoder::{INPUT, WIDTH, decoder};
use crate::tests::states::recurrent;

const SHAPE: [usize; 2] = [INPUT, 1];
const PASS: u32 = 3;

/// Values of a text of tokens that are all different, each of which attends to those before it.
fn text(rng: &mut Random, tokens: usize) -> Vec<f32> {
    let mut values = crate::tests::decoder::text(tokens, 0.0, |at| at);
    for input in values.chunks_mut(INPUT) {
        let token = rng.uniform(WIDTH, 10).into_iter().map(|word| word as f32 / 512.0 - 1.0);
        input.iter_mut().zip(token).for_each(|(to, from)| *to = from);
    }
    values
}

fn settings(reveal: Reveal) -> Settings {
    Settings { reveal, pass: NonZeroU32::new(PASS), ..Settings::default() }
}

/// What a session gives whose calls have so many inputs each, of which some are only `remembered`.
fn session(
    (model, plan): (&Model, &Plan),
    values: &[f32],
    calls: &[(bool, usize)],
) -> (Vec<Vec<i64>>, [Report; 2]) {
    let inputs = calls.iter().map(|(_, count)| count).sum();
    let ((results, report), server) = with_plan(model, plan, inputs, |mut open| {
        let (mut results, mut rest) = (Vec::new(), values);
        for (remembered, count) in calls {
            let (some, others) = rest.split_at(count * INPUT);
            rest = others;
            let shape = [&[*count], &SHAPE[..]].concat();
            let shape = if *count == 1 { &SHAPE[..] } else { &shape[..] };
            match remembered {
                true => open.remember(some, shape).unwrap(),
                false => results.extend(open.predict(some, shape).unwrap()),
            }
        }
        (results, open.finish().unwrap().clone())
    });
    (results, [report, server.unwrap()])
}

#[test]
fn a_pass_is_as_many_runs_in_their_order() {
    let mut rng = Random::seeded(51);
    for blocks in [1, 2] {
        let model = decoder(blocks, Rounding::Exact);
        let values = text(&mut rng, 11);
        let plan = Plan::with_passes(
            model.graph.clone(),
            settings(Reveal::Output),
            OptionsByStep::default(),
            OptionsByStep::default(),
        );
        let calls = [(false, 3), (false, 1), (false, 3), (false, 1), (false, 3)];
        let (results, [ours, theirs]) = session((&model, &plan.unwrap()), &values, &calls);
        assert_eq!(results, clear(&model, &values), "{blocks} blocks");
        assert_eq!(ours.total.bytes, theirs.total.bytes);
        assert_eq!(ours.inputs, 11);
    }
}

#[test]
fn a_prompt_that_is_read_in_passes_costs_what_is_planned() {
    let mut rng = Random::seeded(52);
    let model = decoder(2, Rounding::Exact);
    let values = text(&mut rng, 9);
    let graph = model.graph.clone();
    let plan = Plan::chosen(graph, settings(Reveal::Label), OptionsByStep::default()).unwrap();
    assert!(plan.states_end().is_some());
    let calls = [(true, 3), (true, 3), (true, 1), (false, 1), (false, 1)];
    let (results, reports) = session((&model, &plan), &values, &calls);
    let label = |row: &Vec<i64>| {
        let most = row.iter().max().unwrap();
        vec![row.iter().position(|value| value == most).unwrap() as i64]
    };
    let want: Vec<Vec<i64>> = clear(&model, &values).iter().skip(7).map(label).collect();
    assert_eq!(results, want);
    let inputs = Inputs { remembered: 7, ..Inputs::of(9) };
    super::remembered::costs_as_planned(&plan, inputs, reports);
    let alone = Settings { pass: None, ..settings(Reveal::Label) };
    let alone = Plan::new(model.graph, alone).unwrap();
    let rounds = |plan: &Plan| {
        plan.parts_of(inputs).iter().map(|part| part.spent.cost).collect::<wire::Cost>().rounds
    };
    assert!(2 * rounds(&plan) < rounds(&alone) + 2 * rounds(&alone) / 9 * 5, "{}", rounds(&plan));
}

/// Runs that check what a client guesses to follow: passes of which it learns all labels.
#[test]
fn passes_with_results_cost_what_is_planned() {
    let mut rng = Random::seeded(55);
    let model = decoder(2, Rounding::Exact);
    let values = text(&mut rng, 10);
    let plan = Plan::chosen(model.graph.clone(), settings(Reveal::Label), OptionsByStep::default());
    let plan = plan.unwrap();
    let calls = [(true, 3), (false, 3), (false, 3), (false, 1)];
    let (results, reports) = session((&model, &plan), &values, &calls);
    let want = clear(&model, &values).into_iter().skip(3);
    let want: Vec<Vec<i64>> = want.map(|row| vec![super::remembered::label(&row)]).collect();
    assert_eq!(results, want);
    let inputs = Inputs { remembered: 3, in_passes: true, ..Inputs::of(10) };
    let planned = super::remembered::costs_as_planned(&plan, inputs, reports);
    let alone = Inputs { in_passes: false, ..inputs };
    let alone: wire::Cost = plan.parts_of(alone).iter().map(|part| part.spent.cost).collect();
    assert!(2 * planned.rounds < alone.rounds, "{} {}", planned.rounds, alone.rounds);
}

/// Keys and values that came in passes are opened on masks by the first run of one token behind them.
#[test]
fn products_on_masks_of_several_runs_go_on_behind_passes() {
    let mut rng = Random::seeded(53);
    let model = decoder(2, Rounding::Stochastic);
    let graph = model.graph.clone();
    let mut options = OptionsByStep::default();
    let products = graph.nodes.iter().enumerate().filter(|(_, node)| node.op.is::<graph::MatMul>());
    for (at, _) in products.take(2) {
        options.set(at, "ahead2".parse().unwrap());
    }
    let values = text(&mut rng, 14);
    let none = OptionsByStep::default();
    let plan = Plan::with_passes(graph, settings(Reveal::Output), options, none).unwrap();
    let want = clear(&model, &values);
    // Runs before, between and behind passes, with masks left over and without.
    for calls in [
        vec![(true, 3), (false, 1), (false, 1), (false, 1)],
        vec![
            (false, 1),
            (true, 3),
            (true, 3),
            (false, 1),
            (false, 1),
            (false, 1),
            (true, 3),
            (false, 1),
        ],
    ] {
        let (results, reports) = session((&model, &plan), &values, &calls);
        let mut place = 0;
        let mut of_runs: Vec<&Vec<i64>> = Vec::new();
        for (remembered, count) in &calls {
            let rows = want.iter().skip(place).take(*count);
            of_runs.extend(rows.filter(|_| !remembered));
            place += count;
        }
        assert_eq!(results.len(), of_runs.len());
        let distance = |a: &[i64], b: &[i64]| -> f64 {
            let each = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b) as f64);
            each.sum::<f64>() / a.len() as f64
        };
        let errors = results.iter().zip(&of_runs).map(|(got, want)| distance(got, want));
        let error = errors.sum::<f64>() / results.len() as f64;
        let others = want.windows(2).map(|pair| distance(&pair[0], &pair[1]));
        let others = others.sum::<f64>() / (want.len() - 1) as f64;
        assert!(4.0 * error < others, "off by {error} where inputs differ by {others}");
        if calls.first() == Some(&(true, 3)) {
            let inputs = Inputs { remembered: 3, ..Inputs::of(6) };
            super::remembered::costs_as_planned(&plan, inputs, reports);
        }
    }
}

#[test]
fn no_more_runs_are_prepared_than_a_session_has_left() {
    let mut rng = Random::seeded(56);
    let model = decoder(2, Rounding::Stochastic);
    let graph = model.graph.clone();
    let mut options = OptionsByStep::default();
    let product = graph.nodes.iter().position(|node| node.op.is::<graph::MatMul>()).unwrap();
    options.set(product, "ahead64".parse().unwrap());
    let plan = Plan::chosen(graph, Settings::default(), options).unwrap();
    let before = |inputs| -> u64 {
        let parts = plan.parts_of(Inputs::of(inputs)).into_iter();
        let of_product = parts.filter(|part| part.step == Some(product));
        let prepared = of_product.filter(|part| part.phase == wire::Phase::Preprocess);
        prepared.map(|part| part.spent.cost.bytes()).sum()
    };
    assert!(3 * before(5) < before(64), "{} {}", before(5), before(64));
    assert!(before(5) < before(64 + 5) - before(64) + 64, "the last runs of many are as few");
    let first = |inputs| plan.parts_of(Inputs { opened: 64, ..Inputs::of(inputs) });
    let cost = |parts: Vec<crate::step::spent::Part>| -> wire::Cost {
        parts.into_iter().map(|part| part.spent.cost).collect()
    };
    assert_eq!(cost(first(64)), plan.cost(64), "a session of all that it is opened for");
    assert!(cost(first(5)).bytes() > plan.cost(5).bytes(), "products of runs to come are made");
    let values = text(&mut rng, 5);
    let (_, reports) = session((&model, &plan), &values, &[(false, 1); 5]);
    super::remembered::costs_as_planned(&plan, Inputs::of(5), reports);
}

#[test]
fn passes_that_there_cannot_be_are_refused() {
    let mut rng = Random::seeded(54);
    let decoder = decoder(1, Rounding::Exact);
    let pass = settings(Reveal::Output);
    let plain = |model: &Model, settings| Plan::new(model.graph.clone(), settings).err().unwrap();
    let stored = Settings { offline: NonZeroU32::new(2), ..pass };
    let batched = Settings { batch: NonZeroU32::new(2), ..pass };
    let as_many = Settings { batch: NonZeroU32::new(PASS), ..pass };
    let single = Settings { pass: NonZeroU32::new(1), ..pass };
    for (why, refused) in [
        ("keeps no state", plain(&network(&mut rng, Rounding::Exact), pass)),
        ("computes a state", plain(&recurrent(&mut rng, Rounding::Exact), pass)),
        ("--offline", plain(&decoder, stored)),
        ("--batch", plain(&decoder, batched)),
        ("--batch", plain(&decoder, as_many)),
        ("one input", plain(&decoder, single)),
        ("at most 64", plain(&decoder, Settings { pass: NonZeroU32::new(65), ..pass })),
    ] {
        assert!(matches!(&refused, Error::Misuse(text) if text.contains(why)), "{why}: {refused}");
    }
    let plan = Plan::new(decoder.graph.clone(), pass).unwrap();
    let (again, _) = Plan::offered(&plan.offer()).unwrap();
    assert_eq!((again.digest(), again.pass().is_some()), (plan.digest(), true));
    // Nobody can offer passes alone.
    for beside in [r#""batch":3,"pass":3"#, r#""passing":true,"pass":3"#, r#""pass":1"#] {
        let offer = plan.offer().replacen(r#""pass":3"#, beside, 1);
        assert_ne!(offer, plan.offer());
        assert!(matches!(Plan::offered(&offer), Err(Error::Peer { .. })), "{beside}");
    }
    let values = text(&mut rng, 4);
    let (_, _) = with_plan(&decoder, &plan, 4, |mut open| {
        let two = open.predict(&values[..2 * INPUT], &[2, INPUT, 1]).unwrap_err();
        assert!(two.to_string().contains("takes 1 or 3"), "{two}");
        open.predict(&values[..3 * INPUT], &[3, INPUT, 1]).unwrap();
        let more = open.predict(&values[..3 * INPUT], &[3, INPUT, 1]).unwrap_err();
        assert!(more.to_string().contains("of which 3 are done"), "{more}");
        open.finish().unwrap();
    });
}
