//! Layers that are larger than what runs at a time.

use graph::{FloatTensor, Floats, Ranges, Rounding, Source};

use crate::plan::Reveal;
use crate::plan::Settings;
use crate::tests::{clear, costs_as_planned, run};

#[test]
fn layers_of_a_million_values_run_in_slices() {
    let source = r#"{"name":"large","input":{"name":"x","shape":[1,1050,1000]},"output":"y","nodes":[
      {"name":"conv","op":"Conv","inputs":["x"],"output":"a","kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w"},
      {"name":"relu","op":"Relu","inputs":["a"],"output":"b","maximum":null},
      {"name":"pool","op":"MaxPool","inputs":["b"],"output":"c","kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0]},
      {"name":"conv2","op":"Conv","inputs":["c"],"output":"y","kernel":[1,1],"stride":[50,50],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w"}]}"#;
    let weight = FloatTensor { shape: vec![1, 1, 1, 1], data: vec![0.75] };
    let floats = Floats::from([("w".into(), weight)]);
    let range = |name: &str| (name.to_string(), (-1.0, 1.0));
    let ranges: Ranges = ["x", "a", "b", "c", "y"].map(range).into();
    let options = graph::Options { rounding: Rounding::Exact, ..graph::Options::default() };
    let source = Source::from_json(source).unwrap();
    let model = graph::lower(source, floats, &ranges.into(), &options).unwrap();
    let plan = crate::Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let sliced: Vec<&str> =
        plan.steps().iter().filter(|step| step.feeds_itself()).map(|s| s.name.as_str()).collect();
    assert_eq!(sliced, ["conv", "pool"]);
    let values: Vec<f32> =
        (0..1_050_000).map(|i| ((i * 7919) % 2001) as f32 / 1000.0 - 1.0).collect();
    let (answer, server) = run(&model, Reveal::Output, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server.unwrap(), 1);
}
