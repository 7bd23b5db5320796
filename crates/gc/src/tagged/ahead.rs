//! Garbling before the garbler's bits exist: tables go first, and the labels of its bits follow.
//!
//! | | |
//! |---|---|
//! | In | as `garble.rs`, but for the garbler's bits; these come later |
//! | Out | as `garble.rs`; labels of the garbler's bits, to be sent |
//! | Security | as `garble.rs`: an evaluator that sees tables before bits are chosen has no label that tells them from uniform words, and then one label of each bit |
//! | Cost | 16 bytes for each of the garbler's bits, beside those of `garble.rs` |
//! | Paper | Zahur, Rosulek, Evans, EUROCRYPT 2015 (labels of inputs) |

use std::fmt;

use ring::simd::Level;
use ring::{Bits, Random, Seed};
use wire::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::batch::TaggedBatch;
use super::evaluate::{EvaluatorShare, evaluate_at};
use super::garble::{Entered, GarblerShare, Weights, entering, fitting, garble_at, labels, turned};
use super::keys::MacKeys;
use crate::batch::LANES;
use crate::garble::zeros;
use crate::tables::Tables;

/// What the labels of the garbler's bits are drawn from. They are told once, for one choice of bits, since
/// two labels of a bit tell Delta.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct LaterLabels(Seed);

/// [`super::garble`] without the garbler's bits. Output bits count what `weights` say, a vector for each
/// output, or what their places say where there are none.
///
/// # Errors
/// As [`super::garble_weighted`].
pub fn garble_ahead(
    batch: &TaggedBatch,
    keys: &MacKeys,
    evaluator: &[u128],
    weights: &[Weights],
    rng: &mut Random,
    sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<(Vec<GarblerShare>, LaterLabels)> {
    if !weights.is_empty() {
        fitting(batch, weights)?;
    }
    let later = LaterLabels(rng.seed());
    let entered = Entered::Later(&later.0);
    let ours = garble_at(Level::best(), batch, keys, evaluator, (entered, weights), rng, sink)?;
    Ok((ours, later))
}

impl LaterLabels {
    /// Returns the labels of these bits, a vector of `count` bits for each of the garbler's inputs, as
    /// [`evaluate_ahead`] takes them.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of bits.
    pub fn choose(
        self,
        batch: &TaggedBatch,
        keys: &MacKeys,
        bits: &[Bits],
    ) -> Result<Zeroizing<Vec<u128>>> {
        entering(batch, bits)?;
        let mut all = Zeroizing::new(Vec::with_capacity(garbler_labels(batch)));
        let mut prg = labels(&self.0);
        for (start, lanes) in batch.groups() {
            for plane in bits {
                // A batch of one instance is garbled alone.
                if batch.count() == 1 {
                    let mut slot = Zeroizing::new(zeros::<1>(&mut prg));
                    turned(&mut slot, plane, start, keys.delta());
                    all.extend_from_slice(&*slot);
                } else {
                    let mut slot = Zeroizing::new(zeros::<LANES>(&mut prg));
                    turned(&mut slot, plane, start, keys.delta());
                    all.extend_from_slice(slot.get(..lanes).unwrap_or_default());
                }
            }
        }
        Ok(all)
    }
}

/// [`super::evaluate`] of what [`garble_ahead`] made, with the labels that [`LaterLabels::choose`] returned.
///
/// # Errors
/// As [`super::evaluate`].
pub fn evaluate_ahead(
    batch: &TaggedBatch,
    tables: Tables,
    labels: &[u128],
    garblers: &[u128],
) -> Result<Vec<EvaluatorShare>> {
    if garblers.len() != garbler_labels(batch) {
        return Err(Error::internal("labels of other bits of the garbler"));
    }
    evaluate_at(Level::best(), batch, tables, (labels, Some(garblers)))
}

/// Returns the number of labels of the garbler's bits, of all instances.
pub fn garbler_labels(batch: &TaggedBatch) -> usize {
    batch.circuit().garbler.saturating_mul(batch.count())
}

impl fmt::Debug for LaterLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaterLabels")
    }
}
