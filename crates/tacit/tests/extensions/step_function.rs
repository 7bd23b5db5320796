//! A demonstration operator: 1 where the input is not negative, 0 elsewhere.
//!
//! The file has all that an operator is: its checks, meaning and widths as integers, how it comes
//! out of a network of real numbers, and the protocol that runs it on shares.

use graph::ops::{Known, Operator, Range, Registration, Site, ensure, same_shape};
use graph::source::{Lowering, SourceOperator, SourceRegistration};
use graph::{Check, Floats};
use mpc::sign::{Signs, Told};
use runtime::{Action, NodeContext, Sliced};
use serde::{Deserialize, Serialize};

/// The operator on integers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepFunction {}

/// The operator on real numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heaviside {}

static INTEGERS: Registration = Registration::of::<StepFunction>("step-function");
static REALS: SourceRegistration = SourceRegistration::of::<Heaviside>("Heaviside");

/// Makes the operator known to this process.
pub(crate) fn register() -> Result<(), String> {
    graph::ops::register(&INTEGERS).map_err(|e| e.to_string())?;
    graph::source::register(&REALS).map_err(|e| e.to_string())?;
    runtime::register_operator("step-function", plan).map_err(|e| e.to_string())
}

impl Operator for StepFunction {
    fn kind(&self) -> &'static str {
        "step-function"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        ensure(site.input().format.bits >= 2, || "a step of one bit".into())?;
        Ok(false)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let input = inputs.first().ok_or("a step of nothing")?;
        Ok(input.iter().map(|x| i64::from(*x >= 0)).collect())
    }

    fn output(&self, _: &Site<'_>, _inputs: &[Known]) -> Known {
        Range::new(0, 1).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }
}

impl SourceOperator for Heaviside {
    fn kind(&self) -> &'static str {
        "Heaviside"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let [input] = inputs else { return Err(format!("a step of {} tensors", inputs.len())) };
        Ok(input.to_vec())
    }

    fn lower(&self, step: &mut dyn Lowering) -> graph::Result<()> {
        step.write(Box::new(StepFunction {}), 1.0, false)
    }
}

/// The protocol: a comparison with zero whose result is shared in the output's width.
fn plan(cx: &NodeContext<'_>) -> wire::Result<Action> {
    let (bits, out_bits) = (cx.bits(), cx.out_bits());
    let radix = cx.radix(cx.count(), bits - 1);
    let sliced = Sliced::new(cx.count(), |count| {
        Signs::new(count, bits, Told::NonNegative, out_bits, radix)
    })?;
    Ok(Action::from(sliced))
}
