//! Predicting.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray2, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use tacit::{Card, Encoding, Plan, PredictOptions, Progress, Provenance, Report, Reveal};

use crate::errors::{json, options, raise};
use crate::model::{inputs, rows};

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
