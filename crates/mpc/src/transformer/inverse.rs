//! Reciprocals of shared values and of their roots.
//!
//! | | |
//! |---|---|
//! | In | shares of `0 <= y < 2^top` mod 2^(top+1), top = low + octaves or low + 2*octaves; correlations |
//! | Out | shares of about `peak*2^low/y` or of `peak*sqrt(2^low/y)`, peak where y is below 2^low, mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a sign bit for each octave but the first, two products with powers of two, two truncations and a curve; or one garbled circuit ([`Inverse::by_circuit`]): 2 rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), reciprocal and root: normalisation, then a table of the leading bits |
//!
//! The steps are those of [`functions::inverse`].

use gc::{Builder, Ring, Wire};
use graph::functions;
use wire::{Channel, Cost, Result};

use super::circuits;
use super::curve::{self, Curve};
use super::steps::{self, Steps};
use crate::arithmetic::extend::Sign;
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::garbled::{self, Garbled};
use crate::protocol::Protocol;
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub struct Inverse {
    bits: u32,
    way: Way,
}

/// How it runs.
#[derive(Clone, Debug)]
enum Way {
    Ots(Box<Ots>),
    Circuit(Garbled),
}

/// By OT.
#[derive(Clone, Debug)]
struct Ots {
    count: usize,
    function: functions::inverse::Inverse,
    steps: Steps,
    normalising: Multiply,
    leading: Truncate,
    curve: Curve,
    scaling: Multiply,
    rounding: Truncate,
}

impl Inverse {
    /// Plans `count` values by OT.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for widths that no protocol has.
    pub fn new(count: usize, function: &functions::inverse::Inverse, radix: Radix) -> Result<Self> {
        let way = Way::Ots(Box::new(Ots::new(count, function, radix)?));
        Ok(Self { bits: function.bits, way })
    }

    /// Plans `count` values by garbled circuits, one each.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for no values, and for widths that no circuit has.
    pub fn by_circuit(count: usize, function: &functions::inverse::Inverse) -> Result<Self> {
        circuits::check(function)?;
        let [from, to] = [function.bits, function.out_bits].map(Ring::Power);
        let circuit = |y: &[Wire], b: &mut Builder| circuits::inverse(b, function, y);
        let garbled = Garbled::unsigned(count, from, function.bits - 1, circuit, to)?;
        Ok(Self { bits: function.bits, way: Way::Circuit(garbled) })
    }

    /// Returns the width of the values.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of AND gates of all values: none by OT.
    pub fn and_gates(&self) -> usize {
        match &self.way {
            Way::Ots(_) => 0,
            Way::Circuit(plan) => plan.and_gates(),
        }
    }

    /// Returns the correlations that a run consumes.
    pub fn demand(&self) -> Demand {
        match &self.way {
            Way::Ots(plan) => plan.demand(),
            Way::Circuit(plan) => plan.demand(),
        }
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        match &self.way {
            Way::Ots(plan) => plan.cost(),
            Way::Circuit(plan) => plan.cost(),
        }
    }
}

impl Ots {
    fn new(count: usize, function: &functions::inverse::Inverse, radix: Radix) -> Result<Self> {
        let functions::inverse::Inverse { bits, out_bits, back, forth, .. } = *function;
        let [leading, drop] = function.leading;
        let known = |bits| Factor { bits, sign: Sign::NonNegative };
        // Both widths have one more bit, which tells that the factors are not negative.
        let [wide, narrow] = [forth + 2, back + 2];
        let scaled = out_bits + back;
        Ok(Self {
            count,
            steps: Steps::new(count, bits, function.thresholds.clone(), wide, radix)?,
            normalising: Multiply::new(count, [known(bits), known(wide)], bits, radix)?,
            leading: Truncate::new(count, bits, drop, leading, radix)?,
            // There are few rows: rounds count for more than bytes.
            curve: Curve::new(count, &function.curve, out_bits, radix, None)?.by_transfers(),
            scaling: Multiply::new(count, [known(out_bits), known(narrow)], scaled, radix)?,
            rounding: Truncate::new(count, scaled, back, out_bits, radix)?,
            function: function.clone(),
        })
    }

    fn demand(&self) -> Demand {
        let leading = self.steps.demand() + self.normalising.demand() + self.leading.demand();
        leading + self.curve.demand() + self.scaling.demand() + self.rounding.demand()
    }

    fn cost(&self) -> Cost {
        let leading = self.steps.cost().then(self.normalising.cost()).then(self.leading.cost());
        leading.then(self.curve.cost()).then(self.scaling.cost()).then(self.rounding.cost())
    }
}

/// Runs the protocol.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Inverse, y: &Share, ots: Correlations) -> Result<Share> {
    match &plan.way {
        Way::Ots(plan) => by_ots(channel, plan, y, ots),
        Way::Circuit(plan) => garbled::run(channel, plan, y, ots),
    }
}

fn by_ots(channel: &mut Channel, plan: &Ots, y: &Share, mut ots: Correlations) -> Result<Share> {
    let function = &plan.function;
    y.check(plan.count, function.bits, "inverse")?;
    let role = channel.role();
    let now = ots.split(role, &plan.steps.demand())?;
    let reached = steps::run(channel, &plan.steps, y, now)?;
    let [factor, back] =
        function.factors.each_ref().map(|values| steps::valued(role, plan.count, &reached, values));
    let now = ots.split(role, &plan.normalising.demand())?;
    let normal = multiply::run(channel, &plan.normalising, y, &factor, now)?;
    let now = ots.split(role, &plan.leading.demand())?;
    let leading = truncate::run(channel, &plan.leading, &normal, now)?;
    let now = ots.split(role, &plan.curve.demand())?;
    let value = curve::run(channel, &plan.curve, (&leading, None), now)?;
    let now = ots.split(role, &plan.scaling.demand())?;
    let back = back.narrow(function.back + 2)?;
    let scaled = multiply::run(channel, &plan.scaling, &value, &back, now)?;
    truncate::run(channel, &plan.rounding, &scaled.plus(role, function.half()), ots)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use graph::functions::inverse::Power;
    use ring::Random;

    #[test]
    fn every_octave_and_its_edges() {
        let mut rng = Random::seeded(72);
        for (power, low, octaves, peak, out_bits) in [
            (Power::Reciprocal, 20u32, 8u32, 1016.0, 11u32),
            (Power::Reciprocal, 14, 2, 100.0, 8),
            (Power::Reciprocal, 18, 13, 16_376.0, 15),
            (Power::Root, 22, 6, 2040.0, 12),
            (Power::Root, 14, 2, 100.0, 9),
        ] {
            let function = functions::inverse::Inverse::new(power, [low, octaves], peak, out_bits);
            let function = function.unwrap();
            let top = function.bits - 1;
            let edges = (low..top).map(|bit| 1i64 << bit);
            let mut values: Vec<i64> = edges.flat_map(|edge| [edge - 1, edge]).collect();
            values.extend([0, 1, (1 << top) - 1]);
            values.extend(rng.uniform(100, top).iter().map(|y| *y as i64));
            let ots = Inverse::new(values.len(), &function, Radix::Four).unwrap();
            let circuit = Inverse::by_circuit(values.len(), &function).unwrap();
            assert!(ots.cost().rounds > 20 && circuit.cost().rounds == 2);
            for plan in [ots, circuit] {
                let (client, server) = split(&mut rng, &values, plan.bits());
                let price = (plan.demand(), plan.cost());
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, x, ots)
                });
                assert_eq!(got, values.iter().map(|y| function.clear(*y)).collect::<Vec<_>>());
            }
        }
    }
}
