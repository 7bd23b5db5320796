//! Serving.

use std::time::Duration;

use pyo3::prelude::*;
use tacit::{End, Event, Model, ModelOptions, PageFile, Pages, Report, Welcome};

use crate::errors::{MisuseError, json, options, raise};
use crate::model::committed;

/// A model's file and what is said of it alone.
#[derive(serde::Deserialize)]
struct ModelFile {
    path: String,
    #[serde(flatten)]
    options: ModelOptions,
}

/// Opens the models of a list in JSON: `path`, and what is said of it alone.
fn models(json: &str) -> PyResult<Vec<(Model, ModelOptions)>> {
    let files: Vec<ModelFile> = options(json)?;
    let opened = |file: ModelFile| {
        let (model, commitment) = committed(&file.path)?;
        Ok((model, ModelOptions { commitment, ..file.options }))
    };
    files.into_iter().map(opened).collect()
}

/// A file of a page: path, media type, bytes, and bytes compressed by gzip.
type Shown = (String, String, Vec<u8>, Option<Vec<u8>>);

/// A bound server.
#[pyclass(frozen)]
pub(crate) struct Server(Welcome);

#[pymethods]
impl Server {
    #[new]
    fn new(py: Python<'_>, models_json: &str, listen: &str, options_json: &str) -> PyResult<Self> {
        let (models, chosen) = (models(models_json)?, options(options_json)?);
        py.detach(|| tacit::serve(models, listen, &chosen)).map(Self).map_err(raise)
    }

    /// Where it listens, HOST:PORT.
    #[getter]
    fn address(&self) -> String {
        self.0.server().address().to_string()
    }

    /// Its key's pin.
    #[getter]
    fn pin(&self) -> PyResult<String> {
        let pin = self.0.pin().map(|pin| pin.to_string());
        pin.ok_or_else(|| MisuseError::new_err("a plaintext server has no key to pin"))
    }

    /// Where browsers connect by WebSocket, HOST:PORT, if they may.
    #[getter]
    fn websocket_address(&self) -> Option<String> {
        self.0.server().websocket_address().map(|address| address.to_string())
    }

    /// Shows files to browsers that ask for them where they connect: path, media type, bytes, and the same bytes
    /// compressed by gzip or nothing, of each.
    fn show(&self, files: Vec<Shown>) -> PyResult<()> {
        let file = |(path, kind, body, packed)| PageFile { path, kind, body, packed };
        let pages = Pages::new(files.into_iter().map(file).collect());
        pages.and_then(|pages| self.0.server().show(pages)).map_err(raise)
    }

    /// Where it shows its metrics, HOST:PORT, if it does.
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.server().metrics_address().map(|address| address.to_string())
    }

    /// What clients may pin of each model, as JSON.
    #[getter]
    fn offerings(&self) -> PyResult<String> {
        json(&self.0.offerings())
    }

    /// What is legal in its options and yet seldom meant.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings().to_vec()
    }

    /// The sessions that run and those that wait.
    #[getter]
    fn counts(&self) -> (usize, usize) {
        self.0.server().counts()
    }

    /// Why the door of the fleet does not know this server now; empty where it does, `None` without a fleet.
    #[getter]
    fn fleet(&self) -> Option<String> {
        let known = self.0.server().fleet()?;
        Some(known.err().map_or_else(String::new, |why| match why.as_str() {
            "" => "the door has not answered yet".into(),
            _ => why,
        }))
    }

    /// Serves until `stop` or `drain`, or one client with `once`.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.server().run()).map_err(raise)
    }

    /// Makes `run` return.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.server().stop());
    }

    /// Takes no new sessions, and gives those that run `seconds` to end; then `run` returns.
    fn drain(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let patience = Duration::try_from_secs_f64(seconds)
            .map_err(|e| MisuseError::new_err(e.to_string()))?;
        py.detach(|| self.0.server().drain(patience));
        Ok(())
    }

    /// Reads models, certificate and tokens anew, for new sessions.
    fn reload(&self, py: Python<'_>, models_json: &str, options_json: &str) -> PyResult<()> {
        let (models, chosen) = (models(models_json)?, options(options_json)?);
        py.detach(|| self.0.reload(models, &chosen)).map_err(raise)
    }

    /// The next client's report or `{"client", "error": {kind, message, node}}` as JSON,
    /// or `None` after `timeout` seconds.
    fn next_report(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<String>> {
        let patience = Duration::try_from_secs_f64(timeout)
            .map_err(|e| MisuseError::new_err(e.to_string()))?;
        let event = py.detach(|| self.0.server().next_event(patience));
        event.map(|event| outcome(&event)).transpose()
    }
}

#[derive(serde::Serialize)]
struct Outcome<'a> {
    session: u64,
    client: &'a str,
    identity: Option<&'a str>,
    #[serde(flatten)]
    report: Option<&'a Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure<'a>>,
    end: End,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
    reached: &'a str,
    answered: usize,
    waited_seconds: f64,
    cpu_seconds: f64,
    #[serde(skip_serializing_if = "is_zero")]
    untold: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Measured>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A link that was measured.
#[derive(serde::Serialize)]
struct Measured {
    round_trip_seconds: f64,
    bits_per_second: f64,
}

#[derive(serde::Serialize)]
struct Failure<'a> {
    kind: &'static str,
    message: String,
    node: Option<&'a str>,
}

impl<'a> Failure<'a> {
    fn of(error: &'a tacit::Error) -> Self {
        let node = match error {
            tacit::Error::Unsupported { node, .. } => Some(node.as_str()),
            _ => None,
        };
        Self { kind: error.kind(), message: error.to_string(), node }
    }
}

fn outcome(event: &Event) -> PyResult<String> {
    let error = event.outcome.as_ref().err().map(Failure::of);
    let report = event.outcome.as_ref().ok();
    let link = event.link.map(|link| {
        let (round_trip_seconds, bits_per_second) = link.figures();
        Measured { round_trip_seconds, bits_per_second }
    });
    json(&Outcome {
        session: event.session,
        client: &event.client,
        identity: event.identity.as_deref(),
        report,
        error,
        end: event.end,
        refused: event.refused,
        reached: event.reached,
        answered: event.inputs,
        waited_seconds: event.waited,
        cpu_seconds: event.cpu_seconds,
        untold: event.untold,
        link,
    })
}
