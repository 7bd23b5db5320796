//! A party's own randomness.

use std::ops::{Deref, DerefMut};

use crate::prg::{Prg, Seed};

/// A party's private generator, keyed by the operating system. A seeded one
/// exists only under the feature `testing`, which no release build enables.
#[derive(Debug)]
pub struct Random(Prg);

impl Random {
    /// Keyed with fresh entropy.
    ///
    /// # Errors
    /// When the operating system gives no entropy; nothing may go on then.
    pub fn from_os() -> Result<Self, getrandom::Error> {
        let mut seed = Seed([0; 16]);
        getrandom::fill(&mut seed.0)?;
        Ok(Self(Prg::new(&seed, 0)))
    }

    /// A reproducible generator for tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn seeded(seed: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(Prg::new(&Seed(bytes), u64::MAX))
    }
}

impl Deref for Random {
    type Target = Prg;

    fn deref(&self) -> &Prg {
        &self.0
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut Prg {
        &mut self.0
    }
}
