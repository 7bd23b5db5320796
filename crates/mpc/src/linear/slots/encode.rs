//! What lies in which slot: inputs, weights and results.

use zeroize::Zeroizing;

use super::grid::{Shift, reach, sides};
use super::machine::At;
use super::plan::{Piece, Plan, Sequence};
use crate::linear::residues::{add, lift};

impl Plan {
    /// The slots of `piece`, of channel-major values: n of each row, all alike.
    pub(super) fn input_slots(&self, piece: &Piece, x: &[u64]) -> Zeroizing<Vec<u64>> {
        let (height, width) = (self.conv.in_height, self.conv.in_width);
        let mut slots = Zeroizing::new(vec![0; self.slots]);
        let x = x.chunks_exact(height * width).skip(piece.first).take(piece.channels);
        let places = slots.chunks_exact_mut(self.grid.block * piece.copies);
        for (plane, places) in x.zip(places) {
            for place in places.chunks_exact_mut(self.grid.block) {
                let rows = place.chunks_mut(self.grid.width).zip(plane.chunks_exact(width));
                rows.for_each(|(to, from)| to[..width].copy_from_slice(from));
            }
        }
        Zeroizing::new(slots.repeat(self.rows))
    }

    /// Adds what the slots of a response, in two rows, say to channel-major results mod `prime`.
    /// Where partial sums were not added under encryption, they are added here.
    pub(super) fn collect(&self, response: usize, slots: &[u64], prime: u64, results: &mut [u64]) {
        for (row, slots) in slots.chunks(slots.len().div_ceil(2)).take(self.rows).enumerate() {
            self.collect_row(self.first_output(response, row), slots, prime, results);
        }
    }

    fn collect_row(&self, first: usize, slots: &[u64], prime: u64, results: &mut [u64]) {
        let (height, width) = (self.conv.out_height(), self.conv.out_width());
        let planes = results.chunks_exact_mut(height * width).skip(first);
        let sums = if self.adds_under_encryption { 1 } else { self.positions() / self.together };
        for (channel, plane) in planes.take(self.together).enumerate() {
            for sum in 0..sums {
                let place = (sum * self.together + channel) * self.grid.block;
                for (at, result) in plane.iter_mut().enumerate() {
                    let slot = place + self.grid.output(&self.conv, at / width, at % width);
                    *result = add(*result, slots.get(slot).copied().unwrap_or(0), prime);
                }
            }
        }
    }
}

/// The slots of weights.
pub(super) struct WeightSlots {
    /// Slots of outputs inside a channel, and the tap that they use, for each shift.
    uses: Vec<Vec<(usize, usize)>>,
    prime: u64,
}

impl WeightSlots {
    pub(super) fn new(plan: &Plan, prime: u64) -> Self {
        let uses = plan.grid.shifts.iter().map(|shift| uses(plan, shift)).collect();
        Self { uses, prime }
    }

    /// The prime that weights are lifted to.
    pub(super) fn prime(&self) -> u64 {
        self.prime
    }

    /// The weights at `at`, for each shift n slots of each row, of `weight` `[O, I/g, kh, kw]`.
    pub(super) fn at(&self, plan: &Plan, at: At, weight: &[i32]) -> Vec<Zeroizing<Vec<u64>>> {
        let mut all = vec![Zeroizing::new(vec![0; plan.rows * plan.slots]); self.uses.len()];
        let Some(piece) = plan.pieces.get(at.piece) else { return all };
        let area = plan.conv.kernel[0] * plan.conv.kernel[1];
        for place in 0..plan.rows * plan.positions() {
            let (row, position) = (place / plan.positions(), place % plan.positions());
            let outputs = plan.first_output(at.response, row);
            let Some(first) = pair(plan, piece, outputs, at.diagonal, position) else { continue };
            let Some(kernel) = weight.get(first * area..(first + 1) * area) else { continue };
            let start = row * plan.slots + position * plan.grid.block;
            for (slots, uses) in all.iter_mut().zip(&self.uses) {
                let place = &mut slots[start..start + plan.grid.block];
                uses.iter().for_each(|(slot, tap)| {
                    place[*slot] = lift(i64::from(kernel[*tap]), self.prime);
                });
            }
        }
        all
    }
}

/// The kernel that is multiplied with what lies at `position`, where a row has the outputs from
/// `outputs` on. Kernels are counted through outputs and the inputs of their group.
fn pair(
    plan: &Plan,
    piece: &Piece,
    outputs: usize,
    diagonal: usize,
    position: usize,
) -> Option<usize> {
    let positions = plan.positions();
    let across = diagonal * piece.copies;
    let (from, to) = match plan.sequence {
        Sequence::Inputs => ((position + across) % positions, position),
        Sequence::Pairs | Sequence::Grouped => {
            (position, (position + positions - across) % positions)
        }
    };
    let input = from / piece.copies;
    let output = outputs + to % plan.together;
    if input >= piece.channels || output >= plan.conv.out_channels {
        return None;
    }
    let each = plan.conv.group_channels();
    let group = output / (plan.conv.out_channels / plan.conv.groups);
    let inside = (piece.first + input).checked_sub(group * each)?;
    (inside < each).then_some(output * each + inside)
}

/// Outputs for which a tap of `shift` reads a pixel: their slots and the tap.
fn uses(plan: &Plan, shift: &Shift) -> Vec<(usize, usize)> {
    let conv = &plan.conv;
    let inside = |axis: usize, out: usize, tap: usize| {
        let at = (out * conv.stride[axis]) as isize + reach(conv, axis, tap);
        (0..sides(conv, axis).0 as isize).contains(&at)
    };
    let mut all = Vec::new();
    for [row, column] in &shift.taps {
        for y in (0..conv.out_height()).filter(|y| inside(0, *y, *row)) {
            let columns = (0..conv.out_width()).filter(|x| inside(1, *x, *column));
            let tap = row * conv.kernel[1] + column;
            all.extend(columns.map(|x| (plan.grid.output(conv, y, x), tap)));
        }
    }
    all
}
