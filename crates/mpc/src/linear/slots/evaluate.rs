//! The server's computation, for every evaluator and every order of operations.

use wire::{Error, Result};

use super::machine::{At, Counting, Evaluator, Machine, Operations, Sum};
use super::plan::{Plan, Sequence};
use crate::parallel;

/// A layer in the course of its evaluation: pieces go in, in order, then responses
/// come out.
pub(super) struct Evaluation<'a, E: Evaluator> {
    plan: &'a Plan,
    machine: &'a Machine<E>,
    threads: usize,
    /// The next piece.
    next: usize,
    /// One of each response.
    partials: Vec<Partial<E>>,
}

/// What a response is made of.
enum Partial<E: Evaluator> {
    /// Sums of products; sum i is rotated i times.
    Sums(Vec<Sum<E>>),
    /// The sum over the pieces so far.
    Total(Option<E::Cipher>),
}

/// The operations of `plan`, counted while it runs without data.
pub(in crate::linear) fn operations(plan: &Plan) -> Result<Operations> {
    let machine = Machine::new(Counting);
    let mut evaluation = Evaluation::new(plan, &machine, 1)?;
    plan.pieces.iter().try_for_each(|_| evaluation.push(()))?;
    let parts = evaluation.finish()?;
    parts.into_iter().try_for_each(|part| part.response(plan, &machine))?;
    Ok(machine.operations())
}

impl<'a, E: Evaluator> Evaluation<'a, E> {
    pub(super) fn new(plan: &'a Plan, machine: &'a Machine<E>, threads: usize) -> Result<Self> {
        let sums = match plan.sequence {
            Sequence::Inputs => 1,
            Sequence::Pairs => 0,
            Sequence::Grouped => plan.together / plan.stride(),
        };
        let partial = |_| match sums {
            0 => Ok(Partial::Total(None)),
            _ => (0..sums).map(|_| machine.sum()).collect::<Result<_>>().map(Partial::Sums),
        };
        let partials = (0..plan.responses()).map(partial).collect::<Result<_>>()?;
        Ok(Self { plan, machine, threads, next: 0, partials })
    }

    /// Takes the ciphertext of the next piece.
    pub(super) fn push(&mut self, cipher: E::Cipher) -> Result<()> {
        let rotated = self.rotated(cipher)?;
        match self.plan.sequence {
            Sequence::Pairs => self.push_pairs(&rotated)?,
            Sequence::Inputs | Sequence::Grouped => self.push_sums(&rotated)?,
        }
        self.next += 1;
        Ok(())
    }

    /// The rotations of the next piece that its products need, with their steps.
    fn rotated(&self, cipher: E::Cipher) -> Result<Rotated<E>> {
        let piece = self.plan.pieces.get(self.next).ok_or_else(unfit)?;
        let steps = self.plan.steps(piece);
        let wanted: Vec<usize> = steps.iter().copied().filter(|step| *step > 0).collect();
        let mut ciphers = Vec::with_capacity(steps.len());
        if !wanted.is_empty() {
            let hoisted = self.machine.hoist(&cipher)?;
            let rotate = |step| self.machine.rotate_hoisted(&hoisted, step);
            ciphers = parallel::map(self.threads, wanted, rotate)
                .into_iter()
                .collect::<Result<Vec<_>>>()?;
        }
        if steps.first() == Some(&0) {
            ciphers.insert(0, cipher);
        }
        Ok(Rotated { steps, ciphers })
    }

    /// Adds the products of a piece to all sums.
    fn push_sums(&mut self, rotated: &Rotated<E>) -> Result<()> {
        let (plan, machine, piece) = (self.plan, self.machine, self.next);
        let shape = plan.pieces.get(piece).ok_or_else(unfit)?;
        let factors = (0..plan.turned(shape)).map(|d| rotated.get(&plan.factors(shape, d)));
        let factors = factors.collect::<Result<Vec<_>>>()?;
        let all = self.partials.iter_mut().enumerate().flat_map(|(response, partial)| {
            let sums = match partial {
                Partial::Sums(sums) => sums.as_mut_slice(),
                Partial::Total(_) => &mut [],
            };
            sums.iter_mut().enumerate().map(move |(turns, sum)| (response, turns, sum))
        });
        let add = |(response, turns, sum): (usize, usize, &mut Sum<E>)| {
            let diagonals = match plan.sequence {
                Sequence::Inputs => 0..plan.diagonals(shape),
                _ => at_turn(turns, shape.copies / plan.stride()),
            };
            for diagonal in diagonals {
                let factors = factors.get(diagonal).or(factors.first()).ok_or_else(unfit)?;
                machine.multiply_add(sum, factors, At { response, piece, diagonal })?;
            }
            Ok(())
        };
        parallel::map(self.threads, all.collect(), add).into_iter().collect()
    }

    /// Rotates the diagonals of a piece for each response by itself.
    fn push_pairs(&mut self, rotated: &Rotated<E>) -> Result<()> {
        let (plan, machine, piece) = (self.plan, self.machine, self.next);
        let shape = plan.pieces.get(piece).ok_or_else(unfit)?;
        let factors = rotated.get(&plan.factors(shape, 0))?;
        let pair = |(response, partial): (usize, &mut Partial<E>)| {
            let product = |diagonal| {
                let mut sum = machine.sum()?;
                machine.multiply_add(&mut sum, &factors, At { response, piece, diagonal })?;
                Ok(sum)
            };
            let sums = (0..plan.diagonals(shape)).map(product).collect::<Result<_>>()?;
            let sum = fold(machine, sums, plan.output_step(shape))?;
            let Partial::Total(total) = partial else { return Err(unfit()) };
            match total {
                Some(total) => machine.add(total, &sum)?,
                None => *total = Some(sum),
            }
            Ok(())
        };
        let all = self.partials.iter_mut().enumerate().collect();
        parallel::map(self.threads, all, pair).into_iter().collect()
    }

    /// The parts of all responses, in order, after all pieces.
    pub(super) fn finish(self) -> Result<Vec<Part<E>>> {
        if self.next != self.plan.pieces.len() {
            return Err(unfit());
        }
        Ok(self.partials.into_iter().map(Part).collect())
    }
}

/// A response before its last rotations.
pub(super) struct Part<E: Evaluator>(Partial<E>);

impl<E: Evaluator> Part<E> {
    /// Rotates and adds up.
    pub(super) fn response(self, plan: &Plan, machine: &Machine<E>) -> Result<E::Cipher> {
        let mut total = match self.0 {
            Partial::Sums(sums) => fold(machine, sums, plan.stride() * plan.grid.block)?,
            Partial::Total(total) => total.ok_or_else(unfit)?,
        };
        for step in plan.doublings() {
            let rotated = machine.rotate(&total, step)?;
            machine.add(&mut total, &rotated)?;
        }
        Ok(total)
    }
}

/// Rotates sum i by `i*step` and adds them all, by Horner's rule: one step at a time.
fn fold<E: Evaluator>(machine: &Machine<E>, sums: Vec<Sum<E>>, step: usize) -> Result<E::Cipher> {
    let mut sums = sums.into_iter().rev();
    let mut total = machine.finish(sums.next().ok_or_else(unfit)?)?;
    for sum in sums {
        total = machine.rotate(&total, step)?;
        machine.add(&mut total, &machine.finish(sum)?)?;
    }
    Ok(total)
}

/// The diagonal of a piece that is rotated `turns` times, when each of its own rotations
/// takes `each`.
fn at_turn(turns: usize, each: usize) -> std::ops::Range<usize> {
    let diagonal = turns / each;
    if turns.is_multiple_of(each) { diagonal..diagonal + 1 } else { 0..0 }
}

/// Rotations of one ciphertext.
struct Rotated<E: Evaluator> {
    steps: Vec<usize>,
    ciphers: Vec<E::Cipher>,
}

impl<E: Evaluator> Rotated<E> {
    fn get(&self, steps: &[usize]) -> Result<Vec<&E::Cipher>> {
        let find = |step| {
            let at = self.steps.binary_search(step).ok();
            at.and_then(|at| self.ciphers.get(at)).ok_or_else(unfit)
        };
        steps.iter().map(find).collect()
    }
}

fn unfit() -> Error {
    Error::misuse("ciphertexts that do not fit their layer")
}
