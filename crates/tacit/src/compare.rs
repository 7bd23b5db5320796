//! What every suite would take for a model.

use graph::ops::{Gelu, Linear, MatMul, Softmax};
use graph::{Model, Nonlinear, Op, Rounding};
use runtime::Report;
use serde::Serialize;
use wire::{Error, Result};

use crate::model::{PlanOptions, plan};
use crate::refused::refused;

/// A suite with its protocols for what is not linear, and what it takes or why it cannot run.
#[derive(Clone, Debug, Serialize)]
pub struct Suited {
    /// The suite.
    pub suite: String,
    /// How the protocols of single steps are chosen.
    pub protocols: String,
    /// What a session costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Why it cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Ways to choose beside the planner's.
const FIXED: [&str; 4] = ["plain", "digits2", "digits4", "circuits"];

/// Every suite, and every way to choose protocols for the model's own, under `options`. The
/// integers of the weights are the model's: a suite may ask for other widths when a model is
/// compiled for it.
///
/// # Errors
/// [`Error::Misuse`] for options that cannot be.
pub fn compare_suites(model: &Model, options: &PlanOptions) -> Result<Vec<Suited>> {
    plan(model, options)?;
    let mut rows = Vec::new();
    // What leaks is compared with nothing.
    let suites = runtime::suites().into_iter().filter(|suite| suite.leaks.is_none());
    let planned = suites.map(|suite| (suite.name, options.protocols.as_str()));
    let fixed = FIXED.into_iter().map(|protocols| (model.graph.suite.as_str(), protocols));
    for (suite, protocols) in planned.chain(fixed) {
        let given = PlanOptions { protocols: protocols.into(), explain: false, ..options.clone() };
        let found = suited(model, suite).and_then(|model| plan(&model, &given));
        let (report, reason) = match found {
            Ok(planned) => (Some(planned.report), None),
            Err(error) => (None, Some(error.to_string())),
        };
        rows.push(Suited { suite: suite.into(), protocols: protocols.into(), report, reason });
    }
    Ok(rows)
}

/// The model with another suite's name and rounding.
fn suited(model: &Model, suite: &str) -> Result<Model> {
    let mut model = model.clone();
    if suite == model.graph.suite {
        return Ok(model);
    }
    let exact = model.graph.exact.is_some();
    if runtime::never_rescales(suite) != exact {
        let why = if exact {
            "integers that are never rescaled are for suite lola"
        } else {
            "needs integers that are never rescaled: compile a network of squares for it"
        };
        return Err(Error::misuse(why));
    }
    let functions = |op: &Op| op.is::<Gelu>() || op.is::<Softmax>();
    if runtime::unifies(suite) && model.graph.nodes.iter().any(|node| functions(&node.op)) {
        return Err(Error::misuse("needs a model trained with smooth maxima"));
    }
    model.graph.suite = suite.into();
    if runtime::rounds_exactly(suite) {
        for node in &mut model.graph.nodes {
            if let Some(linear) = node.op.get_mut::<Linear>() {
                linear.rounding = Rounding::Exact;
            } else if let Some(product) = node.op.get_mut::<MatMul>() {
                product.rounding = Rounding::Exact;
            }
        }
    }
    if runtime::hides_filters(suite) {
        model.graph.nonlinear = Nonlinear::Gc;
        graph::canonical_filters(&mut model);
    }
    graph::verify_model(&model).map_err(refused)?;
    Ok(model)
}
