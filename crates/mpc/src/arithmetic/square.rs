//! Squares of shared integers.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits, with what is known of the sign; correlations |
//! | Out | shares of `x^2` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | the sum over i < bits of out_bits - i bits, once; for out_bits > bits + 1 the wrap, then 2*(out_bits - bits) bits ([`Square::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), multiplication, section III-C, with one cross term |
//!
//! With `x = X_c + X_s - 2^bits*w` (`wrap.rs`) and `w^2 = w`, the square is
//! `X_c^2 + X_s^2 + 2*X_c*X_s - 2^(bits+1)*w*(X_c + X_s - 2^(bits-1))`. The one cross term
//! goes one way, towards the party that spoke last.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::multiply::{Factor, add_terms, kept};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::Radix;
use crate::boolean::wrap::{self, Wrap, Wrapped};
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::{Share, server_only};

/// The public plan of squares.
#[derive(Clone, Debug)]
pub struct Square {
    count: usize,
    given: Factor,
    /// Width that matters.
    bits: u32,
    out_bits: u32,
    /// Where it is not a multiple of 2^out_bits.
    wrap: Option<Wrap>,
}

impl Square {
    /// Plans `count` squares mod 2^out_bits (1 to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths out of range.
    pub fn new(count: usize, of: Factor, out_bits: u32, radix: Radix) -> Result<Self> {
        if !(1..=63).contains(&out_bits) || !(1..=63).contains(&of.bits) {
            return Err(Error::misuse("a square with these widths"));
        }
        // The square mod 2^out_bits depends on x mod 2^(out_bits - 1) only; one bit is the least.
        let bits = of.bits.min(out_bits.saturating_sub(1).max(1));
        let wrap = (out_bits > bits + 1).then(|| Wrap::new(bits, of.sign, radix));
        Ok(Self { count, given: of, bits, out_bits, wrap })
    }

    /// Who chooses by its bits.
    fn asks(&self) -> Role {
        self.wrap.as_ref().and_then(Wrap::last_sender).unwrap_or(Role::Client)
    }

    fn offset(&self) -> u64 {
        self.wrap.as_ref().map_or(0, Wrap::offset)
    }

    /// Widths of the entries that go to `receiver`, and their factors in the result.
    fn terms(&self, receiver: Role) -> Vec<(u32, u64)> {
        let bits = if receiver == self.asks() { self.bits } else { 0 };
        let cross = (1..=bits).filter(|shift| *shift < self.out_bits);
        let mut terms: Vec<_> = cross.map(|shift| (self.out_bits - shift, 1 << shift)).collect();
        let wrapped = self.bits + 1;
        terms.extend(
            self.wrap.as_ref().map(|_| (self.out_bits - wrapped, (1u64 << wrapped).wrapping_neg())),
        );
        terms
    }

    fn switch(&self) -> Switch {
        let job = |(bits, _)| Job { count: self.count, choice_bits: 1, entry: Entry::Word(bits) };
        let jobs = |receiver| self.terms(receiver).into_iter().map(job).collect();
        Switch { to_client: jobs(Role::Client), to_server: jobs(Role::Server) }
    }

    /// `integers` are this party's summands with the offset taken off.
    fn side(&self, role: Role, wrapped: &Wrapped, integers: &[u64]) -> Side {
        let (crossing, asks) = (self.terms(self.asks()), role == self.asks());
        let crossing = crossing.len() - usize::from(self.wrap.is_some());
        let mut side = Side { choices: Vec::new(), tables: Vec::new() };
        if asks {
            let bits = (0..crossing as u32).map(|bit| vec![Bits::of_words(&wrapped.words, bit)]);
            side.choices.extend(bits);
        } else {
            let table = || Table::words(vec![vec![0; self.count], integers.to_vec()]);
            side.tables.extend((0..crossing).map(|_| table()));
        }
        if let Some(wrap) = &self.wrap {
            let middle = server_only(role, 1 << (self.bits - 1));
            let moved = integers.iter().map(|x| x.wrapping_sub(middle)).collect::<Vec<u64>>();
            let moved = Zeroizing::new(moved);
            let columns = wrap.given(&wrapped.half).iter().map(|wrap| kept(&moved, wrap)).collect();
            side.choices.push(vec![wrapped.half.clone()]);
            side.tables.push(Table::words(columns));
        }
        side
    }

    /// The square of this party's summand, and what the cross term has too much: who is
    /// asked takes the offset off the bits that the other chooses by.
    fn local(&self, role: Role, integers: &[u64]) -> Vec<u64> {
        let too_much = match (role, self.asks()) {
            (Role::Client, Role::Server) => self.offset(),
            _ => 0,
        };
        let square = |x: &u64| x.wrapping_mul(x.wrapping_sub(2u64.wrapping_mul(too_much)));
        integers.iter().map(square).collect()
    }
}

/// Squares every value.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Square,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.given.bits, "square")?;
    let role = channel.role();
    let x = x.narrow(plan.bits)?;
    let wrapped = match &plan.wrap {
        Some(wrap) => wrap::run(channel, wrap, &x, &mut ots)?,
        None => Wrapped { words: x.words().to_vec(), half: Bits::default() },
    };
    let offset = server_only(role, plan.offset());
    let integers = wrapped.words.iter().map(|word| word.wrapping_sub(offset));
    let integers = Zeroizing::new(integers.collect::<Vec<u64>>());
    let side = plan.side(role, &wrapped, &integers);
    let switched = mux::run(channel, &plan.switch(), plan.asks(), side, ots)?;
    let mut sums = plan.local(role, &integers);
    for (columns, receiver) in [(&switched.received, role), (&switched.sent, !role)] {
        let factors = plan.terms(receiver).into_iter().map(|(_, factor)| factor);
        add_terms(&mut sums, columns.iter(), factors);
    }
    Ok(Share::new(sums, plan.out_bits))
}

impl Protocol for Square {
    fn operator(&self) -> &'static str {
        "square"
    }

    fn describe(&self) -> String {
        "products by OT".into()
    }

    fn demand(&self) -> Demand {
        let wrap = self.wrap.as_ref().map(|wrap| wrap.demand(self.count)).unwrap_or_default();
        wrap + self.switch().demand()
    }

    fn cost(&self) -> Cost {
        let wrap = self.wrap.as_ref().map_or(Cost::NONE, |wrap| wrap.cost(self.count));
        wrap.then(self.switch().cost(self.asks()))
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::boolean::wrap::Sign;
    use crate::testing::{computed, split};
    use ring::Random;
    use ring::word::{mask, signed};

    const SIGNS: [Sign; 3] = [Sign::Unknown, Sign::Unsigned, Sign::NonNegative];

    fn check(plan: &Square, client: &Share, server: &Share, rng: &mut Random) {
        let price = (plan.demand(), plan.cost());
        let got = computed(rng, price, [client, server], |ch, x, ots| run(ch, plan, x, ots));
        let values =
            Share::reconstruct(client, server).into_iter().map(|v| match plan.given.sign {
                Sign::Unsigned => v & mask(plan.given.bits) as i64,
                _ => v,
            });
        let want = values.map(|v| signed(v.wrapping_mul(v) as u64, plan.out_bits));
        assert_eq!(got, want.collect::<Vec<_>>(), "{:?} to {}", plan.given, plan.out_bits);
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(39);
        for (bits, sign) in (1..=6u32).flat_map(|bits| SIGNS.map(|sign| (bits, sign))) {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let fits = |sum| sign != Sign::NonNegative || signed(sum, bits) >= 0;
            let (x, y): (Vec<_>, Vec<_>) = pairs.filter(|(x, y)| fits(x + y)).unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            for (out_bits, radix) in [1, 2, bits, bits + 1, bits + 2, 2 * bits + 2]
                .into_iter()
                .zip(Radix::ALL.into_iter().cycle())
            {
                let plan = Square::new(client.len(), Factor { bits, sign }, out_bits, radix);
                check(&plan.unwrap(), &client, &server, &mut rng);
            }
        }
    }

    #[test]
    fn wide_values_at_the_bounds() {
        let mut rng = Random::seeded(40);
        for (bits, out_bits) in [(8, 16), (12, 24), (31, 62), (63, 63), (32, 40), (61, 63)] {
            for sign in SIGNS {
                let edge = 1i64 << (bits - 1);
                let mut values = vec![0, 1, edge - 1, edge / 2];
                values.extend(rng.uniform(100, bits - 1).iter().map(|v| *v as i64));
                if sign != Sign::NonNegative {
                    values.extend([-1, -edge, 1 - edge]);
                }
                let (client, server) = split(&mut rng, &values, bits);
                for radix in [Radix::Two, Radix::Four] {
                    let plan = Square::new(values.len(), Factor { bits, sign }, out_bits, radix);
                    check(&plan.unwrap(), &client, &server, &mut rng);
                }
            }
        }
    }
}
