//! Inputs that are only for what a graph keeps.

use super::*;
use wire::Message;

use crate::plan::Reveal;
use crate::plan::kind::Kind;
use crate::plan::options::OptionsByStep;
use crate::session::estimate::Inputs;
use crate::tests::states::{recurrent, values};

const INPUT: [usize; 1] = [4];

pub(super) fn label(row: &[i64]) -> i64 {
    let first = row.iter().enumerate().max_by_key(|(at, value)| (**value, std::cmp::Reverse(*at)));
    first.map(|(at, _)| at as i64).unwrap()
}

#[test]
fn inputs_that_are_only_remembered_change_states_alone() {
    let mut rng = Random::seeded(45);
    let model = recurrent(&mut rng, Rounding::Exact);
    let values = values(&mut rng, 6);
    let want: Vec<Vec<i64>> =
        clear(&model, &values).iter().skip(3).map(|row| vec![label(row)]).collect();
    for offline in [0, 1, 4] {
        let settings = Settings { reveal: Reveal::Label, ..offering(offline) };
        let plan = Plan::new(model.graph.clone(), settings).unwrap();
        let all = plan.steps().len();
        assert!(plan.states_end().is_some_and(|end| end < all));
        let ((results, report), server) = with_session(&model, settings, 6, |mut open| {
            let (before, after) = values.split_at(3 * 4);
            before.chunks(4).for_each(|one| open.remember(one, &INPUT).unwrap());
            let each = after.chunks(4).flat_map(|one| open.predict(one, &INPUT).unwrap());
            let results: Vec<_> = each.collect();
            (results, open.finish().unwrap().clone())
        });
        assert_eq!(results, want, "{settings:?}");
        let planned = costs_as_planned(
            &plan,
            Inputs { remembered: 3, ..Inputs::of(6) },
            [report, server.unwrap()],
        );
        assert!(planned.bytes() < plan.cost(6).bytes() || offline > 0);
    }
}

/// What inputs cost, as both parties report it.
pub(super) fn costs_as_planned(plan: &Plan, inputs: Inputs, of: [Report; 2]) -> wire::Cost {
    let parts = plan.parts_of(inputs).into_iter();
    let planned: wire::Cost = parts.map(|part| part.spent.cost).collect();
    for report in of {
        let bytes = report.total.bytes;
        assert_eq!(bytes.client_to_server, planned.client_to_server);
        assert_eq!(bytes.server_to_client, planned.server_to_client);
        assert_eq!(report.total.rounds, planned.rounds);
    }
    planned
}

#[test]
fn layers_are_prepared_for_several_runs_before_the_first_of_them() {
    let mut rng = Random::seeded(47);
    let model = recurrent(&mut rng, Rounding::Exact);
    let values = values(&mut rng, 9);
    let want: Vec<Vec<i64>> =
        clear(&model, &values).iter().skip(3).map(|row| vec![label(row)]).collect();
    let settings = Settings { reveal: Reveal::Label, ..Settings::default() };
    let plain = Plan::new(model.graph.clone(), settings).unwrap();
    let mut options = OptionsByStep::default();
    for (index, _) in plain.steps().iter().enumerate().filter(|(_, step)| step.linear().is_some()) {
        options.set(index, "ahead4".parse().unwrap());
    }
    let plan = Plan::chosen(model.graph.clone(), settings, options.clone()).unwrap();
    // Layers that states need are prepared before the first, fifth and ninth run, the last layer before
    // the fourth and the eighth.
    let ((results, report), server) = with_plan(&model, &plan, 9, |mut open| {
        let (before, after) = values.split_at(3 * 4);
        before.chunks(4).for_each(|one| open.remember(one, &INPUT).unwrap());
        let each = after.chunks(4).flat_map(|one| open.predict(one, &INPUT).unwrap());
        let results: Vec<_> = each.collect();
        (results, open.finish().unwrap().clone())
    });
    assert_eq!(results, want);
    let inputs = Inputs { remembered: 3, ..Inputs::of(9) };
    let planned = costs_as_planned(&plan, inputs, [report, server.unwrap()]);
    let plainly: wire::Cost =
        plain.parts_of(inputs).into_iter().map(|part| part.spent.cost).collect();
    assert!(planned.bytes() < plainly.bytes(), "{planned:?} {plainly:?}");
    let stored = Settings { offline: NonZeroU32::new(2), ..settings };
    assert!(Plan::chosen(model.graph, stored, options.clone()).is_err());
    let other = network(&mut rng, Rounding::Exact).graph;
    assert!(Plan::chosen(other, Settings::default(), options).is_err());
}

#[test]
fn inputs_are_remembered_by_whole_runs_where_results_are_no_labels() {
    let mut rng = Random::seeded(46);
    let model = recurrent(&mut rng, Rounding::Exact);
    let values = values(&mut rng, 2);
    let want = clear(&model, &values);
    let (result, _) = with_session(&model, offering(0), 2, |mut open| {
        open.remember(&values[..4], &INPUT).unwrap();
        open.predict(&values[4..], &INPUT).unwrap()
    });
    assert_eq!(result.last(), want.last());
}

#[test]
fn a_kind_of_run_has_one_encoding() {
    let kinds = [Kind::Whole, Kind::States, Kind::WholePass, Kind::StatesPass];
    for (kind, byte) in kinds.into_iter().zip(0..) {
        let mut body = Vec::new();
        kind.encode(&mut body);
        assert_eq!(body, [byte]);
        assert_eq!(Kind::decode(&body, &()).unwrap(), kind);
    }
    for body in [&[4][..], &[255], &[], &[0, 0]] {
        assert!(matches!(Kind::decode(body, &()), Err(Error::Peer { .. })), "{body:?}");
    }
}
