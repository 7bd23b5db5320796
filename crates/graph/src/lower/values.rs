//! The facts about the tensors around a node that follow from the graph and from calibration.

use super::options::MOST_BITS;
use super::scale::Scales;
use crate::error::{Error, Result};
use crate::source::ops::{Add, AddConstant, Mask, Scale};
use crate::source::{SourceNode, Values};

/// A node among its neighbours.
pub(super) struct Around<'a> {
    pub(super) scales: &'a Scales<'a>,
    pub(super) node: &'a SourceNode,
}

impl Around<'_> {
    fn place(&self, place: usize) -> Option<&String> {
        self.node.inputs.get(place)
    }

    fn range_of(&self, tensor: Option<&String>) -> Result<(f64, f64)> {
        let missing = || Error::internal(&self.node.name, "reads nothing");
        self.scales.own_range(tensor.ok_or_else(missing)?)
    }

    /// What a mask wrote an input of, or the input.
    fn unmasked(&self, place: usize) -> Option<&String> {
        let input = self.place(place)?;
        let mask = self.scales.writer(input).filter(|node| node.op.is::<Mask>());
        mask.map_or(Some(input), |mask| mask.inputs.first())
    }
}

impl Values for Around<'_> {
    fn activation_bits(&self) -> u32 {
        let bits = self.scales.activation_bits;
        let extra = self.scales.program().source.extra_bits.get(&self.node.output);
        extra.map_or(bits, |extra| bits.saturating_add(*extra).min(bits.max(MOST_BITS)))
    }

    fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    fn shape(&self, place: usize) -> &[usize] {
        self.place(place).map_or(&[], |input| &self.scales.shapes[input])
    }

    fn range(&self, place: usize) -> Result<(f64, f64)> {
        self.range_of(self.place(place))
    }

    fn unmasked_range(&self, place: usize) -> Result<(f64, f64)> {
        self.range_of(self.unmasked(place))
    }

    fn output_range(&self) -> Result<(f64, f64)> {
        self.scales.own_range(&self.node.output)
    }

    fn unsigned_bits(&self, place: usize) -> Option<u32> {
        self.scales.program.source.unsigned_bits(self.place(place)?, self.scales.activation_bits)
    }

    fn is_saturated(&self, place: usize) -> bool {
        self.place(place).is_some_and(|input| self.scales.is_saturated(input))
    }

    fn is_masked(&self, place: usize) -> bool {
        self.unmasked(place) != self.place(place)
    }

    fn is_known(&self, place: usize) -> bool {
        self.place(place).is_some_and(|input| self.scales.is_known(input))
    }

    fn is_shared(&self, place: usize) -> bool {
        self.place(place).is_some_and(|input| self.scales.is_shared(input))
    }

    fn is_bounded(&self, place: usize) -> bool {
        self.place(place).is_some_and(|input| self.scales.is_bounded(input))
    }

    fn is_looked_up(&self, place: usize) -> bool {
        let origin = |tensor: &String| self.scales.origin(tensor);
        let Some(mut node) = self.place(place).and_then(origin) else { return false };
        while node.op.is::<AddConstant>() {
            match node.inputs.first().and_then(origin) {
                Some(earlier) => node = earlier,
                None => return true,
            }
        }
        node.op.table().is_some()
    }

    fn is_clipped_by_readers(&self) -> bool {
        self.scales.readers(&self.node.output).all(|reader| reader.op.clips_input())
    }

    fn is_read_apart(&self) -> bool {
        let mut readers = self.scales.readers(&self.node.output);
        let opened = self.scales.program.source.is_kept(&self.node.output);
        !opened && readers.all(|reader| reader.op.reads_mask_apart())
    }

    fn is_only_summed(&self) -> bool {
        let source = &self.scales.program.source;
        let mut readers = self.scales.readers(&self.node.output);
        !source.is_kept(&self.node.output) && readers.all(|reader| reader.op.is::<Add>())
    }

    fn is_rescaled_by_sums(&self) -> bool {
        self.scales.feeds_sums(&self.node.output)
    }
}

impl Scales<'_> {
    /// The mask that wrote what a node reads first, if one did.
    pub(super) fn mask_before(&self, node: &SourceNode) -> Option<&SourceNode> {
        self.writer(node.inputs.first()?).filter(|node| node.op.is::<Mask>())
    }

    /// The operator that wrote what `tensor` shows in some order.
    fn origin(&self, tensor: &str) -> Option<&SourceNode> {
        let mut node = self.writer(tensor)?;
        while node.op.shows_input() {
            node = self.writer(node.inputs.first()?)?;
        }
        Some(node)
    }

    /// Whether the client knows `tensor`: it shows the graph's input in some order.
    fn is_known(&self, tensor: &str) -> bool {
        let mut name = tensor;
        while let Some(node) = self.writer(name) {
            match (node.op.shows_input(), node.inputs.first()) {
                (true, Some(shown)) => name = shown,
                _ => return false,
            }
        }
        name == self.program.source.input.name
    }

    /// Whether a dense layer of a norm's result wrote `tensor`.
    fn is_bounded(&self, tensor: &str) -> bool {
        let linear = self.origin(tensor).filter(|node| node.op.linear().is_some());
        let input = linear.and_then(|linear| self.origin(linear.inputs.first()?));
        input.is_some_and(|node| node.op.is_norm())
    }

    /// Whether a factor of a product may choose its scale: the client does not know it, it has
    /// no scale of its own, and no mask is multiplied by it.
    fn is_shared(&self, tensor: &str) -> bool {
        let Some(origin) = self.origin(tensor) else { return false };
        let masked = |node: &SourceNode| node.op.mask_place(&self.around(node)) == Some(0);
        !origin.op.is_distribution() && !self.readers(tensor).any(masked)
    }

    /// Whether all that reads `tensor`, in whatever order and rescaled or not, is sums that no product takes over.
    fn feeds_sums(&self, tensor: &str) -> bool {
        let source = &self.program.source;
        let summed = |reader: &SourceNode| {
            let product = |input: &String| source.single_use_product(input).is_some();
            match reader.op.get() {
                Some(Scale { factor }) => *factor > 0.0 && self.feeds_sums(&reader.output),
                None if reader.op.shows_input() && reader.op.keeps_integers() => {
                    self.feeds_sums(&reader.output)
                }
                None => reader.op.is::<Add>() && !reader.inputs.iter().any(product),
            }
        };
        !source.is_kept(tensor) && self.readers(tensor).all(summed)
    }
}
