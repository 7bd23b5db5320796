//! Words of 16, 32 and 64 bits in which residues mod 2^bits are computed with: the narrower,
//! the more of them a vector holds.

use zeroize::Zeroize;

/// An unsigned word whose sums and products wrap around.
pub trait Lane: Copy + Default + Send + Sync + Zeroize + 'static {
    /// The width in bits.
    const BITS: u32;
    /// The width in bytes.
    const BYTES: usize = Self::BITS as usize / 8;

    /// The low bits of `value`.
    fn of(value: u64) -> Self;
    /// The value.
    fn wide(self) -> u64;
    /// Little-endian values; bytes of half a lane at the end are left out.
    fn read(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self>;
    /// `self + other`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// `self * other`.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The bits that both have.
    #[must_use]
    fn and(self, other: Self) -> Self;
}

macro_rules! lane {
    ($type:ty) => {
        impl Lane for $type {
            const BITS: u32 = <$type>::BITS;

            #[inline(always)]
            fn of(value: u64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn wide(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn read(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self> {
                let (lanes, _) = bytes.as_chunks::<{ size_of::<Self>() }>();
                lanes.iter().map(|lane| Self::from_le_bytes(*lane))
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
        }
    };
}

lane!(u16);
lane!(u32);
lane!(u64);
