//! About what widths cost where products are by oblivious transfer, in bits on the wire.
//!
//! Close enough to choose by: frames, correlations and masks' few bits are left out.

use pricing::fixed::message::{
    COMPARED_BITS, COMPARISON_ROUNDS, EXTENDED_BITS, EXTENSION_ROUNDS, ROUND_BYTES,
};

use crate::ir::{Graph, Linear, Node};
use crate::ops::choice::WeightBits;
use crate::ops::winograd::Winograd;

/// Bits that a round is worth.
pub(super) const ROUND: usize = 8 * ROUND_BYTES as usize;

/// Bits of the products of one weight and one value in a ring of `width` bits: a weight bit
/// that counts for a multiple of `2^k` needs `k` fewer.
fn product(choice: &WeightBits, width: u32) -> usize {
    let bits = choice.importance.iter();
    bits.map(|importance| width.saturating_sub(importance.trailing_zeros()) as usize).sum()
}

/// Chooses the ring of the products, whose sums need a width of `need`: narrow, and extended
/// by a comparison or by a bit to spare, or as wide as the accumulator.
pub(super) fn choose_products(layer: &mut Winograd, need: u32) {
    let wide = (layer.accumulator_bits, false);
    let narrow = [(need, false), (need + 1, true)];
    let narrow = narrow.into_iter().filter(|(bits, _)| *bits < layer.accumulator_bits);
    let best = narrow.chain([wide]).min_by_key(|choice| cost(layer, *choice));
    (layer.product_bits, layer.headroom) = best.unwrap_or(wide);
}

/// Bits on the wire of sums in a ring, extended with a bit to spare or without one if that is needed.
fn cost(layer: &Winograd, (bits, headroom): (u32, bool)) -> usize {
    let sums = layer.places() * layer.conv.out_channels * layer.columns();
    let added = (layer.accumulator_bits - bits) as usize;
    let (each, rounds) = match (added, headroom) {
        (0, _) => (0, 0),
        (_, true) => (added + EXTENDED_BITS, EXTENSION_ROUNDS),
        (_, false) => {
            let compared = bits as usize * COMPARED_BITS + EXTENDED_BITS;
            (compared + added, COMPARISON_ROUNDS + bits.ilog2() as usize)
        }
    };
    let products = layer.conv.in_channels * product(&layer.choice, bits);
    sums * (products + each) + rounds * ROUND
}

/// How many bits more a node sends for each bit that its output gets wider than an extension
/// of it would.
pub(super) fn price(graph: &Graph, node: &Node) -> usize {
    let results = graph.output_of(node).len();
    if let Some(layer) = node.op.get::<Winograd>() {
        // Every tile makes four products of each of its outputs, or their extensions.
        let sums = layer.places() * layer.conv.out_channels * layer.columns();
        let wide = layer.product_bits == layer.accumulator_bits;
        let bits = layer.choice.importance.len();
        let each = if wide { layer.conv.in_channels * bits } else { 1 };
        (sums * each).saturating_sub(results)
    } else if let Some(Linear { conv, choice, weight_bits, .. }) = node.op.get() {
        let bits = choice.as_ref().map_or(*weight_bits as usize, |c| c.importance.len());
        let taps = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
        results * (taps * bits).saturating_sub(1)
    } else {
        0
    }
}
