//! Ensembles of decision trees as models.

use graph::trees::Layouts;
use graph::{Ensemble, Model};
use runtime::{Plan, Settings};
use wire::Result;

use crate::refused::refused;

/// Compiles an ensemble of decision trees (see [`graph::Ensemble`] for the JSON). Private results
/// reach the leaves that the trees reach; values of leaves are rounded to the result's scale.
///
/// # Errors
/// [`wire::Error::Misuse`] for what is no ensemble, [`wire::Error::Unsupported`] for trees that are
/// too deep and for suites without protocols for trees.
pub fn compile_trees(ensemble_json: &str, suite: &str) -> Result<Model> {
    runtime::check_suite(suite)?;
    let shallow = runtime::secure_against_client(suite);
    let layouts = if shallow { Layouts::Shallow } else { Layouts::All };
    let model =
        Ensemble::from_json(ensemble_json).and_then(|ensemble| ensemble.lower_with(suite, layouts));
    let model = model.map_err(refused)?;
    Plan::new(model.graph.clone(), Settings::default())?;
    Ok(model)
}
