//! Masks of several runs, and what parties keep of entries.

use std::fmt;
use std::sync::Arc;

use ring::Random;
use wire::Result;
use zeroize::Zeroizing;

use super::plan::{Axis, Layer, Shape};
use crate::defect::defect;
use crate::share::Share;

/// What a party keeps of the right factor between the runs of a session: nothing before the
/// first.
#[derive(Default)]
pub struct Memory {
    /// This party's masks of all entries that the runs read which were prepared last: those that
    /// never change, those of runs before, and one for each run.
    pub(super) masks: Arc<Zeroizing<Vec<u64>>>,
    /// Entries of the window less both masks, which both parties know.
    pub(super) differences: Zeroizing<Vec<u64>>,
    /// Whether entries came without a run: their masks are drawn with those of the next runs, of which the first
    /// opens all of them.
    pub(super) missed: bool,
}

/// This party's masks for several runs.
pub struct Drawn {
    left: Zeroizing<Vec<u64>>,
    masks: Arc<Zeroizing<Vec<u64>>>,
    /// Masks of the left factors, as [`Layer::products`] multiplies them.
    pub a: Share,
    /// Masks of the right factor.
    pub b: Share,
}

/// What one run takes of masks that were drawn for several; it is consumed by the run.
pub struct Prepared {
    pub(super) run: usize,
    pub(super) left: Zeroizing<Vec<u64>>,
    /// Masks of all entries that runs read which were prepared together: later ones may be
    /// prepared before these have run.
    pub(super) masks: Arc<Zeroizing<Vec<u64>>>,
    /// This party's share of the products of the masks, mod 2^(out + 3).
    pub(super) products: Share,
}

impl Memory {
    /// Forgets all entries, since some came without a run. What was prepared for later runs is of no
    /// more use.
    pub fn forget(&mut self) {
        *self = Self { missed: true, ..Self::default() };
    }

    /// Draws masks for the next runs. `fixed` are the entries that the server knows, one after
    /// another, each with the values of the first item first; the client has none.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for another number of `fixed` values than the plan has.
    pub fn draw(
        &mut self,
        layer: &Layer,
        fixed: Option<&[u64]>,
        rng: &mut Random,
    ) -> Result<Drawn> {
        let (shape, bits) = (&layer.shape, layer.plain_bits);
        let (each, constants) = (shape.entry(), shape.fixed * shape.entry());
        if fixed.is_some_and(|fixed| fixed.len() != constants) {
            return Err(defect("a product lacks constants of its right factor"));
        }
        let past = (shape.window() - 1) * each;
        let mut masks = Zeroizing::new(Vec::with_capacity(constants + past + layer.runs * each));
        masks.extend(fixed.unwrap_or_default());
        masks.resize(constants, 0);
        match self.masks.len().checked_sub(past) {
            Some(start) if !self.masks.is_empty() => {
                masks.extend(self.masks.get(start..).unwrap_or_default());
            }
            _ => {
                match self.missed {
                    true => masks.extend(Zeroizing::new(rng.uniform(past, bits)).iter()),
                    false => masks.resize(constants + past, 0),
                }
                self.differences = Zeroizing::new(vec![0; past + each]);
            }
        }
        let fresh = Zeroizing::new(rng.uniform(layer.runs * each, bits));
        masks.extend(fresh.iter());
        self.masks = Arc::new(masks);
        let left = Zeroizing::new(rng.uniform(layer.runs * shape.left(), bits));
        let a = Share::new(below(layer, &left), bits);
        let b = Share::new(laid(shape, &self.masks), bits);
        Ok(Drawn { left, masks: Arc::clone(&self.masks), a, b })
    }
}

impl Drawn {
    /// What each of the runs takes of these masks and of this party's share of their `products`.
    pub fn split(self, layer: &Layer, products: &Share) -> Vec<Prepared> {
        let shape = &layer.shape;
        let all = shape.entries() + layer.runs - 1;
        let columns = match shape.axis {
            Axis::Inner => shape.columns,
            Axis::Columns => all,
        };
        let left = self.left.chunks_exact(shape.left());
        let prepared = left.enumerate().map(|(run, left)| {
            let mut places = Vec::with_capacity(layer.outputs());
            for item in 0..shape.batch {
                for row in 0..shape.rows {
                    let first = ((item * layer.runs + run) * shape.rows + row) * columns;
                    places.extend((0..shape.columns).map(|column| match shape.axis {
                        Axis::Inner => first + column,
                        Axis::Columns => first + shape.seen(run, column),
                    }));
                }
            }
            let (left, masks) = (Zeroizing::new(left.to_vec()), Arc::clone(&self.masks));
            Prepared { run, left, masks, products: products.gather(places) }
        });
        prepared.collect()
    }
}

/// The left factors of all runs below each other, with zeros for entries that a run does not
/// read.
fn below(layer: &Layer, left: &[u64]) -> Vec<u64> {
    let shape = &layer.shape;
    let inner = match shape.axis {
        Axis::Inner => shape.entries() + layer.runs - 1,
        Axis::Columns => shape.inner,
    };
    let mut all = vec![0; shape.batch * layer.runs * shape.rows * inner];
    for (run, left) in left.chunks_exact(shape.left()).enumerate() {
        for (at, row) in left.chunks_exact(shape.inner).enumerate() {
            let (item, row_of) = (at / shape.rows, at % shape.rows);
            let first = ((item * layer.runs + run) * shape.rows + row_of) * inner;
            for (place, word) in row.iter().enumerate() {
                let to = match shape.axis {
                    Axis::Inner => shape.seen(run, place),
                    Axis::Columns => place,
                };
                if let Some(slot) = all.get_mut(first + to) {
                    *slot = *word;
                }
            }
        }
    }
    all
}

/// The right factor of entries that stand one after another.
pub(super) fn laid(shape: &Shape, entries: &[u64]) -> Vec<u64> {
    let (each, other) = (shape.entry(), shape.other());
    let count = entries.len() / each.max(1);
    let mut all = vec![0; entries.len()];
    for (at, word) in entries.iter().enumerate() {
        let (entry, value) = (at / each, at % each);
        let to = shape.place(count, entry, [value / other, value % other]);
        if let Some(slot) = all.get_mut(to) {
            *slot = *word;
        }
    }
    all
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory(<hidden>)")
    }
}

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drawn(<hidden>)")
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prepared(<hidden>)")
    }
}
