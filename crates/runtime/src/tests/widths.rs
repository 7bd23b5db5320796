//! Share widths that follow the link: the same results at the planned cost, with an extension
//! where bytes are dear and without one where it takes longer than what it saves.

use super::planned::{conditions, run_plan};
use super::*;
use crate::planner::{self, Planning, Rates, Widths};
use crate::session::estimate::Inputs;
use graph::ops::Extend;
use wire::Link;

/// A projection is added to a convolution, whose accumulator is far wider than its values.
fn projected(rng: &mut Random) -> Model {
    let source = r#"{"name":"projected","input":{"name":"x","shape":[4,16,16]},"output":"y","nodes":[
      {"name":"conv1","op":"Conv","inputs":["x"],"output":"a","kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w1","bias":null},
      {"name":"relu1","op":"Relu","inputs":["a"],"output":"b","maximum":null},
      {"name":"side","op":"Conv","inputs":["b"],"output":"c","kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w2","bias":null},
      {"name":"conv2","op":"Conv","inputs":["b"],"output":"d","kernel":[3,3],"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1,"weight":"w3","bias":null},
      {"name":"add","op":"Add","inputs":["c","d"],"output":"e"},
      {"name":"relu2","op":"Relu","inputs":["e"],"output":"f","maximum":null},
      {"name":"flat","op":"Reshape","inputs":["f"],"output":"g","shape":[2048]},
      {"name":"fc","op":"Gemm","inputs":["g"],"output":"y","weight":"w4","bias":null}]}"#;
    let mut tensor = |shape: &[usize], scale: f32| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| (*w as f32 / 32768.0 - 1.0) * scale).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w1".into(), tensor(&[8, 4, 1, 1], 0.5)),
        ("w2".into(), tensor(&[8, 8, 1, 1], 0.5)),
        ("w3".into(), tensor(&[8, 8, 3, 3], 0.2)),
        ("w4".into(), tensor(&[3, 2048], 0.1)),
    ]);
    let low = [("x", 0.0), ("a", -2.0), ("b", 0.0), ("c", -2.0), ("d", -2.0), ("e", -2.0)];
    let rest = [("f", 0.0), ("g", 0.0), ("y", -2.0)];
    let ranges: Ranges =
        low.iter().chain(&rest).map(|(name, low)| ((*name).into(), (*low, 2.0))).collect();
    let options = graph::Options { rounding: Rounding::Exact, ..graph::Options::default() };
    graph::lower(Source::from_json(source).unwrap(), floats, &ranges.into(), &options).unwrap()
}

fn extensions(model: &Model) -> usize {
    model.graph.nodes.iter().filter(|node| node.op == Extend).count()
}

fn values(rng: &mut Random) -> Vec<f32> {
    rng.uniform(4 * 16 * 16, 16).iter().map(|w| *w as f32 / 32768.0).collect()
}

/// The model and widths for a link, after a run that gave the right result at the planned cost.
fn planned(model: &Model, link: Link, values: &[f32]) -> (Model, Widths) {
    let conditions = conditions(Some(link));
    let planning = Planning::Best(Box::new(conditions));
    let settings = Settings::default().planned_for(Some(link));
    let (variant, plan) = planning.choose(model.clone(), settings).unwrap();
    assert_eq!(&variant.graph, plan.graph());
    let (answer, server) = run_plan(&plan, &variant, values);
    assert_eq!(answer.results, clear(model, values));
    costs_as_planned(&answer, &server, 1);
    let compiled = planner::best(&model.graph, settings, &conditions).unwrap().seconds;
    let chosen = planner::best_widths(model, settings, &conditions).unwrap().seconds;
    assert!(chosen <= compiled, "{chosen} {compiled}");
    let widths = Widths::of(&variant.graph, &model.graph);
    assert_eq!(widths != Widths::Compiled, chosen < compiled);
    (variant, widths)
}

#[test]
fn near_links_have_fewer_extensions_and_thin_ones_more() {
    let mut rng = Random::seeded(71);
    let (wide, values) = (projected(&mut rng), values(&mut rng));
    let narrow = graph::reassigned(&wide, Some(1)).unwrap();
    assert_eq!([&wide, &narrow].map(extensions), [0, 1]);
    let (near, thin) = (Link::LAN, Link::new(0.0, 1e6).unwrap());
    let (model, widths) = planned(&wide, near, &values);
    assert_eq!((model.graph, widths), (wide.graph.clone(), Widths::Compiled));
    let (model, widths) = planned(&narrow, near, &values);
    assert_eq!((model, widths.to_string()), (wide.clone(), "wider: 0 extensions".into()));
    let (model, widths) = planned(&wide, thin, &values);
    assert_eq!((model, widths.to_string()), (narrow.clone(), "narrower: 1 extensions".into()));
    let (model, widths) = planned(&narrow, thin, &values);
    assert_eq!((model.graph, widths), (narrow.graph.clone(), Widths::Compiled));
}

/// A layer that rounds with a message each way leaves the server to speak, which begins an extension.
#[test]
fn extensions_take_no_round_of_slow_links_behind_layers_that_round_in_turns() {
    let mut rng = Random::seeded(71);
    let (wide, values) = (projected(&mut rng), values(&mut rng));
    let narrow = graph::reassigned(&wide, Some(1)).unwrap();
    let slow = Link::new(0.4, 1e9).unwrap();
    let conditions = conditions(Some(slow));
    let settings = Settings::default().planned_for(Some(slow));
    let costs = [&wide, &narrow].map(|model| {
        let (variant, widths) = planned(model, slow, &values);
        assert_eq!((&variant.graph, widths), (&model.graph, Widths::Compiled));
        planner::best(&model.graph, settings, &conditions).unwrap().plan.cost(1)
    });
    let [wide, narrow] = costs;
    assert_eq!(wide.rounds, narrow.rounds);
    assert!(narrow.bytes() < wide.bytes());
}

#[test]
fn suites_that_do_not_plan_widths_keep_those_that_were_compiled() {
    let mut rng = Random::seeded(71);
    let mut model = projected(&mut rng);
    model.graph.suite = "ufo".into();
    let thin = Link::new(0.0, 1e6).unwrap();
    let settings = Settings::default().planned_for(Some(thin));
    let planning = Planning::Best(Box::new(conditions(Some(thin))));
    let (variant, _) = planning.choose(model.clone(), settings).unwrap();
    assert!(graph::variants(&model).len() > 1);
    assert_eq!(variant.graph, model.graph);
}

#[test]
fn plans_for_links_to_be_measured_have_each_its_own_graph() {
    let mut rng = Random::seeded(72);
    let (wide, values) = (projected(&mut rng), values(&mut rng));
    let narrow = graph::reassigned(&wide, Some(0)).unwrap();
    let planning = Planning::Measured(Box::new(Rates::reference()));
    let offers = planning.offers(&narrow, Settings::default()).unwrap();
    for link in [Link::LOOPBACK, Link::LAN, Link::WAN, Link::new(0.2, 1e7).unwrap()] {
        for measured in [false, true] {
            let plan = offers.plan(offers.suited(Some(link)), measured).unwrap();
            let model = planner::at_widths(narrow.clone(), plan.graph()).unwrap();
            let (answer, server) = run_plan(plan, &model, &values);
            assert_eq!(answer.results, clear(&wide, &values));
            costs_as_planned(&answer, &server, 1);
        }
    }
    // Each is at least as good as what a server would offer that knows the link.
    for link in [Link::LAN, Link::WAN] {
        let alone = Planning::Best(Box::new(conditions(Some(link))));
        let alone = alone.plan(&narrow, Settings::default().planned_for(Some(link))).unwrap();
        let offered = offers.plan(offers.suited(Some(link)), false).unwrap();
        let seconds = |plan: &Plan| {
            let total = Report::predicted_under(plan, Inputs::of(1), &conditions(Some(link))).total;
            total.seconds.unwrap()
        };
        assert!(seconds(offered) <= 1.0001 * seconds(&alone));
    }
}
