//! The gates of a group of instances in three halves ([`ot::three_halves`]): almost a quarter less to send than half-gates,
//! for half as many hashes again.
//!
//! The table of a gate for `l` instances is the first two half labels of each instance, then the third of each, and
//! `3*l` bits: a bit of each instance three times, lowest first. They end on a byte.

use ot::gates::GateHash;
use ot::three_halves::{HALVES, Table, evaluate, garble};
use wire::{Error, Result};
use zeroize::Zeroizing;

use crate::circuit::Circuit;
use crate::garble::zeros_of;
use crate::gates::Labels;
use crate::tables::{Tables, Writer};

/// Bits of an AND gate's table.
pub const GATE_BITS: usize = HALVES * (8 * HALF + 1);
/// Bytes of a half label.
const HALF: usize = 8;

/// Returns the bytes of an AND gate's table for `lanes` instances.
pub(crate) const fn gate_bytes(lanes: usize) -> usize {
    HALVES * HALF * lanes + control_bytes(lanes)
}

/// Bytes of its bits.
const fn control_bytes(lanes: usize) -> usize {
    (HALVES * lanes).div_ceil(8)
}

/// Garbles the gates of `lanes` instances, from the zero labels of the inputs in `slots`.
pub(crate) fn garble_gates<const L: usize>(
    circuit: &Circuit,
    hash: &mut GateHash,
    delta: u128,
    slots: &mut [Labels<L>],
    lanes: usize,
    out: &mut Writer<'_>,
) -> Result<()> {
    let (mut table, mut flipped) = (Table::ZERO, Zeroizing::new([[0; L]; 2]));
    for gate in &circuit.gates {
        slots[gate.slot()] = if gate.is_and() {
            let [left, right] = &mut *flipped;
            let left = zeros_of(slots, gate.left, delta, left);
            let right = zeros_of(slots, gate.right, delta, right);
            let product = garble(hash, delta, [left, right], &mut table);
            write(&table, lanes, out.room(gate_bytes(lanes)));
            out.flush()?;
            product
        } else {
            sum(slots, gate.left.node(), gate.right.node())
        };
    }
    Ok(())
}

/// Evaluates the gates of `lanes` instances, from the labels of the inputs in `slots`.
pub(crate) fn evaluate_gates<const L: usize>(
    circuit: &Circuit,
    hash: &mut GateHash,
    slots: &mut [Labels<L>],
    tables: &mut Tables,
    lanes: usize,
) -> Result<()> {
    let (mut table, mut across) = (Table::ZERO, vec![0; gate_bytes(lanes)]);
    for gate in &circuit.gates {
        slots[gate.slot()] = if gate.is_and() {
            read(&mut table, lanes, tables.next(gate_bytes(lanes), &mut across)?)?;
            let operands = [gate.left, gate.right].map(|wire| &slots[wire.node()]);
            evaluate(hash, operands, &table)
        } else {
            sum(slots, gate.left.node(), gate.right.node())
        };
    }
    Ok(())
}

#[inline]
fn sum<const L: usize>(slots: &[Labels<L>], left: usize, right: usize) -> Labels<L> {
    let (left, right) = (&slots[left], &slots[right]);
    std::array::from_fn(|lane| left[lane] ^ right[lane])
}

/// Writes what belongs to the first `lanes` instances.
#[inline]
fn write<const L: usize>(table: &Table<L>, lanes: usize, out: &mut [u8]) {
    let (pairs, rest) = out.split_at_mut(2 * HALF * lanes);
    let (thirds, bits) = rest.split_at_mut(HALF * lanes);
    let rows = pairs.as_chunks_mut::<{ 2 * HALF }>().0;
    rows.iter_mut().zip(&table.pairs).for_each(|(row, pair)| *row = pair.to_le_bytes());
    let rows = thirds.as_chunks_mut::<HALF>().0;
    rows.iter_mut().zip(&table.thirds).for_each(|(row, third)| *row = third.to_le_bytes());
    let kept = (1 << lanes) - 1;
    let planes = table.bits.iter().rev();
    let all = planes.fold(0u32, |all, plane| all << lanes | u32::from(*plane) & kept);
    bits.copy_from_slice(&all.to_le_bytes()[..control_bytes(lanes)]);
}

/// Reads it.
///
/// # Errors
/// [`Error::Peer`] for padding that is not zero.
#[inline]
fn read<const L: usize>(table: &mut Table<L>, lanes: usize, bytes: &[u8]) -> Result<()> {
    let (pairs, rest) = bytes.split_at(2 * HALF * lanes);
    let (thirds, bits) = rest.split_at(HALF * lanes);
    let rows = pairs.as_chunks::<{ 2 * HALF }>().0;
    rows.iter().zip(&mut table.pairs).for_each(|(row, pair)| *pair = u128::from_le_bytes(*row));
    let rows = thirds.as_chunks::<HALF>().0;
    rows.iter().zip(&mut table.thirds).for_each(|(row, third)| *third = u64::from_le_bytes(*row));
    let mut all = [0; 4];
    all[..bits.len()].copy_from_slice(bits);
    let mut all = u32::from_le_bytes(all);
    for plane in &mut table.bits {
        *plane = (all & ((1 << lanes) - 1)) as u8;
        all >>= lanes;
    }
    if all == 0 { Ok(()) } else { Err(Error::peer("zero padding", "other bits")) }
}
