//! Plans a graph, runs the plan between two parties and reports what it cost.

pub mod bench;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod linear;
pub mod plan;
pub mod planner;
mod preprocess;
mod report;
mod run;
mod session;
mod suites;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use linear::{
    Asked, ClientKeys, Context, Encoded, Exchange, KeyDemand, LinearProtocol, Party, Preprocess,
    Preprocessed, Preprocessing, ServerKeys, SlotKeyDemand, WeightSource, Weights,
};
pub use plan::composed::Composed;
pub use plan::local::{Local, WeightedSum};
pub use plan::options::{OptionsByStep, StepOptions};
pub use plan::sliced::{Feed, Slice, Sliced};
pub use plan::spent::Spent;
pub use plan::step::{Action, Opening, Step};
pub use plan::{Plan, Reveal, Settings};
pub use report::{LayerReport, Report, Traffic, Usage};
pub use session::client::{Answer, Request, predict, quantize};
pub use session::handshake::MOST_INPUTS;
pub use session::open::Session;
pub use session::server::{Access, End, Event, Options, Server};
/// Keys, requests and answers of suite `lola` as files.
pub mod files {
    pub use crate::suites::lola::files::{
        Correspondent, Evaluator, KeyFiles, generate_keys, planned_shape, public_plan,
    };
}
pub use suites::suite::{NodePlanner, Suite};
pub use suites::{PlanOperator, all as suites, register_operator, register_suite, steps_by_node};
pub use suites::{
    check as check_suite, consent, hides_filters, never_rescales, rounds_exactly, transfers,
    unifies,
};
