//! What planners ask of a layer many times, kept once it is known.

use std::sync::OnceLock;

/// What follows from the packing, the parameters and the size of weights alone, which a layer keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Useful coefficients of each response.
    pub(super) useful: OnceLock<Vec<usize>>,
    /// The work of a direct product, where that is the kernel.
    pub(super) direct: OnceLock<Option<usize>>,
}
