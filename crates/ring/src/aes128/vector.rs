//! The vectors of WebAssembly.

use std::arch::wasm32::{
    i8x16, i8x16_eq, i8x16_swizzle, i32x4_shl, i32x4_shuffle, u8x16_shr, u8x16_splat, u64x2,
    u64x2_extract_lane, u64x2_shl, u64x2_shr, v128, v128_and, v128_xor,
};

use super::bitsliced::Word;
use super::swizzled::Bytes;

/// 16 bytes.
#[derive(Clone, Copy)]
pub(super) struct V128(v128);

impl Bytes for V128 {
    #[inline(always)]
    fn of(bytes: [u8; 16]) -> Self {
        Word::of(u128::from_le_bytes(bytes))
    }

    #[inline(always)]
    fn bytes(self) -> [u8; 16] {
        self.bits().to_le_bytes()
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(v128_xor(self.0, other.0))
    }

    #[inline(always)]
    fn low(self) -> Self {
        Self(v128_and(self.0, u8x16_splat(0x0f)))
    }

    #[inline(always)]
    fn high(self) -> Self {
        Self(u8x16_shr(self.0, 4))
    }

    #[inline(always)]
    fn look_up(self, at: Self) -> Self {
        Self(i8x16_swizzle(self.0, at.0))
    }

    #[inline(always)]
    fn opaque(self) -> Self {
        std::hint::black_box(self)
    }
}

impl Word for V128 {
    #[inline(always)]
    fn of(bits: u128) -> Self {
        Self(u64x2(bits as u64, (bits >> 64) as u64))
    }

    #[inline(always)]
    fn bits(self) -> u128 {
        let low = u128::from(u64x2_extract_lane::<0>(self.0));
        low | (u128::from(u64x2_extract_lane::<1>(self.0)) << 64)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(v128_xor(self.0, other.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(v128_and(self.0, other.0))
    }

    #[inline(always)]
    fn left(self, count: u32) -> Self {
        Self(u64x2_shl(self.0, count))
    }

    #[inline(always)]
    fn right(self, count: u32) -> Self {
        Self(u64x2_shr(self.0, count))
    }

    #[inline(always)]
    fn whole(self, mask: Self) -> Self {
        Self(i8x16_eq(v128_and(self.0, mask.0), mask.0))
    }

    #[inline(always)]
    fn permuted(self, at: Self) -> Self {
        self.look_up(at)
    }

    #[inline(always)]
    fn opaque(self) -> Self {
        Bytes::opaque(self)
    }

    #[inline(always)]
    fn next_row(self) -> Self {
        Self(i32x4_shuffle::<1, 2, 3, 0>(self.0, self.0))
    }

    #[inline(always)]
    fn second_row(self) -> Self {
        Self(i32x4_shuffle::<2, 3, 0, 1>(self.0, self.0))
    }

    #[inline(always)]
    fn last_column(self) -> Self {
        Self(i8x16_swizzle(self.0, i8x16(7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15, 3, 3, 3, 3)))
    }

    #[inline(always)]
    fn next_column(self) -> Self {
        Self(i32x4_shl(self.0, 8))
    }

    #[inline(always)]
    fn second_column(self) -> Self {
        Self(i32x4_shl(self.0, 16))
    }
}
