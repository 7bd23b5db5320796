//! Kernels on vectors of 128-bit blocks, chosen by [`ring::simd::Level`]: AES
//! under many keys, bit-matrix transposition, sums of blocks, and products in GF(2^128). Each has a portable version
//! that the tests compare the others with.
//!
//! The only unsafe code of this crate: loads and stores of vectors, and calls of
//! functions compiled for instructions whose presence a `Level` proves.
#![allow(unsafe_code)]

/// Runs a kernel at the widest instructions that a level proves, where there are any: the
/// statement after `else` runs at the portable level.
#[cfg(target_arch = "x86_64")]
macro_rules! widest {
    ($level:expr, $kernel:ident($($argument:expr),*) else $portable:stmt) => {
        match ($level.width(), $level.vaes()) {
            (Width::Scalar, _) => { $portable }
            // SAFETY: the level proves the presence of AVX2 and VAES.
            (_, true) => unsafe { wide::$kernel($($argument),*) },
            // SAFETY: the level proves the presence of AVX-512 and AES-NI.
            (Width::Avx512, _) => unsafe { wider::$kernel($($argument),*) },
            // SAFETY: the level proves the presence of AVX2 and AES-NI.
            _ => unsafe { narrow::$kernel($($argument),*) },
        }
    };
}

pub(crate) mod aes;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod carryless;
#[cfg(target_arch = "x86_64")]
mod kernels;
pub(crate) mod places;
pub(crate) mod products;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod sliced;
pub(crate) mod stream;
pub(crate) mod sums;
#[cfg(target_arch = "x86_64")]
pub(crate) mod three_halves;
pub(crate) mod transpose;
pub(crate) mod trees;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod weighted;

/// Blocks that a kernel works on together.
pub(crate) const EIGHT: usize = 8;
/// That many blocks.
pub(crate) type Eight = [u128; EIGHT];
