//! Vectors of double-precision numbers, which hold integers below 2^53 exactly, found
//! once at run time. Fused multiply-add makes them the fastest exact multiplier that
//! AVX2 and AVX-512 machines have in common.

#![allow(unsafe_code)]

use std::sync::OnceLock;

#[macro_use]
mod kernel;
pub(crate) mod convert;
pub(crate) mod digits;
pub(crate) mod direct;
pub(crate) mod gauss;
mod modulus;
pub(crate) mod ntt;
pub(crate) mod recombine;
pub(crate) mod residue;
pub(crate) mod sums;
mod vector;

/// Vector instructions that this machine has: there is no other way to get a level than
/// to detect it, so that code for it may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Width);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "vectors are of x86-64"))]
enum Width {
    /// Portable code.
    Scalar,
    /// AVX2 and FMA.
    Fma256,
    /// AVX-512 F and DQ, and all of `Fma256`.
    Fma512,
}

impl Level {
    /// The best level of this machine.
    pub(crate) fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(detect)
    }

    /// Numbers in a vector.
    pub(crate) const fn lanes(self) -> usize {
        match self.0 {
            Width::Scalar => 1,
            Width::Fma256 => 4,
            Width::Fma512 => 8,
        }
    }

    /// The best level up to this one whose vectors fit transforms of a `degree`.
    pub(crate) const fn for_degree(self, degree: usize) -> Self {
        match self.0 {
            Width::Fma512 if degree < 128 => Self(Width::Fma256).for_degree(degree),
            Width::Fma256 if degree < 32 => Self(Width::Scalar),
            _ => self,
        }
    }

    /// Every level of this machine, portable code first.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let all = [Width::Scalar, Width::Fma256, Width::Fma512];
        let best = all.iter().position(|width| *width == Self::best().0).unwrap_or(0);
        all[..=best].iter().map(|width| Self(*width)).collect()
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let narrow = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
    // Never above the level of the kernels on integers, which measurements may lower.
    Level(match (ring::simd::Level::best().width(), narrow, wide) {
        (ring::simd::Width::Scalar, ..) | (_, false, _) => Width::Scalar,
        (ring::simd::Width::Avx2, ..) | (_, true, false) => Width::Fma256,
        (ring::simd::Width::Avx512, true, true) => Width::Fma512,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level(Width::Scalar)
}
