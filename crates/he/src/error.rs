//! What can go wrong, all of it before anything is sent.

use thiserror::Error;

/// Why an operation was refused. Never carries secret values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The parameters give less than 128 bits of security.
    #[error(
        "ring degree {degree} with a modulus of {modulus_bits} bits is under 128 bits of \
         security; {limit}"
    )]
    Weak {
        /// Ring degree asked for.
        degree: usize,
        /// Modulus bits asked for.
        modulus_bits: u32,
        /// What is allowed instead.
        limit: String,
    },
    /// No parameters in the table are large enough.
    #[error("{0}")]
    TooLarge(String),
    /// Operands that do not fit together.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// Which operand.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        got: String,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn shape(what: &'static str, expected: impl ToString, got: impl ToString) -> Self {
        Self::Shape { what, expected: expected.to_string(), got: got.to_string() }
    }
}

/// `Ok` when `got == expected`.
pub(crate) fn expect_len(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if got == expected { Ok(()) } else { Err(Error::shape(what, expected, got)) }
}
