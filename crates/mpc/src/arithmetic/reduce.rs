//! Exact truncation and reduction with one message each way.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits; correlations |
//! | Out | shares of `floor(x / 2^drop)` mod 2^out_bits, `out_bits + drop <= bits` |
//! | Reveals | masked choices and masked rows, all uniform |
//! | Security | that of a chain: perfect given the OTs |
//! | Cost | drop bits up, about drop*(2*out_bits + drop) bits down; 2 rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), truncate-and-reduce, section III-B; chains as [`crate::boolean::compare`] |
//!
//! The carry out of the lower bits is a number from the start, a label of the chain with as many bits
//! as results, where `truncate.rs` converts a bit afterwards. The client asks, so that the server
//! speaks last: it opens the result in the same round. For many values the labels take more time than
//! the two rounds that they save.

use ring::word::mask;
use wire::{Channel, Cost, Error, Result};

use crate::boolean::compare::chained::{self, Chained};
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub struct Reduce {
    count: usize,
    bits: u32,
    drop: u32,
    out_bits: u32,
    carry: Chained,
}

impl Reduce {
    /// Plans `count` values of `bits`, dropping `drop` (1 or more) bits and keeping `out_bits` (1 or
    /// more) of the others.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless `out_bits + drop <= bits <= 64`, and where no pad could mask the rows of
    /// the chain.
    pub fn new(count: usize, bits: u32, drop: u32, out_bits: u32) -> Result<Self> {
        let fits = out_bits.checked_add(drop).is_some_and(|all| all <= bits);
        if drop == 0 || out_bits == 0 || !fits || bits > 64 {
            return Err(Error::misuse("a truncation with these widths"));
        }
        let carry = Chained::numbers(drop, out_bits)
            .ok_or_else(|| Error::misuse("a truncation with so wide labels"))?;
        Ok(Self { count, bits, drop, out_bits, carry })
    }
}

/// Runs the truncation.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Reduce,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.bits, "truncation")?;
    let carry = chained::numbers(channel, &plan.carry, x.words(), &mut ots)?;
    let high = x.words().iter().map(|word| (word >> plan.drop) & mask(plan.out_bits)).collect();
    Ok(Share::new(high, plan.out_bits).add_scaled(&carry, 1))
}

impl Protocol for Reduce {
    fn operator(&self) -> &'static str {
        "truncate"
    }

    fn describe(&self) -> String {
        "exact truncation by OT in one message each way".into()
    }

    fn demand(&self) -> Demand {
        self.carry.demand(self.count)
    }

    fn cost(&self) -> Cost {
        self.carry.cost(self.count)
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
    use wire::Role;

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(161);
        for (bits, drop, out_bits) in [(5, 1, 4), (5, 4, 1), (6, 2, 4), (6, 3, 2), (7, 5, 2)] {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let plan = Reduce::new(client.len(), bits, drop, out_bits).unwrap();
            let price = (plan.demand(), plan.cost());
            let got =
                computed(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let values = Share::reconstruct(&client, &server);
            let want = values.iter().map(|v| signed((v >> drop) as u64, out_bits));
            assert_eq!(got, want.collect::<Vec<_>>(), "{bits} {drop} {out_bits}");
        }
    }

    #[test]
    fn wide_values_take_a_message_each_way_and_the_server_speaks_last() {
        let mut rng = Random::seeded(162);
        for (bits, drop, out_bits) in [(26, 12, 12), (31, 15, 16), (40, 20, 20), (64, 12, 40)] {
            let words = rng.uniform(300, bits);
            let values: Vec<i64> = words.iter().map(|word| signed(*word, bits)).collect();
            let (client, server) = split(&mut rng, &values, bits);
            let plan = Reduce::new(values.len(), bits, drop, out_bits).unwrap();
            let price = (plan.demand(), plan.cost());
            let ends = (price.1.rounds, price.1.first, price.1.last);
            assert_eq!(ends, (2, Some(Role::Client), Some(Role::Server)));
            let got =
                computed(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let want = values.iter().map(|v| signed((v >> drop) as u64, out_bits));
            assert_eq!(got, want.collect::<Vec<_>>());
        }
    }

    #[test]
    fn other_widths_are_refused() {
        for (bits, drop, out_bits) in [(8, 0, 8), (8, 8, 8), (8, 3, 6), (65, 3, 9), (8, 3, 0)] {
            assert!(Reduce::new(1, bits, drop, out_bits).is_err());
        }
        // Both labels and a colour do not fit into a pad.
        assert!(Reduce::new(1, 64, 20, 44).is_err());
        assert!(Reduce::new(1, 8, u32::MAX, 2).is_err());
    }
}
