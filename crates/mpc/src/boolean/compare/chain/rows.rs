//! Rows of a chain's tables, bit by bit: how the sender fills them and the receiver opens one.

use ot::{Column, Table};
use ring::Bits;

use super::{Digit, Goal};
use crate::boolean::compare::minterms::minterms;

/// The planes of a row.
type Row = Vec<Bits>;

/// The rows of the one column of an OT.
pub(super) fn of(columns: Vec<Column>, row: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for mut column in columns {
        let mut planes = std::mem::take(&mut column.planes).into_iter().peekable();
        while planes.peek().is_some() {
            rows.push(planes.by_ref().take(row.max(1)).collect());
        }
    }
    rows
}

/// The table of a digit at the party that has `operands`: `masks` of the states that go out and
/// come in, and the `keys` to the rows of the next table, in the order of their colours.
pub(super) fn table(
    digit: &Digit,
    goal: Goal,
    operands: &[u64],
    [out, into]: [&[Bits]; 2],
    keys: Vec<Row>,
) -> Table {
    let mut labels = match digit.last && goal.adds() {
        true => summands(out),
        false => labels(digit, out, keys),
    };
    let own = minterms(&digit.of(operands), operands.len());
    let first = labels.first().cloned().unwrap_or_default();
    labels
        .iter_mut()
        .skip(1)
        .flat_map(|label| label.iter_mut().zip(&first))
        .for_each(|(plane, first)| plane.xor(first));
    let entry = |asked: u32| {
        let fill = |state: u32| row(digit, goal, [state, asked], &own, &labels);
        let mut rows: Vec<Row> = (0..digit.rows() as u32).map(fill).collect();
        permute(&mut rows, into);
        rows.into_iter().flatten().collect()
    };
    Table::bits((0..1 << digit.width).map(entry).collect())
}

/// The label of each state that goes out: its bits under the mask, then the key to the row of this
/// colour.
fn labels(digit: &Digit, masks: &[Bits], mut keys: Vec<Row>) -> Vec<Row> {
    permute(&mut keys, masks);
    let mut keys = keys.into_iter();
    let label = |state: usize| {
        let bits = masks.iter().enumerate();
        let colour = bits.map(|(bit, mask)| match (state >> bit) & 1 {
            0 => mask.clone(),
            _ => mask.not(),
        });
        colour.chain(keys.next().unwrap_or_default()).collect()
    };
    (0..1 << digit.colour).map(label).collect()
}

/// The labels of the outcomes 0 and 1 as summands: the sum of the outcome and the mask.
fn summands(masks: &[Bits]) -> Vec<Row> {
    let mut carry = masks.first().map(|mask| Bits::zeros(mask.len()).not()).unwrap_or_default();
    let next = masks.iter().map(|mask| {
        let mut bit = mask.clone();
        bit.xor(&carry);
        carry = carry.and(mask);
        bit
    });
    let next = next.collect();
    vec![masks.to_vec(), next]
}

/// The row of an entry for one state that comes in: the label of the state that the own digit
/// makes of it. `labels` but the first are differences to the first.
fn row(digit: &Digit, goal: Goal, [state, asked]: [u32; 2], own: &[Bits], labels: &[Row]) -> Row {
    let mut found: Vec<Option<Bits>> = vec![None; labels.len()];
    for (told, here) in (0..).zip(own) {
        let next = digit.next(goal, state, asked, told) as usize;
        match found.get_mut(next) {
            Some(Some(found)) => found.xor(here),
            Some(none) => *none = Some(here.clone()),
            None => {}
        }
    }
    let mut labels = labels.iter().zip(found);
    let mut row = labels.next().map(|(first, _)| first.clone()).unwrap_or_default();
    for (difference, found) in labels {
        let Some(found) = found else { continue };
        row.iter_mut().zip(difference).for_each(|(plane, d)| plane.xor_and(d, &found));
    }
    row
}

/// Moves row `j xor mask` to place `j`.
fn permute(rows: &mut [Row], masks: &[Bits]) {
    for (bit, mask) in masks.iter().enumerate() {
        for square in rows.chunks_exact_mut(2 << bit) {
            let (low, high) = square.split_at_mut(1 << bit);
            for (low, high) in low.iter_mut().zip(high) {
                low.iter_mut().zip(high).for_each(|(low, high)| low.swap_where(high, mask));
            }
        }
    }
}

/// The row that stands in the place `colour`, decrypted.
pub(super) fn opened(mut rows: Vec<Row>, colour: &[Bits], key: &[Bits]) -> Row {
    for plane in colour.iter().rev() {
        let high = rows.split_off(rows.len() / 2);
        for (low, high) in rows.iter_mut().zip(high) {
            for (low, mut high) in low.iter_mut().zip(high) {
                high.xor(low);
                low.xor_and(&high, plane);
            }
        }
    }
    let mut row = rows.into_iter().next().unwrap_or_default();
    row.iter_mut().zip(key).for_each(|(plane, key)| plane.xor(key));
    row
}
