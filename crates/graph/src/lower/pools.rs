//! Averages whose readers have a scale of their own, so that they do not make what is averaged
//! coarse.

use super::split::Split;
use crate::error::Result;
use crate::source::ops::AveragePool;
use crate::source::{Calibration, Program};
use std::collections::BTreeSet;

/// Elements of a pool from which on readers are split off.
const MANY: usize = 9;

/// Gives what is averaged over many elements finer steps than what reads the averages asks for.
///
/// The sum of `n` integers has the scale of one divided by `n`: a reader that asks for the steps of
/// an activation asks for steps `n` times as coarse of what is summed. Readers read the averages
/// rescaled then, where what is averaged would have fewer steps than an activation.
pub(super) fn apart(
    mut program: Program,
    calibration: &Calibration,
    activation_bits: u32,
) -> Result<Program> {
    for (input, output) in many(&program) {
        let kept = &BTreeSet::new();
        let split = Split { coarse: &input, bits: activation_bits, read: &output, kept };
        program = split.apart(program, calibration, activation_bits)?;
    }
    Ok(program)
}

/// What pools of many elements read and write.
fn many(program: &Program) -> Vec<(String, String)> {
    let pools = program.source.nodes.iter().filter(|node| {
        let pool = node.op.get::<AveragePool>();
        pool.is_some_and(|pool| pool.kernel.iter().product::<usize>() >= MANY)
    });
    pools.map(|node| (node.inputs[0].clone(), node.output.clone())).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::scale::Scales;
    use super::*;
    use crate::passes::tests::{conv, floats, node, program};
    use crate::source::Ranges;
    use crate::source::ops::{Clip, Multiply};

    const BITS: u32 = 8;
    const SIDE: usize = 4;

    /// The averages of `a` are clipped, which is the result; a product reads `a` as well.
    fn pooled(side: usize) -> (Program, Calibration) {
        let pool = AveragePool {
            kernel: [side; 2],
            stride: [side; 2],
            padding: [0; 4],
            count_include_pad: true,
        };
        let clip = || Clip { minimum: Some(-1.0), maximum: Some(1.0) };
        let nodes = vec![
            node(&["x"], "a", conv("w")),
            node(&["a"], "mean", pool.into()),
            node(&["mean"], "cut", clip().into()),
            node(&["a", "x"], "b", Multiply {}.into()),
        ];
        let weight: [f32; 1] = [1.0];
        let mut made = program(&[1, side, side], nodes, floats(&[("w", &[1, 1, 1, 1], &weight)]));
        made.source.output = "cut".into();
        let names = ["x", "a", "mean", "cut", "b"];
        let ranges: Ranges = names.iter().map(|name| ((*name).to_owned(), (-1.0, 1.0))).collect();
        (made, ranges.into())
    }

    #[test]
    fn what_is_averaged_keeps_its_steps() {
        let (before, calibration) = pooled(SIDE);
        let scale = |program: &Program, tensor| {
            Scales::new(program, &calibration.ranges, BITS).unwrap().of(tensor).unwrap()
        };
        let asked = scale(&before, "cut");
        assert_eq!(scale(&before, "a"), asked * (SIDE * SIDE) as f64);
        let after = apart(before, &calibration, BITS).unwrap();
        assert!(scale(&after, "a") <= asked);
        assert_eq!(scale(&after, "cut"), asked);
        assert!(after.shapes().is_ok());
    }

    #[test]
    fn averages_of_few_stay() {
        let (before, calibration) = pooled(2);
        assert_eq!(apart(before.clone(), &calibration, BITS).unwrap(), before);
    }
}
