//! What protocols start from: correlations and shares.

use mpc::{Correlations, Demand, Share};
use ot::Job;
use ot::ideal::deal;
use ot::rot::{receiver_pads, sender_pads};
use wire::Role;

use crate::run::End;

/// An end's correlations, dealt to both ends.
pub(super) fn correlations(end: &mut End, demand: &Demand) -> Correlations {
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
pub(super) fn share(end: &mut End, count: usize, bits: u32) -> Share {
    Share::new(end.run.words(count, bits), bits)
}
