//! Inputs that are only for what a graph keeps.

use super::*;
use wire::Message;

use crate::plan::Reveal;
use crate::run::kind::Kind;
use crate::tests::states::{recurrent, values};

const INPUT: [usize; 1] = [4];

fn label(row: &[i64]) -> i64 {
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
        let planned: wire::Cost =
            plan.parts_behind(3, 6).into_iter().map(|part| part.spent.cost).collect();
        for report in [report, server.unwrap()] {
            let bytes = report.total.bytes;
            assert_eq!(bytes.client_to_server, planned.client_to_server, "{settings:?}");
            assert_eq!(bytes.server_to_client, planned.server_to_client, "{settings:?}");
            assert_eq!(report.total.rounds, planned.rounds, "{settings:?}");
        }
        assert!(planned.bytes() < plan.cost(6).bytes() || offline > 0);
    }
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
    for (kind, byte) in [(Kind::Whole, 0), (Kind::States, 1)] {
        let mut body = Vec::new();
        kind.encode(&mut body);
        assert_eq!(body, [byte]);
        assert_eq!(Kind::decode(&body, &()).unwrap(), kind);
    }
    for body in [&[2][..], &[255], &[], &[0, 0]] {
        assert!(matches!(Kind::decode(body, &()), Err(Error::Peer { .. })), "{body:?}");
    }
}
