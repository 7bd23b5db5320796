//! What a layer keeps of its responses and its kernel once planners have asked for it.

use wire::Segment;

use super::layer::Layer;
use super::packing::Place;
use super::product;

impl Layer {
    /// Layout of each response.
    pub(super) fn response_layouts(&self) -> Vec<Vec<Segment>> {
        let bits = self.response_bits;
        let useful = |place: Place| self.packing.useful(place);
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
