//! The position of the largest value of each row.
//!
//! | | |
//! |---|---|
//! | In | shares of rows of `classes` values mod 2^bits whose differences fit in bits; correlations |
//! | Out | shares of the first position of each row's maximum |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | per row classes - 1 comparisons, in ceil(log2 classes) levels that all rows share ([`Argmax::cost`]) |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), argmax |

use wire::{Channel, Cost, Result, Role};

use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::nonlinear::maximum::{self, Maximum, Tournament};
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// Most values compared, of all rows: the tournament is written out in full.
const MOST_VALUES: usize = 1 << 20;

/// The public plan: a tournament with the index as payload.
#[derive(Clone, Debug)]
pub struct Argmax {
    rows: usize,
    classes: usize,
    index_bits: u32,
    maximum: Maximum,
}

impl Argmax {
    /// Plans the argmax of each of `rows` rows of `classes` values of `bits`; there are 1 to 2^20
    /// values together.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for a number of rows or classes or widths out of range.
    pub fn new(rows: usize, classes: usize, bits: u32, radix: Radix) -> Result<Self> {
        let values = rows.saturating_mul(classes);
        if values > MOST_VALUES || rows == 0 {
            return Err(wire::Error::misuse(format!("an argmax of {rows} x {classes} values")));
        }
        let index_bits = classes.max(2).next_power_of_two().ilog2();
        let tournament = Tournament::of_row(classes)?.copies(rows);
        let maximum = Maximum::new(tournament, bits, Some(index_bits), radix)?;
        Ok(Self { rows, classes, index_bits, maximum })
    }

    /// Returns the width of the resulting shares.
    pub fn index_bits(&self) -> u32 {
        self.index_bits
    }
}

/// Shares of the index of each row of `values`, row after row, unsigned mod 2^index_bits.
///
/// # Errors
/// [`wire::Error::Misuse`] when shares or correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Argmax,
    values: &Share,
    ots: Correlations,
) -> Result<Share> {
    let rows = (0..plan.rows).flat_map(|_| 0..plan.classes);
    let indices: Vec<i64> = rows.map(|i| i as i64).collect();
    let known = (channel.role() == Role::Server).then_some(indices.as_slice());
    let indices = Share::known(known, indices.len(), plan.index_bits);
    let mut found = maximum::run(channel, &plan.maximum, values, Some(&indices), ots)?;
    found.pop().ok_or_else(|| defect("an argmax has no output"))
}

impl Protocol for Argmax {
    fn operator(&self) -> &'static str {
        "argmax"
    }

    fn describe(&self) -> String {
        "comparison by OT".into()
    }

    fn demand(&self) -> Demand {
        self.maximum.demand()
    }

    fn cost(&self) -> Cost {
        self.maximum.cost()
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{shares_of, split};
    use ring::Random;
    use ring::word::mask;

    #[test]
    fn the_first_of_equal_maxima_wins() {
        let mut rng = Random::seeded(8);
        for values in [
            vec![3, 9, -4, 9, 0],
            vec![0; 10],
            vec![-5],
            vec![1, 2],
            (-50..50).collect(),
            vec![-1, -1],
        ] {
            let (client, server) = split(&mut rng, &values, 8);
            let plan = Argmax::new(1, values.len(), 8, Radix::Four).unwrap();
            let price = (plan.demand(), plan.cost());
            let [c, s] =
                shares_of(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let sum = c.words()[0] + s.words()[0];
            let largest = values.iter().max().unwrap();
            let want = values.iter().position(|v| v == largest).unwrap();
            assert_eq!(sum & mask(plan.index_bits()), want as u64);
        }
    }

    #[test]
    fn rows_share_their_rounds() {
        let mut rng = Random::seeded(9);
        let rows: [[i64; 5]; 4] =
            [[1, 2, 3, 4, 5], [7, -7, 7, 0, 0], [-9, -8, -8, -9, -9], [0, 0, 0, 0, 1]];
        let (client, server) = split(&mut rng, rows.as_flattened(), 8);
        let plan = Argmax::new(4, 5, 8, Radix::Four).unwrap();
        let price = (plan.demand(), plan.cost());
        let [c, s] =
            shares_of(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
        assert_eq!(plan.cost().rounds, Argmax::new(1, 5, 8, Radix::Four).unwrap().cost().rounds);
        let pairs = c.words().iter().zip(s.words());
        let found: Vec<u64> = pairs.map(|(c, s)| (c + s) & mask(plan.index_bits())).collect();
        assert_eq!(found, [4, 0, 1, 4]);
        assert!(Argmax::new(0, 5, 8, Radix::Four).is_err());
        assert!(Argmax::new(1 << 18, 5, 8, Radix::Four).is_err());
    }
}
