//! Keys, requests and answers as bytes of files.

use numpy::{PyArray2, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tacit::{Card, Correspondent, Evaluator, KeyFiles, Result, open_secret, seal_secret};

use crate::errors::{MisuseError, json, raise};
use crate::model::{committed, inputs, open, rows};

/// How to read an answer.
#[derive(serde::Serialize)]
struct Outputs {
    output_scale: f64,
    labels: Vec<String>,
}

/// The public plan of the model in `path`, for its clients.
#[pyfunction]
pub(crate) fn public_plan(path: &str) -> PyResult<String> {
    tacit::public_plan(open(path)?.graph).map_err(raise)
}

/// The shape of one input of a public plan.
#[pyfunction]
pub(crate) fn plan_shape(offer: &str) -> PyResult<Vec<usize>> {
    tacit::planned_shape(offer).map_err(raise)
}

/// The files with a fresh secret, encrypted where there is a passphrase, and its evaluation keys.
#[pyfunction]
#[pyo3(signature = (offer, passphrase=None))]
pub(crate) fn generate_keys<'py>(
    py: Python<'py>,
    offer: &str,
    passphrase: Option<&str>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let make = || {
        let KeyFiles { secret, evaluation } = tacit::generate_keys(offer)?;
        let sealed = passphrase.map(|passphrase| seal_secret(&secret, passphrase)).transpose()?;
        Ok((sealed.map_or(secret, Into::into), evaluation))
    };
    let (secret, evaluation) = py.detach(make).map_err(raise)?;
    Ok((PyBytes::new(py, &secret), PyBytes::new(py, &evaluation)))
}

/// The file with the request for `x` (N, *shape).
#[pyfunction]
#[pyo3(signature = (offer, secret, x, threads, passphrase=None))]
pub(crate) fn encrypt<'py>(
    py: Python<'py>,
    offer: &str,
    secret: &[u8],
    x: PyReadonlyArrayDyn<'py, f32>,
    threads: usize,
    passphrase: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (values, shape) = inputs(&x)?;
    let run = || correspondent(offer, secret, passphrase)?.encrypt(&values, &shape, threads);
    Ok(PyBytes::new(py, &py.detach(run).map_err(raise)?))
}

/// The file with the answer of the model in `path` to a request.
#[pyfunction]
pub(crate) fn evaluate_encrypted<'py>(
    py: Python<'py>,
    path: &str,
    keys: &[u8],
    request: &[u8],
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let model = open(path)?;
    let run = || Evaluator::new(model)?.evaluate(keys, request, threads);
    Ok(PyBytes::new(py, &py.detach(run).map_err(raise)?))
}

/// Makes the key of a signer of model cards in a new file; its public half.
#[pyfunction]
pub(crate) fn make_signer(file: &str) -> PyResult<String> {
    tacit::make_signer(file).map_err(raise)
}

/// The card of the model in `path`, signed with the key in a file.
#[pyfunction]
pub(crate) fn sign_card(
    path: &str,
    name: &str,
    version: &str,
    description: &str,
    key: &str,
) -> PyResult<String> {
    let commitment = committed(path)?.1.ok_or_else(|| {
        let why = "has no salt, and so no commitment to sign: compile the model again";
        MisuseError::new_err(format!("{path} {why}"))
    })?;
    Card::sign([name, version, description], &commitment, key).map_err(raise)
}

/// The card in a text as JSON, without its signature, which holds.
#[pyfunction]
pub(crate) fn verified_card(text: &str) -> PyResult<String> {
    let card = Card::verified(text);
    json(&card.map_err(|why| MisuseError::new_err(format!("no model card: {why}")))?)
}

/// A client whose secret may need a passphrase.
fn correspondent(offer: &str, secret: &[u8], passphrase: Option<&str>) -> Result<Correspondent> {
    Correspondent::new(offer, &open_secret(secret, passphrase)?)
}

/// The outputs (N, outputs) of an answer, and how to read them as JSON.
#[pyfunction]
#[pyo3(signature = (offer, secret, answer, passphrase=None))]
pub(crate) fn decrypt<'py>(
    py: Python<'py>,
    offer: &str,
    secret: &[u8],
    answer: &[u8],
    passphrase: Option<&str>,
) -> PyResult<(Bound<'py, PyArray2<i64>>, String)> {
    let run = || {
        let client = correspondent(offer, secret, passphrase)?;
        let outputs = client.decrypt(answer)?;
        let graph = client.plan().graph();
        let output_scale = graph.tensors.get(graph.output).map_or(1.0, |t| t.format.scale);
        Ok((outputs, Outputs { output_scale, labels: graph.labels.clone() }))
    };
    let (outputs, reading) = py.detach(run).map_err(raise)?;
    Ok((rows(py, &outputs)?, json(&reading)?))
}
