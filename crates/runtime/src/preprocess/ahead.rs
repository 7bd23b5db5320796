//! What the first run of a session sends before its setup is over.
//!
//! The last flight of the setup goes to the client. Before it the client can send all that needs
//! nothing of it: the ciphertexts of masks and the corrections of the OTs that the server sends.
//! The server answers them behind the last flight, so that they cost no rounds of their own.

use std::ops::Range;
use std::sync::Arc;

use mpc::Demand;
use wire::{Cost, Phase, Result};

use super::costs::ask_costs;
use super::layers::{
    self, Ahead, LayerAt, ask_first, first_asked, first_of, layers_of, run_demand,
};
use super::segments::steps_of;
use crate::step::Step;
use crate::step::context::Endpoint;
use crate::step::correlations::Schedules;
use crate::step::linear::Exchange;
use crate::step::spent::{Part, Spent};

/// The steps of the first run of a plan, and the first segment of them, none where whole runs are
/// preprocessed; nothing where the first run is not known yet ([`Plan::begins`](crate::plan::Plan::begins)).
pub(crate) type Begins<'a> = Option<(&'a [Arc<Step>], Option<Range<usize>>)>;

/// What the first run of these steps can send ahead: the correlations that it takes first, and the
/// layers that ask first.
fn of((steps, first): (&[Arc<Step>], Option<Range<usize>>)) -> (Demand, Vec<LayerAt<'_>>) {
    let Some(segment) = first else {
        let mut layers =
            layers_of(steps.iter().map(Arc::as_ref).enumerate(), Exchange::Encryption, true);
        layers.truncate(first_of(&layers));
        return (run_demand(steps), layers);
    };
    let some = steps_of(steps, &segment);
    let only = some.clone().map(|(_, step)| step);
    (layers::demand(only, Step::demand_before_run), first_asked(some))
}

/// Sends what the first run of these steps can send ahead, or receives it.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(crate) fn exchange(end: &mut Endpoint<'_>, begins: Begins<'_>) -> Result<Ahead> {
    let mut ahead = Ahead::default();
    let Some(begins) = begins else { return Ok(ahead) };
    end.source.set_threads(end.party.threads());
    let (demand, layers) = of(begins);
    ahead.asked = ask_first(end, &layers)?;
    ahead.ots = end.source.first(end.channel, &demand)?;
    Ok(ahead)
}

/// What [`exchange`] costs.
pub(crate) fn costs(begins: Begins<'_>, schedules: &mut Schedules) -> Vec<Part> {
    let Some(begins) = begins else { return Vec::new() };
    let (demand, layers) = of(begins);
    let mut costs = ask_costs(&layers);
    let ots = schedules.first(&demand).unwrap_or(Cost::NONE);
    costs.push(Part::new(Phase::Preprocess, None, Spent::sending(ots)));
    costs
}
