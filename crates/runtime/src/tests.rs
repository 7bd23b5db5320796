//! Whole sessions in memory: results against the interpreter, costs against the
//! plan, and what each party can see.

mod bands;
mod batches;
mod checked;
mod checked_cheats;
mod checked_trees;
mod circuits;
pub(crate) mod decoder;
mod distinguish;
mod evaluated;
mod extraction;
mod failure;
mod handshakes;
mod hostile;
mod ot_layers;
mod packed;
mod planned;
mod siblings;
mod slices;
pub(crate) mod states;
mod transformer;
mod trees;
mod widths;
mod written;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::thread;

use graph::{FloatTensor, Floats, Model, Ranges, Rounding, Source};
use ring::Random;
use wire::testing::{Tamper, run_pair, run_tampered};
use wire::{Channel, Error, Result, Role, memory_pair};

use crate::plan::{Plan, Reveal, Settings};
use crate::report::Report;
use crate::session::client::{Answer, Request, predict};
use crate::session::encoded::EncodedModel;
use crate::session::opening::Asking;
use crate::session::server::session;

pub(crate) const SIDE: usize = 10;

/// conv 3x3 -> relu -> max pool 2 -> conv 3x3 (padded) -> relu -> average pool 2 -> fc.
pub(crate) fn network(rng: &mut Random, rounding: Rounding) -> Model {
    lowered(rng, &graph::Options { rounding, ..graph::Options::default() })
}

fn lowered(rng: &mut Random, options: &graph::Options) -> Model {
    let source = r#"{"name":"small","input":{"name":"x","shape":[2,10,10]},"output":"y","nodes":[
      {"name":"conv1","op":"Conv","inputs":["x"],"output":"a","kernel":[3,3],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w1","bias":"b1"},
      {"name":"relu1","op":"Relu","inputs":["a"],"output":"b","maximum":null},
      {"name":"pool1","op":"MaxPool","inputs":["b"],"output":"c","kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0]},
      {"name":"conv2","op":"Conv","inputs":["c"],"output":"d","kernel":[3,3],"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1,"weight":"w2","bias":"b2"},
      {"name":"add","op":"Add","inputs":["d","c"],"output":"e"},
      {"name":"relu2","op":"Relu","inputs":["e"],"output":"f","maximum":null},
      {"name":"pool2","op":"AveragePool","inputs":["f"],"output":"g","kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0],"count_include_pad":true},
      {"name":"flat","op":"Reshape","inputs":["g"],"output":"h","shape":[16]},
      {"name":"fc","op":"Gemm","inputs":["h"],"output":"y","weight":"w3","bias":"b3"}]}"#;
    let mut tensor = |shape: &[usize], scale: f32| {
        let len = shape.iter().product();
        let words = rng.uniform(len, 16);
        let data = words.iter().map(|w| (*w as f32 / 32768.0 - 1.0) * scale).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w1".into(), tensor(&[4, 2, 3, 3], 0.3)),
        ("b1".into(), tensor(&[4], 0.1)),
        ("w2".into(), tensor(&[4, 4, 3, 3], 0.3)),
        ("b2".into(), tensor(&[4], 0.1)),
        ("w3".into(), tensor(&[10, 16], 0.5)),
        ("b3".into(), tensor(&[10], 0.1)),
    ]);
    let ranges = [("x", 0.0), ("b", 0.0), ("c", 0.0), ("d", -1.5), ("e", -1.5), ("f", 0.0)];
    let mut ranges: Ranges =
        ranges.iter().map(|(name, low)| ((*name).into(), (*low, 1.5))).collect();
    for name in ["a", "g", "h", "y"] {
        ranges.insert(name.into(), (-2.0, 2.0));
    }
    ranges.insert("x".into(), (0.0, 1.0));
    graph::lower(Source::from_json(source).unwrap(), floats, &ranges.into(), options).unwrap()
}

pub(crate) fn inputs(rng: &mut Random, count: usize) -> Vec<f32> {
    let mut values: Vec<f32> =
        rng.uniform(count * 2 * SIDE * SIDE, 16).iter().map(|w| *w as f32 / 65536.0).collect();
    values.iter_mut().take(2 * SIDE * SIDE).for_each(|v| *v = 1.0);
    values
}

/// Runs the client's side in one thread; nobody watches its progress.
pub(crate) fn ask(channel: &mut Channel, values: &[f32], shape: &[usize]) -> Result<Answer> {
    let progress = &mut |_, _| {};
    let request = Request {
        values,
        shape,
        threads: 1,
        accept_leakage: false,
        keys: None,
        asking: Asking::default(),
        progress,
    };
    predict(channel, request)
}

pub(crate) fn run(model: &Model, reveal: Reveal, values: &[f32]) -> (Answer, Result<Report>) {
    run_with(model, Settings { reveal, ..Settings::default() }, values)
}

pub(crate) fn run_with(
    model: &Model,
    settings: Settings,
    values: &[f32],
) -> (Answer, Result<Report>) {
    run_planned(&Plan::new(model.graph.clone(), settings).unwrap(), model, values)
}

pub(crate) fn run_planned(plan: &Plan, model: &Model, values: &[f32]) -> (Answer, Result<Report>) {
    let (mut client, mut server) = memory_pair();
    let prepared = EncodedModel::new(plan, model.clone()).unwrap();
    let one = &model.graph.tensors.get(model.graph.input).unwrap().shape;
    let count = values.len() / one.iter().product::<usize>();
    thread::scope(|scope| {
        let server = scope.spawn(|| session(plan, &prepared, usize::MAX, &mut server));
        let shape = [&[count], one.as_slice()].concat();
        let accept_leakage = model.graph.suite == "falcon";
        let progress = &mut |_, _| {};
        let request = Request {
            values,
            shape: &shape,
            threads: 1,
            accept_leakage,
            keys: None,
            asking: Asking::default(),
            progress,
        };
        (predict(&mut client, request).unwrap(), server.join().unwrap())
    })
}

pub(crate) fn clear(model: &Model, values: &[f32]) -> Vec<Vec<i64>> {
    let inputs: Vec<_> = values
        .chunks_exact(model.graph.tensors.get(model.graph.input).unwrap().len())
        .map(|one| model.graph.quantize_input(one).unwrap())
        .collect();
    graph::interpret_batch(model, &inputs).unwrap()
}

pub(crate) fn costs_as_planned(answer: &Answer, server: &Report, inputs: usize) {
    let predicted = Report::predicted(&answer.plan, inputs);
    let facts = |report: &Report| {
        let phases = [report.phases.setup, report.phases.offline, report.phases.online];
        phases.map(|usage| (usage.bytes, usage.rounds))
    };
    assert_eq!(facts(&answer.report), facts(&predicted));
    assert_eq!(answer.report.total.bytes, server.total.bytes);
    let rows = |report: &Report| -> BTreeMap<String, u64> {
        report.layers.iter().map(|row| (row.name.clone(), row.usage.rounds)).collect()
    };
    assert_eq!(rows(&answer.report), rows(&predicted));
}

#[test]
fn exact_rounding_equals_the_interpreter_in_every_value() {
    let mut rng = Random::seeded(1);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 3);
    let (answer, server) = run(&model, Reveal::Output, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server.unwrap(), 3);
}

#[test]
fn prepared_inferences_give_the_same_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(12);
    for (rounding, reveal) in [
        (Rounding::Exact, Reveal::Output),
        (Rounding::Exact, Reveal::Label),
        (Rounding::Stochastic, Reveal::Output),
        (Rounding::Stochastic, Reveal::Label),
    ] {
        let model = network(&mut rng, rounding);
        let values = inputs(&mut rng, 4);
        let usual = run(&model, reveal, &values).0;
        let mut off: Vec<i64> = Vec::new();
        for offline in [1, 2, 9].map(NonZeroU32::new) {
            let settings = Settings { reveal, offline, ..Settings::default() };
            let (answer, server) = run_with(&model, settings, &values);
            costs_as_planned(&answer, &server.unwrap(), 4);
            let online = |answer: &Answer| {
                let usage = answer.report.phases.online;
                (usage.bytes.client_to_server + usage.bytes.server_to_client, usage.rounds)
            };
            let (bytes, rounds) = online(&answer);
            let (usual_bytes, usual_rounds) = online(&usual);
            assert!(2 * bytes < usual_bytes && rounds <= usual_rounds, "{bytes} of {usual_bytes}");
            let want = clear(&model, &values);
            match (rounding, reveal) {
                (Rounding::Exact, Reveal::Output) => assert_eq!(answer.results, want),
                (Rounding::Exact, Reveal::Label) => assert_eq!(answer.results, usual.results),
                (Rounding::Stochastic, Reveal::Output) => {
                    let results = answer.results.iter().flatten().zip(want.iter().flatten());
                    off.extend(results.map(|(got, want)| got - want));
                }
                (Rounding::Stochastic, Reveal::Label) => assert_eq!(answer.results.len(), 4),
                (_, Reveal::Probability | Reveal::Bucket) => unreachable!("not among these"),
            }
        }
        // Rounding at random moves these results by 2.04, the root of the mean square of 7,200 of
        // them. Six deviations bound one result, and half as much again the root over all.
        let squares: i64 = off.iter().map(|off| off * off).sum();
        assert!(squares <= 9 * off.len() as i64, "{off:?}");
        assert!(off.iter().all(|off| off.abs() <= 12), "{off:?}");
    }
}

#[test]
fn a_store_beyond_memory_is_refused() {
    let model = network(&mut Random::seeded(13), Rounding::Exact);
    let settings = Settings { offline: NonZeroU32::new(u32::MAX), ..Settings::default() };
    let refused = Plan::new(model.graph, settings).unwrap_err().to_string();
    assert!(refused.contains("prepare fewer"), "{refused}");
}

#[test]
fn a_store_is_memory_that_a_plan_counts_once() {
    let model = network(&mut Random::seeded(14), Rounding::Exact);
    let touched = |store, inputs| -> f64 {
        let settings = Settings { offline: NonZeroU32::new(store), ..Settings::default() };
        let plan = Plan::new(model.graph.clone(), settings).unwrap();
        let touched =
            |part: &crate::step::spent::Part| part.spent.work.units(pricing::Unit::Touched);
        plan.parts(inputs).iter().map(touched).sum()
    };
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let run = crate::preprocess::schedule::run_bytes(plan.steps()) as f64;
    assert!(run > 0.0 && touched(1, 1) >= run);
    assert!((touched(1, 3) - touched(1, 1)).abs() < 1e-9);
    assert!((touched(4, 3) - touched(1, 1) - 2.0 * run).abs() < 1e-9);
}

#[test]
fn labels_are_the_interpreters_first_maxima() {
    let mut rng = Random::seeded(2);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 4);
    let (answer, server) = run(&model, Reveal::Label, &values);
    let want: Vec<Vec<i64>> =
        clear(&model, &values).iter().map(|row| vec![graph::argmax(row) as i64]).collect();
    assert_eq!(answer.results, want);
    costs_as_planned(&answer, &server.unwrap(), 4);
}

#[test]
fn stochastic_rounding_stays_near_the_interpreter() {
    let mut rng = Random::seeded(3);
    let model = network(&mut rng, Rounding::Stochastic);
    let values = inputs(&mut rng, 4);
    let (answer, server) = run(&model, Reveal::Output, &values);
    costs_as_planned(&answer, &server.unwrap(), 4);
    let want = clear(&model, &values);
    let spread = want.iter().flatten().map(|v| v.abs()).max().unwrap();
    for (got, want) in answer.results.iter().flatten().zip(want.iter().flatten()) {
        assert!((got - want).abs() * 20 <= spread, "{got} for {want} of {spread}");
    }
}

#[test]
fn what_a_server_sends_depends_on_the_public_plan_only() {
    let mut rng = Random::seeded(4);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 1);
    let mut silent = model.clone();
    for weights in silent.weights.values_mut() {
        weights.weight.fill(0);
        weights.bias.fill(0);
    }
    let (first, _) = run(&model, Reveal::Output, &values);
    let (second, _) = run(&silent, Reveal::Output, &values);
    let sizes = |answer: &Answer| -> Vec<_> {
        answer.report.layers.iter().map(|row| (row.usage.bytes, row.usage.rounds)).collect()
    };
    assert_eq!(sizes(&first), sizes(&second));
    assert_eq!(second.results, [vec![0; 10]]);
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_they_leave() {
    let mut rng = Random::seeded(5);
    let model = network(&mut rng, Rounding::Exact);
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    for (values, shape) in [(vec![0.5; 20], vec![1, 20]), (vec![f32::NAN; 200], vec![2, 10, 10])] {
        let (ours, theirs) = run_pair(
            |channel| ask(channel, &values, &shape),
            |channel| session(&plan, &prepared, 9, channel),
        );
        assert!(matches!(ours.value, Err(Error::Misuse(_))), "{:?}", ours.value);
        assert!(matches!(theirs.value, Err(Error::Transport(_))), "{:?}", theirs.value);
    }
}

/// Every frame of a session in turn: the other side closes instead of sending it, or
/// sends it under another tag, too long, or twice (twice the last is never read).
#[test]
fn a_peer_that_closes_or_babbles_at_any_step_is_named() {
    let mut rng = Random::seeded(7);
    let model = network(&mut rng, Rounding::Stochastic);
    let settings = Settings { reveal: Reveal::Label, ..Settings::default() };
    let plan = Plan::new(model.graph.clone(), settings).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let values = inputs(&mut rng, 1);
    let client = |channel: &mut Channel| {
        let shape = [2, SIDE, SIDE];
        ask(channel, &values, &shape).map(|_| ())
    };
    let answer = |channel: &mut Channel| session(&plan, &prepared, 1, channel).map(|_| ());
    let (ours, theirs) = run_pair(client, answer);
    for (sender, frames) in [(Role::Client, ours.frames), (Role::Server, theirs.frames)] {
        assert!(frames.len() > 30, "{} frames from {sender:?}", frames.len());
        for how in [Tamper::Close, Tamper::Retag, Tamper::Oversize, Tamper::Repeat] {
            let read = frames.len() - usize::from(how == Tamper::Repeat);
            for frame in 0..read {
                let (ours, theirs) = run_tampered(Some((sender, frame, how)), client, answer);
                let victim = if sender == Role::Client { theirs.value } else { ours.value };
                let named = match how {
                    Tamper::Close => matches!(victim, Err(Error::Transport(_))),
                    _ => matches!(victim, Err(Error::Peer { .. })),
                };
                assert!(named, "{how:?} of frame {frame} from {sender:?}: {victim:?}");
            }
        }
    }
}

/// To the byte and the round, hello included, on both sides, in every combination.
#[test]
fn runs_cost_what_the_plan_says() {
    let mut rng = Random::seeded(11);
    for rounding in [Rounding::Exact, Rounding::Stochastic] {
        let model = network(&mut rng, rounding);
        for (reveal, count) in [(Reveal::Output, 1), (Reveal::Label, 1), (Reveal::Label, 2)] {
            let values = inputs(&mut rng, count);
            let plan =
                Plan::new(model.graph.clone(), Settings { reveal, ..Settings::default() }).unwrap();
            let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
            let shape = [count, 2, SIDE, SIDE];
            let (ours, theirs) = run_pair(
                |channel| ask(channel, &values, &shape),
                |channel| session(&plan, &prepared, 2, channel),
            );
            let predicted = plan.cost(count);
            assert_eq!(ours.cost, predicted, "{rounding:?} {reveal:?}: the client's meter");
            assert_eq!(theirs.cost, predicted, "{rounding:?} {reveal:?}: the server's meter");
            let crossed = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).sum::<usize>() as u64;
            assert_eq!(crossed(&ours.frames), predicted.client_to_server);
            assert_eq!(crossed(&theirs.frames), predicted.server_to_client);
            costs_as_planned(&ours.value.unwrap(), &theirs.value.unwrap(), count);
        }
    }
}
