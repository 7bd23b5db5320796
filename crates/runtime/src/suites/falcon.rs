//! Suite `falcon`: the published system, whose masks leak, on the circuits of
//! [`super::garbled`].
//!
//! What a circuit shares mod a power of two becomes small shares
//! ([`mpc::linear::falcon::Small`]), which a layer in the Fourier domain takes. Its results
//! are shares over the integers, so shares mod every power of two. They are off by at most the
//! unit of the rescale that follows: rescaled values are within 1 of the interpreter's.

use std::collections::BTreeMap;

use graph::{Graph, Linear, Rounding};
use mpc::garbled::Ring;
use mpc::linear::falcon::AcceptLeakage;
pub(super) use mpc::linear::falcon::Layer;
use wire::{Error, Result};

use super::refusal::at;
use super::slots::{self, Facts};
use crate::linear::slots::{Packed, Packing};

/// Most bits that masks are wider than what they mask; every one costs half a bit of the
/// precision of inputs and half a bit of that of weights.
pub(super) const MOST_HIDDEN: u32 = 8;
/// Least.
const LEAST_HIDDEN: u32 = 2;

/// The layers of all linear nodes, with the widest masks that leave enough precision, the
/// same in all layers.
///
/// # Errors
/// [`Error::Misuse`] naming the node that no masks leave it to.
pub(super) fn layers(graph: &Graph, facts: &[Facts]) -> Result<BTreeMap<usize, Packed>> {
    let hiding = |hidden| {
        let packing = Packing::Published(AcceptLeakage::hiding_bits(hidden));
        let layers = slots::layers(graph, facts, packing)?;
        layers.iter().try_for_each(|(index, layer)| precise(graph, *index, layer))?;
        Ok(layers)
    };
    let narrower = (LEAST_HIDDEN..MOST_HIDDEN).rev();
    narrower.fold(hiding(MOST_HIDDEN), |found, hidden| found.or_else(|_: Error| hiding(hidden)))
}

/// Whether results of a layer are off by less than rescaling takes away, and not at all
/// where they are opened.
fn precise(graph: &Graph, index: usize, layer: &Packed) -> Result<()> {
    let (Packed::Published(layer), Some(node)) = (layer, graph.nodes.get(index)) else {
        return Ok(());
    };
    let Some(Linear { shift, rounding, .. }) = node.op.get() else { return Ok(()) };
    let error = layer.error();
    let refused = |why: String| Err(at(&node.name, Error::misuse(why)));
    if error > 0.0 && *rounding == Rounding::Exact {
        return refused(
            "suite falcon rounds transforms, so only layers on single pixels are exact; compile \
             with --rounding stochastic, end the network with a fully connected layer, or use \
             falcon-ntt"
                .into(),
        );
    }
    if error > f64::from(*shift).exp2() {
        return refused(format!(
            "its transforms are off by up to {error:.0}, and rescaling drops {shift} bits only; \
             use fewer --weight-bits or --activation-bits, or falcon-ntt, which is exact"
        ));
    }
    Ok(())
}

/// The ring of what all layers read before it becomes small shares: the widest that one of
/// them needs, so that a tensor of several layers is masked once.
pub(super) fn one_entry(entries: &mut BTreeMap<usize, Ring>) {
    let widest = entries.values().map(|ring| ring.bits()).max().unwrap_or_default();
    entries.values_mut().for_each(|ring| *ring = Ring::Power(widest));
}

/// The ring of results of a signed `width`; a bit more where the circuit adds the half unit.
pub(super) fn results(linear: &Linear, width: u32) -> Ring {
    Ring::Power(width + u32::from(linear.addend.is_none()))
}

pub(super) fn networks_only() -> Error {
    Error::misuse(
        "suite `falcon` runs whole networks (`tacit compile --accept-leakage`); measure layers \
         with `tacit reproduce falcon-table2`, or use falcon-ntt",
    )
}

pub(super) fn circuits_only() -> Error {
    Error::misuse("suite `falcon` runs on garbled circuits; drop --nonlinear ot")
}
