//! The products of a matrix with a vector in messages.
//!
//! | product | in | out |
//! |---|---|---|
//! | convolution, row-major | convolution | stacked: scalars only, then results move together |
//! | dense, row-major | dense | sparse (or interleaved): a message for each row |
//! | stacked, row-major | stacked | interleaved: as many rows at once as there are copies |
//! | interleaved, row-major | interleaved | interleaved |
//! | sparse, column-major | sparse | stacked: no rotation |
//! | batched | batched | batched: scalars only, as in CryptoNets |
//!
//! The three in the middle are one: `span` rows for each copy are multiplied by as many
//! diagonals of the matrix, to a sum of which each slot contributes, and sums of slots
//! `span` apart are added up. A span of 1 is LoLa's; the largest one, which makes one message,
//! has the fewest rotations: baby steps, hoisted, and giant steps (GAZELLE's hybrid product,
//! Halevi and Shoup's steps).
//! Source: LoLa (arXiv 1812.10659), section 4; "GAZELLE" (USENIX Security 2018), section 4;
//! Halevi and Shoup, "Faster homomorphic linear transformations in HElib" (CRYPTO 2018).

use super::layout::{Layout, NOTHING, Place, Representation};
use super::matrix::Matrix;

/// A turn of a sum that is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Both rows left by so much.
    Left(usize),
    /// The rows exchanged.
    Swap,
}

/// A product by diagonals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) matrix: Matrix,
    pub(crate) from: Layout,
    pub(crate) to: Layout,
    /// Diagonals: rows of the matrix for each copy of the vector.
    pub(crate) span: usize,
    /// Diagonals that are reached by turning the vector, the others by turning sums.
    pub(crate) baby: usize,
    pub(crate) folds: Vec<Fold>,
}

/// A product by columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) matrix: Matrix,
    pub(crate) to: Layout,
}

/// A product of many vectors at once, element by element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weighted {
    pub(crate) matrix: Matrix,
    pub(crate) to: Layout,
}

impl Weighted {
    /// `None` when the vectors are not batched.
    pub(crate) fn new(matrix: Matrix, from: &Layout) -> Option<Self> {
        let to = Layout::batched(matrix.outputs(), from.row);
        (from.representation == Representation::Batched).then_some(Self { matrix, to })
    }
}

/// A convolution by scalars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalars {
    pub(crate) matrix: Matrix,
    pub(crate) to: Layout,
    /// Channels of results that move together into one message.
    pub(crate) each: usize,
}

impl Product {
    /// `None` when the span does not fit, or `spread` is asked for where the results do not
    /// come to every slot.
    pub(crate) fn new(matrix: Matrix, from: &Layout, span: usize, spread: bool) -> Option<Self> {
        let (row, period) = (from.row, from.period);
        let apart = matches!(from.representation, Representation::Sparse | Representation::Batched);
        if apart || span > period {
            return None;
        }
        let (sums, both) = occupied(from, span);
        let mut differ = sums.iter().fold(0, |bits, sum| bits | (sum ^ sums.first().unwrap_or(&0)));
        let alone = from.copies() == 1;
        if spread {
            if span != 1 || !alone {
                return None;
            }
            differ = row - 1;
        }
        let mut folds: Vec<Fold> = (0..usize::BITS - 1)
            .filter(|bit| differ >> bit & 1 == 1)
            .map(|bit| Fold::Left(span << bit))
            .collect();
        if alone && (both || spread) {
            folds.push(Fold::Swap);
        }
        let home = sums.first().unwrap_or(&0) & !differ;
        let to = match spread {
            true => Layout::sparse(matrix.outputs(), row),
            false => results(from, &matrix, span, home * span),
        };
        Some(Self { matrix, from: from.clone(), to, span, baby: span, folds })
    }

    pub(crate) fn with_baby(self, baby: usize) -> Self {
        Self { baby, ..self }
    }

    /// Sums that are turned, one after another.
    pub(crate) const fn giants(&self) -> usize {
        self.span / self.baby
    }

    /// What the vector's `message`, turned right by `baby`, is multiplied by for the sum
    /// `giant` of result `to`, slot by slot: positions among the weights.
    pub(crate) fn diagonal(
        &self,
        owners: &[u32],
        to: usize,
        giant: usize,
        baby: usize,
    ) -> Vec<Option<usize>> {
        let row = self.from.row;
        let turned = |slot: usize, by: usize| slot / row * row + (slot % row + by) % row;
        let entry = |slot: usize| {
            // The sum is turned right by as many giant steps after the product.
            let output = self.output(to, turned(slot, giant * self.baby))?;
            let owner = owners.get(turned(slot, row - baby)).copied().unwrap_or(NOTHING);
            if owner == NOTHING { None } else { self.matrix.weight(output, owner as usize) }
        };
        (0..2 * row).map(entry).collect()
    }

    /// The result that a slot of message `to` contributes to.
    fn output(&self, to: usize, slot: usize) -> Option<usize> {
        let (row, period) = (self.from.row, self.from.period);
        let (line, offset) = (slot / row, slot % row);
        let copy = if self.from.mirrored { line } else { 0 } * (row / period) + offset / period;
        let output = (to * self.from.copies() + copy) * self.span + offset % self.span;
        (output < self.matrix.outputs()).then_some(output)
    }
}

/// Which blocks of `span` slots of a period hold parts of sums, and whether both rows do.
fn occupied(from: &Layout, span: usize) -> (Vec<usize>, bool) {
    let blocks = from.period / span;
    let mut seen = vec![false; blocks];
    let mut rows = [false; 2];
    for place in &from.places {
        for block in [place.offset / span, place.offset.div_ceil(span)] {
            seen.iter_mut().skip(block % blocks).take(1).for_each(|seen| *seen = true);
        }
        rows.iter_mut().skip(place.row).take(1).for_each(|row| *row = true);
    }
    let sums = seen.iter().enumerate().filter(|(_, seen)| **seen).map(|(i, _)| i).collect();
    (sums, rows == [true; 2])
}

/// Where the results are: `span` for each copy of the vector, from `home` on.
fn results(from: &Layout, matrix: &Matrix, span: usize, home: usize) -> Layout {
    let (copies, row, period) = (from.copies(), from.row, from.period);
    // The sums of a vector in one row stay in that row.
    let first = if from.mirrored || from.places.iter().any(|place| place.row == 0) { 0 } else { 1 };
    let place = |output: usize| {
        let (copy, within) = (output / span % copies, output % span);
        let slot = copy * period;
        let row_of = if copies == 1 { first } else { slot / row };
        let offset = slot % row + home + within;
        Place { message: output / (span * copies), row: row_of, offset }
    };
    let outputs = matrix.outputs();
    let dense = copies == 1 && outputs <= span;
    Layout {
        representation: if dense { Representation::Dense } else { Representation::Interleaved },
        row,
        messages: outputs.div_ceil(span * copies),
        period: row,
        mirrored: false,
        places: (0..outputs).map(place).collect(),
    }
}

impl Columns {
    /// `None` when the vector is not sparse or a row does not hold the results.
    pub(crate) fn new(matrix: Matrix, from: &Layout) -> Option<Self> {
        let to = Layout::stacked(matrix.outputs(), from.row)?;
        (from.representation == Representation::Sparse).then_some(Self { matrix, to })
    }
}

impl Scalars {
    /// `None` for grouped convolutions and windows that a row does not hold.
    pub(crate) fn new(matrix: Matrix, row: usize) -> Option<Self> {
        let (windows, channels) = (matrix.windows(), matrix.conv().out_channels);
        if matrix.conv().groups != 1 || windows == 0 || windows > row {
            return None;
        }
        let together = matrix.outputs().next_power_of_two();
        let (period, each) =
            if together <= row { (together, channels) } else { (row, row / windows) };
        let place = |output: usize| {
            let (channel, window) = (output / windows, output % windows);
            let offset = channel % each * windows + window;
            Place { message: channel / each, row: 0, offset }
        };
        let to = Layout {
            representation: Representation::Stacked,
            row,
            messages: channels.div_ceil(each),
            period,
            mirrored: true,
            places: (0..matrix.outputs()).map(place).collect(),
        };
        Some(Self { matrix, to, each })
    }
}
