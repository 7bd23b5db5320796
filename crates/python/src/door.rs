//! The door of a fleet.

use std::time::Duration;

use pyo3::prelude::*;
use tacit::{DoorOptions, Doorway};

use crate::errors::{MisuseError, json, options, raise};

/// A bound door.
#[pyclass(frozen)]
pub(crate) struct Door(Doorway);

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|e| MisuseError::new_err(e.to_string()))
}

#[pymethods]
impl Door {
    #[new]
    fn new(py: Python<'_>, options_json: &str) -> PyResult<Self> {
        let chosen: DoorOptions = options(options_json)?;
        py.detach(|| tacit::door(&chosen)).map(Self).map_err(raise)
    }

    /// Where clients come, HOST:PORT.
    #[getter]
    fn address(&self) -> String {
        self.0.allocator().address().to_string()
    }

    /// Where browsers come, HOST:PORT, if they may.
    #[getter]
    fn websocket_address(&self) -> Option<String> {
        self.0.allocator().websocket_address().map(|address| address.to_string())
    }

    /// Where servers come, HOST:PORT.
    #[getter]
    fn control(&self) -> String {
        self.0.allocator().control().to_string()
    }

    /// The pin of the fleet's key.
    #[getter]
    fn pin(&self) -> PyResult<String> {
        let pin = self.0.pin().map(|pin| pin.to_string());
        pin.ok_or_else(|| MisuseError::new_err("a plaintext door has no key to pin"))
    }

    /// Where it shows its metrics, HOST:PORT, if it does.
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.allocator().metrics_address().map(|address| address.to_string())
    }

    /// Clients that are passed on now.
    #[getter]
    fn relayed(&self) -> usize {
        self.0.allocator().relayed()
    }

    /// Attends to clients and servers until `stop`.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.allocator().run()).map_err(raise)
    }

    /// Makes `run` return.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.allocator().stop());
    }

    /// Gives a server no more tickets and `patience` seconds to end; false without such a server.
    fn drain(&self, py: Python<'_>, server: &str, patience: f64) -> PyResult<bool> {
        let patience = seconds(patience)?;
        Ok(py.detach(|| self.0.allocator().drain(server, patience)))
    }

    /// Servers, clients that wait, and tickets, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.0.allocator().state()))
    }

    /// Reads certificates and tokens anew, for new clients.
    fn reload(&self, py: Python<'_>, options_json: &str) -> PyResult<()> {
        let chosen: DoorOptions = options(options_json)?;
        py.detach(|| self.0.reload(&chosen)).map_err(raise)
    }

    /// What happened next as JSON, or `None` after `timeout` seconds.
    fn next_event(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let patience = seconds(timeout)?;
        let event = py.detach(|| self.0.allocator().next_event(patience));
        event.map(|event| json(&event)).transpose()
    }
}
