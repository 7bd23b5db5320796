//! The right factor, in the narrowest words that its ring fits.

use ring::lane::Lane;
use zeroize::Zeroizing;

use super::plan::Product;
use crate::parallel;

/// Residues mod 2^bits, `[places, inner, columns]`.
pub enum Right {
    /// Up to 16 bits.
    Narrow(Zeroizing<Vec<u16>>),
    /// Up to 32.
    Middle(Zeroizing<Vec<u32>>),
    /// More.
    Wide(Zeroizing<Vec<u64>>),
}

impl Right {
    /// Takes words of a ring of `bits` bits.
    pub fn new(words: &[u64], bits: u32) -> Self {
        match bits {
            ..=16 => Self::Narrow(lanes(words)),
            17..=32 => Self::Middle(lanes(words)),
            _ => Self::Wide(lanes(words)),
        }
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Narrow(x) => x.len(),
            Self::Middle(x) => x.len(),
            Self::Wide(x) => x.len(),
        }
    }

    /// The products with `weights`, `[places, rows, inner]`, right mod 2^bits.
    pub(super) fn product(
        &self,
        plan: &Product,
        weights: &[i32],
        threads: usize,
    ) -> Zeroizing<Vec<u64>> {
        match self {
            Self::Narrow(x) => product(plan, weights, x, threads),
            Self::Middle(x) => product(plan, weights, x, threads),
            Self::Wide(x) => product(plan, weights, x, threads),
        }
    }

    /// `factor` times the sum of each place's columns, once for every row of the place.
    pub(super) fn sums(&self, plan: &Product, factor: i64) -> Zeroizing<Vec<u64>> {
        match self {
            Self::Narrow(x) => sums(plan, x, factor),
            Self::Middle(x) => sums(plan, x, factor),
            Self::Wide(x) => sums(plan, x, factor),
        }
    }
}

fn lanes<T: Lane>(words: &[u64]) -> Zeroizing<Vec<T>> {
    Zeroizing::new(words.iter().map(|word| T::of(*word)).collect())
}

fn product<T: Lane>(
    plan: &Product,
    weights: &[i32],
    x: &[T],
    threads: usize,
) -> Zeroizing<Vec<u64>> {
    let lines: Vec<usize> = (0..plan.lines()).collect();
    let each = lines.len().div_ceil(threads.max(1)).max(1);
    let chunks: Vec<&[usize]> = lines.chunks(each).collect();
    let parts = parallel::map(threads, chunks, |lines| {
        let mut sums = Zeroizing::new(vec![T::default(); lines.len() * plan.columns]);
        for (line, sums) in lines.iter().zip(sums.chunks_exact_mut(plan.columns)) {
            let weights = &weights[line * plan.inner..][..plan.inner];
            add_row(sums, weights, place_of(plan, *line, x));
        }
        sums
    });
    let words = parts.iter().flat_map(|part| part.iter().map(|sum| sum.wide()));
    Zeroizing::new(words.collect())
}

/// The columns that a row is multiplied with.
pub(super) fn place_of<'a, T>(plan: &Product, line: usize, x: &'a [T]) -> &'a [T] {
    let each = plan.inner * plan.columns;
    &x[line / plan.rows * each..][..each]
}

/// Zeros are multiplied like any other weight.
fn add_row<T: Lane>(sums: &mut [T], weights: &[i32], x: &[T]) {
    if let [sum] = sums {
        let products = weights.iter().zip(x).map(|(w, x)| x.times(T::of(*w as u64)));
        *sum = products.fold(*sum, T::plus);
        return;
    }
    for (w, x) in weights.iter().zip(x.chunks_exact(sums.len())) {
        let w = T::of(*w as u64);
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum = sum.plus(x.times(w)));
    }
}

fn sums<T: Lane>(plan: &Product, x: &[T], factor: i64) -> Zeroizing<Vec<u64>> {
    let mut all = Zeroizing::new(Vec::with_capacity(plan.outputs()));
    let mut sums = Zeroizing::new(vec![T::default(); plan.columns]);
    for place in x.chunks_exact(plan.inner * plan.columns) {
        sums.fill(T::default());
        for row in place.chunks_exact(plan.columns) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.plus(*x));
        }
        let factor = T::of(factor as u64);
        for _ in 0..plan.rows {
            all.extend(sums.iter().map(|sum| sum.times(factor).wide()));
        }
    }
    all
}
