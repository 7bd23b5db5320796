//! Random ternary combinations of many words at once.
//!
//! A coefficient is the difference of two public random bits: 0 with probability 1/2, 1 and -1 with
//! 1/4 each. With a word `r` that is not 0 mod 2^k a combination is 0 mod 2^k with probability 1/2 at
//! most, whatever the other words add: `0*r` differs from `r` and from `-r`, so that what the
//! combination needs is either the coefficient 0 or one of the others. Eight words share a
//! table of the sums of all their subsets, in which each combination looks two sums up (Arlazarov,
//! Dinic, Kronrod, Faradzev, 1970); positions are public.

use ring::{Prg, Seed};
use zeroize::Zeroizing;

/// Combinations checked.
pub const COMBINATIONS: usize = 64;
/// Words that share a table.
const GROUP: usize = 8;
/// Domain of the coefficients of integers that are to be zero.
pub(super) const ZERO: u64 = u64::from_le_bytes(*b"auth chi");
/// Domain of the coefficients of integers that are to be small.
pub(super) const SMALL: u64 = u64::from_le_bytes(*b"auth eps");

/// The coefficients of one check, group after group.
pub(super) struct Coefficients(Prg);

/// The positions in a group's table of what is added and of what is taken off.
type Positions = [[u8; COMBINATIONS]; 2];

impl Coefficients {
    pub(super) fn new(seed: &Seed, domain: u64) -> Self {
        Self(Prg::new(seed, domain))
    }

    /// Adds the combinations of each of `lists`, which are equally long and have the same
    /// coefficients, to `sums`, mod 2^128.
    pub(super) fn add<const LISTS: usize>(
        &mut self,
        lists: [&[u128]; LISTS],
        sums: &mut [[u128; COMBINATIONS]; LISTS],
    ) {
        let groups = lists.first().map_or(0, |list| list.len().div_ceil(GROUP));
        let mut table = Zeroizing::new([0u128; 1 << GROUP]);
        for group in 0..groups {
            let mut positions: Positions = [[0; COMBINATIONS]; 2];
            self.0.fill(positions.as_flattened_mut());
            for (list, sums) in lists.iter().zip(sums.iter_mut()) {
                let end = (group * GROUP + GROUP).min(list.len());
                subsets(list.get(group * GROUP..end).unwrap_or_default(), &mut table);
                let [plus, minus] = &positions;
                for ((sum, plus), minus) in sums.iter_mut().zip(plus).zip(minus) {
                    let (plus, minus) = (table[usize::from(*plus)], table[usize::from(*minus)]);
                    *sum = sum.wrapping_add(plus).wrapping_sub(minus);
                }
            }
        }
    }
}

/// The sums of all subsets of up to eight words; missing ones are 0.
fn subsets(words: &[u128], table: &mut [u128; 1 << GROUP]) {
    table[0] = 0;
    for bit in 0..GROUP {
        let word = words.get(bit).copied().unwrap_or(0);
        let (done, next) = table.split_at_mut(1 << bit);
        next.iter_mut().zip(done).for_each(|(next, done)| *next = done.wrapping_add(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn sums_are_those_of_the_coefficients() {
        let mut rng = Random::seeded(5);
        let words: Vec<u128> = (0..21).map(|_| rng.block()).collect();
        let seed = rng.seed();
        let mut sums = [[0; COMBINATIONS]; 1];
        Coefficients::new(&seed, ZERO).add([&words], &mut sums);
        // The coefficient of one word is its combination where the others are 0.
        let mut wanted = [0u128; COMBINATIONS];
        let mut counts = [0; 3];
        for (at, word) in words.iter().enumerate() {
            let mut alone = vec![0; words.len()];
            alone[at] = 1;
            let mut coefficients = [[0; COMBINATIONS]; 1];
            Coefficients::new(&seed, ZERO).add([&alone], &mut coefficients);
            for (wanted, c) in wanted.iter_mut().zip(coefficients[0]) {
                counts[c.wrapping_add(1) as usize] += 1;
                *wanted = wanted.wrapping_add(word.wrapping_mul(c));
            }
        }
        assert_eq!(sums[0], wanted);
        // Quarters and half of 1344, with six deviations.
        assert!((241..431).contains(&counts[0]) && (241..431).contains(&counts[2]), "{counts:?}");
        assert!((562..782).contains(&counts[1]), "{counts:?}");
    }
}
