//! Work of slot-packed BFV on one thread. Suite `lola` chooses its parameters, representations
//! and products by it; other suites count slot-packed work with it.

/// Seconds of a step of a transform, of which there are `N * log2(N)`.
pub const TRANSFORM_SECONDS: f64 = 7e-11;

/// Seconds to multiply a residue by another in memory.
pub const PRODUCT_SECONDS: f64 = 4e-10;

/// Seconds for a residue of a change of primes, for each pair of primes.
pub const CONVERSION_SECONDS: f64 = 3e-10;

/// Seconds to encrypt, send and expand a residue of a fresh ciphertext.
pub const FRESH_SECONDS: f64 = 2e-8;

/// Work in rotations that are not hoisted, where parameters are not known yet.
pub mod rotation {
    /// A rotation of a message that was cut into digits before.
    pub const HOISTED: f64 = 0.6;

    /// A product with a plaintext or an integer.
    pub const PRODUCT: f64 = 0.1;

    /// A square.
    pub const SQUARE: f64 = 4.0;

    /// A key for one more baby step.
    pub const KEY: f64 = 0.2;
}
