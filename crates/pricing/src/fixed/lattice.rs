//! Work of coefficient-packed RLWE, relative to a unit of its own. It breaks ties between
//! packings of as many bytes, tells packings apart, and chooses between two exact kernels.

/// Work in multiplications of the direct kernel ([`crate::Unit::Direct`]), of runs on AVX-512
/// without IFMA.
pub mod direct {
    /// Encrypting or answering, per coefficient.
    pub const ENCRYPTED: usize = 1000;

    /// Transforming half a ciphertext, per coefficient.
    pub const TRANSFORMED: usize = 250;

    /// A product in the evaluation basis, per coefficient of half a ciphertext.
    pub const POINTWISE: usize = 20;
}

/// Work in transforms mod one of the two primes, of the server of a product of two shared
/// matrices.
pub mod transform {
    /// Taking in a block of the left factor.
    pub const OPERAND: usize = 4;

    /// Taking in a block of multipliers.
    pub const MULTIPLIER: usize = 2;

    /// Making a response.
    pub const RESPONSE: usize = 10;

    /// Multiplying two blocks.
    pub const PRODUCT: usize = 1;
}
