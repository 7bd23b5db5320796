//! Evaluation on slots in the clear.

use graph::Conv;
use ring::Random;
use wire::Result;

use super::super::Protocol;
use super::super::encode::WeightSlots;
use super::super::evaluate::{Evaluation, operations};
use super::super::machine::{At, Evaluator, Machine};
use super::super::plan::{Plan, Rows, Sequence};
use crate::linear::coefficient::tests::{clear, conv, shapes};
use crate::linear::residues::lift;
use crate::linear::testing::{centred, integers, small_shapes};

const PRIME: u64 = (1 << 61) - 1;

/// Slots without encryption.
pub(super) struct Clear<'a> {
    pub(super) plan: &'a Plan,
    pub(super) weights: WeightSlots,
    pub(super) weight: &'a [i32],
}

fn add(prime: u64, sum: &mut [u64], terms: impl Iterator<Item = u64>) {
    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum = (*sum + term) % prime);
}

impl Evaluator for Clear<'_> {
    type Cipher = Vec<u64>;
    type Hoisted = Vec<u64>;
    type Sum = Vec<u64>;

    fn hoist(&self, cipher: &Vec<u64>) -> Result<Vec<u64>> {
        Ok(cipher.clone())
    }
    fn rotate_hoisted(&self, hoisted: &Vec<u64>, step: usize) -> Result<Vec<u64>> {
        self.rotate(hoisted, step)
    }
    fn rotate(&self, cipher: &Vec<u64>, step: usize) -> Result<Vec<u64>> {
        assert!(self.plan.rotations().contains(&step), "a rotation without a key: {step}");
        let mut turned = cipher.clone();
        turned.chunks_exact_mut(self.plan.slots).for_each(|row| row.rotate_left(step));
        Ok(turned)
    }
    fn sum(&self) -> Result<Vec<u64>> {
        Ok(vec![0; self.plan.rows * self.plan.slots])
    }
    fn multiply_add(&self, sum: &mut Vec<u64>, factors: &[&Vec<u64>], at: At) -> Result<()> {
        let (prime, weights) = (self.weights.prime(), self.weights.at(self.plan, at, self.weight));
        assert_eq!(weights.len(), factors.len());
        for (factor, weights) in factors.iter().zip(&weights) {
            let product =
                |(x, w): (&u64, &u64)| (u128::from(*x) * u128::from(*w) % u128::from(PRIME)) as u64;
            add(prime, sum, factor.iter().zip(weights.iter()).map(product));
        }
        Ok(())
    }
    fn finish(&self, sum: Vec<u64>) -> Result<Vec<u64>> {
        Ok(sum)
    }
    fn add(&self, cipher: &mut Vec<u64>, other: &Vec<u64>) -> Result<()> {
        add(self.weights.prime(), cipher, other.iter().copied());
        Ok(())
    }
}

/// Computes `plan` and compares results and counts.
fn check(plan: &Plan, threads: usize, rng: &mut Random) {
    let conv = &plan.conv;
    let x = integers(rng, conv.in_channels * conv.in_height * conv.in_width, 12);
    let area = conv.kernel[0] * conv.kernel[1];
    let weight = integers(rng, conv.out_channels * conv.group_channels() * area, 10);
    let weight: Vec<i32> = weight.into_iter().map(|w| w as i32).collect();

    let weights = WeightSlots::new(plan, PRIME);
    let machine = Machine::new(Clear { plan, weights, weight: &weight });
    let mut evaluation = Evaluation::new(plan, &machine, threads).unwrap();
    let words: Vec<u64> = x.iter().map(|x| lift(*x, PRIME)).collect();
    for piece in &plan.pieces {
        evaluation.push(plan.input_slots(piece, &words).to_vec()).unwrap();
    }
    let mut results = vec![0; conv.out_channels * conv.out_height() * conv.out_width()];
    let (products, parts) = evaluation.finish().unwrap();
    for (response, part) in parts.into_iter().enumerate() {
        let mut slots = products.response(part).unwrap();
        slots.resize(2 * plan.slots, 0);
        plan.collect(response, &slots, PRIME, &mut results);
    }
    let got: Vec<i64> = results.into_iter().map(|y| centred(y, PRIME)).collect();
    let want = clear(conv, &x, &weight, &vec![0; conv.out_channels]);
    assert!(got == want, "{conv:?} in {} slots, {:?}", plan.slots, plan.sequence);
    assert_eq!(machine.operations(), operations(plan).unwrap());
}

/// Small layers, matrix products.
fn more_shapes() -> Vec<Conv> {
    let products = [[300, 20], [20, 300], [784, 128], [1, 1]];
    let products = products.map(|[inputs, outputs]| Conv::fully_connected(inputs, outputs));
    small_shapes().into_iter().chain(products).collect()
}

/// All orders that there are, with inputs in one ciphertext and in more.
#[test]
fn every_order_computes_the_layer() {
    let mut rng = Random::seeded(1);
    let sequences = [Sequence::Inputs, Sequence::Pairs, Sequence::Grouped];
    for conv in more_shapes() {
        for (slots, count, divisions) in [(64, 1, 1), (64, 2, 2), (256, 2, 9)] {
            let rows = Rows { slots, count };
            for (sequence, sums) in sequences.into_iter().zip([true, false, false]) {
                for sums in [sums, !sums] {
                    let plan = Plan::new(&conv, rows, divisions, sequence, sums).unwrap();
                    check(&plan, 1, &mut rng);
                }
            }
        }
    }
}

/// Tests go both ways: pieces multiplied as they come, and at the end.
#[test]
fn pieces_are_held_where_that_takes_less_memory() {
    let rows = Rows { slots: 256, count: 1 };
    for (conv, holds) in [
        (conv([64, 8], [4, 4], 3, 1, 1), false),
        (conv([8, 64], [4, 4], 3, 1, 1), true),
        (Conv::fully_connected(300, 200), true),
    ] {
        let plan = Plan::new(&conv, rows, 1, Sequence::Grouped, false).unwrap();
        assert_eq!(plan.holds(), holds, "{conv:?}");
        check(&plan, 2, &mut Random::seeded(3));
    }
}

#[test]
fn both_protocols_compute_every_shape() {
    let mut rng = Random::seeded(2);
    for conv in shapes().iter().chain(&more_shapes()) {
        for protocol in [Protocol::Gazelle, Protocol::Gala] {
            let small = conv.in_height.max(conv.out_height()) < 64;
            let slots = if small { 2048 } else { 8192 };
            let rows = Rows { slots, count: 2 };
            check(&protocol.plan(conv, rows).unwrap().0, 3, &mut rng);
        }
    }
}
