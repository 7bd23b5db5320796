//! Errors as JavaScript catches them.

use wasm_bindgen::JsValue;
use wire::{Error, TransportKind};

#[derive(serde::Serialize)]
struct Failure {
    /// The guilty side: `misuse`, `peer`, `busy`, `refused`, `transport`, `unsupported` or `internal`.
    kind: &'static str,
    message: String,
    /// Seconds after which it is worth trying again.
    #[serde(skip_serializing_if = "Option::is_none")]
    again: Option<u32>,
    /// Whether the connection was lost in a way that may pass.
    lost: bool,
    /// The node that is not supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
}

/// An error as the JSON of its kind and message.
pub(crate) fn thrown(error: Error) -> JsValue {
    let kind = error.kind();
    let whole = error.to_string();
    let lost = matches!(&error, Error::Transport(lost) if matches!(
        lost.kind,
        TransportKind::Refused | TransportKind::Unreachable | TransportKind::Closed
    ));
    let (message, again, node) = match error {
        Error::Misuse(why) => (why, None, None),
        Error::Transport(lost) => match lost.kind {
            TransportKind::Busy { again } => (lost.what, Some(again), None),
            _ => (lost.what, None, None),
        },
        Error::Unsupported { node, .. } => (whole, None, Some(node)),
        _ => (whole, None, None),
    };
    let failure = Failure { kind, message, again, lost, node };
    serde_json::to_string(&failure).unwrap_or_default().into()
}
