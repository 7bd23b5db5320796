//! Residues that are erased.

use std::ops::{Deref, DerefMut};

use zeroize::optimization_barrier;

/// Residues that may tell a party's secrets. Erased on drop, all at once: one volatile
/// write after another would take as long as some operations on ciphertexts.
#[derive(Clone)]
pub(crate) struct Values(Vec<f64>);

impl Values {
    pub(crate) fn zero(count: usize) -> Self {
        Self(vec![0.0; count])
    }
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Self(values)
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        self.0.fill(0.0);
        optimization_barrier(self.0.as_slice());
    }
}

impl Deref for Values {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}
