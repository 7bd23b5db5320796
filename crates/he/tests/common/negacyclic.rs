//! Products of polynomials by the schoolbook.

/// Adds the product of `values` and `weights` mod X^N + 1 and 2^64 to `sum`.
pub(crate) fn add_product(sum: &mut [u64], values: &[u64], weights: &[i64]) {
    let degree = sum.len();
    for (j, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0) {
        for (i, value) in values.iter().enumerate() {
            let sign = if i + j < degree { 1 } else { -1 };
            let term = value.wrapping_mul((sign * weight) as u64);
            sum[(i + j) % degree] = sum[(i + j) % degree].wrapping_add(term);
        }
    }
}
