//! Budgets of clients, and their tokens.

use std::time::SystemTime;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tacit::budget::{Budget, Chosen, Client, Error, Ledger};

use crate::errors::{MisuseError, json, options};

/// Raises `error` as the exception of its kind: the system's faults as `OSError`.
fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Unusable { .. } | Error::Random(_) => PyOSError::new_err(message),
        _ => MisuseError::new_err(message),
    }
}

fn named(client: &str) -> PyResult<Client> {
    client.parse().map_err(raise)
}

fn chosen(client: Option<&str>, model: Option<String>) -> PyResult<Chosen> {
    Ok(Chosen { client: client.map(named).transpose()?, model })
}

/// The key of a client in ledgers, of a key that may be written in another way.
#[pyfunction]
pub(crate) fn client_key(client: &str) -> PyResult<String> {
    Ok(named(client)?.key())
}

/// How a ledger is shown to people: a file by its path, a database by its URL without the password.
#[pyfunction]
pub(crate) fn ledger_name(ledger: &str) -> String {
    tacit::budget::ledger_name(ledger)
}

/// The rows of a ledger, or those of a client and a model, as a JSON list.
#[pyfunction]
pub(crate) fn show_budgets(
    py: Python<'_>,
    ledger: &str,
    client: Option<&str>,
    model: Option<String>,
) -> PyResult<String> {
    let chosen = chosen(client, model)?;
    let show = || Ledger::open_existing(ledger)?.show(&chosen, SystemTime::now());
    json(&py.detach(show).map_err(raise)?)
}

/// Gives a client limits of its own for a model, in a ledger that is made where there is none.
#[pyfunction]
pub(crate) fn set_budget(
    py: Python<'_>,
    ledger: &str,
    client: &str,
    model: &str,
    budget_json: &str,
) -> PyResult<()> {
    let (client, budget): (_, Budget) = (named(client)?, options(budget_json)?);
    py.detach(|| Ledger::open(ledger)?.set(&client, model, &budget)).map_err(raise)
}

/// Takes a client's own limits for a model back; false where it had none.
#[pyfunction]
pub(crate) fn unset_budget(
    py: Python<'_>,
    ledger: &str,
    client: &str,
    model: &str,
) -> PyResult<bool> {
    let client = named(client)?;
    py.detach(|| Ledger::open_existing(ledger)?.unset(&client, model)).map_err(raise)
}

/// Forgets what was used, of all or of a client and a model; of how many rows.
#[pyfunction]
pub(crate) fn reset_budgets(
    py: Python<'_>,
    ledger: &str,
    client: Option<&str>,
    model: Option<String>,
) -> PyResult<usize> {
    let chosen = chosen(client, model)?;
    py.detach(|| Ledger::open_existing(ledger)?.reset(&chosen)).map_err(raise)
}

/// A fresh token for a client, and the line for the server's file.
#[pyfunction]
pub(crate) fn generate_token(name: &str, reveal: Option<&str>) -> PyResult<(String, String)> {
    let reveal = reveal.map(|what| options(&json(&what)?)).transpose()?;
    let new = tacit::budget::generate_token(name, reveal).map_err(raise)?;
    Ok((new.token.to_string(), new.line))
}
