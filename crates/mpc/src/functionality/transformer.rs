//! Functions of transformers.

use super::{COUNT, Protocol, of_values};
use crate::compare::Radix;
use crate::transformer::gelu::{self, Calibration, Gelu};

pub(super) fn protocols() -> Vec<Protocol> {
    vec![
        gelu("gelu, saturating", 12, 7, 8, Radix::Sixteen),
        gelu("gelu of eight bits", 8, 7, 12, Radix::Four),
        gelu("gelu of lines", 10, 9, 14, Radix::Four),
    ]
}

#[allow(clippy::unwrap_used)]
fn gelu(name: &'static str, bits: u32, magnitude: u32, out_bits: u32, radix: Radix) -> Protocol {
    let calibration = Calibration { magnitude, scale: 8.0 / f64::from(1 << magnitude) };
    let plan = Gelu::new(COUNT, bits, calibration, out_bits, radix).unwrap();
    let clear = plan.clone();
    Protocol {
        name,
        bits,
        need: plan.need(),
        cost: plan.cost(),
        run: Box::new(move |channel, x, pads| gelu::run(channel, &plan, x, pads)),
        ideal: of_values(move |values| values.iter().map(|x| clear.clear(*x)).collect()),
        frames: [4, 4],
    }
}
