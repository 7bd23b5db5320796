//! Functions of shares by garbled circuits.

use ring::Random;

use super::{COUNT, Protocol, of_values};
use crate::correlations::{Correlations, Demand};
use crate::garbled::{self, Clip, Function, Garbled, Ring, prepare, prepare_cost};
use wire::Role;

const RELU: Function = Function { drop: 3, floor: false, clip: Some(Clip { low: 0, saturate: 6 }) };

pub(super) fn protocols() -> Vec<Protocol> {
    vec![relu(), pool(), top(), prepared()]
}

#[allow(clippy::unwrap_used)]
fn plan() -> Garbled {
    Garbled::map(COUNT, Ring::Power(12), 11, RELU, Ring::Power(20)).unwrap()
}

fn rectified(values: &[i64]) -> Vec<i64> {
    values.iter().map(|value| ((value + 4) >> 3).clamp(0, 63)).collect()
}

fn protocol(name: &'static str, plan: Garbled, ideal: fn(&[i64]) -> Vec<i64>) -> Protocol {
    Protocol::new(
        name,
        12,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| garbled::run(channel, &plan, x, ots),
        of_values(ideal),
    )
    .tampered([1, 1])
}

fn relu() -> Protocol {
    protocol("garbled relu", plan(), rectified)
}

#[allow(clippy::unwrap_used)]
fn pool() -> Protocol {
    let windows: Vec<Vec<usize>> = (0..COUNT / 4).map(|w| (4 * w..4 * w + 4).collect()).collect();
    let round = Function { drop: 2, floor: false, clip: None };
    let plan = Garbled::maximum(COUNT, &windows, Ring::Power(12), 11, round, Ring::Power(10));
    protocol("garbled maximum", plan.unwrap(), |values| {
        let largest =
            |window: &[i64]| window.iter().map(|v| (v + 2) >> 2).max().unwrap_or_default();
        values.chunks(4).map(largest).collect()
    })
}

#[allow(clippy::unwrap_used)]
fn top() -> Protocol {
    let plan = Garbled::top(2, COUNT / 2, Ring::Power(12), 12, Ring::Power(4), None).unwrap();
    protocol("garbled top", plan, |values| {
        let position = |row: &[i64]| {
            let largest = row.iter().max();
            row.iter().position(|value| Some(value) == largest).unwrap_or_default() as i64
        };
        values.chunks(COUNT / 2).map(position).collect()
    })
}

/// Preprocessing and the online phase in one.
fn prepared() -> Protocol {
    let plan = plan();
    let circuits = plan.demand().circuits;
    Protocol {
        name: "garbled relu, prepared",
        demand: Demand::from(Role::Client, plan.demand().circuit_jobs()),
        cost: prepare_cost(&circuits).then(plan.cost()),
        run: Box::new(move |channel, x, ots| {
            let rng = &mut Random::seeded(60 + u64::from(channel.role() == Role::Server));
            let prepared = prepare(channel, &circuits, ots, rng)?;
            garbled::run(channel, &plan, x, Correlations::default().with_circuits(prepared))
        }),
        frames: [3, 2],
        ..relu()
    }
}
