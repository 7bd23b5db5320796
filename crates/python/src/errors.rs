//! One exception tree with the words of the Rust errors.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(tacit._core, TacitError, PyException, "Any failure of this package.");
create_exception!(tacit._core, MisuseError, TacitError, "The caller's fault; nothing was sent.");
create_exception!(tacit._core, PeerError, TacitError, "The other party broke the protocol.");
create_exception!(tacit._core, TransportError, TacitError, "The connection failed.");
create_exception!(tacit._core, BusyError, TransportError, "The server is full or about to stop.");
create_exception!(tacit._core, RefusedError, TransportError, "The server refuses this client.");
create_exception!(tacit._core, UnsupportedError, TacitError, "A model this version cannot run.");

/// Raises `error` as the exception of its kind.
pub(crate) fn raise(error: tacit::Error) -> PyErr {
    let message = error.to_string();
    match error {
        tacit::Error::Misuse(why) => MisuseError::new_err(why),
        tacit::Error::Peer { .. } => PeerError::new_err(message),
        tacit::Error::Transport(why) => match why.kind {
            tacit::TransportKind::Busy { again } => busy(why.what, again),
            tacit::TransportKind::Denied => RefusedError::new_err(why.what),
            _ => TransportError::new_err(why.what),
        },
        tacit::Error::Unsupported { node, .. } => unsupported(message, node),
        _ => TacitError::new_err(message),
    }
}

/// The exception with the seconds after which it is worth trying again as attribute
/// `retry_after`.
fn busy(message: String, again: u32) -> PyErr {
    let error = BusyError::new_err(message);
    // Without the attribute the message still says it.
    let _ = Python::attach(|py| error.value(py).setattr("retry_after", again));
    error
}

/// The exception with the node's name as attribute `node`.
fn unsupported(message: String, node: String) -> PyErr {
    let error = UnsupportedError::new_err(message);
    // Without the attribute the message still names the node.
    let _ = Python::attach(|py| error.value(py).setattr("node", node));
    error
}

/// Parses options given as JSON.
pub(crate) fn options<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| MisuseError::new_err(format!("options: {e}")))
}

/// Writes a result as JSON.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| TacitError::new_err(e.to_string()))
}
