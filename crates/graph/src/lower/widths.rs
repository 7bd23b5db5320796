//! Share widths: every value fits, and every reader finds the width it needs.

use crate::ir::{Model, Op};
use crate::model::ranges;
use crate::width::{self, Range};
use crate::{Error, Result};

/// Widest accumulator that the linear protocols are given.
const WIDEST: u32 = 40;

/// Sets `bits` of every tensor and `accumulator_bits` of every node to the
/// smallest values that satisfy [`crate::verify_model`].
pub(super) fn assign(model: &mut Model) -> Result<()> {
    let ranges = ranges(model);
    let graph = &mut model.graph;
    let mut bits: Vec<u32> = vec![1; graph.tensors.len()];
    for (index, range) in ranges.iter().enumerate() {
        let writer = graph.nodes.iter().find(|node| node.output == index);
        bits[index] = width::width_of_values(writer, *range, index == graph.output);
    }
    for (index, node) in graph.nodes.iter_mut().enumerate() {
        let inputs: Vec<Range> = node.inputs.iter().map(|i| ranges[*i]).collect();
        match &mut node.op {
            Op::Linear(linear) => {
                let range = width::accumulator(linear, &model.weights[&index], &inputs);
                linear.accumulator_bits = range.width().max(2);
            }
            Op::Sum { multipliers, accumulator_bits, shift } => {
                let range = width::sum_accumulator(*multipliers, *shift, &inputs);
                *accumulator_bits = range.width().max(2);
            }
            _ => {}
        }
    }
    // Needs travel towards the input, and across the nodes that keep a width
    // both ways, hence more than one sweep when a tensor has several readers.
    loop {
        let before = bits.clone();
        for node in graph.nodes.iter_mut().rev() {
            let out = bits[node.output];
            if let Op::Linear(crate::Linear { accumulator_bits, shift, .. })
            | Op::Sum { accumulator_bits, shift, .. } = &mut node.op
            {
                *accumulator_bits = (*accumulator_bits).max(out + *shift);
            }
            let keeps = matches!(node.op, Op::MaxPool(_) | Op::SumPool(_) | Op::Reshape);
            for input in &node.inputs {
                let own = if keeps { out } else { 1 };
                let need = width::width_for_reader(node, ranges[*input]).max(own);
                bits[*input] = bits[*input].max(need);
            }
            if keeps {
                bits[node.output] = bits[node.inputs[0]];
            }
        }
        if bits == before {
            break;
        }
    }
    for (tensor, bits) in graph.tensors.iter_mut().zip(bits) {
        tensor.format.bits = bits;
    }
    refuse_wide(model)
}

fn refuse_wide(model: &Model) -> Result<()> {
    for node in &model.graph.nodes {
        let bits = match &node.op {
            Op::Linear(linear) => linear.accumulator_bits,
            Op::Sum { accumulator_bits, .. } => *accumulator_bits,
            _ => model.graph.output_of(node).format.bits,
        };
        if bits > WIDEST {
            let what = format!("needs a width of {bits} bits, at most {WIDEST} are possible");
            let instead = "use fewer activation or weight bits, or put a ReLU between the layers";
            return Err(Error::unsupported(&node.name, what, instead));
        }
    }
    Ok(())
}
