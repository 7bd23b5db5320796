//! The parameter table.

use std::fmt;

use crate::error::{Error, Result};

/// Allowed (degree N, largest modulus bits K). Secret ternary, error deviation 3.2: 130.5 and
/// 221.8 bits of security by `scripts/lattice_estimate.py`, which allows 52 and 106 bits at 128.
pub const TABLE: [(usize, u32); 2] = [(2048, 52), (4096, 64)];

/// Below this a modulus has no room for a plaintext above the noise.
pub const LEAST_MODULUS_BITS: u32 = 24;

/// Ring degree N and modulus q = 2^K with at least 128 bits of security.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Params {
    degree: usize,
    modulus_bits: u32,
}

impl Params {
    /// Looks the pair up in [`TABLE`].
    ///
    /// # Errors
    /// [`Error::Weak`] above the table's modulus or off its degrees;
    /// [`Error::Shape`] below [`LEAST_MODULUS_BITS`].
    pub fn new(degree: usize, modulus_bits: u32) -> Result<Self> {
        let weak = |limit| Error::Weak { degree, modulus_bits, limit };
        let Some((_, most)) = TABLE.iter().find(|(known, _)| *known == degree) else {
            return Err(weak("allowed degrees are 2048 and 4096".into()));
        };
        if modulus_bits > *most {
            return Err(weak(format!("the limit at degree {degree} is {most} bits")));
        }
        if modulus_bits < LEAST_MODULUS_BITS {
            let least = format!("at least {LEAST_MODULUS_BITS}");
            return Err(Error::shape("modulus bits", least, modulus_bits));
        }
        Ok(Self { degree, modulus_bits })
    }

    /// Ring degree N: coefficients per polynomial.
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// Returns K, with q = 2^K.
    pub const fn modulus_bits(&self) -> u32 {
        self.modulus_bits
    }

    /// Returns whether values under these parameters may meet values under `key`: equal degree, and
    /// a modulus that divides the key's. Samples mod 2^K reduce to samples mod a smaller power with
    /// the same secret and error, so one key serves every modulus up to its own without loss.
    pub const fn within(&self, key: &Self) -> bool {
        self.degree == key.degree && self.modulus_bits <= key.modulus_bits
    }

    pub(crate) fn check_within(&self, key: &Self) -> Result<()> {
        let wanted = format!("degree {} and at most {} bits", key.degree, key.modulus_bits);
        if self.within(key) { Ok(()) } else { Err(Error::shape("parameters", wanted, self)) }
    }

    pub(crate) fn check_bits(&self, what: &'static str, bits: u32) -> Result<()> {
        if (1..=self.modulus_bits).contains(&bits) {
            Ok(())
        } else {
            Err(Error::shape(what, format!("1 to {} bits", self.modulus_bits), bits))
        }
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Params(N = {}, q = 2^{})", self.degree, self.modulus_bits)
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "N = {}, q = 2^{}", self.degree, self.modulus_bits)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn weak_parameters_are_refused_with_the_limit() {
        for (degree, bits) in [(2048, 53), (2048, 60), (4096, 65), (1024, 27), (8192, 60), (0, 0)] {
            let error = Params::new(degree, bits).unwrap_err();
            assert!(matches!(error, Error::Weak { .. }), "{error}");
        }
        let text = Params::new(2048, 60).unwrap_err().to_string();
        assert!(text.contains("the limit at degree 2048 is 52 bits"), "{text}");
        assert!(matches!(Params::new(2048, 10), Err(Error::Shape { .. })));
        assert!(Params::new(2048, 52).is_ok() && Params::new(4096, 64).is_ok());
    }
}
