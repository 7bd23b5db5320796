//! Softmax with smooth maxima in place of exponentials, of rows.
//!
//! | | |
//! |---|---|
//! | In | shares of scores mod 2^bits, `-2^(bits-2) <= x < 2^(bits-2)`, rows of equal length; the client's mask, if there is one; correlations |
//! | Out | shares of about `(2^(out_bits-1) - 1) * s/(sum(s) + epsilon)` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a smooth maximum, a product with the row's reciprocal and a truncation per element, with a mask one choice; a reciprocal per row ([`ReluSoftmax::cost`]) |
//! | Paper | Comet, section 3.1 (softmax with ReLUs, smoothed), division by an inverse square root |
//!
//! The function is [`functions::ReluSoftmax`]. The client knows the mask, so that it chooses
//! the server's share where the mask is 1, and nothing else is needed.

use graph::functions;
use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};

use super::straight_line::{self, Program};
use crate::arithmetic::factors::{self, Factors};
use crate::arithmetic::multiply::kept;
use crate::arithmetic::mux::{self, Side, Switch};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct ReluSoftmax {
    rows: usize,
    function: functions::ReluSoftmax,
    smooth: Program,
    mask: Option<Switch>,
    reciprocal: Program,
    product: Factors,
    rounding: Truncate,
}

impl ReluSoftmax {
    /// Plans `rows` of as many values as the function has columns, with or without a mask.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes than protocols have.
    pub fn new(
        rows: usize,
        function: &functions::ReluSoftmax,
        masked: bool,
        radix: Radix,
    ) -> Result<Self> {
        let functions::ReluSoftmax { cols, drop, width, out_bits, .. } = *function;
        let count = rows.checked_mul(cols).filter(|count| count.checked_mul(64).is_some());
        let count = count.ok_or_else(|| Error::misuse("a softmax of these sizes"))?;
        let [smooth, sums] = [&function.smu.straight_line, &function.reciprocal];
        let entry = Entry::Word(smooth.bits()[1]);
        let job = Job { count, choice_bits: 1, entry };
        Ok(Self {
            rows,
            smooth: Program::new(count, smooth, smooth.bits()[0], radix)?,
            mask: masked.then(|| Switch::to(Role::Client, vec![job])),
            reciprocal: Program::new(rows, sums, sums.bits()[0], radix)?,
            product: Factors::of_rows(rows, cols, [width, sums.bits()[1]])?,
            rounding: Truncate::new(count, width, drop, out_bits, radix)?,
            function: function.clone(),
        })
    }

    /// Plans the layer with a division for each element, as published systems have it. It exists
    /// to be compared with.
    ///
    /// # Errors
    /// As [`ReluSoftmax::new`].
    pub fn with_divisions_of_elements(mut self, radix: Radix) -> Result<Self> {
        let functions::ReluSoftmax { cols, width, .. } = self.function;
        let sums = &self.function.reciprocal;
        self.product = Factors::of_elements(self.rows, cols, [width, sums.bits()[1]], radix)?;
        self.reciprocal = Program::new(self.product.count(), sums, sums.bits()[0], radix)?;
        Ok(self)
    }

    /// Returns what is computed of each row.
    pub fn function(&self) -> &functions::ReluSoftmax {
        &self.function
    }

    /// Returns the width of scores, with a bit to spare.
    pub fn bits(&self) -> u32 {
        self.function.smu.straight_line.bits()[0]
    }

    /// The sums of rows, as wide as their reciprocals take them.
    fn sums(&self, parts: &Share) -> Share {
        let rows = parts.words().chunks(self.function.cols);
        let sum = |row: &[u64]| row.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        Share::new(rows.map(sum).collect(), self.function.reciprocal.bits()[0])
    }
}

/// The values where the client's mask is 1, zero elsewhere.
fn masked(
    channel: &mut Channel,
    plan: &Switch,
    x: &Share,
    mask: &Share,
    ots: Correlations,
) -> Result<Share> {
    let role = channel.role();
    let mut side = Side { choices: Vec::new(), tables: Vec::new() };
    let bits = Bits::of_words(mask.words(), 0);
    let own = match role {
        Role::Client => {
            side.choices.push(vec![bits.clone()]);
            kept(x.words(), &bits)
        }
        Role::Server => {
            side.tables.push(Table::words(vec![vec![0; x.len()], x.words().to_vec()]));
            vec![0; x.len()]
        }
    };
    let switched = mux::run(channel, plan, Role::Client, side, ots)?;
    let chosen = switched.sum(x.len(), x.bits());
    Ok(Share::new(own, x.bits()).add_scaled(&chosen, 1))
}

/// Runs the layer on scores and, where there is a mask, its share: the client's is the mask.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &ReluSoftmax,
    x: &Share,
    mask: Option<&Share>,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.rows * plan.function.cols, plan.bits(), "softmax")?;
    let role = channel.role();
    let now = ots.split(role, &plan.smooth.demand())?;
    let moved = x.plus(role, plan.function.smu.real.offset());
    let mut parts = straight_line::run(channel, &plan.smooth, &moved, now)?;
    if let Some(switch) = &plan.mask {
        let mask = mask.filter(|mask| mask.len() == x.len());
        let mask = mask.ok_or_else(|| defect("a softmax has no mask"))?;
        let now = ots.split(role, &switch.demand())?;
        parts = masked(channel, switch, &parts, mask, now)?;
    }
    let now = ots.split(role, &plan.reciprocal.demand())?;
    let sums = plan.product.spread(plan.sums(&parts));
    let factor = straight_line::run(channel, &plan.reciprocal, &sums, now)?;
    let now = ots.split(role, &plan.product.demand())?;
    let wide = parts.narrow(plan.function.width)?;
    let product = factors::run(channel, &plan.product, &wide, &factor, now)?;
    truncate::run(channel, &plan.rounding, &product.plus(role, plan.function.half()), ots)
}

impl Protocol for ReluSoftmax {
    fn operator(&self) -> &'static str {
        "softmax"
    }

    fn describe(&self) -> String {
        format!("Newton's iterations by OT, {} of them", self.function().smu.iterations)
    }

    fn demand(&self) -> Demand {
        let mask = self.mask.as_ref().map(Switch::demand).unwrap_or_default();
        let parts = self.smooth.demand() + mask + self.reciprocal.demand();
        parts + self.product.demand() + self.rounding.demand()
    }

    fn cost(&self) -> Cost {
        let mask = self.mask.as_ref().map_or(Cost::NONE, |plan| plan.cost(Role::Client));
        let parts = self.smooth.cost().then(mask).then(self.reciprocal.cost());
        parts.then(self.product.cost()).then(self.rounding.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, inputs.get(1), ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
    use graph::functions::newton::Newton;
    use graph::functions::smu::{Smooth, Smu};
    use ring::Random;

    #[test]
    fn rows_come_out_as_in_the_clear() {
        let mut rng = Random::seeded(95);
        for (cols, scale, fraction, with_mask) in
            [(128, 0.05, 2, true), (5, 0.1, 3, false), (33, 0.05, 1, true)]
        {
            let smooth = Smooth { bits: 9, scale, slope: 0.0, smoothness: 0.5, fraction };
            let (newton, _) = Smu::least(smooth).unwrap();
            let division = Newton { iterations: 3, ratio: 2, precision: 10 };
            let function =
                functions::ReluSoftmax::new(cols, smooth, 0.5, [newton, division], 8).unwrap();
            let rows = 7;
            let values = rng.uniform(rows * cols, 9);
            let values: Vec<i64> = values.iter().map(|x| *x as i64 - 256).collect();
            let bits: Vec<i64> = rng.uniform(rows * cols, 1).iter().map(|x| *x as i64).collect();
            let mut plan = ReluSoftmax::new(rows, &function, with_mask, Radix::Four).unwrap();
            if cols == 5 {
                plan = plan.with_divisions_of_elements(Radix::Four).unwrap();
            }
            let (client, server) = split(&mut rng, &values, plan.bits());
            let known = Share::known(Some(&bits), values.len(), 1);
            let none = Share::known(None, values.len(), 1);
            let (c, s) = both(
                &mut rng,
                &plan.demand(),
                |ch, ots| run(ch, &plan, &client, Some(&known), ots),
                |ch, ots| run(ch, &plan, &server, Some(&none), ots),
            );
            assert_eq!(c.cost, plan.cost());
            let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
            let masks = bits.chunks(cols).map(|mask| with_mask.then_some(mask));
            let want = values.chunks(cols).zip(masks);
            let want: Vec<i64> = want.flat_map(|(row, mask)| function.clear(row, mask)).collect();
            assert_eq!(got, want, "{cols}");
        }
    }
}
