//! One interface for vectors of four and eight.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A vector of f64. Its functions are inlined into functions that enable the
/// instructions; called from anywhere else they would not compile to them.
///
/// # Safety
/// Every function needs the instructions of the type, and pointers valid for
/// [`Vector::LANES`] numbers.
pub(crate) trait Vector: Copy {
    /// Numbers in a vector.
    const LANES: usize;
    /// All lanes equal.
    unsafe fn splat(value: f64) -> Self;
    /// Unaligned.
    unsafe fn load(from: *const f64) -> Self;
    /// Unaligned.
    unsafe fn store(self, to: *mut f64);
    /// `self * factor + term`, rounded once.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `term - self * factor`, rounded once.
    unsafe fn negative_mul_add(self, factor: Self, term: Self) -> Self;
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// `self - other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// `self * other`.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor - quotient * modulus` for integers, where the result is below 2^52
    /// in magnitude: the exact integer.
    unsafe fn remainder(self, factor: Self, quotient: Self, modulus: Self) -> Self;
    /// Lane i of row j becomes lane j of row i, of the first [`Vector::LANES`] rows.
    unsafe fn transpose(rows: &mut [Self; 8]);
}

/// An integer as such. The operator `as` would compare with the bounds of an i64, for which compilers
/// branch.
///
/// # Safety
/// The number is finite and below 2^63 in magnitude.
#[inline(always)]
pub(crate) unsafe fn integer(value: f64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { value.to_int_unchecked() }
}

/// Portable code: a vector of one. What is rounded once elsewhere is computed in
/// integers here, with the same result.
impl Vector for f64 {
    const LANES: usize = 1;
    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        value
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the trait's contract.
        unsafe { *from }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the trait's contract.
        unsafe { *to = self }
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        self * factor + term
    }
    #[inline(always)]
    unsafe fn negative_mul_add(self, factor: Self, term: Self) -> Self {
        term - self * factor
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self - other
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self * other
    }
    #[inline(always)]
    unsafe fn remainder(self, factor: Self, quotient: Self, modulus: Self) -> Self {
        // SAFETY: the trait's contract.
        let [x, factor, quotient, modulus] =
            [self, factor, quotient, modulus].map(|x| unsafe { integer(x) });
        let product = x.wrapping_mul(factor);
        product.wrapping_sub(quotient.wrapping_mul(modulus)) as f64
    }
    #[inline(always)]
    unsafe fn transpose(_: &mut [Self; 8]) {}
}

#[cfg(target_arch = "x86_64")]
macro_rules! vector {
    (
        $lanes:literal, $type:ty, $splat:ident, $load:ident, $store:ident, $fma:ident, $fms:ident,
        $fnma:ident, $add:ident, $sub:ident, $mul:ident, $transpose:ident
    ) => {
        impl Vector for $type {
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(value: f64) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $splat(value) }
            }
            #[inline(always)]
            unsafe fn load(from: *const f64) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f64) {
                // SAFETY: the trait's contract.
                unsafe { $store(to, self) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $fma(self, factor, term) }
            }
            #[inline(always)]
            unsafe fn negative_mul_add(self, factor: Self, term: Self) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $fnma(self, factor, term) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: the trait's contract.
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            unsafe fn remainder(self, factor: Self, quotient: Self, modulus: Self) -> Self {
                // The product is the sum of two numbers; of the larger the multiple of
                // the modulus leaves few bits, so that all three steps are exact.
                // SAFETY: the trait's contract.
                unsafe {
                    let high = $mul(self, factor);
                    let low = $fms(self, factor, high);
                    $add($fnma(quotient, modulus, high), low)
                }
            }
            #[inline(always)]
            unsafe fn transpose(rows: &mut [Self; 8]) {
                // SAFETY: the trait's contract.
                unsafe { $transpose(rows) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector!(
    4,
    __m256d,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_fmsub_pd,
    _mm256_fnmadd_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    transpose4
);
#[cfg(target_arch = "x86_64")]
vector!(
    8,
    __m512d,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_fmsub_pd,
    _mm512_fnmadd_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    transpose8
);

/// # Safety
/// AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose4(rows: &mut [__m256d; 8]) {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d, ..] = *rows;
        let (ab0, ab1) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (cd0, cd1) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        rows[0] = _mm256_permute2f128_pd::<0x20>(ab0, cd0);
        rows[1] = _mm256_permute2f128_pd::<0x20>(ab1, cd1);
        rows[2] = _mm256_permute2f128_pd::<0x31>(ab0, cd0);
        rows[3] = _mm256_permute2f128_pd::<0x31>(ab1, cd1);
    }
}

/// # Safety
/// AVX-512 F.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose8(rows: &mut [__m512d; 8]) {
    // SAFETY: the caller's promise.
    unsafe {
        // Pairs of rows, by the parity of the lane.
        let mut pairs = *rows;
        for i in [0, 2, 4, 6] {
            pairs[i] = _mm512_unpacklo_pd(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_pd(rows[i], rows[i + 1]);
        }
        // Quads of rows: lanes 0 and 4, or 2 and 6, of the parity.
        for odd in [0, 1] {
            let [a, b, c, d] = [odd, odd + 2, odd + 4, odd + 6].map(|i| pairs[i]);
            let (ab0, ab2) =
                (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
            let (cd0, cd2) =
                (_mm512_shuffle_f64x2::<0x88>(c, d), _mm512_shuffle_f64x2::<0xdd>(c, d));
            rows[odd] = _mm512_shuffle_f64x2::<0x88>(ab0, cd0);
            rows[odd + 4] = _mm512_shuffle_f64x2::<0xdd>(ab0, cd0);
            rows[odd + 2] = _mm512_shuffle_f64x2::<0x88>(ab2, cd2);
            rows[odd + 6] = _mm512_shuffle_f64x2::<0xdd>(ab2, cd2);
        }
    }
}
