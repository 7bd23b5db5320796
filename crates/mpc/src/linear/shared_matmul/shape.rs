//! What is multiplied.

use graph::Rounding;

use super::term::Sizes;

/// Most values of a matrix: a plan from outside is priced before it is accepted.
const MOST_VALUES: u64 = 1 << 32;

/// `batch` products of `[rows, inner]` and `[inner, columns]`.
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
}

/// Who holds the left factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It is shared, as the right one is.
    Shared,
    /// The client knows it; the server's share of it is not looked at.
    Client,
}

impl Shape {
    /// Values of one left factor.
    pub(super) fn left(&self) -> usize {
        self.rows * self.inner
    }

    /// Values of one right factor.
    pub(super) fn right(&self) -> usize {
        self.inner * self.columns
    }

    /// Values of one result.
    pub(super) fn outputs(&self) -> usize {
        self.rows * self.columns
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes { rows: self.rows, inner: self.inner, columns: self.columns }
    }

    /// Whether there is something in it and no more than anybody could mean.
    pub(super) fn is_sound(&self) -> bool {
        let Self { batch, rows, inner, columns } = *self;
        [[rows, inner], [inner, columns], [rows, columns]].into_iter().all(|[one, other]| {
            let values = one.checked_mul(other).and_then(|each| each.checked_mul(batch));
            values.is_some_and(|values| (1..=MOST_VALUES).contains(&(values as u64)))
        })
    }
}

/// Widths of the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    pub(super) plain_bits: u32,
    pub(super) out_bits: u32,
    pub(super) rounding: Rounding,
}
