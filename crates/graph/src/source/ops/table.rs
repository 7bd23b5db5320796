//! Functions of one number, by tables, or folded where that costs less.

use super::checks::one;
use super::folded::{Form, Smooth};
use crate::error::{Check, Result};
use crate::functions;
use crate::ops::{Fold, Lookup, Relu};
use crate::source::floats::Floats;
use crate::source::function::Function;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{Clipped, around_zero, levels, positive, window};
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// Most bits of a table's argument.
const TABLE_BITS: u32 = 8;
/// Most bits of an argument's magnitude.
const CURVE_BITS: u32 = 12;
/// Values from which on lines cost less than a table of more than 8 bits.
const LINES_FROM: usize = 2000;
/// How many times finer a second table is where a function is steep, in bits.
const FINE_BITS: u32 = 5;
/// The part of the largest divisor below which its inverse is taken for that of this part.
const NEXT_TO_ZERO: f64 = 1.0 / 8192.0;

/// A smooth function: of a folded argument ([`Fold`]), or by a table of all arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The function.
    pub function: Function,
    /// The function's first parameter, if it has any.
    #[serde(default)]
    pub alpha: f64,
    /// The function's second parameter.
    #[serde(default)]
    pub beta: f64,
}

impl SourceOperator for Table {
    fn kind(&self) -> &'static str {
        "Table"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let fits = self.alpha.is_finite() && self.beta.is_finite();
        fits.then(|| input.to_vec()).ok_or("has a parameter that is not finite".into())
    }

    fn ratio(&self) -> Option<f64> {
        matches!(self.smooth().form(), Some(Form::Bump(_))).then_some(1.0)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let (low, high) = self.arguments(values)?;
        let (from, to) = values.output_range()?;
        let levels = levels(values.activation_bits());
        let side = if from < 0.0 { levels / 2.0 } else { levels };
        if let Some(Form::Bump(_)) = self.smooth().form() {
            let scale = positive(to.max(-from)) / side;
            let reach = self.smooth().reach((low, high), scale);
            return Ok(vec![(Place::Output, scale.max(reach / finest()))]);
        }
        let mut inputs = f64::from((1u32 << self.argument_bits(values)) - 1);
        if self.is_steep_on((low, high)) {
            inputs *= f64::from(FINE_BITS).exp2();
        }
        Ok(vec![
            (Place::Input(0), positive(high - low) / inputs),
            (Place::Output, positive(to.max(-from)) / side),
        ])
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        if self.function != Function::Reciprocal {
            return Ok(None);
        }
        let (low, high) = values.range(0)?;
        // A divisor that comes next to 0 has no bound worth the name.
        let least = low.abs().max(high.abs()) * NEXT_TO_ZERO;
        let ends = [low, high].map(|end| 1.0 / if end.abs() < least { least } else { end });
        Ok(Some((ends[0].min(ends[1]), ends[0].max(ends[1]))))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        if let Some(fold) = self.folded(step)? {
            let (to, signed) = (step.scale()?, fold.ends()[0] < 0);
            return step.write(Box::new(Fold::of(&fold)), to, signed);
        }
        let bits = bits(&*step.values());
        let range = self.arguments(&*step.values())?;
        if self.function == Function::Reciprocal && range.0 < 0.0 && range.1 > 0.0 {
            let what = "divides by values on both sides of 0";
            return Err(step.refuse(what, "keep the divisor above 0, as a sum with a constant is"));
        }
        if self.is_steep_on(range) && step.input(0)?.format.scale * levels(bits) * 2.0 <= range.1 {
            return self.lower_in_two(step, bits, range.1);
        }
        let mut scale = step.input(0)?.format.scale;
        let fits = |scale| window(range, bits, scale).filter(|window| window.bits == bits);
        let mut window = fits(scale);
        if window.is_none() {
            scale = (range.1 - range.0) / levels(bits);
            step.rescale(0, "rescaled", scale)?;
            window = fits(scale);
        }
        let Some(Clipped { low, .. }) = window else {
            let what = "is a function of values far from zero";
            return Err(step.refuse(what, "subtract a constant before it"));
        };
        step.clip_to(0, "clip", range, bits)?;
        let to = step.scale()?;
        let (least, most) = around_zero(step.values().output_range()?);
        let at = |x: i64| self.function.at((low + x) as f64 * scale, self.alpha, self.beta);
        // The function may have a pole at an argument that calibration has not shown.
        let bounded = |y: f64| if y.is_finite() { y } else { y.clamp(least, most) };
        let value = |x| (bounded(at(x)) / to).round() as i64;
        let values: Vec<i64> = (0..1i64 << bits).map(value).collect();
        let signed = values.iter().any(|value| *value < 0);
        step.write(Box::new(Lookup { low, values }), to, signed)
    }
}

impl Table {
    fn smooth(&self) -> Smooth {
        Smooth { function: self.function, alpha: self.alpha, beta: self.beta }
    }

    /// Bits that the argument is asked to have: more than a table takes for so many values, of an
    /// odd function or one without a form, that lines cost less.
    fn argument_bits(&self, values: &dyn Values) -> u32 {
        let many = values.shape(0).iter().product::<usize>() >= LINES_FROM;
        match many && matches!(self.smooth().form(), Some(Form::Odd | Form::Whole)) {
            true => values.activation_bits().min(CURVE_BITS),
            false => bits(values),
        }
    }

    /// The function of a folded argument, if there is one for this input's scale and it costs less
    /// than a table of all arguments.
    fn folded(&self, step: &dyn Lowering) -> Result<Option<functions::Fold>> {
        let (smooth, values) = (self.smooth(), step.values());
        let scales = [step.input(0)?.format.scale, step.scale()?];
        let range = self.arguments(&*values)?;
        let reach = match smooth.form() {
            None => return Ok(None),
            Some(Form::Bump(_)) => smooth.reach(range, scales[1]),
            Some(Form::Odd | Form::Whole) => range.1.max(-range.0),
        };
        let Some(magnitude) = Smooth::magnitude(reach, scales[0]) else { return Ok(None) };
        let count = values.shape(0).iter().product();
        let output = Smooth::width(values.output_range()?, scales[1]);
        let fold = smooth.folded((magnitude, range.1), scales, count);
        Ok(fold.filter(|fold| Smooth::is_worth(fold, [bits(&*values), output], count)))
    }

    /// The range of arguments that are told apart: where the function is flat they need not be.
    fn arguments(&self, values: &dyn Values) -> Result<(f64, f64)> {
        let (low, high) = around_zero(values.range(0)?);
        let beyond = self.function.flat_beyond(1.0 / levels(values.activation_bits()));
        Ok(beyond.map_or((low, high), |most| (low.max(-most), high.min(most))))
    }

    /// Whether a fine table beside a coarse one is worth its cost on values in `range`.
    fn is_steep_on(&self, range: (f64, f64)) -> bool {
        self.function.is_steep(self.alpha) && range.0 >= 0.0
    }

    /// `f(x) = f(max(x, m)) + (f(min(x, m)) - f(m))` by two tables: of all arguments up to `most`, and
    /// of those up to the last one, `m`, that so many bits hold in the input's own scale.
    fn lower_in_two(&self, step: &mut dyn Lowering, bits: u32, most: f64) -> Result<()> {
        let (to, scale) = (step.scale()?, step.input(0)?.format.scale);
        let last = levels(bits) * scale;
        let (least, largest) = around_zero(step.values().output_range()?);
        let at = |x: f64| {
            let y = self.function.at(x, self.alpha, self.beta);
            if y.is_finite() { y } else { y.clamp(least, largest) }
        };
        let rows = |value: &dyn Fn(i64) -> f64| -> Vec<i64> {
            (0..1i64 << bits).map(|x| (value(x) / to).round() as i64).collect()
        };
        let signed = |values: &[i64]| values.iter().any(|value| *value < 0);
        let clipped = IntegerNode::new(Relu { saturate: bits, low: 0 }, &[0], scale, false);
        let fine = step.before("small", clipped)?;
        let values = rows(&|x| at(x as f64 * scale) - at(last));
        let sign = signed(&values);
        let fine =
            step.before("fine", IntegerNode::new(Lookup { low: 0, values }, &[fine], to, sign))?;
        let wide = most / levels(bits);
        step.rescale(0, "rescaled", wide)?;
        step.clip_to(0, "clip", (0.0, most), bits)?;
        let values = rows(&|x| at((x as f64 * wide).max(last)));
        let sign = signed(&values);
        let coarse =
            step.before("coarse", IntegerNode::new(Lookup { low: 0, values }, &[0], to, sign))?;
        step.sum([coarse, fine], [1.0, 1.0], to)
    }
}

/// The largest argument of a curve.
fn finest() -> f64 {
    levels(CURVE_BITS)
}

/// Bits of the table's argument.
fn bits(values: &dyn Values) -> u32 {
    values.activation_bits().min(TABLE_BITS)
}
