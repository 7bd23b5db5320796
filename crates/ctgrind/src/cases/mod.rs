//! The cases, group by group.
#![allow(clippy::unwrap_used)]

mod comparison;
mod control;
mod garbled;
mod lattice;
mod linear;
mod slots;
mod transfer;

use mpc::{Correlations, Demand, Share};
use ot::Job;
use ot::ideal::deal;
use ot::rot::{receiver_pads, sender_pads};
use wire::Role;

use crate::case::Case;
use crate::run::End;

/// All cases.
pub fn all() -> Vec<Case> {
    let groups = [
        control::CASES,
        lattice::CASES,
        slots::CASES,
        transfer::CASES,
        comparison::CASES,
        garbled::CASES,
        linear::CASES,
    ];
    groups.concat()
}

/// Those whose group and name, with a space between them, contain `filter`.
pub fn matching(filter: &str) -> Vec<Case> {
    let name = |case: &Case| format!("{} {}", case.group, case.name);
    all().into_iter().filter(|case| name(case).contains(filter)).collect()
}

/// An end's correlations, dealt to both ends.
fn correlations(end: &mut End, demand: &Demand) -> Correlations {
    let mut dealt = |jobs: &[Job]| -> (Vec<_>, Vec<_>) {
        let both = jobs.iter().map(|job| {
            let (sender, receiver) = deal(&mut end.dealer, job.cots());
            (sender_pads(*job, sender).unwrap(), receiver_pads(*job, receiver).unwrap())
        });
        both.unzip()
    };
    let (client_sends, server_receives) = dealt(&demand.client_sends);
    let (server_sends, client_receives) = dealt(&demand.server_sends);
    match end.channel.role() {
        Role::Client => Correlations::new(client_sends, client_receives),
        Role::Server => Correlations::new(server_sends, server_receives),
    }
}

/// An end's share of secret values.
fn share(end: &mut End, count: usize, bits: u32) -> Share {
    Share::new(end.run.words(count, bits), bits)
}
