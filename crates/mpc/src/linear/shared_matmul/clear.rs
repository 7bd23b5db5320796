//! Products of words in the clear.

use zeroize::Zeroizing;

use super::shape::Shape;

/// The products of `a` and `b`, right in the low 32 bits.
pub(in crate::linear) fn products(shape: Shape, a: &[u64], b: &[u64]) -> Zeroizing<Vec<u64>> {
    let narrow = |words: &[u64]| words.iter().map(|word| *word as u32).collect::<Vec<_>>();
    let (a, b) = (Zeroizing::new(narrow(a)), Zeroizing::new(narrow(b)));
    let factors = a.chunks_exact(shape.left()).zip(b.chunks_exact(shape.right()));
    let mut all = Zeroizing::new(Vec::with_capacity(shape.batch * shape.outputs()));
    let mut row = Zeroizing::new(vec![0u32; shape.columns]);
    for (a, b) in factors {
        for a in a.chunks_exact(shape.inner) {
            row.fill(0);
            a.iter().zip(b.chunks_exact(shape.columns)).for_each(|(a, b)| add(&mut row, *a, b));
            all.extend(row.iter().map(|sum| u64::from(*sum)));
        }
    }
    all
}

fn add(sums: &mut [u32], a: u32, b: &[u32]) {
    for (sum, b) in sums.iter_mut().zip(b) {
        *sum = sum.wrapping_add(a.wrapping_mul(*b));
    }
}
