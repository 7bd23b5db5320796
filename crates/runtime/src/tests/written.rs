//! What a server learns of a text that is written token by token: nothing of the prompt nor of
//! what follows it, but how many tokens each has.

use graph::{FloatTensor, Floats, Model, Options, Ranges, Rounding, Source};
use ring::Random;
use wire::Role;

use super::distinguish::{SESSIONS, told_apart, views_of};
use crate::plan::Reveal;
use crate::plan::kind::Kind;

/// Values of a token, and how many earlier ones a run attends to.
const WIDTH: usize = 4;
const CONTEXT: usize = 3;

/// A step of a decoder: attention of a token to earlier ones, whose keys and values are states,
/// and a number for each of five tokens that may follow.
fn decoder() -> Model {
    changed_decoder(Rounding::Stochastic, &|source| source)
}

/// The decoder with other rounding, and after a change of its source.
pub(crate) fn changed_decoder(rounding: Rounding, change: &dyn Fn(String) -> String) -> Model {
    let clip = |name: &str| {
        format!(
            r#"{{"name":"{name}.rounded","op":"Clip","inputs":["{name}0"],"output":"{name}","minimum":-1e30,"maximum":1e30}}"#
        )
    };
    let dense = |name: &str, from: &str, to: &str| {
        format!(
            r#"{{"name":"{name}","op":"Gemm","inputs":["{from}"],"output":"{to}","weight":"{name}","bias":null}}"#
        )
    };
    let kept = |of: &str, new: &str| {
        format!(
            r#"{{"name":"{of}.rows","op":"Reshape","inputs":["{of}"],"output":"{of}.rows","shape":[3,4]}},
            {{"name":"{new}.row","op":"Reshape","inputs":["{new}"],"output":"{new}.row","shape":[1,4]}},
            {{"name":"{of}.all","op":"Concat","inputs":["{of}.rows","{new}.row"],"output":"{of}.all"}},
            {{"name":"{of}.after","op":"View","inputs":["{of}.all"],"output":"{of}.after","shape":[12],"start":4,"strides":[1]}}"#
        )
    };
    let nodes = [
        r#"{"name":"t","op":"View","inputs":["x"],"output":"t","shape":[4],"start":0,"strides":[1]}"#.into(),
        dense("query", "t", "q0"),
        clip("q"),
        dense("key", "t", "k0"),
        clip("k"),
        dense("value", "t", "v0"),
        clip("v"),
        kept("keys", "k"),
        kept("values", "v"),
        r#"{"name":"q.row","op":"Reshape","inputs":["q"],"output":"q.row","shape":[1,1,4]},
        {"name":"turned","op":"View","inputs":["keys.all"],"output":"turned","shape":[1,4,4],"start":0,"strides":[0,1,4]},
        {"name":"scores","op":"MatMul","inputs":["q.row","turned"],"output":"scores"},
        {"name":"seen","op":"View","inputs":["x"],"output":"seen","shape":[1,1,4],"start":4,"strides":[0,0,1]},
        {"name":"masked","op":"Mask","inputs":["scores","seen"],"output":"masked"},
        {"name":"parts","op":"Softmax","inputs":["masked"],"output":"parts"},
        {"name":"shaped","op":"Reshape","inputs":["values.all"],"output":"shaped","shape":[1,4,4]},
        {"name":"context","op":"MatMul","inputs":["parts","shaped"],"output":"c0"}"#
            .into(),
        clip("c"),
        r#"{"name":"flat","op":"Reshape","inputs":["c"],"output":"flat","shape":[4]}"#.into(),
        dense("next", "flat", "y"),
    ];
    let nodes = nodes.join(",");
    let source = format!(
        r#"{{"name":"decoder","input":{{"name":"x","shape":[8,1]}},"output":"y","states":[
        {{"name":"keys","shape":[12],"after":"keys.after"}},
        {{"name":"values","shape":[12],"after":"values.after"}}],"nodes":[{nodes}]}}"#
    );
    let mut rng = Random::seeded(61);
    let mut tensor = |rows: usize| {
        let words = rng.uniform(rows * WIDTH, 16);
        let data = words.iter().map(|w| *w as f32 / 32768.0 - 1.0).collect();
        FloatTensor { shape: vec![rows, WIDTH], data }
    };
    let floats: Floats = [("query", WIDTH), ("key", WIDTH), ("value", WIDTH), ("next", 5)]
        .map(|(name, rows)| (name.to_string(), tensor(rows)))
        .into();
    let sides = [
        ("x", 1.0),
        ("t", 1.0),
        ("q0", 3.0),
        ("q", 3.0),
        ("k0", 3.0),
        ("k", 3.0),
        ("v0", 3.0),
        ("v", 3.0),
        ("keys", 3.0),
        ("values", 3.0),
        ("last", 3.0),
        ("keys.after", 3.0),
        ("values.after", 3.0),
        ("scores", 20.0),
        ("masked", 20.0),
        ("parts", 1.0),
        ("c0", 3.0),
        ("c", 3.0),
        ("y", 9.0),
    ];
    let ranges: Ranges = sides.map(|(name, side)| (name.to_string(), (-side, side))).into();
    let options = Options { rounding, ..Options::default() };
    let source = Source::from_json(&change(source)).unwrap();
    graph::lower(source, floats, &ranges.into(), &options).unwrap()
}

/// Inputs of a text whose tokens all have one value, and of which a run sees so many of those before.
fn text(model: &Model, tokens: usize, value: f32, seen: impl Fn(usize) -> usize) -> Vec<Vec<i64>> {
    let input = |at: usize| {
        let hidden = CONTEXT - seen(at).min(CONTEXT);
        let mask = (0..=CONTEXT).map(|place| if place < hidden { 0.0 } else { 1.0 });
        let values: Vec<f32> = [value; WIDTH].into_iter().chain(mask).collect();
        model.graph.quantize_input(&values).unwrap()
    };
    (0..tokens).map(input).collect()
}

#[test]
fn a_server_cannot_tell_two_prompts_and_what_follows_apart() {
    let model = decoder();
    let kinds = [Kind::States, Kind::States, Kind::Whole, Kind::Whole];
    // One text begins with the session, of the other tokens earlier texts are hidden.
    let texts = [text(&model, 4, -1.0, |at| at), text(&model, 4, 0.75, |_| 1)];
    let clear = texts.each_ref().map(|text| graph::interpret_batch(&model, text).unwrap());
    assert_ne!(clear[0].last(), clear[1].last());
    let mut views = texts.iter().zip(0..).map(|(text, side)| {
        let runs: Vec<_> = kinds.into_iter().zip(text.iter().map(Vec::as_slice)).collect();
        let seeds = side * SESSIONS..(side + 1) * SESSIONS;
        views_of(&model, Reveal::Label, &runs, seeds, Role::Server)
    });
    let (left, right) = (views.next().unwrap(), views.next().unwrap());
    assert_eq!(told_apart(&left, &right), None);
}

/// How many tokens a prompt has is seen.
#[test]
fn a_server_sees_how_long_a_prompt_is() {
    let model = decoder();
    let text = text(&model, 3, 0.5, |at| at);
    let mut views = [Kind::States, Kind::Whole].into_iter().map(|second| {
        let kinds = [Kind::States, second, Kind::Whole];
        let runs: Vec<_> = kinds.into_iter().zip(text.iter().map(Vec::as_slice)).collect();
        views_of(&model, Reveal::Label, &runs, 0..1, Role::Server)
    });
    let (left, right) = (views.next().unwrap(), views.next().unwrap());
    assert_eq!(told_apart(&left, &right), Some("lengths, order or tags differ".into()));
}
