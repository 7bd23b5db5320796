//! The sums of one tile, part by part.

use std::ops::Range;

use he::rlwe::direct::{self, TOGETHER};
use he::rlwe::{Accumulator, Batch, Ciphertext, Operand, Row};
use wire::Result;

use super::layer::Layer;
use super::product::{Kernel, ServerWeights, unfit};
use crate::defect::defect;
use crate::linear::transport::misuse;
use crate::parallel;

/// Returns how many ciphertexts are multiplied together, so that sums are read and written once
/// for all of them.
pub(super) const fn batch(kernel: &Kernel) -> usize {
    match kernel {
        Kernel::Direct(_) => 16,
        // Sums of products with weights that repeat come from memory, parts of the ciphertexts from a near cache.
        Kernel::Transform => 16,
    }
}

/// What ciphertexts are multiplied with.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a> {
    pub(super) layer: &'a Layer,
    pub(super) weights: &'a ServerWeights,
}

/// The sums of one tile, to which its ciphertexts are added as they arrive.
pub(super) struct Tile {
    group: usize,
    threads: usize,
    sums: Sums,
    /// The next input block to be added.
    next: usize,
    /// Ciphertexts that wait to be added together.
    batch: Vec<Arrived>,
    /// The same, ready for direct products.
    factors: Option<direct::Factors>,
    /// Sums to which they have been added.
    added: usize,
    /// Results of the same sums, the next one last.
    done: Vec<Ciphertext>,
}

enum Sums {
    /// Each has the sums of [`TOGETHER`] output blocks.
    Direct(Vec<direct::Sums>),
    /// Each is the sum of one output block.
    Transform(Vec<Accumulator>),
}

enum Arrived {
    Direct(Ciphertext),
    Transform(Operand),
}

impl Arrived {
    const fn direct(&self) -> Option<&Ciphertext> {
        match self {
            Self::Direct(cipher) => Some(cipher),
            Self::Transform(_) => None,
        }
    }

    const fn transformed(&self) -> Option<&Operand> {
        match self {
            Self::Transform(operand) => Some(operand),
            Self::Direct(_) => None,
        }
    }
}

impl Sums {
    fn len(&self) -> usize {
        match self {
            Self::Direct(sums) => sums.len(),
            Self::Transform(sums) => sums.len(),
        }
    }
}

impl Tile {
    /// The sums of one tile of `group`.
    pub(super) fn new(of: Factors<'_>, group: usize, threads: usize) -> Result<Self> {
        let blocks = of.layer.packing.output_blocks();
        let sums = match of.weights.kernel() {
            Kernel::Direct(plan) => {
                Sums::Direct((0..blocks.div_ceil(TOGETHER)).map(|_| plan.zero()).collect())
            }
            Kernel::Transform => {
                let zero = |_| Accumulator::new(of.layer.params).map_err(misuse);
                Sums::Transform((0..blocks).map(zero).collect::<Result<_>>()?)
            }
        };
        let (batch, done) = (Vec::new(), Vec::new());
        Ok(Self { group, threads, sums, next: 0, batch, factors: None, added: 0, done })
    }

    /// Takes the ciphertext of the next input block, and multiplies those that wait when there are
    /// enough of them.
    pub(super) fn push(&mut self, of: Factors<'_>, cipher: Ciphertext) -> Result<()> {
        self.take(of, cipher)?;
        if self.batch.len() == batch(of.weights.kernel()) { self.add(of) } else { Ok(()) }
    }

    /// Takes the ciphertext of the next input block, which waits.
    pub(super) fn take(&mut self, of: Factors<'_>, cipher: Ciphertext) -> Result<()> {
        self.batch.push(match of.weights.kernel() {
            Kernel::Direct(_) => Arrived::Direct(cipher),
            Kernel::Transform => Arrived::Transform(cipher.into_operand().map_err(misuse)?),
        });
        Ok(())
    }

    /// Whether what waits is to be multiplied before more is taken.
    pub(super) fn is_due(&self, of: Factors<'_>) -> bool {
        self.batch.len() == batch(of.weights.kernel())
            || !self.batch.is_empty()
                && self.next + self.batch.len() == of.layer.packing.input_blocks()
    }

    /// Whether all ciphertexts were added to the sums.
    pub(super) fn is_whole(&self, of: Factors<'_>) -> bool {
        self.next == of.layer.packing.input_blocks()
    }

    /// Multiplies and adds what waits.
    fn add(&mut self, of: Factors<'_>) -> Result<()> {
        self.add_some(of, self.sums.len())
    }

    /// Adds what waits to `most` more of the sums, at least 1.
    pub(super) fn add_some(&mut self, of: Factors<'_>, most: usize) -> Result<()> {
        let all = self.sums.len();
        let now = self.added..all.min(self.added.saturating_add(most.max(1)));
        self.added = now.end;
        if let (Kernel::Direct(plan), None) = (of.weights.kernel(), &self.factors) {
            let ciphers: Vec<&Ciphertext> = self.batch.iter().filter_map(Arrived::direct).collect();
            self.factors = Some(plan.factors(&ciphers).map_err(misuse)?);
        }
        self.add_to(of, now)?;
        if self.added == all {
            self.next += self.batch.len();
            (self.batch, self.factors, self.added) = (Vec::new(), None, 0);
        }
        Ok(())
    }

    /// Adds what waits to the sums of `places`.
    fn add_to(&mut self, of: Factors<'_>, places: Range<usize>) -> Result<()> {
        let Factors { layer, weights } = of;
        let (batch, group, next) = (&self.batch, self.group, self.next);
        let inputs = layer.packing.input_blocks();
        let all = self.sums.len();
        let first = places.start;
        let done = match (&mut self.sums, weights.kernel()) {
            (Sums::Direct(sums), Kernel::Direct(plan)) => {
                let one = plan.terms() * TOGETHER;
                let factors = self.factors.as_ref().ok_or_else(unfit)?;
                let add = |(quad, sums): (usize, &mut direct::Sums)| {
                    let row = ((group * all + quad) * inputs + next) * one;
                    let weights = weights.plain(row..row + batch.len() * one)?;
                    plan.accumulate(sums, factors, &weights).map_err(misuse)
                };
                let some = sums.get_mut(places).ok_or_else(unfit)?;
                parallel::map(self.threads, (first..).zip(some).collect(), add)
            }
            (Sums::Transform(sums), Kernel::Transform) => {
                let some = sums.get_mut(places).ok_or_else(unfit)?;
                let row = (group * all + first) * inputs + next;
                let rows = (row..).step_by(inputs);
                return add_transformed(of, rows.zip(some).collect(), batch, self.threads);
            }
            _ => return Err(defect("a tile meets the weights of another layer")),
        };
        done.into_iter().collect()
    }

    /// The sum of `block`, once each in ascending order, after all inputs.
    pub(super) fn result(&mut self, of: Factors<'_>, block: usize) -> Result<Ciphertext> {
        if !self.batch.is_empty() {
            self.add(of)?;
        }
        if !self.is_whole(of) {
            return Err(defect("a tile of products is read before all its inputs"));
        }
        match (&mut self.sums, of.weights.kernel()) {
            (Sums::Direct(sums), Kernel::Direct(plan)) => {
                if block.is_multiple_of(TOGETHER) {
                    let sums = sums.get(block / TOGETHER).ok_or_else(unfit)?;
                    self.done = plan.finish(sums).map_err(misuse)?;
                    self.done.reverse();
                }
                self.done.pop().ok_or_else(unfit)
            }
            (Sums::Transform(sums), Kernel::Transform) => {
                let zero = Accumulator::new(of.layer.params).map_err(misuse)?;
                let sum = sums.get_mut(block).ok_or_else(unfit)?;
                std::mem::replace(sum, zero).finish().map_err(misuse)
            }
            _ => Err(defect("a tile meets the weights of another layer")),
        }
    }
}

/// A sum, and the weights that a batch is multiplied with before it is added.
struct Due<'a> {
    sum: &'a mut Accumulator,
    row: Row,
}

/// Adds the products of a batch and the weights from a place on to each sum. Those with weights that repeat are
/// added part by part for all sums, so that the parts of the ciphertexts stay in a near cache.
fn add_transformed(
    Factors { layer, weights }: Factors<'_>,
    sums: Vec<(usize, &mut Accumulator)>,
    batch: &[Arrived],
    threads: usize,
) -> Result<()> {
    let operands: Vec<&Operand> = batch.iter().filter_map(Arrived::transformed).collect();
    let begin = |(place, sum)| begin(Factors { layer, weights }, place, sum, &operands);
    let begun = parallel::map(threads, sums, begin).into_iter().collect::<Result<Vec<_>>>()?;
    let mut all: Vec<Due<'_>> = begun.into_iter().flatten().collect();
    if all.is_empty() {
        return Ok(());
    }
    let batch = Batch::new(layer.params, &operands).map_err(misuse)?;
    all.iter_mut().try_for_each(|due| due.sum.admit(&batch, &due.row)).map_err(misuse)?;
    for part in batch.parts() {
        let add = |due: &mut Due<'_>| due.sum.add_part(&part, &batch, &due.row);
        let added = parallel::map(threads, all.iter_mut().collect(), add);
        added.into_iter().collect::<he::Result<()>>().map_err(misuse)?;
    }
    Ok(())
}

/// Puts the weights of a sum beside each other; where they cannot be, adds all products.
fn begin<'a>(
    Factors { layer, weights }: Factors<'_>,
    place: usize,
    sum: &'a mut Accumulator,
    operands: &[&Operand],
) -> Result<Option<Due<'a>>> {
    if let Some(row) = weights.row(layer, place, operands.len())? {
        return Ok(Some(Due { sum, row }));
    }
    let all = weights.several(layer, place, operands.len())?;
    let mut pairs = operands.iter().zip(&all);
    pairs.try_for_each(|(x, own)| sum.accumulate(x, own)).map_err(misuse)?;
    Ok(None)
}
