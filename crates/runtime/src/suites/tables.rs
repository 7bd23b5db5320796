//! Functions of few bits by one table each, whatever they are by comparisons.

use graph::ops;
use mpc::lookup::{Lookup, PublicTable, tabulate};
use ring::word::mask;
use wire::{Error, Result, Role};

use super::node_context::NodeContext;
use super::transformer;
use crate::step::Action;
use crate::step::sliced::Sliced;

/// Most bits of a table's positions.
const MOST_BITS: u32 = 8;

/// A node by one table, chosen from by the server: the client speaks last and goes on. Smooth
/// functions are clipped first.
///
/// # Errors
/// [`Error::Misuse`] for a node that is no function of each value, or of too many bits.
pub(super) fn action(cx: &NodeContext<'_>) -> Result<Action> {
    let (op, bits, out_bits) = (&cx.node.op, cx.bits(), cx.out_bits());
    if op.is::<ops::Fold>() {
        return transformer::clipped_fold(cx);
    }
    if bits > MOST_BITS {
        return Err(Error::misuse("a table of more than 8 bits"));
    }
    let of = |function: &dyn Fn(i64) -> i64| tabulate(bits, cx.input().format.signed, function);
    let table = if let Some(&ops::Relu { saturate, low }) = op.get() {
        let cap = mask(saturate.min(62)) as i64;
        of(&|x| (x - low).clamp(0, cap) + low)
    } else if op.is::<ops::Extend>() {
        of(&|x| x)
    } else if let Some(&ops::Requantize { drop }) = op.get()
        && (1..63).contains(&drop)
    {
        of(&|x| (x + (1i64 << (drop - 1))) >> drop)
    } else {
        return Err(Error::misuse("it has no table"));
    };
    let sliced = Sliced::new(cx.count(), |count| {
        let plan = Lookup::new(count, bits, out_bits)?.chosen_by(Role::Server);
        Ok(PublicTable::new(plan, table.clone()))
    })?;
    Ok(Action::from(sliced))
}
