//! Measuring operations.

use pyo3::prelude::*;
use tacit::{Conv, Operation, PredictOptions, ServeOptions, Settings, Took};

use crate::errors::{MisuseError, json, options, raise};

/// Measures an operation with the server of `BenchServer` and returns JSON.
#[pyfunction]
pub(crate) fn bench(
    py: Python<'_>,
    operation_json: &str,
    settings_json: &str,
    server: &str,
    options_json: &str,
) -> PyResult<String> {
    let operation: Operation = options(operation_json)?;
    let chosen: PredictOptions = options(options_json)?;
    let settings: Settings = options(settings_json)?;
    json(&py.detach(|| tacit::bench(operation, settings, server, &chosen)).map_err(raise)?)
}

/// The operations that a machine is measured by, as JSON.
#[pyfunction]
pub(crate) fn wanted() -> PyResult<String> {
    json(&tacit::wanted())
}

/// The rates of the machine that took as long for them as `measured_json` says, as JSON.
#[pyfunction]
pub(crate) fn calibrated(py: Python<'_>, measured_json: &str) -> PyResult<String> {
    let measured: Vec<Took> = options(measured_json)?;
    json(&py.detach(|| tacit::calibrated(&measured)).map_err(raise)?)
}

/// What a slot-packed suite does for the convolution `conv_json`, counted and computed `runs`
/// times, as JSON.
#[pyfunction]
pub(crate) fn count(
    py: Python<'_>,
    conv_json: &str,
    suite: &str,
    slots: Option<usize>,
    runs: usize,
) -> PyResult<String> {
    let conv: Conv = options(conv_json)?;
    json(&py.detach(|| tacit::count(&conv, suite, slots, runs)).map_err(raise)?)
}

/// The convolution `conv_json` under GAZELLE and both forms of FALCON, computed `runs` times by
/// the server alone, as JSON.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, conv_json: &str, runs: usize) -> PyResult<String> {
    let conv: Conv = options(conv_json)?;
    json(&py.detach(|| tacit::compare(&conv, runs)).map_err(raise)?)
}

/// The other party of `bench`, for one session.
#[pyclass(frozen)]
pub(crate) struct BenchServer(tacit::BenchServer);

#[pymethods]
impl BenchServer {
    #[new]
    fn new(py: Python<'_>, operation_json: &str, options_json: &str) -> PyResult<Self> {
        let operation: Operation = options(operation_json)?;
        let chosen: ServeOptions = options(options_json)?;
        py.detach(|| tacit::BenchServer::bind(operation, &chosen)).map(Self).map_err(raise)
    }

    /// Where it listens, HOST:PORT.
    #[getter]
    fn address(&self) -> PyResult<String> {
        self.0.address().map(|address| address.to_string()).map_err(raise)
    }

    /// Its key's pin.
    #[getter]
    fn pin(&self) -> PyResult<String> {
        let pin = self.0.pin.map(|pin| pin.to_string());
        pin.ok_or_else(|| MisuseError::new_err("a plaintext server has no key to pin"))
    }

    /// Serves one client and returns the session's report as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.0.run()).map_err(raise)?)
    }
}
