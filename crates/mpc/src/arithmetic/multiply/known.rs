//! Products of shared integers with integers that the client knows.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^m, with what is known of its sign; the client's `-2^(n-1) <= y < 2^(n-1)`, of which the server's share is 0; correlations |
//! | Out | shares of `x*y` mod 2^out_bits, element by element |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | for k the smaller of m and n the sum over i < k of out_bits - i + 1 bits; for x narrower than the result its wrap, then out_bits - m + 1 bits; without a comparison 2 rounds, whoever begins ([`Known::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), multiplication with non-uniform widths, section III-C |
//!
//! Half of a product of two shared factors ([`super::Multiply`]): of the cross terms only `X_s*y` is
//! there, of which either the client chooses by bits of y or the server by bits of its summand. With
//! `x = X_c + X_s - 2^m*w` the product of the wrap and y is a choice of the server's between what y
//! counts for if its half is 0 or 1.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::signed;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use super::{Factor, Reduced, add_terms, kept};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::Radix;
use crate::boolean::wrap::Wrapped;
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::{Share, server_only};

/// The public plan of elementwise products with what the client knows.
#[derive(Clone, Debug)]
pub struct Known {
    count: usize,
    shared: Factor,
    /// Width of the known factor, with its sign.
    known_bits: u32,
    out_bits: u32,
    x: Reduced,
    /// Who chooses by the bits of its own: the client of the known factor, the server of its
    /// summand of the other.
    chooser: Role,
    /// Who begins where nothing is compared.
    first: Role,
    /// The place of the known factor among the inputs.
    place: usize,
}

impl Known {
    /// Plans `count` products mod 2^out_bits (1 to 63) with known factors of `known_bits` (1 to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths out of range.
    pub fn new(
        count: usize,
        shared: Factor,
        known_bits: u32,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let fits = |bits: u32| (1..=63).contains(&bits);
        if ![shared.bits, known_bits, out_bits].into_iter().all(fits) || !shared.fits() {
            return Err(Error::misuse("a product with a known factor of these sizes"));
        }
        let x = Reduced::new(shared, out_bits, radix);
        let chooser = if known_bits.min(out_bits) <= x.bits { Role::Client } else { Role::Server };
        Ok(Self { count, shared, known_bits, out_bits, x, chooser, first: Role::Client, place: 1 })
    }

    /// Lets `first` begin where nothing is compared; the client does by default.
    #[must_use]
    pub fn begun_by(self, first: Role) -> Self {
        Self { first, ..self }
    }

    /// Puts the known factor at `place`, 0 or 1, of the inputs; it is the second by default.
    #[must_use]
    pub fn at(self, place: usize) -> Self {
        Self { place: place.min(1), ..self }
    }

    /// Who begins with what is chosen.
    fn first(&self) -> Role {
        self.x.last_sender().unwrap_or(self.first)
    }

    /// The bits that choose: the width of an entry and its factor in the result.
    fn terms(&self) -> impl Iterator<Item = (u32, u64)> {
        let bits = if self.chooser == Role::Client { self.known_bits } else { self.x.bits };
        let (out_bits, chooser) = (self.out_bits, self.chooser);
        (0..bits.min(out_bits)).map(move |bit| {
            let factor = 1u64 << bit;
            // The highest bit of the known factor is its sign.
            let sign = chooser == Role::Client && bit + 1 == bits;
            (out_bits - bit, if sign { factor.wrapping_neg() } else { factor })
        })
    }

    /// Width and factor of the wrap's product, if x has a wrap.
    fn wrapping(&self) -> Option<(u32, u64)> {
        let bits = self.x.bits;
        self.x.wrap.as_ref().map(|_| (self.out_bits - bits, (1u64 << bits).wrapping_neg()))
    }

    /// Factors of the OTs towards `receiver`, in order.
    fn factors(&self, receiver: Role) -> Vec<(u32, u64)> {
        let bits = self.terms().filter(|_| receiver == self.chooser);
        bits.chain(self.wrapping().filter(|_| receiver == Role::Server)).collect()
    }

    fn switch(&self) -> Switch {
        let job = |(bits, _)| Job { count: self.count, choice_bits: 1, entry: Entry::Word(bits) };
        let jobs = |receiver| self.factors(receiver).into_iter().map(job).collect();
        Switch { to_client: jobs(Role::Client), to_server: jobs(Role::Server) }
    }

    /// The choices by this party's own bits.
    fn choices(&self, words: &[u64]) -> Vec<Vec<Bits>> {
        (0..).zip(self.terms()).map(|(bit, _)| vec![Bits::of_words(words, bit)]).collect()
    }

    /// Tables for the other party's bits, which take `values` where they are set.
    fn tables(&self, values: &[u64]) -> Vec<Table> {
        let table = |_| Table::words(vec![vec![0; values.len()], values.to_vec()]);
        self.terms().map(table).collect()
    }

    /// The client's side, given its known values, or the server's.
    fn side(&self, role: Role, x: &Wrapped, y: &[u64]) -> Side {
        let mut side = Side { choices: Vec::new(), tables: Vec::new() };
        match (role, self.chooser) {
            (Role::Client, Role::Client) => side.choices = self.choices(y),
            (Role::Client, Role::Server) => side.tables = self.tables(y),
            (Role::Server, Role::Client) => {
                let offset = self.x.offset();
                let own = x.words.iter().map(|word| word.wrapping_sub(offset));
                side.tables = self.tables(&Zeroizing::new(own.collect::<Vec<u64>>()));
            }
            (Role::Server, Role::Server) => side.choices = self.choices(&x.words),
        }
        match (&self.x.wrap, role) {
            (Some(wrap), Role::Client) => {
                let given = wrap.given(&x.half);
                side.tables.push(Table::words(given.iter().map(|wrap| kept(y, wrap)).collect()));
            }
            (Some(_), Role::Server) => side.choices.push(vec![x.half.clone()]),
            (None, _) => {}
        }
        side
    }

    /// What the client computes alone: `X_c*y`, and y times the offset that the server's bits have in
    /// them.
    fn local(&self, x: &Wrapped, y: &[u64]) -> Vec<u64> {
        let offset = if self.chooser == Role::Server { self.x.offset() } else { 0 };
        let pairs = x.words.iter().zip(y);
        pairs.map(|(x, y)| x.wrapping_sub(offset).wrapping_mul(*y)).collect()
    }
}

/// Multiplies `x` and what the client's share of `y` says, whose lower bits count.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Known,
    x: &Share,
    y: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.shared.bits, "product with a known factor")?;
    y.check(plan.count, plan.known_bits, "known factor")?;
    let role = channel.role();
    let x = plan.x.run(channel, (x, None), &mut ots)?;
    let y: Vec<u64> = y.words().iter().map(|y| signed(*y, plan.known_bits) as u64).collect();
    let y = Zeroizing::new(y);
    let side = plan.side(role, &x, &y);
    let switched = mux::run(channel, &plan.switch(), plan.first(), side, ots)?;
    let mut sums = match role {
        Role::Client => plan.local(&x, &y),
        Role::Server => vec![server_only(role, 0); plan.count],
    };
    for (columns, receiver) in [(&switched.received, role), (&switched.sent, !role)] {
        let factors = plan.factors(receiver).into_iter().map(|(_, factor)| factor);
        add_terms(&mut sums, columns.iter(), factors);
    }
    Ok(Share::new(sums, plan.out_bits))
}

impl Protocol for Known {
    fn operator(&self) -> &'static str {
        "multiply"
    }

    fn describe(&self) -> String {
        "products with known factors by OT".into()
    }

    fn demand(&self) -> Demand {
        let wrap = self.x.wrap.as_ref().map(|wrap| wrap.demand(self.count));
        wrap.unwrap_or_default() + self.switch().demand()
    }

    fn cost(&self) -> Cost {
        let wrap = self.x.wrap.as_ref().map_or(Cost::NONE, |wrap| wrap.cost(self.count));
        wrap.then(self.switch().cost(self.first()))
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 1 - self.place)?, input(inputs, self.place)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::Random;
    use ring::word::mask;

    use super::super::Multiply;
    use super::*;
    use crate::boolean::wrap::Sign;
    use crate::testing::both;

    const SIGNS: [Sign; 4] = [Sign::Unknown, Sign::Unsigned, Sign::NonNegative, Sign::Spare];

    /// The value that a sum of shares stands for, if the sign allows it.
    fn value(sum: u64, Factor { bits, sign }: Factor) -> Option<i64> {
        let value = signed(sum, bits);
        let quarter = 1i64 << bits.saturating_sub(2);
        match sign {
            Sign::Unsigned => Some((sum & mask(bits)) as i64),
            Sign::Unknown => Some(value),
            Sign::NonNegative => Some(value).filter(|value| *value >= 0),
            Sign::Spare => Some(value).filter(|value| (-quarter..quarter).contains(value)),
        }
    }

    /// Products of what rows of two shares and a known value say.
    fn check(plan: &Known, rows: &[[u64; 3]], rng: &mut Random) {
        let words = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        let [client, server] = [0, 1].map(|at| Share::new(words(at), plan.shared.bits));
        let known = Share::new(words(2), plan.known_bits);
        let nothing = Share::new(vec![0; rows.len()], plan.known_bits);
        let (c, s) = both(
            rng,
            &plan.demand(),
            |ch, ots| run(ch, plan, &client, &known, ots),
            |ch, ots| run(ch, plan, &server, &nothing, ots),
        );
        assert_eq!(c.cost, plan.cost());
        let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
        let product = |[c, s, y]: &[u64; 3]| {
            let x = value(c.wrapping_add(*s), plan.shared).unwrap();
            signed(x.wrapping_mul(signed(*y, plan.known_bits)) as u64, plan.out_bits)
        };
        assert_eq!(got, rows.iter().map(product).collect::<Vec<_>>(), "{plan:?}");
    }

    #[test]
    fn every_pair_of_small_shares_and_known_value() {
        let mut rng = Random::seeded(41);
        for (m, n) in [(2, 1), (2, 3), (3, 2), (4, 4), (5, 3)] {
            for sign in SIGNS {
                let shared = Factor { bits: m, sign };
                let all = (0..1u64 << (2 * m + n)).map(|word| {
                    [word & mask(m), (word >> m) & mask(m), (word >> (2 * m)) & mask(n)]
                });
                let rows: Vec<_> = all.filter(|[c, s, _]| value(c + s, shared).is_some()).collect();
                for out_bits in [1, n, m, m + 1, m + n, m + n + 5] {
                    for first in [Role::Client, Role::Server] {
                        let plan = Known::new(rows.len(), shared, n, out_bits, Radix::Four);
                        check(&plan.unwrap().begun_by(first), &rows, &mut rng);
                    }
                }
            }
        }
    }

    #[test]
    fn wide_values_take_half_the_bits_of_shared_ones() {
        let mut rng = Random::seeded(42);
        for (m, n, out_bits) in [(12, 14, 35), (35, 14, 35), (11, 3, 63), (63, 63, 63)] {
            for sign in SIGNS {
                let shared = Factor { bits: m, sign };
                let [c, y] = [rng.uniform(300, m), rng.uniform(300, n)];
                // Values of up to a quarter of the range have every sign but a negative one.
                let x = rng.uniform(300, m - 2);
                let pairs = c.iter().zip(&x).map(|(c, x)| (*c, x.wrapping_sub(*c) & mask(m)));
                let rows: Vec<_> = pairs.zip(&y).map(|((c, s), y)| [c, s, *y]).collect();
                let plan = Known::new(rows.len(), shared, n, out_bits, Radix::Chain).unwrap();
                check(&plan, &rows, &mut rng);
                let compares = out_bits > m && matches!(sign, Sign::Unknown | Sign::Unsigned);
                assert!(compares || plan.cost().rounds == 2, "{plan:?}");
                let factors = [shared, Factor { bits: n, sign: Sign::Spare }];
                let both = Multiply::new(rows.len(), factors, out_bits, Radix::Chain).unwrap();
                assert!(
                    compares || 2 * plan.cost().bytes() < both.cost().bytes() + 200,
                    "{plan:?}"
                );
            }
        }
    }

    #[test]
    fn misfits_are_refused() {
        let factor = |bits| Factor { bits, sign: Sign::Unknown };
        for (m, n, out_bits) in [(0, 4, 4), (4, 64, 4), (4, 4, 0), (4, 4, 64)] {
            assert!(Known::new(1, factor(m), n, out_bits, Radix::Four).is_err());
        }
        assert!(Known::new(1, Factor { bits: 1, sign: Sign::Spare }, 4, 4, Radix::Four).is_err());
        let plan = Known::new(2, factor(4), 5, 9, Radix::Four).unwrap();
        let (x, y) = (Share::new(vec![1; 2], 4), Share::new(vec![1; 2], 5));
        let run = |ch: &mut Channel| run(ch, &plan, &y, &x, Correlations::default());
        let (c, s) = wire::testing::run_pair(run, run);
        assert!(matches!(c.value, Err(Error::Misuse(_))));
        assert!(matches!(s.value, Err(Error::Misuse(_))));
    }
}
