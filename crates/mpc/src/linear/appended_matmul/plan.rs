//! The public plan and what it costs.

use graph::Rounding;
use wire::{Cost, Error, Packed, Result, Role, Segment, tags};

use crate::linear::shared_matmul::{self, Left};

/// Both parties' shares less their masks.
pub(super) type Masked = Packed<{ tags::MASKED_FACTORS }>;

/// Bits below those of the result that products of masks keep: errors of rounding them are
/// eight times smaller.
pub(super) const KEPT_BITS: u32 = 3;

/// The axis of the right factor along which entries are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Each entry is a row of the right factor, and products sum over them.
    Inner,
    /// Each entry is a column of the right factor.
    Columns,
}

/// The products of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Products.
    pub batch: usize,
    /// Rows of left factor and result.
    pub rows: usize,
    /// Columns of the left factor, rows of the right one.
    pub inner: usize,
    /// Columns of right factor and result.
    pub columns: usize,
    /// Where entries are appended.
    pub axis: Axis,
    /// The first entries, which the server knows and which never change; fewer than all.
    pub fixed: usize,
}

/// The public plan of products that are prepared for several runs together.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) shape: Shape,
    pub(super) runs: usize,
    pub(super) plain_bits: u32,
    pub(super) out_bits: u32,
    products: shared_matmul::Layer,
}

impl Shape {
    /// Entries that one run reads.
    pub(super) fn entries(&self) -> usize {
        match self.axis {
            Axis::Inner => self.inner,
            Axis::Columns => self.columns,
        }
    }

    /// Entries that change.
    pub(super) fn window(&self) -> usize {
        self.entries().saturating_sub(self.fixed)
    }

    /// The side of the right factor that is no axis of entries.
    pub(super) fn other(&self) -> usize {
        match self.axis {
            Axis::Inner => self.columns,
            Axis::Columns => self.inner,
        }
    }

    /// Values of one entry.
    pub(super) fn entry(&self) -> usize {
        self.batch * self.other()
    }

    /// Values of one left factor.
    pub(super) fn left(&self) -> usize {
        self.batch * self.rows * self.inner
    }

    /// The products of matrices whose right factor has so many entries, and of so many times
    /// the rows.
    pub(super) fn matrices(&self, entries: usize, runs: usize) -> shared_matmul::Shape {
        let (inner, columns) = match self.axis {
            Axis::Inner => (entries, self.columns),
            Axis::Columns => (self.inner, entries),
        };
        shared_matmul::Shape { batch: self.batch, rows: self.rows * runs, inner, columns }
    }

    /// The place of a value among those of the right factor, which has so many `entries`.
    pub(super) fn place(&self, entries: usize, entry: usize, [item, other]: [usize; 2]) -> usize {
        match self.axis {
            Axis::Inner => (item * entries + entry) * self.columns + other,
            Axis::Columns => (item * self.inner + other) * entries + entry,
        }
    }

    /// Returns the entry of those of all runs that is the one at `entry` of this `run`.
    pub fn seen(&self, run: usize, entry: usize) -> usize {
        if entry < self.fixed { entry } else { entry + run }
    }
}

impl Layer {
    /// Plans products that are divided by `2^shift` for results of `out_bits`, rounded at
    /// random, prepared for `runs` together.
    ///
    /// # Errors
    /// [`Error::Misuse`] for empty or gigantic matrices, no run, a right factor that never
    /// changes, a shift of fewer than 3 bits, or when no secure parameters hold the precision.
    pub fn new(shape: Shape, shift: u32, out_bits: u32, runs: usize) -> Result<Self> {
        let refuse = || Error::misuse("products with a growing matrix of no such sizes or widths");
        let entries = (shape.entries().checked_add(runs)).ok_or_else(refuse)?;
        let rows = shape.rows.checked_mul(runs);
        if runs == 0 || shape.window() == 0 || shift < KEPT_BITS || rows.is_none() {
            return Err(refuse());
        }
        let kept = out_bits.checked_add(KEPT_BITS).ok_or_else(refuse)?;
        let (all, rounding) = (shape.matrices(entries - 1, runs), Rounding::Stochastic);
        let products =
            shared_matmul::Layer::new(all, Left::Shared, shift - KEPT_BITS, kept, rounding)?;
        Ok(Self { shape, runs, plain_bits: products.plain_bits(), out_bits, products })
    }

    /// Plans the same products prepared for other `runs` together, under keys that serve these. What a party
    /// keeps of entries serves both.
    ///
    /// # Errors
    /// [`Error::Misuse`] for no run, and when those keys do not hold the precision.
    pub fn for_runs(&self, runs: usize) -> Result<Self> {
        let refuse = || Error::misuse("products with a growing matrix for no such number of runs");
        let entries = runs.checked_sub(1).and_then(|more| self.shape.entries().checked_add(more));
        if self.shape.rows.checked_mul(runs).is_none() {
            return Err(refuse());
        }
        let all = self.shape.matrices(entries.ok_or_else(refuse)?, runs);
        Ok(Self { runs, products: self.products.resized(all)?, ..self.clone() })
    }

    /// Returns the products of the masks of all runs, which are preprocessed.
    pub fn products(&self) -> &shared_matmul::Layer {
        &self.products
    }

    /// Returns the number of runs that are prepared together.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Returns a bound on the probability that a product of masks is off by more than its width has room for, in
    /// whichever number of runs up to this plan's it is prepared.
    pub fn failure(&self) -> f64 {
        let fewer = (1..self.runs).filter_map(|runs| self.for_runs(runs).ok());
        fewer.map(|layer| layer.products.failure()).fold(self.products.failure(), f64::max)
    }

    /// Returns the number of values of the results of a run.
    pub fn outputs(&self) -> usize {
        self.shape.batch * self.shape.rows * self.shape.columns
    }

    /// Returns the bytes that a party holds of what was prepared for all runs.
    pub fn held_bytes(&self) -> usize {
        let Shape { fixed, .. } = self.shape;
        let entries = fixed + 2 * self.shape.window() + self.runs;
        8 * (self.runs * (self.shape.left() + self.outputs()) + entries * self.shape.entry())
    }

    /// Returns the multiplications of each party in a run.
    pub fn clear_work(&self) -> usize {
        2 * self.shape.left() * self.shape.columns
    }

    /// Returns what a run costs after it was prepared.
    pub fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    /// Returns what a run costs behind entries that came without a run: it opens its whole window.
    pub fn missed_cost(&self) -> Cost {
        self.cost_of(self.shape.window())
    }

    fn cost_of(&self, opened: usize) -> Cost {
        let body = Masked::body_len(&[self.masked(opened)]);
        Cost::message(Role::Client, body).then(Cost::message(Role::Server, body))
    }

    /// Values that a party sends in a run that opens so many entries.
    pub(super) fn masked(&self, opened: usize) -> Segment {
        Segment { count: self.shape.left() + opened * self.shape.entry(), bits: self.plain_bits }
    }
}
