//! The server's computation on ciphertexts, for one plaintext prime.

use he::bfv::noise::Estimate;
use he::bfv::{Accumulator, Ciphertext, Hoisted, PublicKey, RelinearizationKey, RotationKeys};
use wire::{Error, Result};

use super::plan::Plan;
use super::product::{Fold, Product, Scalars, Weighted};
use super::stage::{Squares, Stage};
use super::weights::{Diagonal, Ready, Work};
use crate::linear::transport::misuse;
use crate::parallel;

/// What a server needs of the client's keys.
#[derive(Debug)]
pub struct ServerKeys {
    /// The key that re-randomises answers.
    pub public: PublicKey,
    /// The key for squares, where there are any.
    pub products: Option<RelinearizationKey>,
    /// Keys of at least the turns of [`Plan::rotations`].
    pub rotations: RotationKeys,
}

/// Runs all stages on the messages of a request; the results, and the noise that bounds
/// theirs.
pub(super) fn run(
    plan: &Plan,
    keys: &ServerKeys,
    stages: &[Ready],
    mut messages: Vec<Ciphertext>,
    threads: usize,
) -> Result<Vec<Ciphertext>> {
    for (planned, ready) in plan.stages.iter().zip(stages) {
        messages = at_level(messages, planned.params.widths().len())?;
        messages = match &planned.stage {
            Stage::Scalars(scalars) => convolve(scalars, keys, ready, &messages)?,
            Stage::Product(product) => multiply(product, keys, ready, &messages)?,
            Stage::Columns(_) => vec![columns(ready, &messages)?],
            Stage::Weighted(weighted) => weigh(weighted, ready, &messages, threads)?,
            Stage::Square(squares) => square(squares, keys, ready, messages, threads)?,
        };
        for (index, message) in messages.iter_mut().enumerate() {
            if let Some(bias) = ready.bias(index) {
                message.add_slots(ready.encoder(), bias).map_err(misuse)?;
            }
        }
    }
    at_level(messages, plan.noise.params().widths().len())
}

/// The noise of the results at a prime.
pub(super) fn noise(plan: &Plan, prime: u64) -> Result<Estimate> {
    let mut noise = Estimate::planned(&plan.params, prime);
    for planned in &plan.stages {
        noise = at_level_of(noise, planned.params.widths().len())?;
        noise = planned.stage.noise(noise, planned.weight_bits);
    }
    at_level_of(noise, plan.noise.params().widths().len())
}

fn at_level_of(mut noise: Estimate, primes: usize) -> Result<Estimate> {
    while noise.params().widths().len() > primes {
        noise = noise.dropped().map_err(misuse)?;
    }
    Ok(noise)
}

fn at_level(messages: Vec<Ciphertext>, primes: usize) -> Result<Vec<Ciphertext>> {
    let drop = |mut message: Ciphertext| {
        while message.params().widths().len() > primes {
            message = message.drop_modulus().map_err(misuse)?;
        }
        Ok(message)
    };
    messages.into_iter().map(drop).collect()
}

/// Sums of taps, channel by channel; those of a message move behind each other.
fn convolve(
    scalars: &Scalars,
    keys: &ServerKeys,
    ready: &Ready,
    taps: &[Ciphertext],
) -> Result<Vec<Ciphertext>> {
    let Work::Scalars(weights) = &ready.work else { return Err(unfit()) };
    let rows: Vec<_> = weights.chunks_exact(taps.len().max(1)).collect();
    let sum = |row: &&[he::bfv::Scalar]| {
        let mut sum = Ciphertext::zero(ready.params());
        for (tap, weight) in taps.iter().zip(row.iter()) {
            sum.add_scaled(tap, weight).map_err(misuse)?;
        }
        Ok(sum)
    };
    let together = |rows: &[&[he::bfv::Scalar]]| {
        let mut sums = rows.iter().rev().map(sum);
        let mut all = sums.next().ok_or_else(unfit)??;
        for sum in sums {
            let turn = scalars.turn().ok_or_else(unfit)?;
            all = all.rotate(&keys.rotations, turn).map_err(misuse)?;
            all.add(&sum?).map_err(misuse)?;
        }
        Ok(all)
    };
    rows.chunks(scalars.each).map(together).collect()
}

fn multiply(
    product: &Product,
    keys: &ServerKeys,
    ready: &Ready,
    messages: &[Ciphertext],
) -> Result<Vec<Ciphertext>> {
    let babies = messages.iter().map(|message| turned(product, keys, message));
    let babies = babies.collect::<Result<Vec<_>>>()?;
    let result = |to: usize| {
        let mut sum = inner(product, ready, &babies, [to, product.giants() - 1])?;
        for giant in (0..product.giants() - 1).rev() {
            let turn = product.from.row - product.baby;
            sum = sum.rotate(&keys.rotations, turn).map_err(misuse)?;
            let other = inner(product, ready, &babies, [to, giant])?;
            sum.add(&other).map_err(misuse)?;
        }
        folded(product, keys, sum)
    };
    (0..product.to.messages).map(result).collect()
}

/// A message turned right by 0, 1 and so on.
fn turned(product: &Product, keys: &ServerKeys, message: &Ciphertext) -> Result<Vec<Ciphertext>> {
    if product.baby == 1 {
        return Ok(vec![message.clone()]);
    }
    let hoisted: Hoisted = message.hoist();
    let turn = |baby: usize| {
        let step = if baby == 0 { 0 } else { product.from.row - baby };
        hoisted.rotate(&keys.rotations, step).map_err(misuse)
    };
    (0..product.baby).map(turn).collect()
}

fn inner(
    product: &Product,
    ready: &Ready,
    babies: &[Vec<Ciphertext>],
    [to, giant]: [usize; 2],
) -> Result<Ciphertext> {
    let mut sum = Accumulator::new(ready.params());
    for (from, babies) in babies.iter().enumerate() {
        for (baby, cipher) in babies.iter().enumerate() {
            let plain = ready.plain(product, Diagonal { to, giant, from, baby })?;
            sum.multiply_add(cipher, &plain).map_err(misuse)?;
        }
    }
    Ok(sum.finish())
}

fn folded(product: &Product, keys: &ServerKeys, mut sum: Ciphertext) -> Result<Ciphertext> {
    for fold in &product.folds {
        let turned = match fold {
            Fold::Left(by) => sum.rotate(&keys.rotations, *by),
            Fold::Swap => sum.swap_rows(&keys.rotations),
        };
        sum.add(&turned.map_err(misuse)?).map_err(misuse)?;
    }
    Ok(sum)
}

fn columns(ready: &Ready, messages: &[Ciphertext]) -> Result<Ciphertext> {
    let Work::Plains(plains) = &ready.work else { return Err(unfit()) };
    let mut sum = Accumulator::new(ready.params());
    for (message, plain) in messages.iter().zip(plains) {
        sum.multiply_add(message, plain).map_err(misuse)?;
    }
    Ok(sum.finish())
}

/// Sums of products with integers, result by result.
fn weigh(
    weighted: &Weighted,
    ready: &Ready,
    messages: &[Ciphertext],
    threads: usize,
) -> Result<Vec<Ciphertext>> {
    let Work::Scalars(weights) = &ready.work else { return Err(unfit()) };
    let matrix = &weighted.matrix;
    let result = |output: usize| {
        let mut sum = Ciphertext::zero(ready.params());
        for (input, message) in messages.iter().enumerate() {
            let Some(at) = matrix.weight(output, input) else { continue };
            sum.add_scaled(message, weights.get(at).ok_or_else(unfit)?).map_err(misuse)?;
        }
        Ok(sum)
    };
    parallel::map(threads, (0..matrix.outputs()).collect(), result).into_iter().collect()
}

fn square(
    squares: &Squares,
    keys: &ServerKeys,
    ready: &Ready,
    messages: Vec<Ciphertext>,
    threads: usize,
) -> Result<Vec<Ciphertext>> {
    let Work::Square(multiplier, [by, itself]) = &ready.work else { return Err(unfit()) };
    let key = keys.products.as_ref().ok_or_else(|| Error::misuse("no key for products"))?;
    let square = |message: Ciphertext| {
        let square = multiplier.square(&message, key).map_err(misuse)?;
        if squares.multipliers == [1, 0] {
            return Ok(square);
        }
        let mut sum = Ciphertext::zero(ready.params());
        sum.add_scaled(&square, by).map_err(misuse)?;
        sum.add_scaled(&message, itself).map_err(misuse)?;
        Ok(sum)
    };
    parallel::map(threads, messages, square).into_iter().collect()
}

fn unfit() -> Error {
    Error::misuse("weights that do not fit the plan")
}
