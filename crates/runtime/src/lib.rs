//! Plans a graph, runs the plan between two parties and reports what it cost.

mod ahead;
mod batch;
pub mod bench;
mod choices;
mod client;
mod costs;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod distinguish;
mod evaluation;
mod exchange;
mod execute;
pub mod files;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod hello;
mod keys;
mod local;
mod nonlinear;
mod offers;
mod offline;
mod packed;
mod plan;
pub mod planner;
mod prepared;
mod probe;
mod report;
mod server;
mod session;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod session_tests;
mod slot_keys;
mod spent;
mod steps;
mod suites;
mod tensors;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod transferred;

pub use choices::{Choice, Choices};
pub use client::{Answer, Request, predict, quantize};
pub use hello::MOST_INPUTS;
pub use nonlinear::{Nonlinear, Slice, Sliced};
pub use plan::{Plan, Reveal, Settings};
pub use report::{LayerReport, Report, Traffic, Usage};
pub use server::{Access, End, Event, Options, Server};
pub use session::Session;
pub use steps::{Action, Step};
pub use suites::{
    check as check_suite, consent, hides_filters, never_rescales, rounds_exactly, transfers,
    unifies,
};
