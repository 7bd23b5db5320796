//! Exponentials of values that are not positive.
//!
//! | | |
//! |---|---|
//! | In | shares of d mod 2^bits, `0 <= d < 2^bits` in steps of `scale`; correlations |
//! | Out | shares of about `2^(whole + part) * e^(-d*scale)` mod 2^out_bits, as [`functions::exponent`] has it |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a truncation by 3 bits, a table of 2^(bits-3) entries of whole + 2 bits, extended, then 14*out_bits + 6 bits |
//! | Paper | Rathee et al., SiRNN (S&P 2021), exponential by tables of digits |
//!
//! The upper digits look up a value v with `whole` bits after the point. The three lower bits
//! multiply it by one of eight public numbers with `part` bits after the point: each party
//! chooses by its share of them from the other's share of v, times the eight numbers in turned
//! order.

use graph::functions;
use graph::functions::exponent::LOW;
use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::lookup::{self, Lookup};
use crate::protocol::Protocol;
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Exponent {
    count: usize,
    out_bits: u32,
    function: functions::exponent::Exponent,
    upper: Truncate,
    lookup: Lookup,
    extension: Extend,
}

impl Exponent {
    /// `count` exponentials.
    ///
    /// # Errors
    /// [`Error::Misuse`] where 1 does not fit into the output.
    pub(super) fn new(
        count: usize,
        function: &functions::exponent::Exponent,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let [whole, part] = function.digits;
        if whole + part + 1 > out_bits {
            return Err(Error::misuse("exponentials of these widths"));
        }
        let upper = function.bits - LOW;
        Ok(Self {
            count,
            out_bits,
            function: function.clone(),
            upper: Truncate::new(count, function.bits, LOW, upper, radix)?,
            lookup: Lookup::new(count, upper, whole + 2)?,
            extension: Extend::new(count, whole + 2, out_bits, Sign::NonNegative, radix)?,
        })
    }

    fn switch(&self) -> Switch {
        let entry = Entry::Word(self.out_bits);
        let job = || vec![Job { count: self.count, choice_bits: LOW, entry }];
        Switch { to_client: job(), to_server: job() }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        let upper = self.upper.demand() + self.lookup.demand();
        upper + self.extension.demand() + self.switch().demand()
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        let upper = self.upper.cost().then(self.lookup.cost()).then(self.extension.cost());
        upper.then(self.switch().cost(Role::Client))
    }

    /// This party's choice, and its share of the values times what the other chooses from.
    fn side(&self, d: &Share, values: &Share) -> Side {
        let bits = || (0..LOW).map(|bit| Bits::of_words(d.words(), bit)).collect::<Vec<_>>();
        let mut table = lookup::turned(&self.function.parts, Zeroizing::new(bits()));
        for words in table.0.iter_mut().flat_map(|column| &mut column.words) {
            let pairs = words.iter_mut().zip(values.words());
            pairs.for_each(|(part, value)| *part = part.wrapping_mul(*value));
        }
        let table = Table(std::mem::take(&mut table.0));
        Side { choices: vec![bits()], tables: vec![table] }
    }
}

/// Runs the protocol.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Exponent,
    d: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    d.check(plan.count, plan.function.bits, "exponential")?;
    let role = channel.role();
    let table = match role {
        Role::Client => &[][..],
        Role::Server => &plan.function.values,
    };
    let now = ots.split(role, &plan.upper.demand())?;
    let upper = truncate::run(channel, &plan.upper, d, now)?;
    let now = ots.split(role, &plan.lookup.demand())?;
    let narrow = lookup::run(channel, &plan.lookup, &upper, table, now)?;
    let now = ots.split(role, &plan.extension.demand())?;
    let values = extend::run(channel, &plan.extension, &narrow, now)?;
    let side = plan.side(d, &values);
    let switched = mux::run(channel, &plan.switch(), Role::Client, side, ots)?;
    Ok(switched.sum(plan.count, plan.out_bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;

    #[test]
    fn every_value_comes_out_as_in_the_clear() {
        let mut rng = Random::seeded(73);
        for (bits, scale, digits, out_bits) in
            [(8, 0.125, [14, 7], 31), (4, 1.0, [9, 5], 16), (11, 0.01, [18, 11], 40)]
        {
            let values: Vec<i64> = (0..1 << bits).collect();
            let function = functions::exponent::Exponent::new(bits, scale, digits).unwrap();
            let plan = Exponent::new(values.len(), &function, out_bits, Radix::Four).unwrap();
            let (client, server) = split(&mut rng, &values, bits);
            let price = (plan.demand(), plan.cost());
            let got =
                computed(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            assert_eq!(got, values.iter().map(|d| function.clear(*d)).collect::<Vec<_>>());
        }
    }
}
