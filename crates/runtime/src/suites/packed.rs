//! The steps of suites on packed slots, with oblivious transfer or garbled circuits between
//! linear layers, as the model says.

use graph::{Graph, Nonlinear};
use wire::{Error, Result};

use super::{falcon, garbled, named, slots};
use crate::linear::slots::Packing;
use crate::plan::options::OptionsByStep;
use crate::plan::settings::Settings;
use crate::plan::step::Step;

/// The steps of a whole graph. Nothing can be chosen, so the options are empty.
///
/// # Errors
/// [`Error::Unsupported`] naming the node that no protocol fits.
pub(super) fn steps(graph: &Graph, settings: Settings, _: &OptionsByStep) -> Result<Vec<Step>> {
    let packing = named(&graph.suite)?.packing();
    let packing = packing.ok_or_else(|| Error::misuse("a suite without packed slots"))?;
    match (graph.nonlinear, packing) {
        (Nonlinear::Gc, _) => garbled::steps(graph, settings, packing),
        (Nonlinear::Ot, Packing::Published(_)) => Err(falcon::circuits_only()),
        (Nonlinear::Ot, _) => slots::steps(graph, settings, packing),
    }
}
