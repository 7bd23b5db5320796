//! Compiling, describing, simulating and planning.

use std::collections::BTreeMap;

use numpy::{PyArray2, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use tacit::{Calibration, Error, FloatTensor, Floats, Link, Means, Model, PlanOptions, Ranges};

use crate::errors::{MisuseError, json, options, raise};

/// Reads a model file.
pub(crate) fn open(path: &str) -> PyResult<Model> {
    tacit::load(path).map_err(|e| MisuseError::new_err(e.to_string()))
}

/// Reads a model file and the commitment to it.
pub(crate) fn committed(path: &str) -> PyResult<(Model, Option<[u8; 32]>)> {
    tacit::load_committed(path).map_err(|e| MisuseError::new_err(e.to_string()))
}

/// The values of an array and its shape.
pub(crate) fn inputs(x: &PyReadonlyArrayDyn<'_, f32>) -> PyResult<(Vec<f32>, Vec<usize>)> {
    if x.is_empty() {
        return Err(MisuseError::new_err("there is no input in the array"));
    }
    Ok((values(x), x.shape().to_vec()))
}

/// The values of an array row by row, in whatever order and with whatever strides it holds them.
fn values(array: &PyReadonlyArrayDyn<'_, f32>) -> Vec<f32> {
    array.as_array().iter().copied().collect()
}

/// Rows of integers as an (N, outputs) array.
pub(crate) fn rows<'py>(py: Python<'py>, rows: &[Vec<i64>]) -> PyResult<Bound<'py, PyArray2<i64>>> {
    PyArray2::from_vec2(py, rows).map_err(|_| MisuseError::new_err("outputs differ in length"))
}

/// Compiles an imported network into the file `path`; of tensors, `ranges` are the smallest
/// and largest value, `means` those of their channels. The file keeps `entries` in its metadata.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn compile(
    py: Python<'_>,
    source_json: &str,
    tensors: BTreeMap<String, PyReadonlyArrayDyn<'_, f32>>,
    ranges: Ranges,
    means: Means,
    options_json: &str,
    path: &str,
    entries: BTreeMap<String, String>,
) -> PyResult<String> {
    let chosen = options(options_json)?;
    let calibration = Calibration { ranges, means };
    let mut floats = Floats::new();
    for (name, array) in tensors {
        floats.insert(name, FloatTensor { shape: array.shape().to_vec(), data: values(&array) });
    }
    let described = py.detach(|| {
        let model = tacit::compile(source_json, floats, &calibration, &chosen)?;
        tacit::save_with(&model, &entries, path).map_err(|e| Error::misuse(e.to_string()))?;
        Ok(tacit::describe(&model))
    });
    json(&described.map_err(raise)?)
}

/// Compiles an ensemble of decision trees into the file `path`, which keeps `entries` in its
/// metadata.
#[pyfunction]
pub(crate) fn compile_trees(
    py: Python<'_>,
    ensemble_json: &str,
    suite: &str,
    path: &str,
    entries: BTreeMap<String, String>,
) -> PyResult<String> {
    let described = py.detach(|| {
        let model = tacit::compile_trees(ensemble_json, suite)?;
        tacit::save_with(&model, &entries, path).map_err(|e| Error::misuse(e.to_string()))?;
        Ok(tacit::describe(&model))
    });
    json(&described.map_err(raise)?)
}

/// Raises unless this version has the suite, and for one that leaks unless that is accepted.
#[pyfunction]
pub(crate) fn check_suite(suite: &str, accept_leakage: bool) -> PyResult<()> {
    tacit::check_suite(suite).map_err(raise)?;
    tacit::consent(suite, accept_leakage).map_err(raise)
}

/// Describes the model in `path`.
#[pyfunction]
pub(crate) fn describe(path: &str) -> PyResult<String> {
    json(&tacit::describe(&open(path)?))
}

/// What the model file in `path` says of itself, and whether its digest holds.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, path: &str) -> PyResult<String> {
    json(&py.detach(|| tacit::inspect(path)).map_err(raise)?)
}

/// Runs the integers of the model in the clear on `x` (N, *shape); with a `seed` stochastic rounding
/// is drawn from it.
#[pyfunction]
#[pyo3(signature = (path, x, seed=None))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    path: &str,
    x: PyReadonlyArrayDyn<'py, f32>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let model = open(path)?;
    let (values, shape) = inputs(&x)?;
    let outputs = py.detach(|| tacit::simulate(&model, &values, &shape, seed)).map_err(raise)?;
    rows(py, &outputs)
}

/// What a session costs.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, path: &str, options_json: &str) -> PyResult<String> {
    let chosen: PlanOptions = options(options_json)?;
    let model = open(path)?;
    json(&py.detach(|| tacit::plan(&model, &chosen)).map_err(raise)?)
}

/// How many inputs a run should have.
#[pyfunction]
pub(crate) fn suited_batch(py: Python<'_>, path: &str, options_json: &str) -> PyResult<usize> {
    let chosen: PlanOptions = options(options_json)?;
    let model = open(path)?;
    py.detach(|| tacit::suited_batch(&model, &chosen)).map_err(raise)
}

/// What every suite would take for a model, as a JSON list.
#[pyfunction]
pub(crate) fn compare_suites(py: Python<'_>, path: &str, options_json: &str) -> PyResult<String> {
    let chosen: PlanOptions = options(options_json)?;
    let model = open(path)?;
    json(&py.detach(|| tacit::compare_suites(&model, &chosen)).map_err(raise)?)
}

/// Round trip in seconds and bandwidth in bits per second of `lan`, `wan` or `RTTms,Mbps`.
#[pyfunction]
pub(crate) fn link(text: &str) -> PyResult<(f64, f64)> {
    text.parse().map(|link: Link| link.figures()).map_err(raise)
}
