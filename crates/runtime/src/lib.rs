//! Plans a graph, runs the plan between two parties and reports what it cost.

mod failure;
pub mod files;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod keys;
pub mod linear;
pub mod plan;
pub mod planner;
mod preprocess;
mod provenance;
mod report;
mod run;
mod session;
pub mod step;
mod suites;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use ot::{Kept, audit};
pub use plan::options::{OptionsByStep, StepOptions};
pub use plan::{Plan, Reveal, Settings};
pub use provenance::{MOST_CARD, Provenance, digest_of, hexadecimal};
pub use report::{Counts, Detour, LayerReport, Offered, Report, Traffic, Usage};
pub use session::client::{Answer, Request, predict};
pub use session::estimate::Inputs;
pub use session::expected::MOST_INPUTS;
pub use session::input::quantize;
pub use session::kept::KeptKeys;
pub use session::open::Session;
pub use session::opening::{
    Asking, Met, OPENING, PROTOCOL, Trusts, Visitor, door_request, model_name, token_digits,
};
pub use session::server::{Progress, Served, Terms};
pub use step::local::WeightedSum;
pub use step::{
    Action, Asked, ClientKeys, Composed, Context, Encoded, Endpoint, Exchange, Feed, KeyDemand,
    LinearProtocol, Local, Memory, Opening, Party, Preprocess, Preprocessed, Preprocessing,
    ServerKeys, Slice, Sliced, SlotKeyDemand, Spent, Step, WeightSource, Weights,
};
pub use suites::suite::{NodePlanner, Suite};
pub use suites::{
    NodeContext, PlanOperator, all as suites, register_operator, register_suite, steps_by_node,
};
/// Parts of a session, for two parties that both hold a plan and shares of its input from the
/// start: a measurement of the plan by itself.
pub mod parts {
    pub use crate::keys::lola::Cache as KeyCache;
    pub use crate::keys::{Agreed, cost as keys_cost};
    pub use crate::report::work_by_phase;
    pub use crate::run::run_shares;
    pub use crate::session::encoded::EncodedModel;
    pub use crate::session::handshake::{client_knows, known_cost, server_knows};
    pub use crate::session::input::random;
    pub use crate::step::correlations::{CorrelationSource, MOST_BYTES, pad_bytes};
    pub use crate::suites::{ot_nodes, slot_layer, slot_protocol};
}
pub use suites::{
    check as check_suite, consent, hides_filters, never_rescales, ot_products, rounds_exactly,
    secure_against_client, unifies,
};
