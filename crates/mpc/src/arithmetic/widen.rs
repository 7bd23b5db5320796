//! Extension of several numbers at once that are known not to be negative.
//!
//! | | |
//! |---|---|
//! | In | for each number shares of `0 <= x < 2^(bits-1)` mod 2^bits; correlations |
//! | Out | shares of the same numbers, each mod a larger 2^out_bits of its own |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | for each number 1 bit up and out_bits - bits bits down; 2 rounds, whoever begins |
//! | Paper | as [`crate::arithmetic::extend`] where signs are known |
//!
//! With both summands read as unsigned `x = c + s - 2^bits*w`, where the top bits m tell that
//! `w = m_c OR m_s`: the client chooses w by its own.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::mux::{self, Side, Switch};
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// The public plan for elements that have all of some numbers each.
#[derive(Clone, Debug)]
pub(crate) struct Widen {
    count: usize,
    /// The width of each number, and the wider one that it gets.
    widths: Vec<[u32; 2]>,
    first: Role,
}

impl Widen {
    /// Plans `count` elements with a number for each pair of widths, from 1 to 62 and from that
    /// and more to 63.
    pub(crate) fn new(count: usize, widths: Vec<[u32; 2]>) -> Self {
        Self { count, widths, first: Role::Client }
    }

    /// Lets `first` begin; the client does by default.
    pub(crate) fn begun_by(self, first: Role) -> Self {
        Self { first, ..self }
    }

    fn switch(&self) -> Switch {
        let job = |[from, to]: &[u32; 2]| Job {
            count: self.count,
            choice_bits: 1,
            entry: Entry::Word(to.saturating_sub(*from)),
        };
        Switch::to(Role::Client, self.widths.iter().map(job).collect())
    }

    /// Returns the OTs that a run consumes.
    pub(crate) fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// Returns what [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        self.switch().cost(self.first)
    }

    /// The client chooses by its top bits whether numbers wrap for certain or where the server's
    /// top bit is set.
    fn side(&self, role: Role, numbers: &[Share]) -> Side {
        let tops = numbers.iter().map(|x| Bits::of_words(x.words(), x.bits().saturating_sub(1)));
        match role {
            Role::Client => {
                Side { choices: tops.map(|top| vec![top]).collect(), tables: Vec::new() }
            }
            Role::Server => {
                let table = |top: Bits| Table::words(vec![top.to_words(), vec![1; self.count]]);
                Side { choices: Vec::new(), tables: tops.map(table).collect() }
            }
        }
    }
}

/// Extends the numbers, which are in the order of their widths.
///
/// # Errors
/// [`wire::Error::Misuse`] when the shares or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Widen,
    numbers: &[Share],
    ots: Correlations,
) -> Result<Vec<Share>> {
    for (x, [bits, _]) in numbers.iter().zip(&plan.widths) {
        x.check(plan.count, *bits, "extension")?;
    }
    let side = plan.side(channel.role(), numbers);
    let switched = mux::run(channel, &plan.switch(), plan.first, side, ots)?;
    let columns = switched.received.iter().chain(&switched.sent);
    let mut wide = Vec::with_capacity(numbers.len());
    for ((x, [bits, out_bits]), column) in numbers.iter().zip(&plan.widths).zip(columns) {
        let wraps = column.first_word().into_iter().flatten();
        let words = x.words().iter().zip(wraps).map(|(x, wrap)| x.wrapping_sub(wrap << bits));
        wide.push(Share::new(words.collect(), *out_bits));
    }
    Ok(wide)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{shares_of, split};
    use ring::Random;

    #[test]
    fn numbers_stay_what_they_are() {
        let mut rng = Random::seeded(94);
        for widths in [vec![[2, 3]], vec![[9, 17], [2, 63]], vec![[5, 6], [7, 30], [62, 63]]] {
            let random = |[bits, _]: &[u32; 2], rng: &mut Random| -> Vec<i64> {
                rng.uniform(200, bits - 1).iter().map(|x| *x as i64).collect()
            };
            let values: Vec<_> = widths.iter().map(|width| random(width, &mut rng)).collect();
            let plan = Widen::new(200, widths.clone());
            let shares = widths.iter().zip(&values).map(|([bits, _], x)| split(&mut rng, x, *bits));
            let (client, server): (Vec<Share>, Vec<Share>) = shares.unzip();
            let price = (plan.demand(), plan.cost());
            let [c, s] =
                shares_of(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            for (at, [_, out_bits]) in widths.iter().enumerate() {
                assert_eq!(Share::reconstruct(&c[at], &s[at]), values[at]);
                assert_eq!(c[at].bits(), *out_bits);
            }
        }
    }
}
