//! Models whose results are what clients may learn.

use graph::Model;
use runtime::Reveal;
use wire::{Error, Result};

use crate::refused::refused;

/// The model whose result is what `reveal` lets clients learn: buckets between `edges` are a part
/// of it.
///
/// # Errors
/// [`Error::Misuse`] for edges that are none, [`Error::Unsupported`] for a model without a score.
pub(crate) fn revealing(model: Model, reveal: Reveal, edges: &[f64]) -> Result<Model> {
    match reveal {
        Reveal::Bucket if edges.is_empty() => Err(Error::misuse(
            "buckets have edges, which only the server knows: start it with --reveal bucket:EDGES",
        )),
        Reveal::Bucket => model.banded(edges).map_err(refused),
        _ => Ok(model),
    }
}
