//! Tensors that stay shared from one input of a session to the next.

use super::*;
use graph::Options;

/// `after = tanh(W x + U before)` with a linear result: what one step of a recurrent network is.
pub(crate) fn recurrent(rng: &mut Random, rounding: Rounding) -> Model {
    let source = r#"{"name":"recurrent","input":{"name":"x","shape":[4]},"output":"y",
      "states":[{"name":"before","shape":[3],"after":"same"}],"nodes":[
      {"name":"in","op":"Gemm","inputs":["x"],"output":"a","weight":"w","bias":"b"},
      {"name":"back","op":"Gemm","inputs":["before"],"output":"c","weight":"u","bias":null},
      {"name":"add","op":"Add","inputs":["a","c"],"output":"d"},
      {"name":"tanh","op":"Table","function":"Tanh","inputs":["d"],"output":"after"},
      {"name":"same","op":"Identity","inputs":["after"],"output":"same"},
      {"name":"out","op":"Gemm","inputs":["after"],"output":"y","weight":"v","bias":null}]}"#;
    let mut tensor = |shape: &[usize]| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| *w as f32 / 32768.0 - 1.0).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w".into(), tensor(&[3, 4])),
        ("b".into(), tensor(&[3])),
        ("u".into(), tensor(&[3, 3])),
        ("v".into(), tensor(&[2, 3])),
    ]);
    let sides = [("x", 1.0), ("a", 3.0), ("c", 2.0), ("d", 4.0), ("after", 1.0), ("y", 3.0)];
    let sides = sides.into_iter().chain([("before", 1.0), ("same", 1.0)]);
    let ranges: Ranges = sides.map(|(name, side)| (name.into(), (-side, side))).collect();
    let options = Options { rounding, ..Options::default() };
    graph::lower(Source::from_json(source).unwrap(), floats, &ranges.into(), &options).unwrap()
}

pub(crate) fn values(rng: &mut Random, count: usize) -> Vec<f32> {
    rng.uniform(4 * count, 16).iter().map(|w| *w as f32 / 32768.0 - 1.0).collect()
}

#[test]
fn a_session_carries_its_states_from_input_to_input() {
    let mut rng = Random::seeded(41);
    let model = recurrent(&mut rng, Rounding::Exact);
    let values = values(&mut rng, 6);
    let want = clear(&model, &values);
    let alone = clear(&model, values.get(20..).unwrap());
    assert_ne!(want.last(), alone.last(), "the last result depends on the inputs before it");
    for offline in [0, 1, 4] {
        let offline = NonZeroU32::new(offline);
        let settings = Settings { offline, ..Settings::default() };
        // Every session begins with zeros.
        for _ in 0..2 {
            let (answer, server) = run_with(&model, settings, &values);
            assert_eq!(answer.results, want, "{settings:?}");
            costs_as_planned(&answer, &server.unwrap(), 6);
        }
    }
}

#[test]
fn stochastic_rounding_stays_near_the_interpreter_over_a_session() {
    let mut rng = Random::seeded(42);
    let model = recurrent(&mut rng, Rounding::Stochastic);
    let values = values(&mut rng, 12);
    let (answer, _) = run_with(&model, Settings::default(), &values);
    let (got, want) = (answer.results, clear(&model, &values));
    // A last place of both products and of their sum is 3, 2 and 4 of the state's, each of
    // whose places moves a result by at most 1.7 of its own: 46 for three states.
    let moved = got.iter().flatten().zip(want.iter().flatten()).map(|(got, want)| got - want);
    let moved: Vec<i64> = moved.map(i64::abs).collect();
    assert!(moved.iter().all(|moved| *moved <= 46), "{moved:?}");
    assert!(moved.iter().sum::<i64>() <= 10 * moved.len() as i64, "{moved:?}");
}

#[test]
fn a_batch_of_inputs_of_one_stream_is_refused() {
    let model = recurrent(&mut Random::seeded(43), Rounding::Exact);
    let settings = Settings { batch: NonZeroU32::new(2), ..Settings::default() };
    let error = Plan::new(model.graph, settings).unwrap_err();
    assert!(error.to_string().contains("serve it without --batch"), "{error}");
}

#[test]
fn a_hostile_state_is_refused() {
    let model = recurrent(&mut Random::seeded(44), Rounding::Exact);
    let offer = Plan::new(model.graph.clone(), Settings::default()).unwrap().offer();
    let state = model.graph.states.first().unwrap();
    let (before, after) = (state.before, state.after);
    let place = |before: usize, after: usize| format!(r#""before":{before},"after":{after}"#);
    for (before, after) in [
        (before, 999),
        (999, after),
        (before, before),
        (after, before),
        (model.graph.input, after),
        (before, model.graph.input),
        (before, model.graph.output),
    ] {
        let changed = offer.replacen(&place(state.before, state.after), &place(before, after), 1);
        assert_ne!(changed, offer);
        assert!(Plan::from_offer(&changed).is_err(), "{before} {after}");
    }
    let [low, high] = state.range;
    let range = format!("\"range\":[{low},{high}]");
    let wide = offer.replacen(&range, &format!("\"range\":[-9000000000000,{high}]"), 1);
    assert_ne!(wide, offer);
    assert!(Plan::from_offer(&wide).is_err());
}
