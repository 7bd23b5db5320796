//! What the first run of a session sends before its setup is over.
//!
//! The last flight of the setup goes to the client. Before it the client can send all that needs
//! nothing of it: the ciphertexts of masks and the corrections of the OTs that the server sends.
//! The server answers them behind the last flight, so that they cost no rounds of their own.

use mpc::Demand;
use wire::{Cost, Phase, Result};

use super::costs::ask_costs;
use super::layers::{
    self, Ahead, LayerAt, ask_first, first_asked, first_of, layers_of, run_demand,
};
use crate::plan::Plan;
use crate::step::Step;
use crate::step::context::Endpoint;
use crate::step::correlations::Schedules;
use crate::step::linear::Exchange;
use crate::step::spent::{Part, Spent};

/// What the first run of a plan can send ahead: the correlations that it takes first, and the
/// layers that ask first. With a store whole runs are preprocessed.
fn of(plan: &Plan) -> (Demand, Vec<LayerAt<'_>>) {
    let steps = plan.steps();
    if plan.settings().store() > 0 {
        let mut layers = layers_of(steps.iter().enumerate(), Exchange::Encryption, true);
        layers.truncate(first_of(&layers));
        return (run_demand(steps), layers);
    }
    let segment = plan.segments().into_iter().next().unwrap_or_default();
    let some = steps.iter().enumerate().skip(segment.start).take(segment.len());
    let only = some.clone().map(|(_, step)| step);
    (layers::demand(only, Step::demand_before_run), first_asked(some))
}

/// Sends what the first run of a plan can send ahead, or receives it.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(crate) fn exchange(end: &mut Endpoint<'_>, plan: &Plan) -> Result<Ahead> {
    let mut ahead = Ahead::default();
    end.source.set_threads(end.party.threads());
    let (demand, layers) = of(plan);
    ahead.asked = ask_first(end, &layers)?;
    ahead.ots = end.source.first(end.channel, &demand)?;
    Ok(ahead)
}

/// What [`exchange`] costs.
pub(crate) fn costs(plan: &Plan, schedules: &mut Schedules) -> Vec<Part> {
    let (demand, layers) = of(plan);
    let mut costs = ask_costs(&layers);
    let ots = schedules.first(&demand).unwrap_or(Cost::NONE);
    costs.push(Part::new(Phase::Preprocess, None, Spent::sending(ots)));
    costs
}
