//! Exact truncation of values that are not negative, to any width, with the extension beside the carry.
//!
//! | | |
//! |---|---|
//! | In | shares of `0 <= x < 2^(bits-1)` mod 2^bits; correlations |
//! | Out | shares of `floor(x / 2^drop)` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a chain of drop bits, then out_bits bits; for out_bits > bits - drop besides 1 bit of who asks and out_bits + drop - bits of the other; 3 rounds, or 2 with carries as numbers, which take more bits |
//! | Paper | Rathee et al., SiRNN (S&P 2021), truncation and extension, section III; chains as [`crate::boolean::compare`] |
//!
//! Shares of x wrap as their top bits say and carry as their lower bits do: neither waits for the
//! other. The party that asks opens its top bit under a mask with the chain's question, and the other
//! its difference with the answer (`nonlinear/lift.rs`). The carry then becomes an integer, begun by
//! the party that answered; or it is one from the start, a label of the chain that has as many bits as
//! results.

use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};

use crate::arithmetic::b2a::{self, Arithmetic};
use crate::boolean::compare::chained::{self, Chained};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::estimate::Reference;
use crate::nonlinear::lift::Lift;
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(crate) struct Rescale {
    count: usize,
    bits: u32,
    drop: u32,
    out_bits: u32,
    carry: Carry,
    /// What makes the shares wider before their lower bits are dropped.
    lift: Option<Lift>,
}

/// How carries are found.
#[derive(Clone, Debug)]
enum Carry {
    /// As bits, which become numbers afterwards.
    Converted(Comparison, Arithmetic),
    /// As numbers.
    Numbers(Chained),
}

impl Carry {
    fn demand(&self, count: usize) -> Demand {
        match self {
            Self::Converted(comparison, plan) => comparison.demand(count) + plan.demand(),
            Self::Numbers(plan) => plan.demand(count),
        }
    }
}

impl Rescale {
    /// Plans `count` values of `bits`, dropping `drop >= 1` bits, to `out_bits`; `asks` begins. Of both
    /// ways to find carries it takes the one of less time on the link of [`pricing::fixed`] if the client
    /// is next to speak.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless `drop < bits` and `out_bits + drop <= 63`.
    pub(crate) fn new(count: usize, [bits, drop, out_bits]: [u32; 3], asks: Role) -> Result<Self> {
        if drop == 0 || drop >= bits || bits > 63 || out_bits == 0 || out_bits + drop > 63 {
            return Err(Error::misuse("a truncation to these widths"));
        }
        let more = (out_bits + drop).saturating_sub(bits);
        let lift = (more > 0).then_some(Lift { count, bits, more, asks });
        let comparison = Comparison::carry(drop, Radix::Chain).asked_by(asks);
        let conversion = Arithmetic::new(count, out_bits, !asks)?;
        let carry = Carry::Converted(comparison, conversion);
        let plan = Self { count, bits, drop, out_bits, carry, lift };
        let numbers = Chained::numbers(drop, out_bits).map(|numbers| numbers.asked_by(asks));
        let numbers =
            numbers.map(|numbers| Self { carry: Carry::Numbers(numbers), ..plan.clone() });
        Ok(numbers.filter(|numbers| numbers.time() < plan.time()).unwrap_or(plan))
    }

    /// Time in halves of nanoseconds until the client has spoken next.
    fn time(&self) -> u64 {
        let cost = self.cost();
        let next = u64::from(cost.last == Some(Role::Server));
        Reference::half_nanoseconds(&self.demand(), Cost { rounds: cost.rounds + next, ..cost })
    }

    /// Returns the OTs that a run consumes.
    pub(crate) fn demand(&self) -> Demand {
        let lift = self.lift.as_ref().map(Lift::demand).unwrap_or_default();
        lift + self.carry.demand(self.count)
    }

    /// Returns what [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        let lifted = |found: Cost| self.lift.as_ref().map_or(found, |lift| lift.cost(found));
        match &self.carry {
            Carry::Converted(comparison, conversion) => {
                lifted(comparison.cost(self.count)).then(conversion.cost())
            }
            Carry::Numbers(plan) => lifted(plan.cost(self.count)),
        }
    }
}

/// Runs the truncation.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Rescale,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.bits, "truncation")?;
    let role = channel.role();
    let begun = match &plan.lift {
        Some(lift) => {
            let now = ots.split(role, &lift.demand())?;
            Some((lift, lift.begin(channel, x.words(), now)?))
        }
        None => None,
    };
    let found = match &plan.carry {
        Carry::Converted(comparison, _) => {
            Found::Bits(compare::of_share(channel, comparison, x, &mut ots)?)
        }
        Carry::Numbers(plan) => {
            Found::Numbers(chained::numbers(channel, plan, x.words(), &mut ots)?)
        }
    };
    let lifted = begun.map(|(lift, begun)| lift.finish(channel, x.words(), begun)).transpose()?;
    let carry = match (&plan.carry, found) {
        (Carry::Converted(_, conversion), Found::Bits(found)) => {
            b2a::run(channel, conversion, &found.greater, ots)?
        }
        (_, Found::Numbers(carry)) => carry,
        _ => return Err(crate::defect::defect("a carry that is not as planned")),
    };
    let words = lifted.as_ref().unwrap_or(x).words().iter();
    let high = words.map(|word| (word >> plan.drop) & mask(plan.out_bits)).collect();
    Ok(Share::new(high, plan.out_bits).add_scaled(&carry, 1))
}

/// What a chain told of carries.
enum Found {
    Bits(compare::Compared),
    Numbers(Share),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;
    use ring::word::signed;

    #[test]
    fn every_pair_of_small_shares_either_way() {
        let mut rng = Random::seeded(41);
        for (bits, drop, out_bits) in [(5, 1, 5), (5, 4, 9), (6, 2, 3), (6, 3, 3), (6, 3, 30)] {
            for asks in [Role::Client, Role::Server] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let fits = |(x, y): &(u64, u64)| signed(x + y, bits) >= 0;
                let (x, y): (Vec<_>, Vec<_>) = pairs.filter(fits).unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                let plan = Rescale::new(client.len(), [bits, drop, out_bits], asks).unwrap();
                let numbers = Chained::numbers(drop, out_bits).unwrap().asked_by(asks);
                let converted = Arithmetic::new(client.len(), out_bits, !asks).unwrap();
                let comparison = Comparison::carry(drop, Radix::Chain).asked_by(asks);
                let ways = [Carry::Numbers(numbers), Carry::Converted(comparison, converted)];
                for (carry, rounds) in ways.into_iter().zip([2, 3]) {
                    let plan = Rescale { carry, ..plan.clone() };
                    let price = (plan.demand(), plan.cost());
                    assert_eq!((price.1.rounds, price.1.first), (rounds, Some(asks)));
                    let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                        run(ch, &plan, x, ots)
                    });
                    let values = Share::reconstruct(&client, &server);
                    let want = values.iter().map(|v| signed((v >> drop) as u64, out_bits));
                    assert_eq!(got, want.collect::<Vec<_>>(), "{bits} {drop} {out_bits}");
                }
            }
        }
    }

    #[test]
    fn few_values_take_fewer_rounds_and_many_fewer_bits() {
        let plan = |count, asks| Rescale::new(count, [19, 9, 22], asks).unwrap();
        assert_eq!(plan(1 << 12, Role::Server).cost().rounds, 2);
        assert_eq!(plan(1 << 18, Role::Server).cost().rounds, 3);
        // A round is saved only where the client is not next to speak anyway.
        assert_eq!(plan(1 << 12, Role::Client).cost().rounds, 3);
    }

    #[test]
    fn wide_values_come_out_right() {
        let mut rng = Random::seeded(42);
        for [bits, drop, out_bits] in [[19, 9, 22], [26, 12, 8], [40, 20, 43], [63, 16, 47]] {
            let values: Vec<i64> =
                rng.uniform(300, bits - 1).iter().map(|word| *word as i64).collect();
            let (client, server) = split(&mut rng, &values, bits);
            let plan = Rescale::new(values.len(), [bits, drop, out_bits], Role::Server).unwrap();
            let price = (plan.demand(), plan.cost());
            let got =
                computed(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let want = values.iter().map(|v| signed((v >> drop) as u64, out_bits));
            assert_eq!(got, want.collect::<Vec<_>>());
        }
        for [bits, drop, out_bits] in [[8, 0, 8], [8, 8, 8], [8, 3, 61], [64, 3, 9], [8, 3, 0]] {
            assert!(Rescale::new(1, [bits, drop, out_bits], Role::Client).is_err());
        }
    }
}
