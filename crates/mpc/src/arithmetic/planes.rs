//! Numbers of bits shared by exclusive or, shared by addition.
//!
//! | | |
//! |---|---|
//! | In | xor shares of bits, some of which together are a number, each with its weight; one random OT each |
//! | Out | shares of the numbers mod 2^out_bits |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | for a bit worth 2^i, or 2^i times an odd number, 1 bit up and out_bits - i - 1 bits down; 2 rounds, whoever begins |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), boolean to arithmetic, appendix A |
//!
//! A bit of weight w is worth `w*(b_c + b_s - 2*b_c*b_s)`. Where w is 2^i times an odd number, the
//! product is needed mod 2^(out_bits - i - 1). The client receives them all.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// A number: what each of its bits is worth, and the width of its shares.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) weights: Vec<u64>,
    pub(crate) out_bits: u32,
}

impl Number {
    /// The number of so many bits, the lowest first.
    pub(crate) fn of_bits(width: u32, out_bits: u32) -> Self {
        Self { weights: (0..width).map(|bit| 1 << bit).collect(), out_bits }
    }

    /// The width of the product of a bit of this weight, as far as it counts.
    fn product(&self, weight: u64) -> u32 {
        self.out_bits.saturating_sub(weight.trailing_zeros().saturating_add(1))
    }

    /// Places and weights of the bits whose products count.
    fn counted(&self) -> impl Iterator<Item = (usize, u64)> {
        let all = self.weights.iter().copied().enumerate();
        all.filter(|(_, weight)| self.product(*weight) > 0)
    }
}

/// The public plan for elements that have all of some numbers each; the bits of the first
/// number are before those of the next.
#[derive(Clone, Debug)]
pub(crate) struct Planes {
    count: usize,
    numbers: Vec<Number>,
    first: Role,
}

impl Planes {
    /// Plans `count` elements; numbers have 1 to 63 bits, as their shares.
    pub(crate) fn new(count: usize, numbers: Vec<Number>) -> Self {
        Self { count, numbers, first: Role::Client }
    }

    /// Lets `first` begin; the client does by default.
    pub(crate) fn begun_by(self, first: Role) -> Self {
        Self { first, ..self }
    }

    fn switch(&self) -> Switch {
        let job = |bits| Job { count: self.count, choice_bits: 1, entry: Entry::Word(bits) };
        let widths = |number: &Number| {
            number.counted().map(|(_, weight)| number.product(weight)).collect::<Vec<_>>()
        };
        Switch::to(Role::Client, self.numbers.iter().flat_map(widths).map(job).collect())
    }

    /// Correlations consumed.
    pub(crate) fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// What [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        self.switch().cost(self.first)
    }

    /// The planes of each number.
    fn parts<'a>(&'a self, planes: &'a [Bits]) -> Vec<(&'a Number, &'a [Bits])> {
        let mut rest = planes;
        let mut parts = Vec::with_capacity(self.numbers.len());
        for number in &self.numbers {
            let (own, others) = rest.split_at(rest.len().min(number.weights.len()));
            rest = others;
            parts.push((number, own));
        }
        parts
    }

    fn side(&self, role: Role, planes: &[Bits]) -> Side {
        let parts = self.parts(planes);
        let halves = parts
            .iter()
            .flat_map(|(number, own)| number.counted().filter_map(|(place, _)| own.get(place)));
        let table = |half: &Bits| Table::words(vec![vec![0; self.count], half.to_words()]);
        match role {
            Role::Client => Side {
                choices: halves.map(|half| vec![half.clone()]).collect(),
                tables: Vec::new(),
            },
            Role::Server => Side { choices: Vec::new(), tables: halves.map(table).collect() },
        }
    }
}

/// Runs the conversion: a share for each number.
///
/// # Errors
/// [`wire::Error::Misuse`] when the bits or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Planes,
    planes: &[Bits],
    ots: Correlations,
) -> Result<Vec<Share>> {
    let side = plan.side(channel.role(), planes);
    let switched = mux::run(channel, &plan.switch(), plan.first, side, ots)?;
    let mut products = switched.received.iter().chain(&switched.sent);
    let mut shares = Vec::with_capacity(plan.numbers.len());
    for (number, own) in plan.parts(planes) {
        let mut words = vec![0u64; plan.count];
        for (weight, half) in number.weights.iter().zip(own) {
            let sums = words.iter_mut().zip(half.iter());
            sums.for_each(|(sum, half)| *sum = sum.wrapping_add(half.wrapping_mul(*weight)));
        }
        for ((_, weight), column) in number.counted().zip(products.by_ref()) {
            let products = column.first_word().into_iter().flatten();
            let (sums, twice) = (words.iter_mut().zip(products), weight.wrapping_mul(2));
            sums.for_each(|(sum, product)| *sum = sum.wrapping_sub(product.wrapping_mul(twice)));
        }
        shares.push(Share::new(words, number.out_bits));
    }
    Ok(shares)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, random_bits};
    use ring::Random;
    use ring::word::mask;

    #[test]
    fn numbers_are_those_of_their_bits() {
        let mut rng = Random::seeded(93);
        let count = 130;
        for widths in [vec![(1, 1)], vec![(3, 3), (5, 9)], vec![(9, 4), (2, 63), (16, 17)]] {
            let numbers = widths.iter().map(|(width, out_bits)| Number::of_bits(*width, *out_bits));
            let plan = Planes::new(count, numbers.collect());
            let total: u32 = widths.iter().map(|(width, _)| width).sum();
            let planes = |rng: &mut Random| -> Vec<Bits> {
                (0..total).map(|_| random_bits(rng, count)).collect()
            };
            let (client, server) = (planes(&mut rng), planes(&mut rng));
            let (c, s) = both(
                &mut rng,
                &plan.demand(),
                |ch, ots| run(ch, &plan, &client, ots),
                |ch, ots| run(ch, &plan, &server, ots),
            );
            assert_eq!(c.cost, plan.cost());
            let (c, s) = (c.value.unwrap(), s.value.unwrap());
            let mut first = 0;
            for ((width, out_bits), (c, s)) in widths.iter().zip(c.iter().zip(&s)) {
                for at in 0..count {
                    let bit = |i: usize| client[first + i].get(at) ^ server[first + i].get(at);
                    let want: u64 = (0..*width as usize).map(|i| bit(i) << i).sum();
                    let got = c.words()[at].wrapping_add(s.words()[at]);
                    assert_eq!(got & mask(*out_bits), want & mask(*out_bits));
                }
                first += *width as usize;
            }
        }
    }
}
