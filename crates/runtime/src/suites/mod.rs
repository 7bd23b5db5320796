//! A suite chooses one protocol per operator. Nothing else knows suites by name.

mod auto;

use graph::Graph;
use wire::{Error, Result};

use crate::plan::Settings;
use crate::steps::Step;

/// The steps of `graph` under the suite it was compiled for.
pub(crate) fn steps(graph: &Graph, settings: Settings) -> Result<Vec<Step>> {
    match graph.suite.as_str() {
        "auto" => auto::steps(graph, settings),
        other => Err(Error::Unsupported {
            node: graph.name.clone(),
            instead: format!("suite `{other}` is not in this version; compile with --suite auto"),
        }),
    }
}
