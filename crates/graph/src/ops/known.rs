//! Facts about a tensor's values that follow from the graph: every tensor has a range, and some
//! have more.

use super::range::Range;

/// The facts that are known about a tensor's values: their range, and more where there is more.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The interval that holds every value.
    pub range: Range,
    /// The places on the first axis, in order, where their ranges differ or a norm is known.
    parts: Vec<Part>,
    /// Bound on the sum along the last axis, of values that are not negative.
    row_sum: Option<i128>,
}

/// Neighbouring places on the first axis, and what is known of the values there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Number of places of the part.
    pub length: usize,
    /// The interval that holds every value there.
    pub range: Range,
    /// Bound on the root of the sum of squares along the first axis.
    pub norm: Option<f64>,
}

impl From<Range> for Known {
    fn from(range: Range) -> Self {
        Self { range, parts: vec![], row_sum: None }
    }
}

impl std::ops::Deref for Known {
    type Target = Range;

    fn deref(&self) -> &Range {
        &self.range
    }
}

impl Known {
    /// Values in `range`, and places on the first axis, in order.
    pub fn in_parts(range: Range, parts: Vec<Part>) -> Self {
        Self { parts, ..range.into() }
    }

    /// Values in `range` that are not negative, whose sums along the last axis are bounded.
    pub fn with_row_sum(range: Range, most: i128) -> Self {
        Self { row_sum: Some(most), ..range.into() }
    }

    /// Returns the parts that were named; none where the range is all that is known.
    pub fn named_parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the parts of a tensor with so many places on its first axis.
    pub fn parts(&self, places: usize) -> Vec<Part> {
        match self.parts[..] {
            [] => vec![Part { length: places, range: self.range, norm: None }],
            _ => self.parts.clone(),
        }
    }

    /// Returns the bound on the sum along the last axis, where one is known.
    pub fn row_sum(&self) -> Option<i128> {
        self.row_sum
    }

    /// The facts that still hold after a node, which may keep the first axis or not.
    pub fn kept(&self, same: bool) -> Self {
        if same { self.clone() } else { self.range.into() }
    }
}
