//! A demonstration suite: every function of few bits by one table, which takes two rounds
//! whatever the width, and the rest as in the default suite.

use runtime::plan::options::{Function, StepOptions};
use runtime::{Suite, steps_by_node};

/// The suite. A comparison of eight bits in digits takes more rounds than its table.
pub(crate) static SUITE: Suite = Suite {
    name: "tables",
    summary: "every function of few bits by one table",
    steps: |graph, settings, _| {
        steps_by_node(graph, settings, |_| StepOptions::function(Function::Table))
    },
    ..Suite::PLAIN
};
