//! Functions of few bits by one table each, whatever they are by comparisons.

use graph::{Graph, Node, Op};
use mpc::lookup::{Lookup, PublicTable, tabulate};
use ring::word::mask;
use wire::{Error, Result, Role};

use crate::plan::sliced::Sliced;
use crate::plan::step::Action;

/// Most bits of a table's positions.
const MOST_BITS: u32 = 8;

/// A node by one table, chosen from by the server: the client speaks last and goes on.
///
/// # Errors
/// [`Error::Misuse`] for a node that is no function of each value, or of too many bits.
pub(super) fn action(graph: &Graph, node: &Node, batch: usize) -> Result<Action> {
    let (input, output) = (graph.input_of(node, 0), graph.output_of(node));
    let (bits, out_bits) = (input.format.bits, output.format.bits);
    if bits > MOST_BITS {
        return Err(Error::misuse("a table of more than 8 bits"));
    }
    let of = |function: &dyn Fn(i64) -> i64| tabulate(bits, input.format.signed, function);
    let table = match node.op {
        Op::Relu { saturate, low } => {
            let cap = mask(saturate.min(62)) as i64;
            of(&|x| (x - low).clamp(0, cap) + low)
        }
        Op::Extend => of(&|x| x),
        Op::Requantize { drop } if (1..63).contains(&drop) => {
            of(&|x| (x + (1i64 << (drop - 1))) >> drop)
        }
        _ => return Err(Error::misuse("it has no table")),
    };
    let sliced = Sliced::new(output.len() * batch, |count| {
        let plan = Lookup::new(count, bits, out_bits)?.chosen_by(Role::Server);
        Ok(PublicTable::new(plan, table.clone()))
    })?;
    Ok(Action::from(sliced))
}
