//! Which gates are needed, and in which slots their values live.

use crate::circuit::{Gate, Node, Wire, Word};

/// Gates on slots.
pub(crate) struct Placed {
    pub(crate) gates: Vec<Gate>,
    pub(crate) slots: usize,
    pub(crate) outputs: Vec<Word>,
}

/// Never read.
const NEVER: usize = 0;

/// Places `nodes`, which are in an order they can be computed in: slot 0 is the constant,
/// `inputs` follow in the next slots, and a slot is free after the last gate that reads
/// it. Outputs keep theirs.
pub(crate) fn place(nodes: &[Node], inputs: &[usize], outputs: &[&[Wire]]) -> Placed {
    let last = last_uses(nodes, outputs);
    let mut slots = vec![0usize; nodes.len()];
    inputs.iter().zip(1..).for_each(|(node, slot)| slots[*node] = slot);
    let mut placed = Placed { gates: Vec::new(), slots: inputs.len() + 1, outputs: Vec::new() };
    let mut free: Vec<usize> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let (left, right, is_and) = match *node {
            Node::Xor(left, right) => (Wire(left as u32 * 2), Wire(right as u32 * 2), false),
            Node::And(left, right) => (left, right, true),
            Node::Zero | Node::Input => continue,
        };
        if last[at] == NEVER {
            continue;
        }
        let operands = [left, right];
        let [left, right] = operands.map(|wire| moved(&slots, wire));
        for (index, operand) in operands.iter().enumerate() {
            let again = index == 1 && operands[0].node() == operand.node();
            if last[operand.node()] == at && !again {
                free.push(slots[operand.node()]);
            }
        }
        slots[at] = free.pop().unwrap_or(placed.slots);
        placed.slots = placed.slots.max(slots[at] + 1);
        placed.gates.push(Gate::new(left, right, slots[at], is_and));
    }
    let word = |word: &&[Wire]| word.iter().map(|wire| moved(&slots, *wire)).collect();
    placed.outputs = outputs.iter().map(word).collect();
    placed
}

/// The wire with its slot in place of its node.
fn moved(slots: &[usize], wire: Wire) -> Wire {
    Wire((slots[wire.node()] as u32) << 1 | u32::from(wire.is_negated()))
}

/// The last needed node that reads each node; the number of nodes for an output.
fn last_uses(nodes: &[Node], outputs: &[&[Wire]]) -> Vec<usize> {
    let mut last = vec![NEVER; nodes.len()];
    outputs.iter().flat_map(|word| word.iter()).for_each(|w| last[w.node()] = nodes.len());
    for (at, node) in nodes.iter().enumerate().rev() {
        if last[at] == NEVER {
            continue;
        }
        let operands = match *node {
            Node::Xor(left, right) => [left, right],
            Node::And(left, right) => [left.node(), right.node()],
            Node::Zero | Node::Input => continue,
        };
        operands.iter().for_each(|operand| last[*operand] = last[*operand].max(at));
    }
    last
}
