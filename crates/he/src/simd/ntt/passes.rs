//! The levels of a transform, on vectors of any width.

use std::ops::Range;

use super::{Factor, Transform};
use crate::simd::modulus::Modulus;
use crate::simd::vector::Vector;

/// Levels of blocks above this run through all values, the others chunk by chunk: a chunk
/// stays in the nearest memory meanwhile.
const CHUNK: usize = 2048;

/// With zeros from `filled` on, levels of longer blocks only copy what is below: that has
/// been done.
///
/// # Safety
/// The instructions of `V`, a transform for its lanes, and as many values as its degree.
#[inline(always)]
pub(super) unsafe fn forward<V: Vector>(transform: &Transform, values: &mut [f64], filled: usize) {
    let (degree, [lazy, _]) = (transform.degree, transform.lazy);
    let (chunk, half) = (degree.min(CHUNK), filled / 2);
    let pointer = values.as_mut_ptr();
    // SAFETY: the caller's promise; all places are below the degree.
    unsafe {
        let mut levels = 0;
        forward_levels::<V>(transform, pointer, 0..degree, half, chunk, &mut levels);
        let before = levels;
        for start in (0..degree).step_by(chunk) {
            let range = start..start + chunk;
            levels = before;
            let half = half.min(chunk / 2);
            forward_levels::<V>(transform, pointer, range, half, V::LANES, &mut levels);
            let more = levels % lazy + V::LANES.ilog2() > lazy;
            forward_inner::<V>(transform, pointer, start..start + chunk, more);
        }
    }
}

/// The levels of blocks of twice `half` down to twice `least`, two at a time, on a range of
/// whole blocks. `levels` counts those since values were reduced.
///
/// # Safety
/// The promises of [`forward`]; `values` has the transform's degree, the range is within it,
/// and `least` is no less than the lanes.
#[inline(always)]
unsafe fn forward_levels<V: Vector>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    mut half: usize,
    least: usize,
    levels: &mut u32,
) {
    let [lazy, _] = transform.lazy;
    let mut eager = || {
        *levels = *levels % lazy + 1;
        *levels == lazy
    };
    while half >= least {
        // SAFETY: the caller's promise.
        unsafe {
            if half / 2 >= least {
                let eager = [eager(), eager()];
                pair::<V, false>(transform, values, range.clone(), half / 2, eager);
                half /= 4;
            } else {
                level::<V, false>(transform, values, range.clone(), half, eager());
                half /= 2;
            }
        }
    }
}

/// One level, forward or back, on a range of whole blocks of twice `half`.
///
/// # Safety
/// The promises of [`forward_levels`], `half` being no less than the lanes.
#[inline(always)]
unsafe fn level<V: Vector, const BACK: bool>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    half: usize,
    eager: bool,
) {
    let factors = &transform.factors[usize::from(BACK)];
    let first = (transform.degree + range.start) / (2 * half);
    // SAFETY: the caller's promise; all places are in the range.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        for (start, factor) in range.step_by(2 * half).zip(factors.iter().skip(first)) {
            let factor = splat::<V>(factor);
            for at in (start..start + half).step_by(V::LANES) {
                let [low, high] = [at, at + half].map(|at| values.add(at));
                let (u, v) = (V::load(low), V::load(high));
                let (u, v) = if BACK {
                    gentleman(modulus, u, v, factor, eager)
                } else {
                    cooley(modulus, u, v, factor, eager)
                };
                u.store(low);
                v.store(high);
            }
        }
    }
}

/// Two levels, forward or back, on a range of whole blocks of four times `quarter`.
///
/// # Safety
/// The promises of [`forward_levels`], `quarter` being no less than the lanes.
#[inline(always)]
unsafe fn pair<V: Vector, const BACK: bool>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    quarter: usize,
    [eager, later]: [bool; 2],
) {
    let factors = &transform.factors[usize::from(BACK)];
    let first = (transform.degree + range.start) / (4 * quarter);
    let below = factors.as_chunks::<2>().0.iter().skip(first);
    let factors = factors.iter().skip(first).zip(below);
    // SAFETY: the caller's promise; all places are in the range.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        for (start, (factor, [left, right])) in range.step_by(4 * quarter).zip(factors) {
            let [factor, left, right] = [factor, left, right].map(|x| splat::<V>(x));
            for at in (start..start + quarter).step_by(V::LANES) {
                let places = [0, 1, 2, 3].map(|i| values.add(at + i * quarter));
                let [a, b, c, d] = places.map(|place| V::load(place));
                let all = if BACK {
                    let (a, b) = gentleman(modulus, a, b, left, eager);
                    let (c, d) = gentleman(modulus, c, d, right, eager);
                    let (a, c) = gentleman(modulus, a, c, factor, later);
                    let (b, d) = gentleman(modulus, b, d, factor, later);
                    [a, b, c, d]
                } else {
                    let (a, c) = cooley(modulus, a, c, factor, eager);
                    let (b, d) = cooley(modulus, b, d, factor, eager);
                    let (a, b) = cooley(modulus, a, b, left, later);
                    let (c, d) = cooley(modulus, c, d, right, later);
                    [a, b, c, d]
                };
                for (place, x) in places.into_iter().zip(all) {
                    x.store(place);
                }
            }
        }
    }
}

/// `u + v*factor` and `u - v*factor`.
///
/// # Safety
/// The instructions of `V`.
#[inline(always)]
unsafe fn cooley<V: Vector>(
    modulus: Modulus<V>,
    u: V,
    v: V,
    [value, quotient]: [V; 2],
    eager: bool,
) -> (V, V) {
    // SAFETY: the caller's promise.
    unsafe {
        let v = modulus.times(v, value, quotient);
        let (sum, difference) = (u.add(v), u.sub(v));
        if eager { (modulus.centred(sum), modulus.centred(difference)) } else { (sum, difference) }
    }
}

/// `u + v` and `(u - v) * factor`.
///
/// # Safety
/// The instructions of `V`.
#[inline(always)]
unsafe fn gentleman<V: Vector>(
    modulus: Modulus<V>,
    u: V,
    v: V,
    [value, quotient]: [V; 2],
    eager: bool,
) -> (V, V) {
    // SAFETY: the caller's promise.
    unsafe {
        let (sum, difference) = (u.add(v), u.sub(v));
        let sum = if eager { modulus.centred(sum) } else { sum };
        (sum, modulus.times(difference, value, quotient))
    }
}

/// # Safety
/// The instructions of `V`.
#[inline(always)]
unsafe fn splat<V: Vector>(factor: &Factor) -> [V; 2] {
    // SAFETY: the caller's promise.
    [factor.value, factor.quotient].map(|x| unsafe { V::splat(x) })
}

/// The levels inside a vector on a range of whole squares of vectors, which is reduced
/// before if there were too many levels since.
///
/// # Safety
/// The promises of [`forward_levels`].
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
/// The promises of [`forward`].
#[inline(always)]
pub(super) unsafe fn backward<V: Vector>(transform: &Transform, values: &mut [f64]) {
    let (degree, [_, lazy]) = (transform.degree, transform.lazy);
    let chunk = (degree / 2).min(CHUNK);
    let pointer = values.as_mut_ptr();
    // SAFETY: the caller's promise; all places are below the degree.
    unsafe {
        let mut levels = 0;
        for start in (0..degree).step_by(chunk) {
            let range = start..start + chunk;
            levels = V::LANES.ilog2() % lazy;
            backward_inner::<V>(transform, pointer, range.clone());
            backward_levels::<V>(transform, pointer, range, V::LANES, chunk, &mut levels);
        }
        let half = degree / 2;
        backward_levels::<V>(transform, pointer, 0..degree, chunk, half, &mut levels);
        let modulus = Modulus::<V>::new(transform.prime);
        let [[a, b], [c, d]] = transform.last.each_ref().map(|factor| splat::<V>(factor));
        for at in (0..half).step_by(V::LANES) {
            let (low, high) = (pointer.add(at), pointer.add(at + half));
            let (u, v) = (V::load(low), V::load(high));
            modulus.centred(modulus.times(u.add(v), a, b)).store(low);
            modulus.centred(modulus.times(u.sub(v), c, d)).store(high);
        }
    }
}

/// The levels back of blocks of twice `half` up to `most`, two at a time, on a range of
/// whole blocks. `levels` counts those since values were reduced.
///
/// # Safety
/// The promises of [`forward_levels`]; `half` is no less than the lanes.
#[inline(always)]
unsafe fn backward_levels<V: Vector>(
    transform: &Transform,
    values: *mut f64,
    range: Range<usize>,
    mut half: usize,
    most: usize,
    levels: &mut u32,
) {
    let [_, lazy] = transform.lazy;
    let mut eager = || {
        *levels = *levels % lazy + 1;
        *levels == lazy
    };
    while half < most {
        // SAFETY: the caller's promise.
        unsafe {
            if 2 * half < most {
                let eager = [eager(), eager()];
                pair::<V, true>(transform, values, range.clone(), half, eager);
                half *= 4;
            } else {
                level::<V, true>(transform, values, range.clone(), half, eager());
                half *= 2;
            }
        }
    }
}

/// The levels inside a vector back, on a range of whole squares of vectors.
///
/// # Safety
/// The promises of [`forward_levels`].
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
