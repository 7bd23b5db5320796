//! The position of the largest value.
//!
//! | | |
//! |---|---|
//! | In | shares of `classes` values mod 2^bits whose differences fit in bits; correlations |
//! | Out | shares of the first position of the maximum |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | classes - 1 comparisons in ceil(log2 classes) levels ([`Argmax::cost`]) |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), argmax |

use wire::{Channel, Cost, Result, Role};

use crate::compare::Radix;
use crate::maximum::{self, Maximum, Tournament};
use crate::pads::{Need, Pads};
use crate::share::Share;

/// Most values compared: the tournament is written out in full.
const MOST_CLASSES: usize = 1 << 20;

/// The public plan: a tournament with the index as payload.
#[derive(Clone, Debug)]
pub struct Argmax {
    classes: usize,
    index_bits: u32,
    maximum: Maximum,
}

impl Argmax {
    /// Over 1 to 2^20 values of `bits`.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for a number of classes or widths out of range.
    pub fn new(classes: usize, bits: u32, radix: Radix) -> Result<Self> {
        if classes > MOST_CLASSES {
            return Err(wire::Error::misuse(format!("an argmax of {classes} values")));
        }
        let index_bits = classes.max(2).next_power_of_two().ilog2();
        let tournament = Tournament::new(classes, &[(0..classes).collect()])?;
        let maximum = Maximum::new(tournament, bits, Some(index_bits), radix)?;
        Ok(Self { classes, index_bits, maximum })
    }

    /// Width of the resulting share.
    pub fn index_bits(&self) -> u32 {
        self.index_bits
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        self.maximum.need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        self.maximum.cost()
    }
}

/// Shares of the index, unsigned mod 2^index_bits.
///
/// # Errors
/// [`wire::Error::Misuse`] when shares or correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Argmax, values: &Share, pads: Pads) -> Result<Share> {
    let indices: Vec<i64> = (0..plan.classes).map(|i| i as i64).collect();
    let known = (channel.role() == Role::Server).then_some(indices.as_slice());
    let indices = Share::known(known, plan.classes, plan.index_bits);
    let mut found = maximum::run(channel, &plan.maximum, values, Some(&indices), pads)?;
    found.pop().ok_or_else(|| wire::Error::misuse("an argmax of nothing"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
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
            let plan = Argmax::new(values.len(), 8, Radix::Four).unwrap();
            let (c, s) = both(
                &mut rng,
                &plan.need(),
                |ch, pads| run(ch, &plan, &client, pads),
                |ch, pads| run(ch, &plan, &server, pads),
            );
            assert_eq!(c.cost, plan.cost());
            let sum = c.value.unwrap().words()[0] + s.value.unwrap().words()[0];
            let largest = values.iter().max().unwrap();
            let want = values.iter().position(|v| v == largest).unwrap();
            assert_eq!(sum & mask(plan.index_bits()), want as u64);
        }
    }
}
