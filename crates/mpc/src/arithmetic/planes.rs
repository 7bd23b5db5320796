//! Numbers of bits shared by exclusive or, shared by addition.
//!
//! | | |
//! |---|---|
//! | In | xor shares of bits, some of which together are a number; one random OT each |
//! | Out | shares of the numbers mod 2^out_bits |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | for bit i of a number 1 bit up and out_bits - i - 1 bits down; 2 rounds |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), boolean to arithmetic, appendix A |
//!
//! Bit i is `2^i*(b_c + b_s - 2*b_c*b_s)`, whose product is needed mod 2^(out_bits - i - 1). The
//! client receives them all.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// A number: how many bits it has, and the width of its shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    pub(crate) width: u32,
    pub(crate) out_bits: u32,
}

impl Number {
    /// Widths of the products of each bit, as far as they count.
    fn products(self) -> impl Iterator<Item = u32> {
        (0..self.width).filter_map(move |bit| self.out_bits.checked_sub(bit + 1)).filter(|b| *b > 0)
    }
}

/// The public plan for elements that have all of some numbers each; the bits of the first
/// number are before those of the next.
#[derive(Clone, Debug)]
pub(crate) struct Planes {
    count: usize,
    numbers: Vec<Number>,
}

impl Planes {
    /// Plans `count` elements; numbers have 1 to 63 bits, as their shares.
    pub(crate) fn new(count: usize, numbers: Vec<Number>) -> Self {
        Self { count, numbers }
    }

    fn switch(&self) -> Switch {
        let job = |bits| Job { count: self.count, choice_bits: 1, entry: Entry::Word(bits) };
        let widths = self.numbers.iter().flat_map(|number| number.products());
        Switch::to(Role::Client, widths.map(job).collect())
    }

    /// Correlations consumed.
    pub(crate) fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// What [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        self.switch().cost(Role::Client)
    }

    /// The planes of each number, those first that have products.
    fn parts<'a>(&self, planes: &'a [Bits]) -> Vec<(Number, &'a [Bits])> {
        let mut rest = planes;
        let mut part = |number: &Number| {
            let (own, others) = rest.split_at(rest.len().min(number.width as usize));
            rest = others;
            (*number, own)
        };
        self.numbers.iter().map(&mut part).collect()
    }

    fn side(&self, role: Role, planes: &[Bits]) -> Side {
        let parts = self.parts(planes);
        let halves =
            parts.iter().flat_map(|(number, own)| own.iter().take(number.products().count()));
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
    let switched = mux::run(channel, &plan.switch(), Role::Client, side, ots)?;
    let mut products = switched.received.iter().chain(&switched.sent);
    let mut shares = Vec::with_capacity(plan.numbers.len());
    for (number, own) in plan.parts(planes) {
        let mut words = vec![0u64; plan.count];
        for (bit, half) in own.iter().enumerate() {
            let sums = words.iter_mut().zip(half.iter());
            sums.for_each(|(sum, half)| *sum = sum.wrapping_add(half << bit));
        }
        for (bit, column) in (1..).zip(products.by_ref().take(number.products().count())) {
            let products = column.first_word().into_iter().flatten();
            let sums = words.iter_mut().zip(products);
            sums.for_each(|(sum, product)| *sum = sum.wrapping_sub(product << bit));
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
            let numbers = widths
                .iter()
                .map(|(width, out_bits)| Number { width: *width, out_bits: *out_bits });
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
