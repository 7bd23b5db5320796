//! Kernels on vectors of 128-bit blocks, chosen by [`ring::simd::Level`]: AES
//! under many keys, bit-matrix transposition, sums of blocks, and products in GF(2^128). Each has a portable version
//! that the tests compare the others with.
//!
//! The only unsafe code of this crate: loads and stores of vectors, and calls of
//! functions compiled for instructions whose presence a `Level` proves.
#![allow(unsafe_code)]

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
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) mod sums;
pub(crate) mod transpose;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod weighted;

/// Blocks that a kernel works on together.
pub(crate) const EIGHT: usize = 8;
/// That many blocks.
pub(crate) type Eight = [u128; EIGHT];
