//! The server's computation, for every evaluator and every order of operations.

use wire::{Error, Result};

use super::machine::{At, Counting, Evaluator, Machine, Operations, Sum};
use super::plan::{Plan, Sequence};
use crate::defect::defect;
use crate::parallel;

/// A layer in the course of its evaluation: pieces go in, in order, then responses
/// come out.
pub(super) struct Evaluation<'a, E: Evaluator> {
    products: Products<'a, E>,
    threads: usize,
    /// The next piece.
    next: usize,
    /// One of each response.
    parts: Vec<Part<E>>,
}

/// What responses are made from.
pub(super) struct Products<'a, E: Evaluator> {
    plan: &'a Plan,
    machine: &'a Machine<E>,
    /// Pieces that are multiplied at the end.
    held: Vec<Rotated<E>>,
}

/// A response before its last rotations.
pub(super) struct Part<E: Evaluator> {
    response: usize,
    sums: Sums<E>,
}

/// The sums of products of a response so far.
enum Sums<E: Evaluator> {
    /// Sums that wait for their rotations, by the number of these.
    Turns(Vec<Sum<E>>),
    /// Rotated and added up.
    Total(Option<E::Cipher>),
    /// No sum yet, because pieces are held.
    None,
}

/// The operations of `plan`, counted while it runs without data.
pub(in crate::linear) fn operations(plan: &Plan) -> Result<Operations> {
    let machine = Machine::new(Counting);
    let mut evaluation = Evaluation::new(plan, &machine, 1)?;
    plan.pieces.iter().try_for_each(|_| evaluation.push(()))?;
    let (products, parts) = evaluation.finish()?;
    parts.into_iter().try_for_each(|part| products.response(part))?;
    Ok(machine.operations())
}

impl<'a, E: Evaluator> Evaluation<'a, E> {
    pub(super) fn new(plan: &'a Plan, machine: &'a Machine<E>, threads: usize) -> Result<Self> {
        let sums = || match plan.sequence {
            Sequence::Pairs => Ok(Sums::Total(None)),
            _ if plan.holds() => Ok(Sums::None),
            _ => (0..plan.turns()).map(|_| machine.sum()).collect::<Result<_>>().map(Sums::Turns),
        };
        let part = |response| sums().map(|sums| Part { response, sums });
        let parts = (0..plan.responses()).map(part).collect::<Result<_>>()?;
        let products = Products { plan, machine, held: Vec::new() };
        Ok(Self { products, threads, next: 0, parts })
    }

    /// Takes the ciphertext of the next piece.
    pub(super) fn push(&mut self, cipher: E::Cipher) -> Result<()> {
        let rotated = self.rotated(cipher)?;
        match self.products.plan.sequence {
            Sequence::Pairs => self.push_pairs(&rotated)?,
            _ if self.products.plan.holds() => self.products.held.push(rotated),
            _ => self.push_sums(&rotated)?,
        }
        self.next += 1;
        Ok(())
    }

    /// The rotations of the next piece that its products need.
    fn rotated(&self, cipher: E::Cipher) -> Result<Rotated<E>> {
        let Products { plan, machine, .. } = &self.products;
        let piece = self.next;
        let steps = plan.steps(plan.pieces.get(piece).ok_or_else(unfit)?);
        let wanted: Vec<usize> = steps.iter().copied().filter(|step| *step > 0).collect();
        let mut ciphers = Vec::with_capacity(steps.len());
        if !wanted.is_empty() {
            let hoisted = machine.hoist(&cipher)?;
            let rotate = |step| machine.rotate_hoisted(&hoisted, step);
            let rotated = parallel::map(self.threads, wanted, rotate).into_iter();
            ciphers = rotated.collect::<Result<Vec<_>>>()?;
        }
        if steps.first() == Some(&0) {
            ciphers.insert(0, cipher);
        }
        Ok(Rotated { piece, steps, ciphers })
    }

    /// Adds the products of a piece to all sums.
    fn push_sums(&mut self, rotated: &Rotated<E>) -> Result<()> {
        let products = &self.products;
        let factors = rotated.factors(products.plan)?;
        let all = self.parts.iter_mut().flat_map(|part| {
            let sums = match &mut part.sums {
                Sums::Turns(sums) => sums.as_mut_slice(),
                Sums::Total(_) | Sums::None => &mut [],
            };
            let response = part.response;
            sums.iter_mut().enumerate().map(move |(turns, sum)| (response, turns, sum))
        });
        let add = |(response, turns, sum): (usize, usize, &mut Sum<E>)| {
            products.add(sum, &factors, rotated.piece, response, turns)
        };
        parallel::map(self.threads, all.collect(), add).into_iter().collect()
    }

    /// Rotates the diagonals of a piece for each response by itself.
    fn push_pairs(&mut self, rotated: &Rotated<E>) -> Result<()> {
        let Products { plan, machine, .. } = &self.products;
        let piece = rotated.piece;
        let shape = plan.pieces.get(piece).ok_or_else(unfit)?;
        let factors = rotated.get(&plan.factors(shape, 0))?;
        let pair = |part: &mut Part<E>| {
            let response = part.response;
            let product = |diagonal| {
                let mut sum = machine.sum()?;
                machine.multiply_add(&mut sum, &factors, At { response, piece, diagonal })?;
                Ok(sum)
            };
            let sums = (0..plan.diagonals(shape)).rev().map(product);
            let sum = fold(machine, sums, plan.output_step(shape))?;
            match &mut part.sums {
                Sums::Total(Some(total)) => machine.add(total, &sum)?,
                sums => *sums = Sums::Total(Some(sum)),
            }
            Ok(())
        };
        let all = self.parts.iter_mut().collect();
        parallel::map(self.threads, all, pair).into_iter().collect()
    }

    /// What makes responses, and of each its part, in order; after all pieces.
    pub(super) fn finish(self) -> Result<(Products<'a, E>, Vec<Part<E>>)> {
        if self.next != self.products.plan.pieces.len() {
            return Err(unfit());
        }
        Ok((self.products, self.parts))
    }
}

impl<E: Evaluator> Products<'_, E> {
    /// Multiplies what was held, rotates and adds up.
    pub(super) fn response(&self, part: Part<E>) -> Result<E::Cipher> {
        let (plan, machine) = (self.plan, self.machine);
        let step = plan.stride() * plan.grid.block;
        let mut total = match part.sums {
            Sums::Turns(sums) => fold(machine, sums.into_iter().rev().map(Ok), step)?,
            Sums::Total(total) => total.ok_or_else(unfit)?,
            Sums::None => self.multiply(part.response, step)?,
        };
        for step in plan.doublings() {
            let rotated = machine.rotate(&total, step)?;
            machine.add(&mut total, &rotated)?;
        }
        Ok(total)
    }

    /// The sum of the products of all held pieces.
    fn multiply(&self, response: usize, step: usize) -> Result<E::Cipher> {
        let factors = self.held.iter().map(|rotated| rotated.factors(self.plan));
        let factors = factors.collect::<Result<Vec<_>>>()?;
        let sum = |turns| {
            let mut sum = self.machine.sum()?;
            for (piece, factors) in factors.iter().enumerate() {
                self.add(&mut sum, factors, piece, response, turns)?;
            }
            Ok(sum)
        };
        fold(self.machine, (0..self.plan.turns()).rev().map(sum), step)
    }

    /// Adds the products of a piece that are rotated `turns` times.
    fn add(
        &self,
        sum: &mut Sum<E>,
        factors: &[Vec<&E::Cipher>],
        piece: usize,
        response: usize,
        turns: usize,
    ) -> Result<()> {
        let shape = self.plan.pieces.get(piece).ok_or_else(unfit)?;
        for diagonal in self.plan.diagonals_at(shape, turns) {
            let factors = factors.get(diagonal).or(factors.first()).ok_or_else(unfit)?;
            self.machine.multiply_add(sum, factors, At { response, piece, diagonal })?;
        }
        Ok(())
    }
}

/// Rotates sum i by `i*step` and adds them all, by Horner's rule: one step at a time. The
/// last sum comes first.
fn fold<E: Evaluator>(
    machine: &Machine<E>,
    mut sums: impl Iterator<Item = Result<Sum<E>>>,
    step: usize,
) -> Result<E::Cipher> {
    let mut total = machine.finish(sums.next().ok_or_else(unfit)??)?;
    for sum in sums {
        total = machine.rotate(&total, step)?;
        machine.add(&mut total, &machine.finish(sum?)?)?;
    }
    Ok(total)
}

/// Rotations of one ciphertext.
struct Rotated<E: Evaluator> {
    piece: usize,
    steps: Vec<usize>,
    ciphers: Vec<E::Cipher>,
}

impl<E: Evaluator> Rotated<E> {
    /// What the weights of each diagonal are multiplied with; one list if all are alike.
    fn factors(&self, plan: &Plan) -> Result<Vec<Vec<&E::Cipher>>> {
        let shape = plan.pieces.get(self.piece).ok_or_else(unfit)?;
        (0..plan.turned(shape)).map(|d| self.get(&plan.factors(shape, d))).collect()
    }

    fn get(&self, steps: &[usize]) -> Result<Vec<&E::Cipher>> {
        let find = |step| {
            let at = self.steps.binary_search(step).ok();
            at.and_then(|at| self.ciphers.get(at)).ok_or_else(unfit)
        };
        steps.iter().map(find).collect()
    }
}

fn unfit() -> Error {
    defect("ciphertexts of a layer on slots are out of order")
}
