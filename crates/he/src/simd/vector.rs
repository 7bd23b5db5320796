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
}

#[cfg(target_arch = "x86_64")]
macro_rules! vector {
    ($lanes:literal, $type:ty, $splat:ident, $load:ident, $store:ident, $fma:ident) => {
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
        }
    };
}

#[cfg(target_arch = "x86_64")]
vector!(4, __m256d, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
#[cfg(target_arch = "x86_64")]
vector!(8, __m512d, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd);
