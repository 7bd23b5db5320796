//! Plans with chosen protocols: the same results, at the cost that was planned, and offers
//! that a client refuses.

use super::*;
use crate::plan::options::{OptionsByStep, StepOptions};
use crate::planner::{self, Conditions, Planning, Rates};
use crate::session::estimate::Inputs;
use crate::session::handshake;
use crate::suites::known::Known;
use graph::ops;
use mpc::compare::Radix;
use ot::Source as Transfers;
use std::num::NonZeroU32;
use std::sync::Arc;
use wire::Link;

pub(super) fn conditions(link: Option<Link>) -> Conditions {
    Conditions { rates: Rates::reference(), link }
}

fn digits(bits: u32) -> StepOptions {
    StepOptions::digits(Radix::of_bits(bits).unwrap())
}

pub(super) fn run_plan(plan: &Plan, model: &Model, values: &[f32]) -> (Answer, Report) {
    let (answer, server) = run_planned(plan, model, values);
    (answer, server.unwrap())
}

#[test]
fn every_choice_gives_the_interpreters_integers_at_the_planned_cost() {
    let mut rng = Random::seeded(31);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 1);
    let early = ["chain", "ripple", "masked", "packing1", "ahead", "transfers", "chain+turns"];
    let early = early.map(|text| text.parse().unwrap());
    let all = (1..=8).map(digits).chain([StepOptions::CIRCUITS]).chain(early);
    let mut rounds = Vec::new();
    for reveal in [Reveal::Output, Reveal::Label] {
        let settings = Settings { reveal, ..Settings::default() };
        for options in all.clone() {
            let plan = planner::uniform(&model.graph, settings, options).unwrap();
            assert!(!plan.options().is_empty(), "{options}");
            let (answer, server) = run_plan(&plan, &model, &values);
            if reveal == Reveal::Output {
                assert_eq!(answer.results, clear(&model, &values), "{options}");
            }
            costs_as_planned(&answer, &server, 1);
            rounds.push(server.total.rounds);
        }
    }
    let [one_bit, eight_bits, circuits, chain, ripple] =
        [0, 7, 8, 9, 10].map(|at| rounds.get(at).copied().unwrap());
    assert!(circuits < chain && chain < eight_bits && eight_bits < one_bit, "{rounds:?}");
    assert!(one_bit < ripple, "{rounds:?}");
}

#[test]
fn exact_rounding_with_a_message_each_way_saves_the_rounds_of_an_opening() {
    let mut rng = Random::seeded(39);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 1);
    let last = model.graph.nodes.iter().rposition(|node| node.op.is::<graph::Linear>()).unwrap();
    let run = |options: &str| {
        let mut by_step = OptionsByStep::default();
        by_step.set(last, options.parse().unwrap());
        let plan = Plan::chosen(model.graph.clone(), Settings::default(), by_step).unwrap();
        let (answer, server) = run_plan(&plan, &model, &values);
        assert_eq!(answer.results, clear(&model, &values), "{options}");
        costs_as_planned(&answer, &server, 1);
        server.total.rounds
    };
    assert_eq!(run("chain") - run("chain+turns"), 2);
    assert_eq!(run("ahead+chain") - run("ahead+chain+turns"), 2);
    let on_wan = conditions(Some(Link::WAN));
    let found = planner::best(&model.graph, Settings::default(), &on_wan).unwrap();
    assert!(found.plan.options().of(last).turns);
}

#[test]
fn functions_of_few_bits_are_tables() {
    let mut rng = Random::seeded(36);
    let [weight_bits, activation_bits] = [3, 3];
    let rounding = Rounding::Exact;
    let options =
        graph::Options { rounding, weight_bits, activation_bits, ..graph::Options::default() };
    let model = lowered(&mut rng, &options);
    let values = inputs(&mut rng, 1);
    let table: StepOptions = "table".parse().unwrap();
    let plan = planner::uniform(&model.graph, Settings::default(), table).unwrap();
    assert!(!plan.options().is_empty());
    let (answer, server) = run_plan(&plan, &model, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server, 1);
    let plain = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    assert!(plan.cost(1).rounds < plain.cost(1).rounds);
}

#[test]
fn the_planner_saves_rounds_on_slow_links_and_bytes_on_thin_ones() {
    let mut rng = Random::seeded(32);
    let model = network(&mut rng, Rounding::Stochastic);
    let settings = Settings::default();
    let plain = Plan::new(model.graph.clone(), settings).unwrap();
    let predicted = |plan: &Plan, link| {
        Report::predicted_under(plan, Inputs::of(1), &conditions(Some(link))).total
    };
    let slow = Link::new(0.2, 1e9).unwrap();
    let thin = Link::new(0.0, 1e6).unwrap();
    for link in [slow, thin] {
        let found = planner::best(&model.graph, settings, &conditions(Some(link))).unwrap();
        let least = predicted(&found.plan, link);
        assert!((least.seconds.unwrap() - found.seconds).abs() < 1e-6 * found.seconds);
        assert!(found.seconds <= predicted(&plain, link).seconds.unwrap());
        for options in [digits(1), digits(4), digits(8), StepOptions::CIRCUITS] {
            let fixed = planner::uniform(&model.graph, settings, options).unwrap();
            assert!(
                found.seconds <= predicted(&fixed, link).seconds.unwrap() * 1.0001,
                "{options}"
            );
        }
        for ways in found.alternatives.values() {
            assert_eq!(ways.iter().filter(|way| way.chosen).count(), 1, "{ways:?}");
            assert!(ways.iter().all(|way| way.slower > -1e-9), "{ways:?}");
        }
        let values = inputs(&mut rng, 1);
        let (answer, server) = run_plan(&found.plan, &model, &values);
        costs_as_planned(&answer, &server, 1);
    }
    let on =
        |link| Planning::Best(Box::new(conditions(Some(link)))).plan(&model, settings).unwrap();
    let (fast, lean) = (predicted(&on(slow), slow), predicted(&on(thin), thin));
    assert!(fast.rounds < lean.rounds, "{fast:?} {lean:?}");
    let bytes = |usage: crate::Usage| usage.bytes.client_to_server + usage.bytes.server_to_client;
    assert!(bytes(lean) < bytes(fast), "{fast:?} {lean:?}");
}

#[test]
fn layers_run_ahead_where_that_saves_rounds() {
    let mut rng = Random::seeded(37);
    let graph = network(&mut rng, Rounding::Stochastic).graph;
    // So many values that circuits are too much.
    let settings = Settings { batch: NonZeroU32::new(64), ..Settings::default() };
    let found = planner::best(&graph, settings, &conditions(Some(Link::WAN))).unwrap();
    let (plan, mut late) = (found.plan, OptionsByStep::default());
    for step in 0..plan.steps().len() {
        late.set(step, StepOptions { preprocessed: false, ..plan.options().of(step) });
    }
    assert_ne!(*plan.options(), late);
    let late = Plan::chosen(graph, plan.settings(), late).unwrap();
    assert!(plan.cost(1).rounds < late.cost(1).rounds);
}

/// A search makes each step once for all plans that have it.
#[test]
fn plans_share_known_steps_and_are_those_of_steps_made_anew() {
    let mut rng = Random::seeded(40);
    let graph = network(&mut rng, Rounding::Stochastic).graph;
    let known = Known::default();
    let plans = [StepOptions::default(), digits(2), StepOptions::CIRCUITS].map(|relu| {
        let mut by_step = OptionsByStep::default();
        let relus = graph.nodes.iter().enumerate().filter(|(_, node)| node.op.is::<ops::Relu>());
        relus.take(1).for_each(|(step, _)| by_step.set(step, relu));
        let settings = Settings::default();
        let shared = Plan::among(&known, graph.clone(), settings, by_step.clone()).unwrap();
        let anew = Plan::chosen(graph.clone(), settings, by_step).unwrap();
        assert_eq!(shared.digest(), anew.digest());
        assert_eq!(format!("{:?}", shared.steps()), format!("{:?}", anew.steps()));
        shared
    });
    let [first, second, _] = plans.each_ref().map(Plan::steps);
    let same = first.iter().zip(second).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
    // All but the ReLU, and the end, which is not a node's.
    assert_eq!(same, graph.nodes.len() - 1);
}

#[test]
fn the_end_of_a_plan_refuses_choices_that_it_does_not_have() {
    let mut rng = Random::seeded(38);
    let graph = network(&mut rng, Rounding::Stochastic).graph;
    let plan = |reveal, options: &str| {
        let mut by_step = OptionsByStep::default();
        by_step.set(graph.nodes.len(), options.parse().unwrap());
        Plan::chosen(graph.clone(), Settings { reveal, ..Settings::default() }, by_step)
    };
    for options in ["digits4", "circuits"] {
        assert!(plan(Reveal::Label, options).is_ok() && plan(Reveal::Output, options).is_err());
    }
    for options in ["table", "rows4", "ahead", "transfers", "packing1", "ahead+digits4"] {
        assert!(plan(Reveal::Label, options).is_err(), "{options}");
    }
}

#[test]
fn a_source_that_was_asked_for_is_kept() {
    let mut rng = Random::seeded(33);
    let model = network(&mut rng, Rounding::Stochastic);
    let settings = Settings { ot: Transfers::SoftSpoken8, ..Settings::default() };
    let found = planner::best(&model.graph, settings, &conditions(Some(Link::WAN))).unwrap();
    assert_eq!(found.plan.settings(), settings);
    assert_eq!(found.sources.len(), 1);
}

#[test]
fn clients_refuse_choices_that_a_plan_does_not_have() {
    let mut rng = Random::seeded(34);
    let model = network(&mut rng, Rounding::Stochastic);
    let planned = planner::uniform(&model.graph, Settings::default(), digits(3)).unwrap();
    let offer = planned.offer();
    assert!(offer.contains(r#""choices":{"1":"digits3""#), "{}", &offer[..200]);
    assert_eq!(Plan::from_offer(&offer).unwrap().digest(), planned.digest());
    for (from, to) in [
        ("digits3", "digits9"),
        ("digits3", "table"),
        ("digits3", "packing1"),
        ("digits3", "ahead+digits3"),
        (r#""choices":{"1""#, r#""choices":{"99""#),
        (r#""choices":{"1""#, r#""choices":{"-1""#),
    ] {
        let error = Plan::from_offer(&offer.replace(from, to)).unwrap_err();
        assert!(matches!(error, Error::Peer { .. }), "{from}: {error}");
    }
    let slots = offer.replace(r#""suite":"auto""#, r#""suite":"gala""#);
    assert!(Plan::from_offer(&slots).is_err());
}

#[test]
fn a_link_that_is_measured_gets_the_plan_that_suits_it() {
    let mut rng = Random::seeded(35);
    let model = network(&mut rng, Rounding::Exact);
    let values = inputs(&mut rng, 1);
    let planning = Planning::Measured(Box::new(Rates::reference()));
    assert!(matches!(planning.plan(&model, Settings::default()), Err(Error::Misuse(_))));
    let offers = planning.offers(&model, Settings::default()).unwrap();
    let on = |link| offers.plan(offers.suited(Some(link)), true).unwrap();
    assert!(offers.is_measured());
    let links = [Link::LOOPBACK, Link::LAN, Link::WAN, Link::new(0.2, 1e7).unwrap()];
    let seconds = |plan: &Plan, link| {
        let total = Report::predicted_under(plan, Inputs::of(1), &conditions(Some(link))).total;
        total.seconds.unwrap()
    };
    let [near, .., far] = links;
    for link in links {
        let plan = on(link);
        for other in [near, far].map(on) {
            assert!(seconds(plan, link) <= 1.0001 * seconds(other, link));
        }
        let model = crate::planner::at_widths(model.clone(), plan.graph()).unwrap();
        let (answer, server) = run_plan(plan, &model, &values);
        assert_eq!(answer.results, clear(&model, &values));
        costs_as_planned(&answer, &server, 1);
    }
    // Where bytes are cheap and rounds are dear, circuits take the fewest; few bytes and few rounds
    // are both a chain's, which suits the slow link as it does the near one.
    let wide = Link::new(0.2, 1e9).unwrap();
    let rounds = [near, wide].map(|link| on(link).cost(1).rounds);
    assert!(rounds[1] < rounds[0], "{rounds:?}");
    assert!(seconds(on(wide), wide) < seconds(on(near), wide));
}

/// Over TCP, which WebAssembly does not have.
#[cfg(not(target_arch = "wasm32"))]
#[test]
fn a_measured_link_is_no_better_than_it_is() {
    use std::net::{TcpListener, TcpStream};

    use crate::session::probe;
    use wire::Timeouts;

    let link = Link::new(0.02, 5e7).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let open = |role, stream| {
        let mut channel = wire::plaintext(role, stream, Timeouts::default()).unwrap();
        channel.shape(link).unwrap();
        channel
    };
    let once = || {
        thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut channel = open(Role::Client, TcpStream::connect(address).unwrap());
                probe::answer(&mut channel).unwrap();
                let met = channel.meter().total(None).cost;
                [met.client_to_server, met.server_to_client, met.rounds]
            });
            let mut channel = open(Role::Server, listener.accept().unwrap().0);
            let measured = probe::measure(&mut channel).unwrap();
            let cost = probe::cost();
            let planned = [cost.client_to_server, cost.server_to_client, cost.rounds];
            assert_eq!(client.join().unwrap(), planned);
            measured
        })
    };
    let measured: Vec<_> = (0..5).map(|_| once().figures()).collect();
    assert!(measured.iter().all(|(round_trip, _)| *round_trip >= 0.02), "{measured:?}");
    // A client that wakes up late finds the burst sooner behind the first message than it came.
    assert!(measured.iter().any(|(_, bandwidth)| *bandwidth < 1e8), "{measured:?}");
}

#[test]
fn a_plan_for_a_link_that_nobody_measured_is_refused() {
    let mut rng = Random::seeded(36);
    let model = network(&mut rng, Rounding::Stochastic);
    let plan = |measured| {
        let settings = Settings { measured, ..Settings::default() };
        Plan::new(model.graph.clone(), settings).unwrap()
    };
    for measured in [false, true] {
        let offered = plan(!measured);
        let (ours, _) = run_pair(
            |channel| {
                handshake::client(channel, &mut Random::seeded(1), Asking::default(), |_| Ok(1))
                    .map(|_| ())
            },
            |channel| {
                let choose = |_| Ok(&offered);
                handshake::server(channel, &mut Random::seeded(2), measured, choose).map(|_| ())
            },
        );
        assert!(matches!(ours.value, Err(Error::Peer { .. })), "{:?}", ours.value);
    }
}
