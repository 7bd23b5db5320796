//! Smooth functions whose argument is folded before it is looked up.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits, bits >= magnitude + 3, |x| <= 2^(bits-1) - 2^magnitude; correlations |
//! | Out | shares of the function of x mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a comparison of bits - 1, a choice among shares for the argument and one for each of its sides, one for a ReLU, the curve (`curve.rs`); for wide results an extension of known sign |
//! | Paper | Rathee et al., SiRNN (S&P 2021), tables of truncated arguments; GELU of this project |
//!
//! The function is [`functions::Fold`]. One comparison, of `y = x + 2^magnitude`, tells whether x is
//! within the curve, its sign there and its sign beyond, as of GELU (`gelu.rs`). Where the curve
//! differs at its ends, it tells -2^magnitude apart too, whose last bits are those of 0. An
//! argument that saturates is chosen among shares after the last one was taken off, and it is
//! added again: the choice of nothing is the last one then.

mod at_once;
pub mod clipped;

use graph::functions;
use graph::functions::fold::Argument;
use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use self::at_once::AtOnce;
use super::curve::{self, Curve};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clamp::Inside;
use crate::nonlinear::relu::gated;
use crate::protocol::{Protocol, input};
use crate::share::{Share, sign_of};
use crate::turns;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Fold {
    count: usize,
    bits: u32,
    function: functions::Fold,
    comparison: Comparison,
    /// Selects x from 0 on, saturated, where it is part of the result.
    positive: Option<Inside>,
    argument: Chosen,
    /// Both at once, in plans that go in turns.
    at_once: Option<AtOnce>,
    curve: Curve,
    extension: Option<Extend>,
    /// Width of the results, which drops bits where they are known to be in a part of what the
    /// function gives.
    out_bits: u32,
}

/// How the argument of the curve is chosen among shares.
#[derive(Clone, Debug)]
enum Chosen {
    /// x or -x, whichever is positive, without a ReLU: two choices at once.
    Sides(Switch),
    /// The absolute value that a ReLU gives, -x or all of x.
    Inside(Inside),
}

impl Chosen {
    fn demand(&self) -> Demand {
        match self {
            Self::Sides(switch) => switch.demand(),
            Self::Inside(plan) => plan.demand(),
        }
    }

    fn cost(&self, first: Role) -> Cost {
        match self {
            Self::Sides(switch) => switch.cost(first),
            Self::Inside(plan) => plan.cost(first),
        }
    }
}

/// What the comparison tells of each x, as shared bits.
struct Found {
    /// Whether `x >= -2^magnitude`.
    above: Bits,
    /// Whether `-2^magnitude <= x < 2^magnitude`.
    covered: Bits,
    /// Whether `0 <= x < 2^magnitude`.
    upper: Bits,
    /// Whether `-2^magnitude < x < 2^magnitude`, or covered where it makes no difference.
    told: Bits,
}

/// The exclusive or of bits.
fn xor(bits: &[&Bits], count: usize) -> Zeroizing<Bits> {
    let mut sum = Zeroizing::new(Bits::zeros(count));
    bits.iter().for_each(|bits| sum.xor(bits));
    sum
}

impl Fold {
    /// Plans `count` values of `bits` to `out_bits` (up to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for `bits` below the magnitude and 3 or above 63, and for results of more
    /// than 63 bits.
    pub fn new(
        count: usize,
        bits: u32,
        function: &functions::Fold,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let magnitude = function.magnitude;
        let [least, most] = function.ends();
        // A bit to spare above all results, moved to start at zero.
        let spare = (most - least).max(1).ilog2() + 2;
        let narrowest = if function.relu { magnitude.max(spare - 1) } else { spare - 1 };
        let narrow = out_bits;
        // Shares of narrower results are the lower bits of these.
        let out_bits = narrow.max(narrowest);
        let fits = (magnitude + 3..=63).contains(&bits) && narrow >= 1 && out_bits <= 63;
        if !fits {
            return Err(Error::misuse("a smooth function with these widths"));
        }
        let inner = out_bits.min(spare.max(magnitude));
        let choice =
            |bits, cap, out_bits| Inside { count, bits, cap, out_bits, asks: Role::Client };
        let last = Some(mask(magnitude));
        let argument = match function.argument {
            Argument::Even | Argument::Odd { .. } if !function.relu => {
                let entry = Entry::Word(magnitude);
                let jobs = vec![Job { count, choice_bits: 1, entry }; 2];
                Chosen::Sides(Switch { to_client: jobs.clone(), to_server: jobs })
            }
            Argument::Even | Argument::Odd { .. } => {
                Chosen::Inside(choice(magnitude, None, magnitude))
            }
            Argument::Negative => Chosen::Inside(choice(bits, last, magnitude)),
            Argument::Whole => {
                Chosen::Inside(choice(bits, Some(mask(magnitude + 1)), magnitude + 1))
            }
        };
        let positive = function.relu.then(|| choice(bits, last, inner));
        let span = match function.argument {
            Argument::Odd { span } => Some(span),
            _ => None,
        };
        let extension = (out_bits > inner)
            .then(|| Extend::new(count, inner, out_bits, Sign::NonNegative, radix));
        let interior = function.tells_ends_apart();
        Ok(Self {
            count,
            bits,
            comparison: Comparison::with_halves(magnitude + 1, bits - 1, radix, interior),
            positive,
            argument,
            at_once: None,
            curve: Curve::new(count, &function.curve, inner, radix, span)?,
            extension: extension.transpose()?,
            function: function.clone(),
            out_bits: narrow,
        })
    }

    /// Plans the layer with entries of its curve looked up by OT, in fewer rounds and often more
    /// bytes than by circuits of AND gates, which are taken otherwise where they take fewer bytes.
    #[must_use]
    pub fn by_transfers(self) -> Self {
        Self { curve: self.curve.by_transfers(), ..self }
    }

    /// Plans the layer with parts that whoever spoke last begins, wherever either party may, and
    /// with both choices at once where there are two of an absolute value: fewer rounds, and no more
    /// bytes.
    #[must_use]
    pub fn in_turns(self) -> Self {
        let Self { count, .. } = self;
        let magnitude = self.function.magnitude;
        let even = matches!(self.function.argument, Argument::Even | Argument::Odd { .. });
        let chooses = self.positive.as_ref().filter(|plan| even && plan.out_bits <= plan.bits);
        let at_once = chooses.map(|plan| AtOnce { count, inner: plan.out_bits, magnitude });
        let plan = Self { at_once, ..self };
        let first = plan.comparison.last_sender();
        let last = turns::after(plan.choices().1, first);
        let curve = plan.curve.in_turns(last);
        let last = turns::after(curve.cost(), last);
        let extension = plan.extension.map(|plan| plan.begun_by(last));
        Self { curve, extension, ..plan }
    }

    /// Plans the layer in turns, with tables of fewer levels and more bits.
    #[must_use]
    pub fn shallow(self) -> Self {
        Self { curve: self.curve.shallow(), ..self }.in_turns()
    }

    /// What choosing takes, and costs.
    fn choices(&self) -> (Demand, Cost) {
        let first = self.comparison.last_sender();
        if let Some(plan) = &self.at_once {
            return (plan.demand(), plan.cost(first));
        }
        let positive = self.positive.as_ref();
        let demand = positive.map(Inside::demand).unwrap_or_default() + self.argument.demand();
        let cost = positive.map_or(Cost::NONE, |plan| plan.cost(first));
        (demand, cost.then(self.argument.cost(first)))
    }

    /// Returns what is computed.
    pub fn function(&self) -> &functions::Fold {
        &self.function
    }

    /// Runs the comparison of the moved values.
    fn compared(&self, channel: &mut Channel, y: &Share, ots: &mut Correlations) -> Result<Found> {
        let role = channel.role();
        let mut found = compare::of_share(channel, &self.comparison, y, ots)?;
        let mut above = sign_of(role, y.words(), y.bits());
        above.xor(&found.greater);
        let covered = std::mem::take(&mut found.middle_zero);
        let told = match self.function.tells_ends_apart() {
            true => std::mem::take(&mut found.interior),
            false => covered.clone(),
        };
        Ok(Found { above, covered, upper: std::mem::take(&mut found.upper_half), told })
    }

    /// `value` where the second bit is set, the plan's cap where only the first is, else 0.
    fn chosen(
        &self,
        channel: &mut Channel,
        (plan, value): (&Inside, &Share),
        bits: [&Bits; 2],
        ots: &mut Correlations,
    ) -> Result<Share> {
        let now = ots.split(channel.role(), &plan.demand())?;
        plan.run(channel, self.comparison.last_sender(), value.words(), bits, now)
    }

    /// The distance of |x| from the last argument, or 0 where that is as far or x is beyond.
    fn either(
        &self,
        channel: &mut Channel,
        plan: &Switch,
        x: &Share,
        found: &Found,
        ots: &mut Correlations,
    ) -> Result<Share> {
        let (role, last) = (channel.role(), mask(self.function.magnitude) as i64);
        let zero = Share::new(vec![0; x.len()], x.bits());
        let lower = xor(&[&found.told, &found.upper], x.len());
        let sides = [x.plus(role, -last), zero.add_scaled(x, -1).plus(role, -last)];
        let bits = [&found.upper, &*lower];
        let pairs = sides.iter().zip(bits);
        let tables = pairs.map(|(value, bit)| Table::words(gated(value.words(), bit))).collect();
        let choices = bits.map(|bit| vec![bit.clone()]).to_vec();
        let now = ots.split(role, &plan.demand())?;
        let first = self.comparison.last_sender();
        let switched = mux::run(channel, plan, first, Side { choices, tables }, now)?;
        Ok(switched.sum(x.len(), x.bits()))
    }

    /// Chooses what is positive, if that is part of the result, and the argument of the curve; `y` is x moved
    /// above zero.
    fn chosen_parts(
        &self,
        channel: &mut Channel,
        [x, y]: [&Share; 2],
        (found, sign): (&Found, &Bits),
        ots: &mut Correlations,
    ) -> Result<[Share; 2]> {
        if let Some(plan) = &self.at_once {
            let now = ots.split(channel.role(), &plan.demand())?;
            let first = self.comparison.last_sender();
            return plan.run(channel, first, x, [sign, &found.upper, &found.told], now);
        }
        let positive = match &self.positive {
            Some(choice) => self.chosen(channel, (choice, x), [sign, &found.upper], ots)?,
            None => Share::new(vec![0; x.len()], self.bits),
        };
        let argument = self.argument(channel, [x, y, &positive], found, ots)?;
        Ok([positive, argument])
    }

    /// The argument of the curve: `values` are x, x moved above zero, and x from 0 on if that was
    /// chosen.
    fn argument(
        &self,
        channel: &mut Channel,
        [x, y, positive]: [&Share; 3],
        found: &Found,
        ots: &mut Correlations,
    ) -> Result<Share> {
        let (role, magnitude) = (channel.role(), self.function.magnitude);
        let last = mask(magnitude) as i64;
        let plan = match &self.argument {
            Chosen::Inside(plan) => plan,
            Chosen::Sides(plan) => {
                let low = x.narrow(magnitude)?;
                let chosen = self.either(channel, plan, &low, found, ots)?;
                return Ok(chosen.plus(role, last));
            }
        };
        match self.function.argument {
            Argument::Even | Argument::Odd { .. } => {
                let half = positive.narrow(magnitude)?;
                let absolute = half.add_scaled(&half, 1).add_scaled(&x.narrow(magnitude)?, -1);
                let below = absolute.plus(role, -last);
                let told = &found.told;
                let chosen = self.chosen(channel, (plan, &below), [told, told], ots)?;
                Ok(chosen.plus(role, last))
            }
            Argument::Negative => {
                let zero = Share::new(vec![0; x.len()], x.bits());
                let mut negative = xor(&[&found.above, &found.covered, &found.upper], x.len());
                if role == Role::Server {
                    // One party flips its share of a bit.
                    negative = Zeroizing::new(negative.not());
                }
                let inside = xor(&[&found.told, &found.upper], x.len());
                let value = zero.add_scaled(x, -1);
                self.chosen(channel, (plan, &value), [&negative, &inside], ots)
            }
            Argument::Whole => self.chosen(channel, (plan, y), [&found.above, &found.covered], ots),
        }
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Fold, x: &Share, mut ots: Correlations) -> Result<Share> {
    x.check(plan.count, plan.bits, "smooth function")?;
    let (role, function) = (channel.role(), &plan.function);
    let y = x.plus(role, 1 << function.magnitude);
    let found = plan.compared(channel, &y, &mut ots)?;
    let sign = xor(&[&found.above, &found.covered, &found.upper], x.len());
    let [positive, z] = plan.chosen_parts(channel, [x, &y], (&found, &sign), &mut ots)?;
    let mirrors = matches!(function.argument, Argument::Odd { .. }).then_some(&*sign);
    let now = ots.split(role, &plan.curve.demand())?;
    let curve = curve::run(channel, &plan.curve, (&z, mirrors), now)?;
    let factor = if function.below { -1 } else { 1 };
    let zero = Share::new(vec![0; x.len()], curve.bits());
    let start = if function.relu { &positive } else { &zero };
    let result = start.add_scaled(&curve, factor).plus(role, function.base);
    let Some(extension) = &plan.extension else { return result.narrow(plan.out_bits) };
    let [least, _] = function.ends();
    let wide = extend::run(channel, extension, &result.plus(role, -least), ots)?;
    wide.plus(role, least).narrow(plan.out_bits)
}

impl Protocol for Fold {
    fn operator(&self) -> &'static str {
        "fold"
    }

    fn describe(&self) -> String {
        let table = matches!(self.curve, Curve::Whole(_));
        let by = if table { "comparison and table by OT" } else { "comparison and lines by OT" };
        by.into()
    }

    fn demand(&self) -> Demand {
        let extension = self.extension.as_ref().map(Extend::demand).unwrap_or_default();
        let chosen = self.comparison.demand(self.count) + self.choices().0;
        chosen + self.curve.demand() + extension
    }

    fn cost(&self) -> Cost {
        let extension = self.extension.as_ref().map_or(Cost::NONE, Extend::cost);
        let chosen = self.comparison.cost(self.count).then(self.choices().1);
        chosen.then(self.curve.cost()).then(extension)
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
