//! A small decoder that reads a token at a time, for tests of sessions with states.

use graph::{FloatTensor, Floats, Model, Options, Ranges, Rounding, Source};
use ring::Random;

/// Values of a token, and how many earlier ones a run attends to.
pub(crate) const WIDTH: usize = 4;
pub(crate) const CONTEXT: usize = 3;
/// Values of an input: a token, and what it attends to.
pub(crate) const INPUT: usize = WIDTH + CONTEXT + 1;

/// A step of a decoder of so many blocks: attention of a token to earlier ones, whose keys and values are
/// states, and a number for each of five tokens that may follow.
pub(crate) fn decoder(blocks: usize, rounding: Rounding) -> Model {
    changed(blocks, rounding, &|source| source)
}

/// Lowers that decoder after a change of its source, which may have a state `last`.
pub(crate) fn changed(
    blocks: usize,
    rounding: Rounding,
    change: &dyn Fn(String) -> String,
) -> Model {
    let mut nodes = vec![
        r#"{"name":"t","op":"View","inputs":["x"],"output":"t0","shape":[4],"start":0,"strides":[1]}"#
            .to_string(),
    ];
    let (mut states, mut weights, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for block in 0..blocks {
        nodes.extend(attention(block));
        for of in ["keys", "values"] {
            states.push(format!(
                r#"{{"name":"{of}{block}","shape":[12],"after":"{of}{block}.after"}}"#
            ));
            let same = ["", ".rows", ".all", ".after"].map(|end| format!("{of}{block}{end}"));
            ranges.extend(same.map(|name| (name, 3.0)));
        }
        for of in ["query", "key", "value"] {
            weights.push((format!("{of}{block}"), WIDTH));
            let same = [".sum", ".row", ".shaped"].map(|end| format!("{of}{block}{end}"));
            ranges.extend(same.map(|name| (name, 3.0)));
        }
        let sides = [("scores", 20.0), ("masked", 20.0), ("parts", 1.0), ("context", 3.0)];
        ranges.extend(sides.map(|(name, side)| (format!("{name}{block}"), side)));
        ranges.push((format!("t{}", block + 1), 3.0));
    }
    nodes.push(dense("next", &format!("t{blocks}"), "y"));
    weights.push(("next".into(), 5));
    ranges.extend([("x", 1.0), ("t0", 1.0), ("y", 9.0), ("last", 3.0)].map(|(n, s)| (n.into(), s)));
    let source = format!(
        r#"{{"name":"decoder","input":{{"name":"x","shape":[{INPUT},1]}},"output":"y","states":[{}],"nodes":[{}]}}"#,
        states.join(","),
        nodes.join(",")
    );
    let mut rng = Random::seeded(61);
    let mut tensor = |rows: usize| {
        let words = rng.uniform(rows * WIDTH, 16);
        let data = words.iter().map(|w| *w as f32 / 32768.0 - 1.0).collect();
        FloatTensor { shape: vec![rows, WIDTH], data }
    };
    let floats: Floats = weights.into_iter().map(|(name, rows)| (name, tensor(rows))).collect();
    let ranges: Ranges = ranges.into_iter().map(|(name, side)| (name, (-side, side))).collect();
    let options = Options { rounding, ..Options::default() };
    let source = Source::from_json(&change(source)).unwrap();
    graph::lower(source, floats, &ranges.into(), &options).unwrap()
}

fn dense(name: &str, from: &str, to: &str) -> String {
    format!(
        r#"{{"name":"{name}","op":"Gemm","inputs":["{from}"],"output":"{to}","weight":"{name}","bias":null}}"#
    )
}

fn clip(name: &str, from: &str, to: &str) -> String {
    format!(
        r#"{{"name":"{name}","op":"Clip","inputs":["{from}"],"output":"{to}","minimum":-1e30,"maximum":1e30}}"#
    )
}

/// Attention of a block, whose keys and values are states.
fn attention(block: usize) -> Vec<String> {
    let projected = ["query", "key", "value"].into_iter().flat_map(|of| {
        let (name, sum) = (format!("{of}{block}"), format!("{of}{block}.sum"));
        let input = format!("t{block}");
        [dense(&name, &input, &sum), clip(&format!("{name}.rounded"), &sum, &format!("{name}.row"))]
    });
    let kept = [("keys", "key"), ("values", "value")].into_iter().map(|(of, new)| {
        let (of, new) = (format!("{of}{block}"), format!("{new}{block}"));
        format!(
            r#"{{"name":"{of}.rows","op":"Reshape","inputs":["{of}"],"output":"{of}.rows","shape":[3,4]}},
            {{"name":"{new}.shaped","op":"Reshape","inputs":["{new}.row"],"output":"{new}.shaped","shape":[1,4]}},
            {{"name":"{of}.all","op":"Concat","inputs":["{of}.rows","{new}.shaped"],"output":"{of}.all"}},
            {{"name":"{of}.after","op":"View","inputs":["{of}.all"],"output":"{of}.after","shape":[12],"start":4,"strides":[1]}}"#
        )
    });
    let products = format!(
        r#"{{"name":"query{block}.shaped","op":"Reshape","inputs":["query{block}.row"],"output":"query{block}.shaped","shape":[1,1,4]}},
        {{"name":"turned{block}","op":"View","inputs":["keys{block}.all"],"output":"turned{block}","shape":[1,4,4],"start":0,"strides":[0,1,4]}},
        {{"name":"scores{block}","op":"MatMul","inputs":["query{block}.shaped","turned{block}"],"output":"scores{block}"}},
        {{"name":"seen{block}","op":"View","inputs":["x"],"output":"seen{block}","shape":[1,1,4],"start":4,"strides":[0,0,1]}},
        {{"name":"masked{block}","op":"Mask","inputs":["scores{block}","seen{block}"],"output":"masked{block}"}},
        {{"name":"parts{block}","op":"Softmax","inputs":["masked{block}"],"output":"parts{block}"}},
        {{"name":"shaped{block}","op":"Reshape","inputs":["values{block}.all"],"output":"shaped{block}","shape":[1,4,4]}},
        {{"name":"context{block}","op":"MatMul","inputs":["parts{block}","shaped{block}"],"output":"context{block}"}}"#
    );
    let flat = format!(
        r#"{{"name":"flat{block}","op":"Reshape","inputs":["context{block}.row"],"output":"t{}","shape":[4]}}"#,
        block + 1
    );
    let rounded = clip(
        &format!("context{block}.rounded"),
        &format!("context{block}"),
        &format!("context{block}.row"),
    );
    projected.chain(kept).chain([products, rounded, flat]).collect()
}

/// Values of the inputs of a text whose tokens all have one value, and of which a run sees so many of those
/// before.
pub(crate) fn text(tokens: usize, value: f32, seen: impl Fn(usize) -> usize) -> Vec<f32> {
    let input = |at: usize| {
        let hidden = CONTEXT - seen(at).min(CONTEXT);
        let mask = (0..=CONTEXT).map(move |place| if place < hidden { 0.0 } else { 1.0 });
        [value; WIDTH].into_iter().chain(mask)
    };
    (0..tokens).flat_map(input).collect()
}
