//! What stochastic rounding makes of results: a simulation of the default protocols.
//!
//! Where a product rounds stochastically, the parties round their shares of the quotient apart,
//! so that the result is one of the two integers around it, the nearer one more often: on average
//! the quotient itself. Here a public generator draws which, so that a simulation can be repeated;
//! the noise of encryption, which is far below a last place, is left out.

use super::{Rounded, kernels, run_rounded};
use crate::error::Result;
use crate::ir::Model;
use crate::model::verify_shapes;
use crate::ops::{Accumulator, Linear, MatMul, Op, Rounding};
use rayon::prelude::*;

/// [`super::interpret_batch`] with the stochastic rounding of the default protocols, drawn from a
/// generator that begins at `seed`. Results of a model that rounds exactly are the interpreter's.
///
/// # Errors
/// [`crate::Error::Misuse`] and [`crate::Error::Invalid`] as of [`super::interpret`].
pub fn interpret_stochastic(
    model: &Model,
    inputs: &[Vec<i64>],
    seed: u64,
) -> Result<Vec<Vec<i64>>> {
    verify_shapes(model)?;
    let (whole, shifts) = unrounded(model);
    let kernels = kernels(&whole);
    let one = |index: usize, input: &Vec<i64>, states: &mut Vec<Vec<i64>>| {
        let mut draws = Draws(mixed(seed ^ mixed(index as u64)));
        let mut round = |node: usize, sums: &mut [i64]| {
            let shift = shifts.get(node).copied().unwrap_or(0);
            sums.iter_mut().for_each(|sum| *sum = draws.rounded(*sum, shift));
        };
        let rounded: Rounded<'_> = &mut round;
        let mut tensors = run_rounded(&whole, &kernels, input, states, rounded)?;
        *states = model.graph.states.iter().map(|state| tensors[state.after].clone()).collect();
        Ok(std::mem::take(&mut tensors[model.graph.output]))
    };
    if model.graph.states.is_empty() {
        let inputs = inputs.par_iter().enumerate();
        return inputs.map(|(index, input)| one(index, input, &mut vec![])).collect();
    }
    let mut states = super::first_states(&model.graph);
    inputs.iter().enumerate().map(|(index, input)| one(index, input, &mut states)).collect()
}

/// The model with accumulators in place of what is rounded stochastically, and by node the bits
/// that are dropped from them; 0 where nothing is.
fn unrounded(model: &Model) -> (Model, Vec<u32>) {
    let mut whole = model.clone();
    let shifts = whole.graph.nodes.iter_mut().map(|node| {
        let Some(Accumulator { shift, rounding, .. }) = node.op.accumulator() else { return 0 };
        match rounding == Rounding::Stochastic && keep(&mut node.op) {
            true => shift,
            false => 0,
        }
    });
    let shifts = shifts.collect();
    (whole, shifts)
}

/// Lets a product keep all bits of its accumulator; tells whether it is one.
fn keep(op: &mut Op) -> bool {
    if let Some(linear) = op.get_mut::<Linear>() {
        linear.shift = 0;
        return true;
    }
    if let Some(product) = op.get_mut::<MatMul>() {
        product.shift = 0;
        return true;
    }
    false
}

/// A generator of public numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014); nothing secret comes from it.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// One of the two integers around `sum / 2^shift`, that which is nearer the more often.
    fn rounded(&mut self, sum: i64, shift: u32) -> i64 {
        match shift {
            0 => sum,
            _ => sum.wrapping_add((self.next() >> (64 - shift)) as i64) >> shift,
        }
    }
}

fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_right_on_average_and_next_to_the_quotient() {
        for (sum, shift) in [(1000, 6), (-1000, 6), (63, 7), (-1, 3), (5, 0), (12345, 12)] {
            let mut draws = Draws(7);
            let quotient = sum as f64 / f64::from(1u32 << shift);
            let all: Vec<i64> = (0..20_000).map(|_| draws.rounded(sum, shift)).collect();
            let mean = all.iter().sum::<i64>() as f64 / all.len() as f64;
            assert!((mean - quotient).abs() < 0.02, "{mean} for {quotient}");
            assert!(all.iter().all(|v| (*v as f64 - quotient).abs() < 1.0));
        }
    }
}
