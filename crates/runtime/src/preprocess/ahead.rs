//! What the first run of a session sends before its setup is over.
//!
//! The last flight of the setup goes to the client. Before it the client can send all that needs
//! nothing of it: the ciphertexts of masks and the corrections of the OTs that the server sends.
//! The server answers them behind the last flight, so that they cost no rounds of their own.

use mpc::{Correlations, Demand};
use wire::{Cost, Phase, Result};

use super::costs::ask_costs;
use super::layers::{self, Ahead, LayerAt, ask, groups, layers_of, run_demand};
use super::segments::segments;
use crate::step::Step;
use crate::step::context::Endpoint;
use crate::step::correlations::Schedules;
use crate::step::linear::Exchange;
use crate::step::spent::{Part, Spent};

/// What the first run of these steps can send ahead: the correlations that it takes first, and the
/// layers that ask first. With `stores` whole runs are preprocessed.
fn of(steps: &[Step], stores: bool) -> (Demand, Vec<LayerAt<'_>>) {
    let exchange = Exchange::Encryption;
    let (demand, layers) = if stores {
        (run_demand(steps), layers_of(steps.iter().enumerate(), exchange, true))
    } else {
        let segment = segments(steps).into_iter().next().unwrap_or_default();
        let some = steps.iter().enumerate().skip(segment.start).take(segment.len());
        let only = some.clone().map(|(_, step)| step);
        (layers::demand(only, Step::demand_before_run), layers_of(some, exchange, false))
    };
    let first = groups(&layers, exchange).first().map_or(0, |group| group.len());
    (demand, layers.into_iter().take(first).collect())
}

/// Sends what the first run of these steps can send ahead, or receives it.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(crate) fn exchange(end: &mut Endpoint<'_>, steps: &[Step], stores: bool) -> Result<Ahead> {
    let mut ahead = Ahead::default();
    end.source.set_threads(end.party.threads());
    let (demand, layers) = of(steps, stores);
    ask(end, &layers, &mut Correlations::default(), &mut ahead.asked)?;
    ahead.ots = end.source.first(end.channel, &demand)?;
    Ok(ahead)
}

/// What [`exchange`] costs.
pub(crate) fn costs(steps: &[Step], stores: bool, schedules: &mut Schedules) -> Vec<Part> {
    let (demand, layers) = of(steps, stores);
    let mut costs = ask_costs(&layers);
    let ots = schedules.first(&demand).unwrap_or(Cost::NONE);
    costs.push(Part::new(Phase::Preprocess, None, Spent::sending(ots)));
    costs
}
