//! What an operator sees of a server as it runs: metrics, its health, and the sessions of the
//! moment, over plain HTTP.

pub(crate) mod door;
pub(crate) mod http;
pub(crate) mod live;
pub(crate) mod metrics;
