//! GELU.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits; |x| <= 2^(bits-1) - 2^magnitude where bits >= magnitude + 3; correlations |
//! | Out | shares of about `gelu(x*scale)/scale` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a comparison of bits - 1, two choices among shares, a table of 2^magnitude narrow entries (from 9 bits on as in `curve.rs`); for out_bits > bits an extension of known sign |
//! | Paper | Rathee et al., SiRNN (S&P 2021); ReLU as in ENGINE section 4 |
//!
//! The function is [`functions::Gelu`], `relu(x) - d(|x|)` with a bump d that vanishes from
//! 2^magnitude on. One comparison, of `y = x + 2^magnitude`, tells both signs: whether
//! `0 <= y < 2^(magnitude + 1)`, whether then y is in the upper half, and whether `y >= 0`, which
//! are the signs of x inside and outside of the curve. The ReLU gives the absolute value for
//! nothing, `|x| = 2*relu(x) - x`, which is set to 0, where d is 0, outside. All is done at the
//! width of x; wider results are extended once, moved above zero by the depth of the bump.
//!
//! After a layer on a mask the client knows its share before the server does. [`Gelu::on_mask`] has the
//! client ask at once, and extends the shares of x before they are chosen (`lift.rs`), so that nothing
//! is left to extend: between the layers before and after the parties speak three times.

use graph::functions;
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use super::absolute::Absolute;
use super::curve::{self, Curve};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clamp::Inside;
use crate::nonlinear::lift::Lift;
use crate::protocol::{Protocol, input};
use crate::share::{Share, sign_of};
use crate::turns;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Gelu {
    count: usize,
    bits: u32,
    function: functions::Gelu,
    /// The extension of inputs too narrow to tell what is outside of the curve.
    widening: Option<Extend>,
    comparison: Comparison,
    /// Selects x where it is positive.
    positive: Inside,
    /// Selects |x| where the curve covers it. It is absent where the curve covers all inputs.
    bent: Option<Inside>,
    /// Both at once, in plans that go in turns.
    absolute: Option<Absolute>,
    /// What extends x before the comparison is answered, where the result is not extended.
    lift: Option<Lift>,
    bump: Curve,
    extension: Option<Extend>,
}

/// What the comparison tells: whether x is not negative, whether the curve covers it, and whether
/// both.
type Found = Zeroizing<[Bits; 3]>;

impl Gelu {
    /// Plans `count` values of `bits` (2 to 63) to `out_bits` (more than the magnitude, up to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(
        count: usize,
        bits: u32,
        function: &functions::Gelu,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let exact = function.magnitude + 1;
        if !(2..=63).contains(&bits) || !(exact..=63).contains(&out_bits) {
            return Err(Error::misuse("a GELU with these widths"));
        }
        let extend = |from, to, sign| Extend::new(count, from, to, sign, radix);
        let clips = bits != exact;
        let wide = if clips { bits.max(exact + 2) } else { bits };
        let widening = (wide > bits).then(|| extend(bits, wide, Sign::Unknown)).transpose()?;
        // Where x takes all values of its width, moving the result needs one bit more.
        let inner = out_bits.min(wide + u32::from(!clips));
        let extension = (out_bits > inner).then(|| extend(inner, out_bits, Sign::NonNegative));
        let choice =
            |bits, out_bits| Inside { count, bits, cap: None, out_bits, asks: Role::Client };
        Ok(Self {
            count,
            bits,
            widening,
            comparison: match clips {
                true => Comparison::with_halves(exact, wide - 1, radix, false),
                false => Comparison::carry(wide - 1, radix),
            },
            positive: choice(wide, inner),
            bent: clips.then(|| choice(function.magnitude, function.magnitude)),
            absolute: None,
            lift: None,
            bump: Curve::new(count, &function.bump, inner, radix, None)?,
            extension: extension.transpose()?,
            function: function.clone(),
        })
    }

    /// Plans the layer with entries of its curve looked up by OT, in fewer rounds and often more
    /// bytes than by circuits of AND gates, which are taken otherwise where they take fewer bytes.
    #[must_use]
    pub fn by_transfers(self) -> Self {
        Self { bump: self.bump.by_transfers(), ..self }
    }

    /// Plans the layer with parts that whoever spoke last begins, wherever either party may, and
    /// with both choices at once: fewer rounds, and as many bits more as absolute values have three
    /// times.
    #[must_use]
    pub fn in_turns(self) -> Self {
        let Self { count, positive: Inside { out_bits, .. }, .. } = self;
        let magnitude = self.function.magnitude;
        let absolute = self.bent.as_ref().map(|_| Absolute { count, out_bits, magnitude });
        let first = self.first();
        let chosen = absolute.as_ref().map(|plan| plan.cost(first));
        let last = turns::after(chosen.unwrap_or_else(|| self.positive.cost(first)), first);
        let bump = self.bump.in_turns(last);
        let last = turns::after(bump.cost(), last);
        let extension = self.extension.map(|plan| plan.begun_by(last));
        Self { absolute, bump, extension, ..self }
    }

    /// Plans the layer like [`Gelu::new`], in turns with chained digits and a table by OT: the client
    /// begins with what depends on its share alone, and ends, and nothing is extended after the table.
    ///
    /// # Errors
    /// As [`Gelu::new`], and for results that are no wider than inputs or a curve that covers all inputs.
    pub fn on_mask(
        count: usize,
        bits: u32,
        function: &functions::Gelu,
        out_bits: u32,
    ) -> Result<Self> {
        let plan = Self::new(count, bits, function, out_bits, Radix::Chain)?;
        if plan.bent.is_none() || plan.extension.is_none() {
            return Err(Error::misuse("a GELU on a mask that is not extended"));
        }
        let asks = plan.comparison.asks();
        let wide = plan.positive.bits;
        let lift = Lift { count, bits: wide, more: out_bits - wide, asks };
        let bump = Curve::new(count, &function.bump, out_bits, Radix::Chain, None)?.by_transfers();
        let positive = Inside { bits: out_bits, out_bits, ..plan.positive };
        Ok(Self { lift: Some(lift), positive, bump, extension: None, ..plan }.in_turns())
    }

    /// Who begins with what is chosen.
    fn first(&self) -> Role {
        let lifts = self.lift.as_ref().map(|lift| !lift.asks);
        lifts.unwrap_or(self.comparison.last_sender())
    }

    /// Returns what is computed.
    pub fn function(&self) -> &functions::Gelu {
        &self.function
    }

    /// Shares of `[x >= 0]`, of whether the curve covers x, and of whether both.
    fn compared(&self, channel: &mut Channel, x: &Share, ots: &mut Correlations) -> Result<Found> {
        let role = channel.role();
        let moved = match self.bent {
            Some(_) => x.plus(role, 1 << self.function.magnitude),
            None => x.clone(),
        };
        let mut found = compare::of_share(channel, &self.comparison, &moved, ots)?;
        let mut positive = sign_of(role, moved.words(), moved.bits());
        positive.xor(&found.greater);
        let bent = std::mem::take(&mut found.middle_zero);
        let both = std::mem::take(&mut found.upper_half);
        if self.bent.is_some() {
            // Inside y is not negative: there its half tells instead.
            positive.xor(&bent);
            positive.xor(&both);
        }
        Ok(Zeroizing::new([positive, bent, both]))
    }

    /// `x` where its bit is set, else 0.
    fn chosen(
        &self,
        channel: &mut Channel,
        plan: &Inside,
        x: &Share,
        bit: &Bits,
        ots: &mut Correlations,
    ) -> Result<Share> {
        let now = ots.split(channel.role(), &plan.demand())?;
        plan.run(channel, self.first(), x.words(), [bit, bit], now)
    }

    /// x where it is positive, and |x| where the curve covers it.
    fn parts(
        &self,
        channel: &mut Channel,
        x: &Share,
        found: &[Bits; 3],
        ots: &mut Correlations,
    ) -> Result<[Share; 2]> {
        let [positive, bent, both] = found;
        if let Some(plan) = &self.absolute {
            let now = ots.split(channel.role(), &plan.demand())?;
            return plan.run(channel, self.first(), x, [positive, both, bent], now);
        }
        let magnitude = self.function.magnitude;
        let positive = self.chosen(channel, &self.positive, x, positive, ots)?;
        let half = positive.narrow(magnitude)?;
        let mut absolute = half.add_scaled(&half, 1).add_scaled(&x.narrow(magnitude)?, -1);
        if let Some(choice) = &self.bent {
            absolute = self.chosen(channel, choice, &absolute, bent, ots)?;
        }
        Ok([positive, absolute])
    }

    /// What choosing takes, and costs.
    fn choices(&self) -> (Demand, Cost) {
        let first = self.first();
        if let Some(plan) = &self.absolute {
            return (plan.demand(), plan.cost(first));
        }
        let all = [Some(&self.positive), self.bent.as_ref()];
        let all = all.into_iter().flatten();
        let cost = all.clone().map(|plan| plan.cost(first)).collect();
        (all.map(Inside::demand).sum(), cost)
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Gelu, x: &Share, mut ots: Correlations) -> Result<Share> {
    x.check(plan.count, plan.bits, "GELU")?;
    let role = channel.role();
    let x = match &plan.widening {
        Some(widening) => {
            let now = ots.split(role, &widening.demand())?;
            extend::run(channel, widening, x, now)?
        }
        None => x.clone(),
    };
    let begun = match &plan.lift {
        Some(lift) => {
            let now = ots.split(role, &lift.demand())?;
            Some((lift, lift.begin(channel, x.words(), now)?))
        }
        None => None,
    };
    let found = plan.compared(channel, &x, &mut ots)?;
    let lifted = begun.map(|(lift, begun)| lift.finish(channel, x.words(), begun)).transpose()?;
    let x = lifted.unwrap_or(x);
    let [positive, absolute] = plan.parts(channel, &x, &found, &mut ots)?;
    let now = ots.split(role, &plan.bump.demand())?;
    let bump = curve::run(channel, &plan.bump, (&absolute, None), now)?;
    let result = positive.add_scaled(&bump, -1);
    let Some(extension) = &plan.extension else { return Ok(result) };
    let depth = plan.function.depth;
    Ok(extend::run(channel, extension, &result.plus(role, depth), ots)?.plus(role, -depth))
}

impl Protocol for Gelu {
    fn operator(&self) -> &'static str {
        "gelu"
    }

    fn describe(&self) -> String {
        "comparison and table by OT".into()
    }

    fn demand(&self) -> Demand {
        let extend = |plan: &Option<Extend>| plan.as_ref().map(Extend::demand).unwrap_or_default();
        let lift = self.lift.as_ref().map(Lift::demand).unwrap_or_default();
        let first = extend(&self.widening) + lift + self.comparison.demand(self.count);
        let chosen = first + self.choices().0;
        chosen + self.bump.demand() + extend(&self.extension)
    }

    fn cost(&self) -> Cost {
        let extend = |plan: &Option<Extend>| plan.as_ref().map_or(Cost::NONE, Extend::cost);
        let compared = self.comparison.cost(self.count);
        let lifted = self.lift.as_ref().map_or(compared, |lift| lift.cost(compared));
        let compared = extend(&self.widening).then(lifted);
        let chosen = compared.then(self.choices().1);
        chosen.then(self.bump.cost()).then(extend(&self.extension))
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;
    use ring::word::signed;

    fn check(bits: u32, function: &functions::Gelu, out_bits: u32, values: &[i64], radix: Radix) {
        let mut rng = Random::seeded(70);
        let plan = Gelu::new(values.len(), bits, function, out_bits, radix).unwrap();
        let (client, server) = split(&mut rng, values, bits);
        let want = values.iter().map(|x| signed(function.clear(*x) as u64, out_bits));
        let want = want.collect::<Vec<_>>();
        let turns = plan.clone().in_turns();
        let fewer = 2 * u64::from(plan.bent.is_some()) + u64::from(plan.extension.is_some());
        assert!(turns.cost().rounds + fewer <= plan.cost().rounds, "{turns:?}");
        let masked = Gelu::on_mask(values.len(), bits, function, out_bits).ok();
        assert_eq!(masked.is_some(), plan.bent.is_some() && plan.extension.is_some());
        for plan in [Some(plan), Some(turns), masked].into_iter().flatten() {
            let price = (plan.demand(), plan.cost());
            let run = |ch: &mut Channel, x: &Share, ots| run(ch, &plan, x, ots);
            let got = computed(&mut rng, price, [&client, &server], run);
            assert_eq!(got, want, "{bits} {} {out_bits}", function.magnitude);
        }
    }

    #[test]
    fn every_value_of_every_width_comes_out_as_in_the_clear() {
        for (bits, magnitude, scale, out_bits, radix) in [
            (3, 2, 1.0, 3, Radix::Four),
            (2, 2, 1.0, 3, Radix::Four),
            (4, 2, 1.0, 9, Radix::Two),
            (5, 2, 1.0, 9, Radix::Eight),
            (5, 7, 0.0625, 8, Radix::Four),
            (8, 7, 0.0625, 8, Radix::Sixteen),
            (8, 7, 0.0625, 30, Radix::Four),
            (9, 7, 0.0625, 9, Radix::Four),
            (12, 6, 0.0625, 8, Radix::Sixteen),
            (12, 7, 0.03, 12, Radix::Two),
            (12, 7, 0.03, 44, Radix::Eight),
            (9, 8, 0.02, 9, Radix::Four),
            (10, 9, 0.0156, 10, Radix::Sixteen),
            (14, 10, 0.004, 12, Radix::Sixteen),
            (13, 12, 0.0019, 24, Radix::Four),
        ] {
            let edge = match bits < magnitude + 3 {
                true => 1i64 << (bits - 1),
                false => (1i64 << (bits - 1)) - (1 << magnitude),
            };
            let mut values: Vec<i64> = (-edge..edge).collect();
            values.extend((bits >= magnitude + 3).then_some(edge));
            let function = functions::Gelu::new(magnitude, scale).unwrap();
            check(bits, &function, out_bits, &values, radix);
        }
    }

    #[test]
    fn wide_values_about_the_curve_and_at_the_bounds() {
        let mut rng = Random::seeded(81);
        let function = functions::Gelu::new(7, 0.03).unwrap();
        for (bits, out_bits) in [(24, 24), (24, 44), (23, 9), (63, 63), (40, 63)] {
            let edge = (1i64 << (bits - 1)) - 128;
            let mut values: Vec<i64> = (-300..300).collect();
            values.extend([-edge, 1 - edge, edge - 1, edge]);
            let random = rng.uniform(1000, bits).into_iter().map(|word| signed(word, bits));
            values.extend(random.filter(|x| x.abs() <= edge));
            check(bits, &function, out_bits, &values, Radix::Sixteen);
        }
    }

    #[test]
    fn on_a_mask_the_parties_speak_three_times_between_layers() {
        for (magnitude, scale) in [(6, 0.06), (7, 0.03)] {
            let function = functions::Gelu::new(magnitude, scale).unwrap();
            let cost = Gelu::on_mask(1000, 12, &function, 20).unwrap().cost();
            let ends = (cost.first, cost.last);
            assert_eq!((cost.rounds, ends), (5, (Some(Role::Client), Some(Role::Client))));
            let plan = Gelu::new(1000, 12, &function, 20, Radix::Chain).unwrap();
            let turns = plan.by_transfers().in_turns().cost();
            assert_eq!((turns.rounds, turns.last), (6, Some(Role::Server)));
        }
    }

    #[test]
    fn misfits_are_refused() {
        let function = functions::Gelu::new(7, 0.1).unwrap();
        let new = |bits, out_bits| Gelu::new(1, bits, &function, out_bits, Radix::Four).is_err();
        assert!(new(8, 7) && new(1, 8) && new(64, 8) && new(12, 64));
    }
}
