//! Serving and predicting.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use numpy::{PyArray2, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use tacit::{
    Card, Encoding, End, Event, Model, ModelOptions, PageFile, Pages, Plan, PredictOptions,
    Progress, Provenance, Report, Reveal, Welcome,
};

use crate::errors::{MisuseError, json, options, raise};
use crate::model::{committed, inputs, rows};

/// The client's report: the session's, and how to read its results.
#[derive(serde::Serialize)]
struct ClientReport {
    #[serde(flatten)]
    session: Report,
    output_scale: f64,
    /// How clients make integers of their numbers.
    encoding: Encoding,
    /// The second output is this by the probability, where that is revealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    certain: Option<u64>,
    labels: Vec<String>,
    plan: serde_json::Value,
    /// The model card, of which the signature and the signer were verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<Card>,
}

impl ClientReport {
    /// `trusts` says whether a signer was named, without whom no card is shown.
    fn new(plan: &Plan, provenance: &Provenance, report: &Report, trusts: bool) -> Self {
        let graph = plan.graph();
        let scale = graph.tensors.get(graph.output).map_or(1.0, |t| t.format.scale);
        let revealed = plan.settings().reveal;
        Self {
            session: report.clone(),
            output_scale: if revealed == Reveal::Output { scale } else { 1.0 },
            encoding: graph.encoding(),
            certain: plan.certain(),
            labels: graph.labels.clone(),
            plan: serde_json::from_str(&plan.offer()).unwrap_or_default(),
            card: provenance
                .card
                .as_deref()
                .filter(|_| trusts)
                .and_then(|c| Card::verified(c).ok()),
        }
    }
}

/// Base OTs that a client has left from sessions with one server.
#[pyclass(frozen, module = "tacit._core")]
pub(crate) struct KeptKeys(tacit::KeptKeys);

#[pymethods]
impl KeptKeys {
    #[new]
    fn new() -> Self {
        Self(tacit::KeptKeys::default())
    }

    /// How many sessions they are good for.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// A copy or a pickle has none: each serves one session.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Bound<'py, PyTuple>) {
        (slf.get_type(), PyTuple::empty(slf.py()))
    }
}

/// Runs one session with `server` over `x` (N, *shape).
#[pyfunction]
#[pyo3(signature = (server, x, options_json, progress=None, notice=None, kept=None))]
pub(crate) fn predict<'py>(
    py: Python<'py>,
    server: &str,
    x: PyReadonlyArrayDyn<'py, f32>,
    options_json: &str,
    progress: Option<Py<PyAny>>,
    notice: Option<Py<PyAny>>,
    kept: Option<Bound<'py, KeptKeys>>,
) -> PyResult<(Bound<'py, PyArray2<i64>>, String)> {
    let chosen: PredictOptions = options(options_json)?;
    let (values, shape) = inputs(&x)?;
    // A progress bar that fails must not fail the prediction.
    let mut told = |news: Progress| match (&progress, &notice, news) {
        (Some(progress), _, Progress::Done(done, all)) => {
            Python::attach(|py| drop(progress.call1(py, (done, all))));
        }
        (_, Some(notice), Progress::Waiting(before)) => {
            Python::attach(|py| drop(notice.call1(py, ("waiting", before, py.None()))));
        }
        (_, Some(notice), Progress::Retrying(seconds, why)) => {
            Python::attach(|py| drop(notice.call1(py, ("retrying", seconds, why))));
        }
        _ => {}
    };
    let kept = kept.as_ref().map(|kept| &kept.get().0);
    let answer = py
        .detach(|| tacit::predict(server, &values, &shape, &chosen, kept, &mut told))
        .map_err(raise)?;
    let (plan, trusts) = (&answer.plan, chosen.card_key.is_some());
    let report = ClientReport::new(plan, &answer.provenance, &answer.report, trusts);
    Ok((rows(py, &answer.results)?, json(&report)?))
}

/// An open session.
#[pyclass(frozen)]
pub(crate) struct Session {
    open: Mutex<tacit::Session>,
    ready: Box<dyn Fn() -> usize + Send + Sync>,
    trusts: bool,
}

impl Session {
    /// Only without the interpreter lock: another thread may hold this one for long.
    fn lock(&self) -> MutexGuard<'_, tacit::Session> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reported(&self, open: &tacit::Session) -> ClientReport {
        ClientReport::new(open.plan(), open.provenance(), open.report(), self.trusts)
    }
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (server, inputs, options_json, kept=None))]
    fn new(
        py: Python<'_>,
        server: &str,
        inputs: usize,
        options_json: &str,
        kept: Option<Bound<'_, KeptKeys>>,
    ) -> PyResult<Self> {
        let kept = kept.as_ref().map(|kept| &kept.get().0);
        let chosen: PredictOptions = options(options_json)?;
        let open = py.detach(|| tacit::session(server, inputs, &chosen, kept)).map_err(raise)?;
        let trusts = chosen.card_key.is_some();
        Ok(Self { ready: Box::new(open.watch()), open: Mutex::new(open), trusts })
    }

    /// Runs one input (*shape), or up to a batch of the server's (N, *shape), with numbers that the client adds
    /// to the results before a label is found.
    #[pyo3(signature = (x, added=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArrayDyn<'py, f32>,
        added: Option<PyReadonlyArrayDyn<'py, f32>>,
    ) -> PyResult<(Bound<'py, PyArray2<i64>>, String)> {
        let (values, shape) = inputs(&x)?;
        let added = added.map(|added| inputs(&added)).transpose()?;
        let run = || {
            let mut open = self.lock();
            let results = match &added {
                Some((added, _)) => open.predict_with(&values, &shape, added)?,
                None => open.predict(&values, &shape)?,
            };
            Ok((results, self.reported(&open)))
        };
        let (results, report) = py.detach(run).map_err(raise)?;
        Ok((rows(py, &results)?, json(&report)?))
    }

    /// Runs one input (*shape) only for what the model keeps.
    fn remember(&self, py: Python<'_>, x: PyReadonlyArrayDyn<'_, f32>) -> PyResult<()> {
        let (values, shape) = inputs(&x)?;
        py.detach(|| self.lock().remember(&values, &shape)).map_err(raise)
    }

    /// Prepared runs that wait for their inputs.
    #[getter]
    fn ready(&self) -> usize {
        (self.ready)()
    }

    /// The report up to the last result, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| {
            let open = self.lock();
            self.reported(&open)
        }))
    }

    /// Says goodbye.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().finish().map(|_| ())).map_err(raise)
    }

    /// Breaks off.
    fn abandon(&self, py: Python<'_>) {
        py.detach(|| self.lock().abandon());
    }
}

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
