//! The steps of suites on packed slots, with oblivious transfer or garbled circuits between
//! linear layers, as the model says.

use graph::{Graph, Nonlinear};
use wire::Result;

use super::{falcon, garbled, slots};
use crate::linear::slots::Packing;
use crate::plan::settings::Settings;
use crate::step::Step;

/// The steps of a whole graph whose linear layers are packed so.
///
/// # Errors
/// [`wire::Error::Unsupported`] naming the node that no protocol fits.
pub(super) fn steps(graph: &Graph, settings: Settings, packing: Packing) -> Result<Vec<Step>> {
    match (graph.nonlinear, packing) {
        (Nonlinear::Gc, _) => garbled::steps(graph, settings, packing),
        (Nonlinear::Ot, Packing::Published(_)) => Err(falcon::circuits_only()),
        (Nonlinear::Ot, _) => slots::steps(graph, settings, packing),
    }
}
