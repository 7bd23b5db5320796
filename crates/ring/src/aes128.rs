//! AES-128 where a processor's own instructions are not at hand or not worth a kernel.
//!
//! On WebAssembly with `simd128` blocks go through byte permutations ([`swizzled`]), elsewhere
//! through the crate `aes`, which uses AES-NI or bit slices. Both are free of tables in memory that a
//! secret would index.

#[cfg(any(test, all(target_arch = "wasm32", target_feature = "simd128")))]
mod bitsliced;
#[cfg(any(test, all(target_arch = "wasm32", target_feature = "simd128")))]
mod sbox;
#[cfg(any(test, all(target_arch = "wasm32", target_feature = "simd128")))]
mod swizzled;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod vector;

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use zeroize::ZeroizeOnDrop;

/// The cipher under one key, which is wiped when dropped. Prints nothing.
#[derive(ZeroizeOnDrop)]
pub struct Aes128(Cipher);

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
type Cipher = swizzled::RoundKeys;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
type Cipher = aes::Aes128Enc;

impl std::fmt::Debug for Aes128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aes128(<hidden>)")
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
impl Aes128 {
    /// The cipher under `key`.
    pub fn new(key: &[u8; 16]) -> Self {
        Self(swizzled::RoundKeys::new::<vector::V128>(key))
    }

    /// Replaces each block by its encryption.
    pub fn encrypt(&self, blocks: &mut [[u8; 16]]) {
        self.0.encrypt::<vector::V128>(blocks);
    }
}

/// The round keys of eight keys, for eight blocks at a time. Wiped when dropped, and prints nothing.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[derive(Clone, zeroize::Zeroize, ZeroizeOnDrop)]
pub struct Aes128x8(bitsliced::RoundKeys);

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
impl Aes128x8 {
    /// No keys yet.
    pub const NONE: Self = Self(bitsliced::RoundKeys::NONE);

    /// Takes new keys.
    pub fn set(&mut self, keys: &[u128; 8]) {
        self.0.set::<vector::V128>(keys);
    }

    /// Takes keys out of `keys` for blocks that share them: block i that of number `first + (i >> spread)`, or any
    /// beyond the eighth.
    pub fn spread(&mut self, keys: &Self, first: usize, spread: u32) {
        self.0.spread::<vector::V128>(&keys.0, first, spread);
    }

    /// Encrypts each block under its key.
    pub fn encrypt(&self, blocks: &[u128; 8]) -> [u128; 8] {
        self.0.encrypt::<vector::V128>(blocks)
    }

    /// Encrypts all blocks under the key of this number, below 8.
    pub fn encrypt_under(&self, key: usize, blocks: &[u128; 8]) -> [u128; 8] {
        self.0.encrypt_under::<vector::V128>(key, blocks)
    }

    /// Encrypts all blocks under the key of this number, below 8, and adds them to `sum`.
    pub fn add_under(&self, key: usize, blocks: &Blocks8, sum: &mut Blocks8) {
        self.0.add_under::<vector::V128>(key, &blocks.0, &mut sum.0);
    }
}

/// Eight blocks by bits, for sums of what several keys encrypt: to be encrypted, or sums of encrypted ones. Wiped when dropped,
/// and prints nothing.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[derive(Clone)]
pub struct Blocks8(bitsliced::Bits);

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
impl Blocks8 {
    /// An empty sum.
    pub const NONE: Self = Self(bitsliced::Bits::NONE);

    /// Blocks to encrypt.
    pub fn new(blocks: &[u128; 8]) -> Self {
        Self(bitsliced::Bits::of::<vector::V128>(blocks))
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.0.add::<vector::V128>(&other.0);
    }

    /// The blocks of a sum of encrypted ones.
    pub fn blocks(&self) -> [u128; 8] {
        self.0.blocks::<vector::V128>()
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
impl Aes128 {
    /// The cipher under `key`.
    pub fn new(key: &[u8; 16]) -> Self {
        Self(aes::Aes128Enc::new(key.into()))
    }

    /// Replaces each block by its encryption.
    pub fn encrypt(&self, blocks: &mut [[u8; 16]]) {
        self.0.encrypt_blocks(aes::Block::cast_slice_from_core_mut(blocks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_vector() {
        // FIPS 197, appendix B.
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let mut block = [0x3243_f6a8_885a_308d_3131_98a2_e037_0734_u128.to_be_bytes()];
        let cipher = Aes128::new(&key);
        cipher.encrypt(&mut block);
        assert_eq!(block[0], 0x3925_841d_02dc_09fb_dc11_8597_196a_0b32_u128.to_be_bytes());
        assert_eq!(format!("{cipher:?}"), "Aes128(<hidden>)");
    }
}
