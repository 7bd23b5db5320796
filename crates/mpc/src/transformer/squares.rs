//! Extension and squares of values known not to be negative, at once.
//!
//! | | |
//! |---|---|
//! | In | shares of `0 <= x < 2^(bits-1)` mod 2^bits; correlations |
//! | Out | shares of x mod 2^wide and of `x^2` mod 2^out_bits |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | the sum over i < bits of out_bits - i - 1 bits and wide - bits down, out_bits - bits - 1 up, bits + 1 for the choices; 3 rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), multiplication, section III-C, with one cross term |
//!
//! With both summands read as unsigned `x = c + s - 2^bits*w`, where the top bits m tell that
//! `w = m_c OR m_s`, and `x^2 = c^2 + s^2 + 2*c*s - 2^(bits+1)*w*(c + s - 2^(bits-1))`. The client
//! chooses by its bits from multiples of s; its top bit besides chooses w, for the extension, and
//! what w takes off s. What w takes off c is chosen by the server's top bit. Against
//! `extend.rs` and `square.rs` three choices by the same bit are one.

use ot::{Column, Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::multiply::kept;
use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Squares {
    count: usize,
    bits: u32,
    wide: u32,
    out_bits: u32,
}

impl Squares {
    /// `count` values of `bits` to `wide` bits, more than that, and squares of `out_bits`, more
    /// by two at least; up to 63.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub(super) fn new(count: usize, bits: u32, wide: u32, out_bits: u32) -> Result<Self> {
        let fits = (1..=60).contains(&bits) && wide > bits && out_bits > bits + 1;
        if !fits || wide > 63 || out_bits > 63 {
            return Err(Error::misuse("squares of these widths"));
        }
        Ok(Self { count, bits, wide, out_bits })
    }

    fn switch(&self) -> Switch {
        let job = |entry| Job { count: self.count, choice_bits: 1, entry };
        let low = (1..self.bits).map(|shift| Entry::Word(self.out_bits - shift));
        let top = Entry::Pair(self.out_bits - self.bits, self.wide - self.bits);
        let back = Entry::Word(self.out_bits - self.bits - 1);
        Switch { to_client: low.chain([top]).map(job).collect(), to_server: vec![job(back)] }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        self.switch().cost(Role::Client)
    }

    /// The client chooses by its bits; what w takes off its own summand it sends.
    fn client(&self, own: &[u64], top: &Bits) -> Side {
        let choices = (0..self.bits).map(|bit| vec![Bits::of_words(own, bit)]).collect();
        let tables = vec![Table::words(vec![kept(own, top), own.to_vec()])];
        Side { choices, tables }
    }

    /// The server's multiples; for the top bit besides what w is then, and takes off.
    fn server(&self, own: &[u64], top: &Bits) -> Side {
        let middle = 1u64 << (self.bits - 1);
        let moved: Vec<u64> = own.iter().map(|s| s.wrapping_sub(middle)).collect();
        let moved = Zeroizing::new(moved);
        let taken = |factor: u64, from: &[u64]| -> Vec<u64> {
            let pairs = own.iter().zip(from);
            pairs.map(|(s, w)| (factor * s).wrapping_sub(w.wrapping_mul(2))).collect()
        };
        let low = || Table::words(vec![vec![0; self.count], own.to_vec()]);
        let column = |first, second| Column { planes: Vec::new(), words: vec![first, second] };
        let zero = column(taken(0, &Zeroizing::new(kept(&moved, top))), top.to_words());
        let last = Table(vec![zero, column(taken(1, &moved), vec![1; self.count])]);
        let tables = (1..self.bits).map(|_| low()).chain([last]).collect();
        Side { choices: vec![vec![top.clone()]], tables }
    }
}

/// Extends and squares every value.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Squares,
    x: &Share,
    ots: Correlations,
) -> Result<[Share; 2]> {
    x.check(plan.count, plan.bits, "square")?;
    let role = channel.role();
    let top = Zeroizing::new(Bits::of_words(x.words(), plan.bits - 1));
    let side = match role {
        Role::Client => plan.client(x.words(), &top),
        Role::Server => plan.server(x.words(), &top),
    };
    let switched = mux::run(channel, &plan.switch(), Role::Client, side, ots)?;
    let (down, up) = match role {
        Role::Client => (&switched.received, &switched.sent),
        Role::Server => (&switched.sent, &switched.received),
    };
    let mut squares: Vec<u64> = x.words().iter().map(|x| x.wrapping_mul(*x)).collect();
    let mut wide = x.words().to_vec();
    let mut add = |words: Option<&Vec<u64>>, shift: u32| {
        let pairs = squares.iter_mut().zip(words.into_iter().flatten());
        pairs.for_each(|(sum, word)| *sum = sum.wrapping_add(word << shift));
    };
    for (column, shift) in down.iter().zip(1..) {
        add(column.words.first(), shift);
    }
    let back = up.first().and_then(Column::first_word);
    let negated = Zeroizing::new(
        back.into_iter().flatten().map(|word| word.wrapping_neg()).collect::<Vec<u64>>(),
    );
    add(Some(&negated), plan.bits + 1);
    let wraps = down.last().and_then(|column| column.words.get(1));
    for (word, wrap) in wide.iter_mut().zip(wraps.into_iter().flatten()) {
        *word = word.wrapping_sub(wrap << plan.bits);
    }
    Ok([Share::new(wide, plan.wide), Share::new(squares, plan.out_bits)])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::shares_of;
    use ring::Random;
    use ring::word::{mask, signed};

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(83);
        for (bits, wide, out_bits) in [(1, 2, 3), (2, 9, 4), (4, 5, 6), (5, 20, 12), (6, 63, 63)] {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let fits = |sum: u64| signed(sum, bits) >= 0;
            let (x, y): (Vec<_>, Vec<_>) = pairs.filter(|(x, y)| fits(x + y)).unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let plan = Squares::new(client.len(), bits, wide, out_bits).unwrap();
            let price = (plan.demand(), plan.cost());
            let [c, s] =
                shares_of(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let ([wide, squares], [other, others]) = (c, s);
            for (at, x) in Share::reconstruct(&client, &server).into_iter().enumerate() {
                let sum = |a: &Share, b: &Share| {
                    a.words()[at].wrapping_add(b.words()[at]) & mask(a.bits())
                };
                assert_eq!(sum(&wide, &other), x as u64 & mask(plan.wide), "{bits} {x}");
                assert_eq!(sum(&squares, &others), (x * x) as u64 & mask(out_bits), "{bits} {x}");
            }
        }
    }

    #[test]
    fn other_widths_are_refused() {
        for (bits, wide, out_bits) in [(0, 5, 9), (8, 8, 12), (8, 9, 9), (8, 64, 20), (8, 9, 64)] {
            assert!(Squares::new(1, bits, wide, out_bits).is_err());
        }
    }
}
