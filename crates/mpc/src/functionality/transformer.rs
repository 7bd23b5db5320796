//! Functions of transformers.

use graph::functions;
use graph::functions::curve::{Curve, Numbers};
use graph::functions::fold::Argument;
use graph::functions::inverse::Power;
use graph::functions::newton::Newton;
use graph::functions::smu::Smooth;
use graph::functions::starts::Start;
use wire::Result;

use super::{COUNT, Protocol, of_values};
use crate::boolean::compare::Radix;
use crate::nonlinear::comet::{smu, softmax as relu};
use crate::protocol::Protocol as _;
use crate::transformer::fold::clipped::Clipped;
use crate::transformer::fold::{self, Fold};
use crate::transformer::gelu::{self, Gelu};
use crate::transformer::inverse::{self, Inverse};
use crate::transformer::layernorm::{self, LayerNorm};
use crate::transformer::softmax::{self, Softmax};

pub(super) fn protocols() -> Vec<Protocol> {
    vec![
        gelu("gelu", (12, 6, 8), Radix::Sixteen, |plan| plan),
        gelu("gelu of eight bits, extended", (8, 7, 20), Radix::Four, |plan| plan),
        gelu("gelu of lines", (12, 9, 14), Radix::Four, |plan| plan),
        gelu("gelu in turns", (12, 6, 20), Radix::Chain, |plan| plan.by_transfers().in_turns()),
        gelu("gelu on a mask", (12, 6, 20), Radix::Chain, masked),
        fold("smooth bump by a table", (Argument::Even, [true, true], 20), table(5, |z| z % 3)),
        fold("odd function by a table", (Argument::Odd { span: 62 }, [false; 2], 12), falling()),
        fold("odd function by lines", (Argument::Odd { span: 62 }, [false; 2], 9), lines(2)),
        fold("smooth function below zero", (Argument::Negative, [true, true], 9), falling()),
        fold("smooth function of all values", (Argument::Whole, [true, false], 9), lines(3)),
        clipped_fold(),
        softmax("softmax of rows", None, |rows, of| Softmax::new(rows, of, Radix::Four)),
        softmax("softmax of rows by circuits", None, |rows, of| {
            Softmax::with_circuits(rows, of, Radix::Four)
        }),
        softmax("softmax of rows in turns", None, |rows, of| {
            Softmax::with_circuits(rows, of, Radix::Chain)?.in_turns()
        }),
        softmax("softmax of rows below a bound", Some(255), |rows, of| {
            Softmax::new(rows, of, Radix::Four)
        }),
        inverse(),
        layer_norm("layer norm", centred(), |rows, of| LayerNorm::new(rows, of, Radix::Four)),
        layer_norm("layer norm by circuits", centred(), |rows, of| {
            LayerNorm::with_circuits(rows, of, Radix::Four)
        }),
        layer_norm("layer norm in turns", centred(), |rows, of| {
            LayerNorm::with_circuits(rows, of, Radix::Chain)?.in_turns()
        }),
        layer_norm("RMS norm", rms(), |rows, of| LayerNorm::new(rows, of, Radix::Four)),
        layer_norm("RMS norm by circuits", rms(), |rows, of| {
            LayerNorm::with_circuits(rows, of, Radix::Four)
        }),
        smu(),
        relu_softmax(),
        newton_norm(),
    ]
}

/// Plans the function of `plan` for inputs of which the client knows its share beforehand.
#[allow(clippy::unwrap_used)]
fn masked(plan: Gelu) -> Gelu {
    Gelu::on_mask(COUNT, 12, plan.function(), 20).unwrap()
}

#[allow(clippy::unwrap_used)]
fn gelu(
    name: &'static str,
    (bits, magnitude, out_bits): (u32, u32, u32),
    radix: Radix,
    finished: fn(Gelu) -> Gelu,
) -> Protocol {
    let clear = functions::Gelu::new(magnitude, 4.0 / f64::from(1 << magnitude)).unwrap();
    let plan = finished(Gelu::new(COUNT, bits, &clear, out_bits, radix).unwrap());
    Protocol::new(
        name,
        bits,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| gelu::run(channel, &plan, x, ots),
        of_values(move |values| values.iter().map(|x| clear.clear(*x)).collect()),
    )
}

/// A table of so many bits' arguments.
#[allow(clippy::unwrap_used)]
fn table(bits: u32, entry: impl Fn(u64) -> u64) -> Curve {
    Curve::of(&Numbers::Table((0..1 << bits).map(entry).collect())).unwrap()
}

fn falling() -> Curve {
    table(5, |z| 31 - z)
}

/// Lines on 2^pieces pieces of eight values.
#[allow(clippy::unwrap_used)]
fn lines(pieces: u32) -> Curve {
    let starts = (0..1 << pieces).map(|piece| 124 - 13 * piece).collect();
    let slopes = vec![-2; 1 << pieces];
    Curve::of(&Numbers::Lines { drop: 3, fraction: 2, starts, slopes }).unwrap()
}

/// The protocol `fold` on values of 10 bits, 5 of them told apart on each side of 0.
#[allow(clippy::unwrap_used)]
fn fold(
    name: &'static str,
    (argument, flags, out_bits): (Argument, [bool; 2], u32),
    curve: Curve,
) -> Protocol {
    let clear = functions::Fold::new(5, argument, flags, 0, curve).unwrap();
    let plan = Fold::new(COUNT, 10, &clear, out_bits, Radix::Four).unwrap();
    Protocol::new(
        name,
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| fold::run(channel, &plan, x, ots),
        of_values(move |values| values.iter().map(|x| clear.clear(*x)).collect()),
    )
}

/// The protocol `clipped` of folds on values of 10 bits, 5 of them told apart on each side of 0.
#[allow(clippy::unwrap_used)]
fn clipped_fold() -> Protocol {
    let argument = Argument::Odd { span: 62 };
    let clear = functions::Fold::new(5, argument, [false; 2], 0, falling()).unwrap();
    let plan = Clipped::new(COUNT, 10, &clear, 12, Radix::Four).unwrap();
    Protocol::new(
        "odd function by a clip and a table",
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| plan.run(channel, std::slice::from_ref(x), ots),
        of_values(move |values| values.iter().map(|x| clear.clear(*x)).collect()),
    )
}

/// The protocol `softmax` on rows of eight values, with a bound of theirs or with a maximum.
#[allow(clippy::unwrap_used)]
fn softmax(
    name: &'static str,
    top: Option<i64>,
    plan: fn(usize, &functions::Softmax) -> Result<Softmax>,
) -> Protocol {
    let clear = match top {
        Some(top) => functions::Softmax::below(top, 8, 10, 0.005, 8).unwrap(),
        None => functions::Softmax::new(8, 10, 0.0625, 8).unwrap(),
    };
    let plan = plan(COUNT / 8, &clear).unwrap();
    Protocol::new(
        name,
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| softmax::run(channel, &plan, x, ots),
        of_values(move |values| values.chunks(8).flat_map(|row| clear.clear(row)).collect()),
    )
}

/// Roots, of the values with a quarter of the range added.
#[allow(clippy::unwrap_used)]
fn inverse() -> Protocol {
    let clear = functions::inverse::Inverse::new(Power::Root, [12, 4], 500.0, 10).unwrap();
    let plan = Inverse::new(COUNT, &clear, Radix::Four).unwrap();
    let bits = plan.bits();
    let quarter = 1i64 << (bits - 2);
    Protocol::new(
        "inverse root",
        bits,
        (plan.demand(), plan.cost()),
        move |channel, y, ots| {
            let y = y.plus(channel.role(), quarter);
            inverse::run(channel, &plan, &y, ots)
        },
        of_values(move |values| values.iter().map(|y| clear.clear(y + quarter)).collect()),
    )
}

/// How rows of eight values are calibrated.
const NORMS: functions::Calibration = functions::Calibration { least: 3, unit: 16.0 };

/// The norm of rows of eight values whose mean is taken off.
#[allow(clippy::unwrap_used)]
fn centred() -> functions::LayerNorm {
    functions::LayerNorm::new(8, 10, NORMS, 8).unwrap()
}

/// The norm of rows of eight values whose mean stays.
#[allow(clippy::unwrap_used)]
fn rms() -> functions::LayerNorm {
    functions::LayerNorm::rms(8, 10, NORMS, 8).unwrap()
}

/// The protocol `layer_norm` on rows of eight values.
#[allow(clippy::unwrap_used)]
fn layer_norm(
    name: &'static str,
    clear: functions::LayerNorm,
    plan: fn(usize, &functions::LayerNorm) -> Result<LayerNorm>,
) -> Protocol {
    let plan = plan(COUNT / 8, &clear).unwrap();
    Protocol::new(
        name,
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| layernorm::run(channel, &plan, x, ots),
        of_values(move |values| values.chunks(8).flat_map(|row| clear.clear(row)).collect()),
    )
}

const SMOOTH: Smooth = Smooth { bits: 8, scale: 0.0625, slope: 0.0, smoothness: 0.75, fraction: 0 };
const DIVISION: Newton = Newton { iterations: 3, ratio: 2, precision: 8 };

#[allow(clippy::unwrap_used)]
fn smu() -> Protocol {
    let (newton, out_bits) = functions::Smu::least(SMOOTH).unwrap();
    let clear = functions::Smu::new(SMOOTH, newton, out_bits + 3).unwrap();
    let plan = smu::Smu::new(COUNT, &clear, Radix::Four).unwrap();
    Protocol::new(
        "smooth maximum",
        SMOOTH.bits + 1,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| smu::run(channel, &plan, x, ots),
        of_values(move |values| values.iter().map(|x| clear.clear(*x)).collect()),
    )
}

/// The protocol `relu_softmax` on rows of eight values.
#[allow(clippy::unwrap_used)]
fn relu_softmax() -> Protocol {
    let (newton, _) = functions::Smu::least(SMOOTH).unwrap();
    let clear = functions::ReluSoftmax::new(8, SMOOTH, 0.5, [newton, DIVISION], 8).unwrap();
    let plan = relu::ReluSoftmax::new(COUNT / 8, &clear, false, Radix::Four).unwrap();
    Protocol::new(
        "softmax of smooth maxima",
        SMOOTH.bits + 1,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| relu::run(channel, &plan, x, None, ots),
        of_values(move |values| values.chunks(8).flat_map(|row| clear.clear(row, None)).collect()),
    )
}

/// The protocol `newton_norm` on rows of eight values.
#[allow(clippy::unwrap_used)]
fn newton_norm() -> Protocol {
    let root = (Start::Affine, DIVISION);
    let clear = functions::LayerNorm::by_newton(8, 10, NORMS, 8, root).unwrap();
    let plan = LayerNorm::new(COUNT / 8, &clear, Radix::Four).unwrap();
    Protocol::new(
        "layer norm by Newton's iteration",
        10,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| layernorm::run(channel, &plan, x, ots),
        of_values(move |values| values.chunks(8).flat_map(|row| clear.clear(row)).collect()),
    )
}
