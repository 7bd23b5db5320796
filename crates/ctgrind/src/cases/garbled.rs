//! Garbled circuits: garbling and evaluation.

use mpc::Protocol;
use mpc::garbled::{Clip, Function, Garbled, Ring, prepare};

use super::inputs::{correlations, share};
use crate::case::Case;
use crate::run::{End, Run};

pub(super) const CASES: &[Case] = &[
    Case::new("garbled", "ReLU mod 2^16", |run| relu(run, Ring::Power(16))),
    Case::new("garbled", "ReLU mod a prime", |run| {
        relu(run, Ring::Prime(ring::Modulus::new(1_032_193).unwrap()));
    }),
];

const COUNT: usize = 64;

fn relu(run: &mut Run, from: Ring) {
    let then = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 8 }) };
    let plan = Garbled::map(COUNT, from, 15, then, Ring::Power(12)).unwrap();
    let demand = plan.demand();
    // The client's circuits take OTs that it sends.
    let jobs = mpc::Demand::from(wire::Role::Client, demand.circuit_jobs());
    let end = |end: &mut End| {
        let ots = correlations(end, &jobs);
        let mut rng = end.run.random();
        // A value of 15 bits is below the prime too.
        let x = mpc::Share::new(share(end, COUNT, 15).words().to_vec(), from.bits());
        end.kernel(|channel| {
            let circuits = prepare(channel, &demand.circuits, ots, &mut rng).unwrap();
            let ready = mpc::Correlations::default().with_circuits(circuits);
            plan.run(channel, &[x], ready).unwrap()
        });
    };
    run.ends(end, end);
}
