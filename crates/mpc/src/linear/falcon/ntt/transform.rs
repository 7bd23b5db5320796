//! Cyclic Fourier transforms over the integers mod a prime below 2^60, in time that does not
//! depend on the values.

use ring::Modulus;
use wire::{Error, Result};
use zeroize::Zeroizing;

/// How many shorter transforms are put together, and so terms of a sum that is reduced.
const RADICES: [usize; 7] = [2, 3, 4, 5, 6, 8, 9];

/// A prime, and how products mod it are reduced (Montgomery, with 2^64).
#[derive(Clone, Copy, Debug)]
struct Prime {
    modulus: Modulus,
    /// -1/p mod 2^64.
    negative: u64,
}

impl Prime {
    fn new(modulus: Modulus) -> Self {
        let prime = modulus.value();
        // Every step doubles the bits that are right; an odd number is its inverse mod 8.
        let inverse =
            (0..5).fold(prime, |x, _| x.wrapping_mul(2u64.wrapping_sub(prime.wrapping_mul(x))));
        Self { modulus, negative: inverse.wrapping_neg() }
    }

    /// `sum / 2^64`, of a sum of at most 16 products of residues.
    const fn reduce(self, sum: u128) -> u64 {
        let times = (sum as u64).wrapping_mul(self.negative);
        let exact = sum + times as u128 * self.modulus.value() as u128;
        self.modulus.once((exact >> 64) as u64)
    }

    /// `x * 2^64`, of a public residue.
    fn factor(self, x: u64) -> u64 {
        ((u128::from(x) << 64) % u128::from(self.modulus.value())) as u64
    }
}

/// One step of a transform: `radix` shorter ones are put together.
#[derive(Clone, Debug)]
struct Stage {
    radix: usize,
    /// For each value `radix` factors, times 2^64.
    factors: Vec<u64>,
}

/// A transform along an axis.
#[derive(Clone, Debug)]
struct Line {
    prime: Prime,
    stages: Vec<Stage>,
}

impl Line {
    /// Prepares transforms of `length` values with the powers of `root`, whose results are
    /// multiplied by `scale`.
    fn new(prime: Prime, length: usize, root: u64, scale: u64) -> Self {
        let modulus = prime.modulus.value();
        let next = |x: &u64| Some(product(*x, root, modulus));
        let powers: Vec<u64> = std::iter::successors(Some(1), next).take(length).collect();
        let (mut stages, mut left) = (Vec::new(), length);
        for radix in radices(length, length) {
            let step = length / left;
            let scale = if stages.is_empty() { scale } else { 1 };
            let power = |at: usize| powers.get(at % length).copied().unwrap_or(1);
            let factor = |at| prime.factor(product(power(at), scale, modulus));
            let all = (0..left).flat_map(|k| (0..radix).map(move |j| j * k * step));
            stages.push(Stage { radix, factors: all.map(factor).collect() });
            left /= radix;
        }
        Self { prime, stages }
    }

    /// Transforms what stands at `from`, `step` apart, to `to`.
    fn run(&self, from: &[u64], step: usize, to: &mut [u64]) {
        self.run_stages(&self.stages, from, step, to);
    }

    fn run_stages(&self, stages: &[Stage], from: &[u64], step: usize, to: &mut [u64]) {
        let Some((stage, rest)) = stages.split_first() else {
            to.copy_from_slice(&from[..to.len()]);
            return;
        };
        let part = to.len() / stage.radix;
        if part == 1 {
            let gathered = from.iter().step_by(step);
            to.iter_mut().zip(gathered).for_each(|(to, from)| *to = *from);
        } else {
            for (j, to) in to.chunks_exact_mut(part).enumerate() {
                self.run_stages(rest, &from[j * step..], step * stage.radix, to);
            }
        }
        self.combine(stage, part, to);
    }

    /// Puts transforms of `part` values together.
    fn combine(&self, stage: &Stage, part: usize, values: &mut [u64]) {
        match stage.radix {
            2 => self.combine_by::<2>(stage, part, values),
            3 => self.combine_by::<3>(stage, part, values),
            4 => self.combine_by::<4>(stage, part, values),
            5 => self.combine_by::<5>(stage, part, values),
            6 => self.combine_by::<6>(stage, part, values),
            8 => self.combine_by::<8>(stage, part, values),
            _ => self.combine_by::<9>(stage, part, values),
        }
    }

    fn combine_by<const RADIX: usize>(&self, stage: &Stage, part: usize, values: &mut [u64]) {
        let (factors, _) = stage.factors.as_chunks::<RADIX>();
        let mut terms = Zeroizing::new([0u64; RADIX]);
        for first in 0..part {
            for (j, term) in terms.iter_mut().enumerate() {
                *term = values[first + j * part];
            }
            for k in (first..values.len()).step_by(part) {
                let products = terms.iter().zip(&factors[k]);
                let sum = products.map(|(x, factor)| u128::from(*x) * u128::from(*factor)).sum();
                values[k] = self.prime.reduce(sum);
            }
        }
    }
}

/// The transform of planes.
#[derive(Clone, Debug)]
pub(super) struct Transform {
    modulus: Modulus,
    /// Rows and columns.
    sides: [usize; 2],
    /// Along columns and along rows.
    forward: [Line; 2],
    backward: [Line; 2],
}

impl Transform {
    /// Prepares transforms of planes of `sides` rows and columns, mod a prime that is 1 mod both.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other primes.
    pub(super) fn new(sides: [usize; 2], prime: u64) -> Result<Self> {
        let fits = sides.iter().all(|side| prime.wrapping_sub(1).is_multiple_of(*side as u64));
        let modulus = Modulus::new(prime).filter(|_| fits && prime % 2 == 1 && prime >> 60 == 0);
        let modulus = modulus.ok_or_else(|| {
            Error::misuse(format!("no transform of {}x{} values mod {prime}", sides[0], sides[1]))
        })?;
        let line = |side: usize, back: bool| {
            let root = root(side, prime);
            let inverse = |x| power(x, prime - 2, prime);
            let (root, scale) =
                if back { (inverse(root), inverse(side as u64)) } else { (root, 1) };
            Line::new(Prime::new(modulus), side, root, scale)
        };
        let [forward, backward] = [false, true].map(|back| sides.map(|side| line(side, back)));
        Ok(Self { modulus, sides, forward, backward })
    }

    /// The prime.
    pub(super) const fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// A plane, row by row, to its values, in an order of their own.
    pub(super) fn forward(&self, plane: &mut [u64]) {
        let [rows, columns] = self.sides;
        let [down, across] = &self.forward;
        both([(across, columns, 1), (down, rows, columns)], plane);
    }

    /// The inverse of [`Transform::forward`].
    pub(super) fn backward(&self, values: &mut [u64]) {
        let [rows, columns] = self.sides;
        let [down, across] = &self.backward;
        both([(down, rows, 1), (across, columns, rows)], values);
    }
}

/// Transforms neighbours, then what lies a step apart; that is written as neighbours.
fn both([first, second]: [(&Line, usize, usize); 2], plane: &mut [u64]) {
    if plane.len() < 2 {
        return;
    }
    let mut spare = Zeroizing::new(vec![0; plane.len()]);
    let (line, side, _) = first;
    for (from, to) in plane.chunks_exact(side).zip(spare.chunks_exact_mut(side)) {
        line.run(from, 1, to);
    }
    let (line, side, step) = second;
    for (at, to) in plane.chunks_exact_mut(side).enumerate() {
        line.run(&spare[at..], step, to);
    }
}

fn product(x: u64, y: u64, prime: u64) -> u64 {
    (u128::from(x) * u128::from(y) % u128::from(prime)) as u64
}

fn power(base: u64, mut exponent: u64, prime: u64) -> u64 {
    let (mut result, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, square, prime);
        }
        square = product(square, square, prime);
        exponent >>= 1;
    }
    result
}

/// An element of order `length`, the same for both parties.
fn root(length: usize, prime: u64) -> u64 {
    let length = length as u64;
    let candidates = (2..prime).map(|base| power(base, (prime - 1) / length, prime));
    let divisors = [2, 3, 5].into_iter().filter(|divisor| length.is_multiple_of(*divisor));
    let divisors: Vec<u64> = divisors.collect();
    let primitive = |root: &u64| divisors.iter().all(|d| power(*root, length / d, prime) != 1);
    candidates.into_iter().find(primitive).unwrap_or(1)
}

/// Factors of `length` among [`RADICES`], none above `most`, of the smallest sum.
fn radices(length: usize, most: usize) -> Vec<usize> {
    // What reducing a sum costs, in products.
    const REDUCED: usize = 4;
    let cost = |radices: &Vec<usize>| {
        (radices.iter().map(|radix| radix + REDUCED).sum::<usize>(), radices.len())
    };
    let all = RADICES.into_iter().filter(|radix| *radix <= most && length.is_multiple_of(*radix));
    let all = all.map(|radix| [vec![radix], radices(length / radix, radix)].concat());
    let whole = all.filter(|radices| radices.iter().product::<usize>() == length);
    whole.min_by_key(cost).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::linear::residues::uniform;
    use ring::Random;

    /// Primes of 22, 31, 47 and 60 bits that are 1 mod 45 * 2^16.
    fn primes() -> Vec<u64> {
        let step = 45u64 << 16;
        let prime = |bits: u32| {
            let from = (1u64 << bits).div_ceil(step);
            let mut all = (from..).map(|i| i * step + 1);
            all.find(|n| (3..2000).step_by(2).all(|d| n % d != 0) && power(2, n - 1, *n) == 1)
        };
        [22, 31, 47, 59].into_iter().filter_map(prime).collect()
    }

    /// The cyclic convolution of two planes.
    fn convolution(sides: [usize; 2], x: &[u64], y: &[u64], prime: u64) -> Vec<u64> {
        let [rows, columns] = sides;
        let mut sums = vec![0; rows * columns];
        for (i, x) in x.iter().enumerate() {
            for (j, y) in y.iter().enumerate() {
                let row = (i / columns + j / columns) % rows;
                let column = (i + j) % columns;
                let sum = &mut sums[row * columns + column];
                *sum = (*sum + product(*x, *y, prime)) % prime;
            }
        }
        sums
    }

    #[test]
    fn products_of_values_are_cyclic_convolutions() {
        let mut rng = Random::seeded(1);
        for prime in primes() {
            for sides in [[1, 1], [1, 5], [6, 1], [2, 3], [4, 9], [18, 10], [16, 15]] {
                let transform = Transform::new(sides, prime).unwrap();
                let count = sides[0] * sides[1];
                let x = uniform(&mut rng, count, prime).to_vec();
                let y = if count > 1 { uniform(&mut rng, count, prime).to_vec() } else { vec![1] };
                let want = convolution(sides, &x, &y, prime);
                let [mut x, mut y] = [x, y];
                transform.forward(&mut x);
                transform.forward(&mut y);
                x.iter_mut().zip(&y).for_each(|(x, y)| *x = product(*x, *y, prime));
                transform.backward(&mut x);
                assert_eq!(x, want, "{sides:?} mod {prime}");
            }
        }
    }

    #[test]
    fn every_length_goes_there_and_back() {
        let mut rng = Random::seeded(2);
        for prime in primes() {
            for odd in [1usize, 3, 5, 9, 15, 45] {
                for length in (0..16).map(|a| odd << a).filter(|length| *length <= 32768) {
                    for sides in [[1, length], [length, 1]] {
                        let transform = Transform::new(sides, prime).unwrap();
                        let mut values = uniform(&mut rng, length, prime);
                        values[0] = prime - 1;
                        let before = values.clone();
                        transform.forward(&mut values);
                        assert!(length == 1 || values != before);
                        transform.backward(&mut values);
                        assert!(values == before, "{length} mod {prime}");
                    }
                }
            }
        }
        // Sums of the largest terms.
        let prime = *primes().last().unwrap();
        let transform = Transform::new([16, 16], prime).unwrap();
        let mut values = vec![prime - 1; 256];
        transform.forward(&mut values);
        assert_eq!(values[0], prime - 256);
        assert!(values[1..].iter().all(|value| *value == 0));
    }

    #[test]
    fn primes_without_roots_are_refused() {
        for (sides, prime) in [([7, 4], 12289), ([4, 4], 7), ([1, 1], 1 << 20), ([1, 1], 0)] {
            assert!(Transform::new(sides, prime).is_err());
        }
    }

    #[test]
    fn radices_are_short() {
        for (length, want) in [(1, 0), (18, 2), (30, 2), (36, 2), (16, 2), (180, 3), (32768, 5)] {
            let radices = radices(length, length);
            assert_eq!(radices.iter().product::<usize>(), length);
            assert_eq!(radices.len(), want, "{length}: {radices:?}");
        }
    }
}
