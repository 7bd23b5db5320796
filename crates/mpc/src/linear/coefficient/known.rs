//! What planners ask of a layer many times, kept once it is known.

use std::sync::OnceLock;

use wire::Segment;

use super::layer::Layer;
use super::packing::Place;
use super::product;

/// What follows from the packing, the parameters and the size of weights alone, which a layer keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Useful coefficients of each response.
    useful: OnceLock<Vec<usize>>,
    /// The work of a direct product, where that is the kernel.
    direct: OnceLock<Option<usize>>,
}

impl Layer {
    /// Layout of each response.
    pub(super) fn response_layouts(&self) -> Vec<Vec<Segment>> {
        let bits = self.response_bits;
        let useful = |place: Place| self.packing.outputs(place).len();
        let counts = || self.packing.places().map(useful).collect();
        let layout = |useful: &usize| {
            vec![Segment { count: self.params.degree(), bits }, Segment { count: *useful, bits }]
        };
        self.known.useful.get_or_init(counts).iter().map(layout).collect()
    }

    /// The work of a direct product, where that is the kernel.
    pub(super) fn direct_work(&self) -> Option<usize> {
        *self.known.direct.get_or_init(|| product::kernel(self).direct_work())
    }
}
