//! Products whose right factor grows by an entry each run.

use super::*;
use crate::linear::appended_matmul::AppendedProduct;
use crate::plan::options::OptionsByStep;
use crate::step::Step;
use graph::Options;

/// One head of attention over four entries, of which three are kept. What the second state becomes, which
/// the result reads too, is the clipped `source`.
fn attention(rng: &mut Random, rounding: Rounding, source: &str) -> Model {
    let text = r#"{"name":"growing","input":{"name":"x","shape":[4]},"output":"y",
      "states":[{"name":"before","shape":[3,4],"after":"after"},
        {"name":"seen","shape":[1,4],"after":"next"}],"nodes":[
      {"name":"key","op":"Gemm","inputs":["x"],"output":"k","weight":"w","bias":"b"},
      {"name":"clipped","op":"Clip","inputs":["k"],"output":"kc","minimum":-2.0,"maximum":2.0},
      {"name":"row","op":"Reshape","inputs":["kc"],"output":"new","shape":[1,4]},
      {"name":"all","op":"Concat","inputs":["before","new"],"output":"all"},
      {"name":"moved","op":"View","inputs":["all"],"output":"after","shape":[3,4],"start":4,"strides":[4,1]},
      {"name":"query","op":"Gemm","inputs":["x"],"output":"q","weight":"u","bias":"b"},
      {"name":"clip","op":"Clip","inputs":["q"],"output":"qc","minimum":-2.0,"maximum":2.0},
      {"name":"left","op":"Reshape","inputs":["qc"],"output":"a","shape":[1,4]},
      {"name":"keys","op":"View","inputs":["all"],"output":"kt","shape":[4,4],"start":0,"strides":[1,4]},
      {"name":"scores","op":"MatMul","inputs":["a","kt"],"output":"s"},
      {"name":"weights","op":"Clip","inputs":["s"],"output":"p","minimum":-4.0,"maximum":4.0},
      {"name":"context","op":"MatMul","inputs":["p","all"],"output":"c"},
      {"name":"next","op":"Clip","inputs":["SOURCE"],"output":"next","minimum":-4.0,"maximum":4.0},
      {"name":"add","op":"Add","inputs":["c","seen"],"output":"d"},
      {"name":"flat","op":"Reshape","inputs":["d"],"output":"e","shape":[4]},
      {"name":"out","op":"Gemm","inputs":["e"],"output":"y","weight":"v","bias":null}]}"#;
    let mut tensor = |shape: &[usize]| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| *w as f32 / 32768.0 - 1.0).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w".into(), tensor(&[4, 4])),
        ("u".into(), tensor(&[4, 4])),
        ("b".into(), tensor(&[4])),
        ("v".into(), tensor(&[2, 4])),
    ]);
    let sides =
        [("x", 1.0), ("k", 5.0), ("kc", 2.0), ("q", 5.0), ("qc", 2.0), ("s", 16.0), ("p", 4.0)];
    let others = [("c", 32.0), ("before", 2.0), ("after", 2.0), ("seen", 4.0), ("next", 4.0)];
    let last = [
        ("d", 36.0),
        ("e", 36.0),
        ("y", 144.0),
        ("new", 2.0),
        ("all", 2.0),
        ("a", 2.0),
        ("kt", 2.0),
    ];
    let sides = sides.into_iter().chain(others).chain(last);
    let ranges: Ranges = sides.map(|(name, side)| (name.into(), (-side, side))).collect();
    let options = Options { rounding, ..Options::default() };
    let source = Source::from_json(&text.replace("SOURCE", source)).unwrap();
    graph::lower(source, floats, &ranges.into(), &options).unwrap()
}

/// A plan that prepares the `named` products for three runs together.
fn planned(model: &Model, named: &[&str]) -> Result<Plan> {
    let mut by_step = OptionsByStep::default();
    for name in named {
        let step = model.graph.nodes.iter().position(|node| node.name == *name).unwrap();
        by_step.set(step, "ahead3".parse().unwrap());
    }
    Plan::chosen(model.graph.clone(), Settings::default(), by_step)
}

fn grow(plan: &Plan) -> usize {
    let layers = plan.steps().iter().filter_map(Step::linear);
    layers.filter(|layer| layer.downcast::<AppendedProduct>().is_some()).count()
}

#[test]
fn attention_on_masks_of_several_runs_is_near_the_interpreter() {
    let mut rng = Random::seeded(61);
    let model = attention(&mut rng, Rounding::Stochastic, "c");
    let values = states::values(&mut rng, 11);
    let want = clear(&model, &values);
    let error = |plan: &Plan| {
        let (answer, server) = run_planned(plan, &model, &values);
        costs_as_planned(&answer, &server.unwrap(), 11);
        let pairs = answer.results.iter().flatten().zip(want.iter().flatten());
        pairs.map(|(got, want)| (got - want).abs()).max().unwrap()
    };
    let plain = error(&planned(&model, &[]).unwrap());
    for (named, count) in [(&["scores", "context"][..], 2), (&["context"][..], 1)] {
        let plan = planned(&model, named).unwrap();
        assert_eq!(grow(&plan), count);
        // Both round at random, and errors of states add up.
        let error = error(&plan);
        assert!(error <= 3 * plain + 8, "{error} beside {plain}");
    }
}

#[test]
fn products_that_cannot_be_prepared_for_several_runs_are_refused() {
    let mut rng = Random::seeded(62);
    let refused = |model: &Model, name| {
        let error = planned(model, &[name]).unwrap_err();
        assert!(matches!(error, Error::Misuse { .. }), "{error}");
        assert!(error.to_string().contains("does not grow"), "{error}");
    };
    // Runs that are only for the states leave the product out.
    let model = attention(&mut rng, Rounding::Stochastic, "p");
    assert_eq!(grow(&planned(&model, &["scores"]).unwrap()), 1);
    refused(&model, "context");
    let exact = attention(&mut rng, Rounding::Exact, "c");
    refused(&exact, "scores");
    // An entry that is what another one was, and a state that stays as it is.
    let mut swapped = attention(&mut rng, Rounding::Stochastic, "c");
    let state = swapped.graph.states[0].clone();
    swapped.graph.states[0].after = state.before;
    assert!(planned(&swapped, &["scores"]).is_err());
}
