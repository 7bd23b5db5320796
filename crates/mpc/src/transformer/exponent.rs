//! Exponentials of values that are not positive.
//!
//! | | |
//! |---|---|
//! | In | shares of d mod 2^bits, `0 <= d < 2^bits` in steps of `scale`; correlations |
//! | Out | shares of about `2^upper * e^(-d*scale)` mod 2^wide, and of the `lower` bits below its point, mod 2^narrow, as [`functions::exponent`] has them |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a circuit for a table of 2^bits entries, about (upper^2 + lower^2)/2 bits to make numbers of its bits, and an extension of both |
//! | Paper | tables as [`crate::boolean::table`]; Rathee et al., SiRNN (S&P 2021), extension |
//!
//! The upper bits of an entry are the factor of a product, the lower bits only count in sums. Each
//! become an integer with a bit to spare, so that its sign is known for the extension.

use graph::functions;
use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::planes::{self, Number, Planes};
use crate::arithmetic::widen::{self, Widen};
use crate::boolean::table::{self, Table};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::share::Share;
use crate::turns;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Exponent {
    count: usize,
    table: Table,
    numbers: Planes,
    extension: Widen,
}

impl Exponent {
    /// Plans `count` exponentials, the upper bits mod `2^wide`, the lower ones mod `2^narrow`.
    /// Both have a bit more at least than those.
    pub(super) fn new(
        count: usize,
        function: &functions::exponent::Exponent,
        [wide, narrow]: [u32; 2],
    ) -> Self {
        let functions::exponent::Exponent { upper, lower, .. } = *function;
        let number = |width| Number::of_bits(width, width + 1);
        Self {
            count,
            table: Table::new(&function.entries, lower + upper),
            numbers: Planes::new(count, vec![number(lower), number(upper)]),
            extension: Widen::new(count, vec![[lower + 1, narrow], [upper + 1, wide]]),
        }
    }

    /// With a table of fewer levels and more bits.
    pub(super) fn shallow(self, function: &functions::exponent::Exponent) -> Self {
        let width = function.lower + function.upper;
        Self { table: Table::shallow(&function.entries, width), ..self }
    }

    /// With parts that whoever spoke last begins, the first one `first`.
    pub(super) fn in_turns(self, first: Role) -> Self {
        let table = self.table.begun_by(first);
        let first = turns::after(table.cost(self.count), first);
        let numbers = self.numbers.begun_by(first);
        let first = turns::after(numbers.cost(), first);
        Self { table, numbers, extension: self.extension.begun_by(first), ..self }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        self.table.demand(self.count) + self.numbers.demand() + self.extension.demand()
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        let numbers = self.table.cost(self.count).then(self.numbers.cost());
        numbers.then(self.extension.cost())
    }
}

/// Runs the protocol: the upper bits, then the lower ones.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Exponent,
    d: &Share,
    mut ots: Correlations,
) -> Result<[Share; 2]> {
    let role = channel.role();
    let now = ots.split(role, &plan.table.demand(plan.count))?;
    let found = table::run(channel, &plan.table, d, now)?;
    let now = ots.split(role, &plan.numbers.demand())?;
    let numbers = planes::run(channel, &plan.numbers, &found, now)?;
    let numbers = widen::run(channel, &plan.extension, &numbers, ots)?;
    let [lower, upper] = numbers.try_into().map_err(|_| defect("an entry has two parts"))?;
    Ok([upper, lower])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{shares_of, split};
    use ring::Random;

    #[test]
    fn every_value_comes_out_as_in_the_clear() {
        let mut rng = Random::seeded(73);
        for (bits, scale, digits, widths) in
            [(8, 0.125, [8, 6], [18, 20]), (4, 1.0, [4, 1], [9, 3]), (11, 0.01, [12, 9], [40, 12])]
        {
            let values: Vec<i64> = (0..1 << bits).collect();
            let function = functions::exponent::Exponent::new(bits, scale, digits).unwrap();
            let plan = Exponent::new(values.len(), &function, widths);
            let (client, server) = split(&mut rng, &values, bits);
            let price = (plan.demand(), plan.cost());
            let [c, s] =
                shares_of(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let [upper, lower] = [0, 1].map(|part| Share::reconstruct(&c[part], &s[part]));
            for (d, (upper, lower)) in values.iter().zip(upper.into_iter().zip(lower)) {
                assert_eq!(upper, function.rounded(*d));
                assert_eq!((upper << function.lower) + lower, function.entry(*d));
            }
        }
    }
}
