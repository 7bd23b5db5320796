//! The check of what a caller passes to either side.

use he::bfv::Params;
use wire::{Error, Result};

use super::layer::Layer;

/// Refuses a share of another length or width than the layer's input, and a key of other
/// parameters than the layer's.
pub(super) fn check(layer: &Layer, x: &[i64], params: &Params) -> Result<()> {
    let excess = x.iter().fold(0, |any, value| any | value.unsigned_abs());
    if x.len() != layer.inputs() || excess >> layer.share_bits() != 0 {
        return Err(Error::misuse("shares that do not fit their linear layer"));
    }
    if params != layer.params() {
        return Err(Error::misuse("a key that does not fit the layer"));
    }
    Ok(())
}
