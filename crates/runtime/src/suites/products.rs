//! Products of two tensors, element by element, by oblivious transfer.

use graph::ops;
use mpc::extend::Sign;
use mpc::multiply::known::Known;
use mpc::multiply::{Factor, Multiply};
use mpc::square::Square;
use wire::{Result, Role};

use super::node_context::NodeContext;
use crate::step::Action;
use crate::step::composed::Composed;
use crate::step::sliced::Sliced;

/// The products of two tensors, element by element: a square, a product with what the client knows, or one
/// of two shared factors.
///
/// # Errors
/// [`wire::Error::Misuse`] for widths that no protocol has.
pub(super) fn product(cx: &NodeContext<'_>) -> Result<Action> {
    let ops::Product { factor_bits } = *cx.operator()?;
    let (count, out_bits) = (cx.count(), cx.out_bits());
    let radix = cx.radix(count, factor_bits[0]);
    if cx.node.inputs.first() == cx.node.inputs.get(1) {
        let signed = cx.input().format.signed;
        let sign = if signed { Sign::Unknown } else { Sign::NonNegative };
        let factor = Factor { bits: factor_bits[0], sign };
        let sliced = Sliced::new(count, |count| Square::new(count, factor, out_bits, radix))?;
        return Ok(reduced(factor_bits, sliced));
    }
    let first = if cx.options.turns { Role::Server } else { Role::Client };
    let known = cx.graph.known();
    let known = [1, 0].into_iter().find(|place| known.get(cx.node.inputs[*place]) == Some(&true));
    if let Some(place) = known {
        let shared = factor(cx, 1 - place, factor_bits[1 - place]);
        let bits = factor_bits[place];
        let mut narrow = [bits; 2];
        narrow[1 - place] = shared.bits;
        let plan = |count| Known::new(count, shared, bits, out_bits, radix);
        let sliced = Sliced::new(count, |count| Ok(plan(count)?.begun_by(first).at(place)))?;
        return Ok(reduced(narrow, sliced));
    }
    let factor_bits = without_wraps(cx, factor_bits);
    let factors = [0, 1].map(|place| factor(cx, place, factor_bits[place]));
    let plan = |count| Multiply::new(count, factors, out_bits, radix);
    let sliced = Sliced::new(count, |count| Ok(plan(count)?.begun_by(first)))?;
    Ok(reduced(factors.map(|factor| factor.bits), sliced))
}

/// The factor at a place of a product, of so many bits, or of one to spare where its shares have it: no
/// comparison finds its wrap then.
fn factor(cx: &NodeContext<'_>, place: usize, bits: u32) -> Factor {
    let format = &cx.graph.input_of(cx.node, place).format;
    match (format.signed, format.bits > bits && bits < cx.out_bits()) {
        (true, true) => Factor { bits: bits + 1, sign: Sign::Spare },
        (true, false) => Factor { bits, sign: Sign::Unknown },
        (false, _) => Factor { bits, sign: Sign::NonNegative },
    }
}

/// Widths of both factors, the wider one's being that of the products where its shares have it: it
/// has no wrap to find then, and its bits choose nothing.
fn without_wraps(cx: &NodeContext<'_>, mut bits: [u32; 2]) -> [u32; 2] {
    let wider = usize::from(bits[1] > bits[0]);
    if cx.graph.input_of(cx.node, wider).format.bits >= cx.out_bits() {
        bits[wider] = bits[wider].max(cx.out_bits());
    }
    bits
}

/// A protocol on shares of two factors that are reduced to these widths first.
fn reduced(widths: [u32; 2], sliced: Sliced) -> Action {
    Action::from(Composed { narrow: Some(widths), ..Composed::from(sliced) })
}
