//! Arithmetic mod a prime below 2^50 on vectors of f64.

use super::vector::Vector;

/// Adding and subtracting it rounds integers below 2^51 in magnitude.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// The prime, its inverse and the rounding constant in every lane.
#[derive(Clone, Copy)]
pub(crate) struct Modulus<V> {
    prime: V,
    inverse: V,
    round: V,
}

impl<V: Vector> Modulus<V> {
    /// # Safety
    /// The instructions of `V`, here and below.
    #[inline(always)]
    pub(crate) unsafe fn new(prime: f64) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self { prime: V::splat(prime), inverse: V::splat(1.0 / prime), round: V::splat(ROUND) }
        }
    }

    #[inline(always)]
    pub(crate) unsafe fn rounded(self, x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { x.add(self.round).sub(self.round) }
    }

    /// `x * w` mod p, of magnitude below p.
    #[inline(always)]
    pub(crate) unsafe fn times(self, x: V, value: V, quotient: V) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            let quotient = x.mul_add(quotient, self.round).sub(self.round);
            x.remainder(value, quotient, self.prime)
        }
    }

    /// What [`Modulus::times`] takes of a factor that varies, of magnitude at most p/2.
    #[inline(always)]
    pub(crate) unsafe fn factor(self, value: V) -> (V, V) {
        // SAFETY: the caller's promise.
        unsafe { (value, value.mul(self.inverse)) }
    }

    /// `a * b` mod p for two that vary, of magnitude at most p/2.
    #[inline(always)]
    pub(crate) unsafe fn product(self, a: V, b: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { self.times(a, b, b.mul(self.inverse)) }
    }

    /// Centred, from below 4p or 2^52.
    #[inline(always)]
    pub(crate) unsafe fn centred(self, x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            let quotient = x.mul_add(self.inverse, self.round).sub(self.round);
            quotient.negative_mul_add(self.prime, x)
        }
    }
}
