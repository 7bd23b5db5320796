//! The levels of a transform, on vectors of any width.

use std::ops::Range;

use super::Transform;
use crate::simd::modulus::Modulus;
use crate::simd::vector::Vector;

/// Levels of blocks above this run through all values, the others chunk by chunk: a chunk
/// stays in the nearest memory meanwhile.
const CHUNK: usize = 2048;

/// # Safety
/// The instructions of `V`, a transform for its lanes, and as many values as its degree.
#[inline(always)]
pub(super) unsafe fn forward<V: Vector>(transform: &Transform, values: &mut [f64]) {
    let (degree, [lazy, _]) = (transform.degree, transform.lazy);
    let chunk = degree.min(CHUNK);
    let pointer = values.as_mut_ptr();
    // SAFETY: the caller's promise; all places are below the degree.
    unsafe {
        let (mut half, mut levels) = (degree / 2, 0);
        while half >= chunk {
            levels = levels % lazy + 1;
            forward_level::<V>(transform, pointer, 0..degree, half, levels == lazy);
            half /= 2;
        }
        let before = levels;
        for start in (0..degree).step_by(chunk) {
            (half, levels) = (chunk / 2, before);
            while half >= V::LANES {
                levels = levels % lazy + 1;
                forward_level::<V>(transform, pointer, start..start + chunk, half, levels == lazy);
                half /= 2;
            }
            let more = levels % lazy + V::LANES.ilog2() > lazy;
            forward_inner::<V>(transform, pointer, start..start + chunk, more);
        }
    }
}

/// One level on a range of whole blocks.
///
/// # Safety
/// As [`forward`]; `values` has the transform's degree, the range is within.
#[inline(always)]
unsafe fn forward_level<V: Vector>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    half: usize,
    eager: bool,
) {
    let [factors, _] = &transform.factors;
    let first = (transform.degree + range.start) / (2 * half);
    // SAFETY: the caller's promise; all places are in the range.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        for (start, factor) in range.step_by(2 * half).zip(factors.iter().skip(first)) {
            let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
            for at in (start..start + half).step_by(V::LANES) {
                let (low, high) = (values.add(at), values.add(at + half));
                let u = V::load(low);
                let v = modulus.times(V::load(high), value, quotient);
                let (sum, difference) = (u.add(v), u.sub(v));
                if eager {
                    modulus.centred(sum).store(low);
                    modulus.centred(difference).store(high);
                } else {
                    sum.store(low);
                    difference.store(high);
                }
            }
        }
    }
}

/// The levels inside a vector on a range of whole squares of vectors, which is reduced
/// before if there were too many levels since.
///
/// # Safety
/// As [`forward_level`].
#[inline(always)]
unsafe fn forward_inner<V: Vector>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    eager: bool,
) {
    let [inner, _] = &transform.inner;
    let each = 2 * V::LANES * (V::LANES - 1);
    // SAFETY: the caller's promise; all places are in the range.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        let mut factors = inner.as_ptr().add(range.start / (V::LANES * V::LANES) * each);
        for at in range.step_by(V::LANES * V::LANES) {
            let mut rows = load_rows::<V>(values.add(at));
            V::transpose(&mut rows);
            if eager {
                rows = centred_rows(modulus, rows);
            }
            let mut half = V::LANES / 2;
            while half > 0 {
                for start in (0..V::LANES).step_by(2 * half) {
                    let (value, quotient) = (V::load(factors), V::load(factors.add(V::LANES)));
                    factors = factors.add(2 * V::LANES);
                    for row in start..start + half {
                        let v = modulus.times(rows[row + half], value, quotient);
                        (rows[row], rows[row + half]) = (rows[row].add(v), rows[row].sub(v));
                    }
                }
                half /= 2;
            }
            store_rows(centred_rows(modulus, rows), values.add(at));
        }
    }
}

/// # Safety
/// As [`forward`].
#[inline(always)]
pub(super) unsafe fn backward<V: Vector>(transform: &Transform, values: &mut [f64]) {
    let (degree, [_, lazy]) = (transform.degree, transform.lazy);
    let chunk = (degree / 2).min(CHUNK);
    let pointer = values.as_mut_ptr();
    // SAFETY: the caller's promise; all places are below the degree.
    unsafe {
        let (mut half, mut levels) = (V::LANES, 0);
        for start in (0..degree).step_by(chunk) {
            (half, levels) = (V::LANES, V::LANES.ilog2() % lazy);
            backward_inner::<V>(transform, pointer, start..start + chunk);
            while half < chunk {
                levels = levels % lazy + 1;
                backward_level::<V>(transform, pointer, start..start + chunk, half, levels == lazy);
                half *= 2;
            }
        }
        while half < degree / 2 {
            levels = levels % lazy + 1;
            backward_level::<V>(transform, pointer, 0..degree, half, levels == lazy);
            half *= 2;
        }
        let modulus = Modulus::<V>::new(transform.prime);
        let [[a, b], [c, d]] =
            transform.last.map(|factor| [factor.value, factor.quotient].map(|x| V::splat(x)));
        for at in (0..half).step_by(V::LANES) {
            let (low, high) = (pointer.add(at), pointer.add(at + half));
            let (u, v) = (V::load(low), V::load(high));
            modulus.centred(modulus.times(u.add(v), a, b)).store(low);
            modulus.centred(modulus.times(u.sub(v), c, d)).store(high);
        }
    }
}

/// One level back on a range of whole blocks.
///
/// # Safety
/// As [`forward_level`].
#[inline(always)]
unsafe fn backward_level<V: Vector>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    half: usize,
    eager: bool,
) {
    let [_, factors] = &transform.factors;
    let first = (transform.degree + range.start) / (2 * half);
    // SAFETY: the caller's promise; all places are in the range.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        for (start, factor) in range.step_by(2 * half).zip(factors.iter().skip(first)) {
            let (value, quotient) = (V::splat(factor.value), V::splat(factor.quotient));
            for at in (start..start + half).step_by(V::LANES) {
                let (low, high) = (values.add(at), values.add(at + half));
                let (u, v) = (V::load(low), V::load(high));
                let sum = u.add(v);
                if eager { modulus.centred(sum) } else { sum }.store(low);
                modulus.times(u.sub(v), value, quotient).store(high);
            }
        }
    }
}

/// The levels inside a vector back, on a range of whole squares of vectors.
///
/// # Safety
/// As [`forward_level`].
#[inline(always)]
unsafe fn backward_inner<V: Vector>(transform: &Transform, values: *mut f64, range: Range<usize>) {
    let ([_, inner], [_, lazy]) = (&transform.inner, transform.lazy);
    let each = 2 * V::LANES * (V::LANES - 1);
    // SAFETY: the caller's promise; all places are in the range.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        for at in range.step_by(V::LANES * V::LANES) {
            let mut rows = load_rows::<V>(values.add(at));
            // The factors of this block, from the last to the first.
            let block = at / (V::LANES * V::LANES);
            let mut factors = inner.as_ptr().add((block + 1) * each);
            let (mut half, mut levels) = (1, 0);
            while half < V::LANES {
                levels = levels % lazy + 1;
                for start in (0..V::LANES).step_by(2 * half).rev() {
                    factors = factors.sub(2 * V::LANES);
                    let (value, quotient) = (V::load(factors), V::load(factors.add(V::LANES)));
                    for row in start..start + half {
                        let (u, v) = (rows[row], rows[row + half]);
                        rows[row] = u.add(v);
                        rows[row + half] = modulus.times(u.sub(v), value, quotient);
                    }
                }
                if levels == lazy {
                    rows = centred_rows(modulus, rows);
                }
                half *= 2;
            }
            V::transpose(&mut rows);
            store_rows(rows, values.add(at));
        }
    }
}

/// # Safety
/// The instructions of `V`; three lists of the transform's degree.
#[inline(always)]
pub(super) unsafe fn multiply_add<V: Vector>(
    transform: &Transform,
    sums: &mut [f64],
    a: &[f64],
    b: &[f64],
) {
    let (sums, a, b) = (sums.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    // SAFETY: the caller's promise.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        for at in (0..transform.degree).step_by(V::LANES) {
            let (a, b) = (V::load(a.add(at)), V::load(b.add(at)));
            let product = modulus.product(a, b);
            V::load(sums.add(at)).add(product).store(sums.add(at));
        }
    }
}

/// # Safety
/// `LANES` vectors at `from`.
#[inline(always)]
unsafe fn load_rows<V: Vector>(from: *const f64) -> [V; 8] {
    // SAFETY: the caller's promise; rows beyond the lanes repeat the first.
    std::array::from_fn(|i| unsafe { V::load(from.add((i % V::LANES) * V::LANES)) })
}

/// # Safety
/// `LANES` vectors at `to`.
#[inline(always)]
unsafe fn store_rows<V: Vector>(rows: [V; 8], to: *mut f64) {
    for (i, row) in rows.into_iter().take(V::LANES).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { row.store(to.add(i * V::LANES)) }
    }
}

/// # Safety
/// The instructions of `V`.
#[inline(always)]
unsafe fn centred_rows<V: Vector>(modulus: Modulus<V>, mut rows: [V; 8]) -> [V; 8] {
    for row in rows.iter_mut().take(V::LANES) {
        // SAFETY: the caller's promise.
        *row = unsafe { modulus.centred(*row) };
    }
    rows
}
