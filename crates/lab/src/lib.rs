//! Measurements: single operations between two parties, the rates of a machine, and the
//! operation counts of linear layers that papers publish.
//!
//! A [`Bench`] is made from an [`Operation`] alone, at both parties alike. Its weights
//! follow from the operation and its inputs and their shares from the session's public
//! nonces, so that the client can compute the result in the clear: nothing here is
//! secret, but every protocol runs as in a real session, keys and correlations
//! included. After the measured part the server opens its share of the result and the
//! client compares.

mod calibration;
mod circuits;
mod comet;
mod cots;
mod linear;
mod operation;
mod session;
mod single;
mod slots;
mod table;
mod task;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tiles;
mod transformer;
mod values;

pub use calibration::{Calibrated, Told, Took, Wanted, calibrated, wanted};
pub use operation::{Baseline, CotSource, Function, Operation};
pub use runtime::Counts;
pub use session::{Bench, Host, Measured, work_by_phase};
pub use slots::{Counted, count};
pub use table::{Compared, Entry, compare};
