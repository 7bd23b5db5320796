//! Normalisation of rows to mean 0 and deviation 1, or to mean square 1 alone.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits, `-2^(bits-2) <= x < 2^(bits-2)`, rows of equal length; correlations |
//! | Out | shares of about `unit * (x - mean)/max(deviation, least)` mod 2^out_bits, mean and deviation of x's row; of an RMS norm the mean is 0, and the deviation the root of the mean square |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a square with an extension, a product with the row's factor and, unless results are finer, a truncation per element, signs known; for wide results another extension; an inverse root and two products per row, or a garbled circuit ([`LayerNorm::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), inverse root by normalisation and a table |
//!
//! The function is [`functions::LayerNorm`].

use graph::functions;
use wire::{Channel, Cost, Error, Result, Role};

use super::moments::{self, Moments, squares_bits};
use super::squares::{self, Squares};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::factors::{self, Factors};
use crate::arithmetic::rescale::{self, Rescale};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::Share;
use crate::turns;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    rows: usize,
    function: functions::LayerNorm,
    /// The squares of the inputs, which are extended on the way.
    squares: Squares,
    moments: Moments,
    product: Factors,
    /// The rounding of results; none where they are fine enough.
    rounding: Option<Truncate>,
    extension: Option<Extend>,
    /// Both at once, in plans that go in turns with chained digits.
    beside: Option<Rescale>,
    radix: Radix,
    /// The width of results.
    out_bits: u32,
}

impl LayerNorm {
    /// Plans `rows` of as many values as the function has columns, by OT.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes than protocols have.
    pub fn new(rows: usize, function: &functions::LayerNorm, radix: Radix) -> Result<Self> {
        Self::with(rows, function, radix, |rows| Moments::new([rows; 2], function, radix))
    }

    /// Plans the layer with a garbled circuit for each row's factor and mean. What is done for
    /// each element stays by oblivious transfers.
    ///
    /// # Errors
    /// As [`LayerNorm::new`], and for roots by Newton's iteration.
    pub fn with_circuits(
        rows: usize,
        function: &functions::LayerNorm,
        radix: Radix,
    ) -> Result<Self> {
        Self::with(rows, function, radix, |rows| Moments::by_circuit(rows, function))
    }

    fn with(
        rows: usize,
        function: &functions::LayerNorm,
        radix: Radix,
        moments: impl FnOnce(usize) -> Result<Moments>,
    ) -> Result<Self> {
        let functions::LayerNorm { cols, bits, element, .. } = *function;
        let count = rows.checked_mul(cols).filter(|count| count.checked_mul(64).is_some());
        let count = count.ok_or_else(|| Error::misuse("a layer norm of these sizes"))?;
        let [inner, out_bits, fraction] = [function.inner, function.out_bits, function.fraction];
        let rounding = || Truncate::new(count, element, fraction, inner, radix);
        let extension = || Extend::new(count, inner, out_bits, Sign::NonNegative, radix);
        Ok(Self {
            rows,
            squares: Squares::new(count, bits, element, squares_bits(function))?,
            moments: moments(rows)?,
            product: Factors::of_rows(rows, cols, [element, function.root.bits()[1]])?,
            rounding: (fraction > 0).then(rounding).transpose()?,
            extension: (inner < out_bits).then(extension).transpose()?,
            beside: None,
            radix,
            out_bits,
            function: function.clone(),
        })
    }

    /// Plans the layer with shares of results that are wider than the function has them, which are in
    /// the inner half of its range. It is for plans that do not go in turns yet.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that are not larger, or beyond 63 bits.
    pub fn to_width(self, out_bits: u32) -> Result<Self> {
        let functions::LayerNorm { inner, out_bits: narrow, .. } = self.function;
        if out_bits <= narrow || self.beside.is_some() {
            return Err(Error::misuse("a layer norm of this width"));
        }
        let count = self.rows * self.function.cols;
        let extension = Extend::new(count, inner, out_bits, Sign::NonNegative, self.radix)?;
        Ok(Self { extension: Some(extension), out_bits, ..self })
    }

    /// What makes results that are extended positive, and leaves them a bit to spare.
    fn moved(&self) -> i64 {
        let [_, most] = self.function.range();
        most.min(1 << (self.function.inner - 2))
    }

    /// Plans the layer with parts that whoever spoke last begins, wherever either party may: fewer
    /// rounds of the same bytes.
    ///
    /// # Errors
    /// As [`LayerNorm::new`].
    pub fn in_turns(self) -> Result<Self> {
        let last = turns::after(self.squares.cost(), Role::Client);
        let last = turns::after(self.moments.cost(), last);
        let product = self.product.begun_by(last);
        let last = turns::after(product.cost(), last);
        if self.radix == Radix::Chain && self.rounding.is_some() {
            let functions::LayerNorm { element, fraction, cols, .. } = self.function;
            let widths = [element, fraction, self.out_bits];
            let beside = Some(Rescale::new(self.rows * cols, widths, last)?);
            return Ok(Self { product, rounding: None, extension: None, beside, ..self });
        }
        let rounding = self.rounding.map(|plan| plan.begun_by(last)).transpose()?;
        let last = rounding.as_ref().map_or(last, |plan| turns::after(plan.cost(), last));
        let extension = self.extension.map(|plan| plan.begun_by(last));
        Ok(Self { product, rounding, extension, ..self })
    }

    /// Plans the layer by oblivious transfers, with an inverse root for each element, as
    /// published systems have it. It exists to be compared with.
    ///
    /// # Errors
    /// As [`LayerNorm::new`].
    pub fn with_roots_of_elements(mut self, radix: Radix) -> Result<Self> {
        let functions::LayerNorm { cols, element, .. } = self.function;
        let widths = [element, self.function.root.bits()[1]];
        self.product = Factors::of_elements(self.rows, cols, widths, radix)?;
        self.moments = Moments::new([self.rows, self.product.count()], &self.function, radix)?;
        Ok(self)
    }

    /// Returns what is computed of each row.
    pub fn function(&self) -> &functions::LayerNorm {
        &self.function
    }

    /// Returns the number of AND gates of all rows: none by OT.
    pub fn and_gates(&self) -> usize {
        self.moments.and_gates()
    }

    /// The sums of rows, mod 2^bits.
    fn sums(&self, x: &Share, bits: u32) -> Share {
        let rows = x.words().chunks(self.function.cols);
        let sum = |row: &[u64]| row.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        Share::new(rows.map(sum).collect(), bits)
    }

    /// Sums of squares (mod 2^squares) and values (mod 2^element) of x itself, from those of x moved
    /// above zero by o: `sum x^2 = sum (x + o)^2 - 2*o*sum (x + o) + n*o^2`. Twice o is a power of
    /// two, by which shares of the sum become as wide as those of the squares.
    fn unmoved(&self, role: Role, squares: &Share, sum: &Share, wide: &Share) -> (Share, Share) {
        let (offset, cols) = (self.function.offset(), self.function.cols as i64);
        let moved = Share::new(sum.words().to_vec(), squares.bits());
        let squares = squares.add_scaled(&moved, -2 * offset);
        (squares.plus(role, cols * offset * offset), wide.plus(role, -offset))
    }

    /// Rounds and extends results, as far as that is needed.
    fn finished(
        &self,
        channel: &mut Channel,
        exact: &Share,
        mut ots: Correlations,
    ) -> Result<Share> {
        let role = channel.role();
        let most = self.moved();
        if let Some(plan) = &self.beside {
            let positive =
                exact.plus(role, self.function.half() + (most << self.function.fraction));
            return Ok(rescale::run(channel, plan, &positive, ots)?.plus(role, -most));
        }
        let rounded = match &self.rounding {
            Some(plan) => {
                let now = ots.split(role, &plan.demand())?;
                truncate::run(channel, plan, &exact.plus(role, self.function.half()), now)?
            }
            None => exact.narrow(self.function.inner)?,
        };
        let Some(plan) = &self.extension else { return Ok(rounded) };
        Ok(extend::run(channel, plan, &rounded.plus(role, most), ots)?.plus(role, -most))
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &LayerNorm,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.rows * plan.function.cols, plan.function.bits, "layer norm")?;
    let role = channel.role();
    let x = x.plus(role, plan.function.offset());
    let now = ots.split(role, &plan.squares.demand())?;
    let [wide, squares] = squares::run(channel, &plan.squares, &x, now)?;
    let sum = plan.sums(&wide, plan.function.sum_bits);
    let squares = plan.sums(&squares, squares.bits());
    let (squares, wide) = match plan.function.centred {
        true => (squares, wide),
        false => plan.unmoved(role, &squares, &sum, &wide),
    };
    let now = ots.split(role, &plan.moments.demand())?;
    let (factor, moved) =
        moments::run(channel, &plan.moments, &plan.product, [&squares, &sum], now)?;
    let now = ots.split(role, &plan.product.demand())?;
    let product = factors::run(channel, &plan.product, &wide, &factor, now)?;
    let Some(moved) = moved else { return plan.finished(channel, &product, ots) };
    let mut centred = Vec::with_capacity(product.len());
    for (row, moved) in product.words().chunks(plan.function.cols).zip(moved.words()) {
        centred.extend(row.iter().map(|x| x.wrapping_sub(*moved)));
    }
    let centred = Share::new(centred, product.bits());
    plan.finished(channel, &centred, ots)
}

impl Protocol for LayerNorm {
    fn operator(&self) -> &'static str {
        "layer norm"
    }

    fn describe(&self) -> String {
        match self.and_gates() {
            0 => "squares, inverse roots and products by OT".into(),
            _ => "squares and products by OT, inverse roots by garbled circuits".into(),
        }
    }

    fn demand(&self) -> Demand {
        let moments = self.squares.demand() + self.moments.demand();
        let rounding = self.rounding.as_ref().map(Truncate::demand).unwrap_or_default();
        let extension = self.extension.as_ref().map(Extend::demand).unwrap_or_default();
        let beside = self.beside.as_ref().map(Rescale::demand).unwrap_or_default();
        moments + self.product.demand() + rounding + extension + beside
    }

    fn cost(&self) -> Cost {
        let moments = self.squares.cost().then(self.moments.cost());
        let rounding = self.rounding.as_ref().map_or(Cost::NONE, Truncate::cost);
        let extension = self.extension.as_ref().map_or(Cost::NONE, Extend::cost);
        let beside = self.beside.as_ref().map_or(Cost::NONE, Rescale::cost);
        moments.then(self.product.cost()).then(rounding).then(extension).then(beside)
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::check;
    use ring::Random;

    /// A row that is random, narrow about some value, or has one value apart.
    fn row(rng: &mut Random, cols: usize, bits: u32, kind: usize) -> Vec<i64> {
        let quarter = 1i64 << (bits - 2);
        let random = rng.uniform(cols + 2, bits - 1);
        let (at, width) = (random[cols] as i64, 1 + random[cols + 1] as i64);
        let row = random.iter().take(cols).map(|word| *word as i64);
        match kind % 3 {
            0 => row.map(|x| x - quarter).collect(),
            1 => row.map(|x| (at + x % width).min(2 * quarter - 1) - quarter).collect(),
            _ => (0..cols).map(|i| if i == 0 { at - quarter } else { -quarter }).collect(),
        }
    }

    #[test]
    fn rows_come_out_as_in_the_clear() {
        let mut rng = Random::seeded(76);
        for (cols, bits, least, unit, out_bits) in [
            (768, 9, 2, 16.0, 10),
            (768, 9, 2, 8192.0, 19),
            (384, 9, 3, 100.0, 40),
            (384, 12, 4, 8192.0, 44),
            (2, 5, 1, 4.0, 6),
            (5, 12, 3, 100.0, 16),
            (64, 8, 0, 7.0, 8),
        ] {
            let values: Vec<i64> =
                (0..9).flat_map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let calibration = functions::Calibration { least, unit };
            let function = functions::LayerNorm::new(cols, bits, calibration, out_bits).unwrap();
            let want: Vec<i64> = values.chunks(cols).flat_map(|row| function.clear(row)).collect();
            let ots = LayerNorm::new(9, &function, Radix::Sixteen).unwrap();
            let circuits = LayerNorm::with_circuits(9, &function, Radix::Sixteen).unwrap();
            assert!(circuits.cost().rounds + 20 < ots.cost().rounds);
            let chain = LayerNorm::with_circuits(9, &function, Radix::Chain).unwrap();
            let beside = chain.clone().in_turns().unwrap();
            let apart = circuits.clone().in_turns().unwrap();
            assert!(function.fraction == 0 || beside.cost().rounds < apart.cost().rounds);
            check(&mut rng, &beside, (&values, bits), &want);
            let spare = 2 * function.range()[1] < 1 << (function.inner - 1);
            for wide in [&chain, &circuits].into_iter().filter(|_| spare) {
                let wide = wide.clone().to_width(out_bits + 9).unwrap();
                assert!(wide.clone().to_width(out_bits).is_err());
                check(&mut rng, &wide, (&values, bits), &want);
                check(&mut rng, &wide.in_turns().unwrap(), (&values, bits), &want);
            }
            for plan in [ots, circuits] {
                check(&mut rng, &plan, (&values, bits), &want);
                let turns = plan.clone().in_turns().unwrap();
                assert_eq!(turns.cost().bytes(), plan.cost().bytes());
                assert!(turns.cost().rounds <= plan.cost().rounds);
                check(&mut rng, &turns, (&values, bits), &want);
            }
        }
    }

    #[test]
    fn rows_whose_mean_stays_come_out_as_in_the_clear() {
        let mut rng = Random::seeded(78);
        for (cols, bits, least, unit, out_bits) in [
            (576, 13, 3, 64.0, 13),
            (576, 9, 2, 8192.0, 24),
            (384, 9, 3, 100.0, 40),
            (2, 5, 1, 4.0, 6),
            (64, 8, 0, 7.0, 8),
        ] {
            let quarter = 1i64 << (bits - 2);
            let rows = (0..9).flat_map(|kind| row(&mut rng, cols, bits, kind));
            let values: Vec<i64> = rows.chain(vec![-quarter; cols]).chain(vec![0; cols]).collect();
            let calibration = functions::Calibration { least, unit };
            let function = functions::LayerNorm::rms(cols, bits, calibration, out_bits).unwrap();
            let want: Vec<i64> = values.chunks(cols).flat_map(|row| function.clear(row)).collect();
            let ots = LayerNorm::new(11, &function, Radix::Sixteen).unwrap();
            let circuits = LayerNorm::with_circuits(11, &function, Radix::Sixteen).unwrap();
            for plan in [ots, circuits] {
                check(&mut rng, &plan, (&values, bits), &want);
                let turns = plan.clone().in_turns().unwrap();
                assert_eq!(turns.cost().bytes(), plan.cost().bytes());
                check(&mut rng, &turns, (&values, bits), &want);
            }
        }
    }

    #[test]
    fn roots_of_elements_give_the_same_and_cost_more() {
        let mut rng = Random::seeded(77);
        let (cols, rows) = (24, 6);
        let values: Vec<i64> = (0..rows).flat_map(|kind| row(&mut rng, cols, 9, kind)).collect();
        let calibration = functions::Calibration { least: 2, unit: 16.0 };
        let function = functions::LayerNorm::new(cols, 9, calibration, 10).unwrap();
        let by_row = LayerNorm::new(rows, &function, Radix::Four).unwrap();
        let plan = by_row.clone().with_roots_of_elements(Radix::Four).unwrap();
        assert!(plan.cost().bytes() > 2 * by_row.cost().bytes());
        let want: Vec<i64> = values.chunks(cols).flat_map(|row| function.clear(row)).collect();
        check(&mut rng, &plan, (&values, 9), &want);
    }

    #[test]
    fn more_values_than_there_can_be_are_refused() {
        let calibration = functions::Calibration { least: 2, unit: 16.0 };
        let function = functions::LayerNorm::new(768, 9, calibration, 10).unwrap();
        assert!(LayerNorm::new(usize::MAX, &function, Radix::Four).is_err());
    }
}
