//! Suite `lola`: whole networks under encryption, over channels and as files.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use graph::{FloatTensor, Floats, Model, Ranges, Source};
use ring::Random;

use super::{Answer, EncodedModel, Request, clear, costs_as_planned, predict, run, run_with};
use crate::files::{Correspondent, Evaluator, KeyFiles, generate_keys, public_plan};
use crate::plan::{Plan, Reveal, Settings};
use crate::session::opening::Asking;
use crate::session::server::session;
use wire::{Error, HEADER_LEN, memory_pair};

/// Bytes of a file before its body.
const FILE_HEADER: u64 = 73;

/// conv 3x3 -> square -> average pool 2 -> fc -> square -> fc.
fn network(rng: &mut Random) -> Model {
    let second = r#"{"name":"second","op":"Multiply","inputs":["e","e"],"output":"f"}"#;
    lowered(rng, second)
}

/// The same with 0.3 - 0.2*x^2 + 0.7*x in place of the second square.
fn polynomial(rng: &mut Random) -> Model {
    let second = r#"{"name":"times","op":"Scale","inputs":["e"],"output":"e1","factor":-0.2},
        {"name":"plus","op":"AddConstant","inputs":["e1"],"output":"e2","constant":"k1"},
        {"name":"horner","op":"Multiply","inputs":["e2","e"],"output":"e3"},
        {"name":"second","op":"AddConstant","inputs":["e3"],"output":"f","constant":"k2"}"#;
    lowered(rng, second)
}

fn lowered(rng: &mut Random, second: &str) -> Model {
    let source = r#"{"name":"squares","input":{"name":"x","shape":[1,10,10]},"output":"y","nodes":[
        {"name":"conv","op":"Conv","inputs":["x"],"output":"a","kernel":[3,3],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w1","bias":"b1"},
        {"name":"first","op":"Multiply","inputs":["a","a"],"output":"b"},
        {"name":"pool","op":"AveragePool","inputs":["b"],"output":"c","kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0],"count_include_pad":true},
        {"name":"flat","op":"Reshape","inputs":["c"],"output":"d","shape":[48]},
        {"name":"hidden","op":"Gemm","inputs":["d"],"output":"e","weight":"w2","bias":"b2"},
        SECOND,
        {"name":"last","op":"Gemm","inputs":["f"],"output":"y","weight":"w3","bias":"b3"}]}"#;
    let source = source.replace("SECOND", second);
    let mut floats = Floats::new();
    let mut add = |name: &str, shape: &[usize]| {
        let count = shape.iter().product();
        let data = rng.uniform(count, 16).iter().map(|w| *w as f32 / 32768.0 - 1.0).collect();
        floats.insert(name.into(), FloatTensor { shape: shape.to_vec(), data });
    };
    let shapes: [(&str, &[usize]); 6] = [
        ("w1", &[3, 1, 3, 3]),
        ("b1", &[3]),
        ("w2", &[12, 48]),
        ("b2", &[12]),
        ("w3", &[4, 12]),
        ("b3", &[4]),
    ];
    shapes.into_iter().for_each(|(name, shape)| add(name, shape));
    for (name, value) in [("k1", 0.7), ("k2", 0.3)] {
        floats.insert(name.into(), FloatTensor::vector(vec![value]));
    }
    let ranges: Ranges = BTreeMap::from([("x".to_owned(), (0.0, 1.0))]);
    let options = graph::Options {
        suite: "lola".into(),
        exact: true,
        weight_bits: 4,
        activation_bits: 3,
        ..graph::Options::default()
    };
    graph::lower(Source::from_json(&source).unwrap(), floats, &ranges.into(), &options).unwrap()
}

fn values(rng: &mut Random, count: usize) -> Vec<f32> {
    rng.uniform(count * 100, 16).iter().map(|w| *w as f32 / 65536.0).collect()
}

#[test]
fn results_equal_the_interpreter_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(41);
    for model in [network(&mut rng), polynomial(&mut rng)] {
        let values = values(&mut rng, 3);
        let (answer, server) = run(&model, Reveal::Output, &values);
        assert_eq!(answer.results, clear(&model, &values));
        assert_eq!(answer.report.phases.online.rounds, 5);
        costs_as_planned(&answer, &server.unwrap(), 3);
    }
}

/// Integers and their real values follow the polynomial.
#[test]
fn polynomials_are_what_they_were() {
    let mut rng = Random::seeded(46);
    let model = polynomial(&mut rng);
    let graph = &model.graph;
    let index = |name: &str| graph.tensors.iter().position(|t| t.name == name).unwrap();
    let x = model.graph.quantize_input(&values(&mut rng, 1)).unwrap();
    let tensors = graph::trace(&model, &x).unwrap();
    let real = |name: &str| {
        let (at, scale) = (index(name), graph.tensors[index(name)].format.scale);
        tensors[at].iter().map(|v| *v as f64 * scale).collect::<Vec<f64>>()
    };
    for (x, y) in real("e").into_iter().zip(real("f")) {
        let want = 0.3 + 0.7 * x - 0.2 * x * x;
        assert!((y - want).abs() < 1e-3 * (1.0 + want.abs()), "{y} for {want}");
    }
}

#[test]
fn batches_share_messages() {
    let mut rng = Random::seeded(42);
    let model = network(&mut rng);
    let values = values(&mut rng, 7);
    let settings = Settings { batch: NonZeroU32::new(5), ..Settings::default() };
    let (answer, server) = run_with(&model, settings, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server.unwrap(), 7);
}

/// A session under own keys, or fresh ones, with a server that keeps what it saw.
fn under(
    keys: Option<&KeyFiles>,
    model: &Model,
    prepared: &EncodedModel,
    values: &[f32],
) -> Answer {
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let (mut client, mut server) = memory_pair();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| session(&plan, prepared, 9, &mut server));
        let progress = &mut |_, _| {};
        let shape = &[1, 1, 10, 10];
        let request = Request {
            values,
            shape,
            threads: 1,
            accept_leakage: false,
            keys,
            asking: Asking::default(),
            progress,
        };
        let answer = predict(&mut client, request).unwrap();
        server.join().unwrap().unwrap();
        answer
    })
}

#[test]
fn keys_cross_once_and_the_longest_unused_go_first() {
    let mut rng = Random::seeded(43);
    let model = network(&mut rng);
    let values = values(&mut rng, 1);
    let want = clear(&model, &values);
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let offer = public_plan(model.graph.clone()).unwrap();
    let [first, second] = [(); 2].map(|()| generate_keys(&offer).unwrap());
    let bytes = plan.evaluated().unwrap().key_bytes();
    for (room, again) in [(2 * bytes, false), (bytes, true), (bytes - 1, true)] {
        let prepared = EncodedModel::new(&plan, model.clone()).unwrap().with_key_cache(room);
        let mut sent = Vec::new();
        for keys in [&first, &second, &first] {
            let answer = under(Some(keys), &model, &prepared, &values);
            assert_eq!(answer.results, want);
            sent.push(answer.report.phases.setup.bytes.client_to_server);
            // Fresh keys take no room, since nobody comes back with them.
            let answer = under(None, &model, &prepared, &values);
            assert_eq!(answer.results, want);
            assert_eq!(answer.report.phases.setup.bytes.client_to_server, sent[0]);
        }
        assert_eq!(sent[0], sent[1]);
        let keys = first.evaluation.len() as u64 - FILE_HEADER + HEADER_LEN * messages(&plan);
        assert_eq!(sent[2], if again { sent[0] } else { sent[0] - keys });
    }
}

/// Messages with keys, each of which has a header that its file has not.
fn messages(plan: &Plan) -> u64 {
    plan.evaluated().unwrap().key_layouts().unwrap().len() as u64
}

#[test]
fn files_give_the_same_results_and_damaged_ones_are_refused() {
    let mut rng = Random::seeded(44);
    let model = network(&mut rng);
    let values = values(&mut rng, 2);
    let offer = public_plan(model.graph.clone()).unwrap();
    let keys = generate_keys(&offer).unwrap();
    let client = Correspondent::new(&offer, &keys.secret).unwrap();
    let request = client.encrypt(&values, &[2, 1, 10, 10], 2).unwrap();
    let server = Evaluator::new(model.clone()).unwrap();
    let answer = server.evaluate(&keys.evaluation, &request, 2).unwrap();
    assert_eq!(client.decrypt(&answer).unwrap(), clear(&model, &values));

    let other = generate_keys(&offer).unwrap();
    let refused = |result: Result<Vec<u8>, Error>| {
        assert!(matches!(result, Err(Error::Peer { .. })), "{:?}", result.map(|file| file.len()));
    };
    refused(server.evaluate(&other.evaluation, &request, 1));
    refused(server.evaluate(&request, &keys.evaluation, 1));
    for cut in [0, 8, 72, 73, request.len() - 1] {
        refused(server.evaluate(&keys.evaluation, request.get(..cut).unwrap(), 1));
    }
    for cut in [0, 100, keys.evaluation.len() - 1] {
        refused(server.evaluate(keys.evaluation.get(..cut).unwrap(), &request, 1));
    }
    let mut large = request.clone();
    large.iter_mut().skip(200).for_each(|byte| *byte = 255);
    refused(server.evaluate(&keys.evaluation, &large, 1));
    assert!(Correspondent::new(&offer, &other.secret).unwrap().decrypt(&answer).is_err());
    assert!(Correspondent::new(&offer, &keys.evaluation).is_err());
    assert!(client.decrypt(answer.get(..answer.len() - 1).unwrap()).is_err());
}

#[test]
fn what_cannot_be_done_under_encryption_is_refused_with_advice() {
    let model = network(&mut Random::seeded(45));
    for (settings, advice) in [
        (Settings { reveal: Reveal::Label, ..Settings::default() }, "drop --reveal"),
        (Settings { offline: NonZeroU32::new(1), ..Settings::default() }, "drop --offline"),
        (Settings { batch: NonZeroU32::new(20000), ..Settings::default() }, "at most 16384"),
    ] {
        let refused = Plan::new(model.graph.clone(), settings).unwrap_err().to_string();
        assert!(refused.contains(advice), "{refused}");
    }
}
