//! Squares of words and their products with public numbers.
//!
//! A product with a public number is a chain of sums and differences of shifted words. Of
//! all chains that take the number apart from its lowest bit on, or divide it by a power of
//! two plus or minus one, the shortest is taken (Bernstein, Multiplication by integer
//! constants, 1986): numbers like `2^35/384`, whose bits repeat, take few.

use std::collections::HashMap;

use crate::circuit::{Builder, Wire, Word};

/// The last step of a chain for an odd number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// The number is 1.
    Word,
    /// What this odd number gives, shifted, and the word added to it or taken off.
    Shifted { rest: u64, shift: u32, less: bool },
    /// What this odd number gives, shifted, and the same added to it or taken off.
    Factor { rest: u64, shift: u32, less: bool },
}

/// The shortest chains of all odd numbers met: how many sums, and the last.
#[derive(Default)]
struct Chains(HashMap<u64, (u32, Link)>);

impl Chains {
    /// Sums of the shortest chain for an odd number.
    fn length(&mut self, number: u64) -> u32 {
        if number <= 1 {
            return 0;
        }
        if let Some((length, _)) = self.0.get(&number) {
            return *length;
        }
        let mut best = (u32::MAX, Link::Word);
        for (near, less) in [(number - 1, false), (number.saturating_add(1), true)] {
            let shift = near.trailing_zeros();
            let rest = near >> shift;
            // 3 is 2 + 1, not 4 - 1: what is left must be smaller.
            if rest < number {
                best = self.shorter(best, rest, Link::Shifted { rest, shift, less });
            }
        }
        for shift in 2..u64::BITS - number.leading_zeros() {
            for (divisor, less) in [((1 << shift) + 1, false), ((1 << shift) - 1, true)] {
                let rest = number / divisor;
                if number.is_multiple_of(divisor) && rest > 1 {
                    best = self.shorter(best, rest, Link::Factor { rest, shift, less });
                }
            }
        }
        self.0.insert(number, best);
        best.0
    }

    fn shorter(&mut self, best: (u32, Link), rest: u64, link: Link) -> (u32, Link) {
        let length = self.length(rest) + 1;
        if length < best.0 { (length, link) } else { best }
    }

    fn last(&mut self, number: u64) -> Link {
        self.length(number);
        self.0.get(&number).map_or(Link::Word, |(_, link)| *link)
    }
}

impl Builder {
    /// Returns `a * a` mod 2^bits: about `n^2` AND gates for n bits, half of those of a product.
    pub fn square(&mut self, a: &[Wire], bits: usize) -> Word {
        let mut columns = vec![Word::new(); bits];
        for (i, low) in a.iter().enumerate() {
            if let Some(column) = columns.get_mut(2 * i) {
                column.push(*low);
            }
            // Twice each product of two different bits.
            for (j, high) in a.iter().enumerate().skip(i + 1) {
                if let Some(column) = columns.get_mut(i + j + 1) {
                    column.push(self.and(*low, *high));
                }
            }
        }
        self.compressed(columns)
    }

    /// Returns `a * number` mod 2^bits, `number` below 2^62: a sum for each link of its chain.
    pub fn times(&mut self, a: &[Wire], number: u64, bits: usize) -> Word {
        if number == 0 || a.is_empty() {
            return vec![Wire::ZERO; bits];
        }
        let shift = number.trailing_zeros();
        let mut chains = Chains::default();
        let product = self.chained(&mut chains, a, number >> shift, bits);
        shifted(&product, shift, bits)
    }

    /// `a * number` mod 2^bits by the chain of an odd number, as long as it needs to be.
    fn chained(&mut self, chains: &mut Chains, a: &[Wire], number: u64, bits: usize) -> Word {
        let (rest, shift, less, again) = match chains.last(number) {
            Link::Word => return shifted(a, 0, a.len().min(bits)),
            Link::Shifted { rest, shift, less } => (rest, shift, less, false),
            Link::Factor { rest, shift, less } => (rest, shift, less, true),
        };
        let part = self.chained(chains, a, rest, bits);
        let width = (a.len() + (u64::BITS - number.leading_zeros()) as usize).min(bits);
        let left = shifted(&part, shift, width);
        let right = shifted(if again { &part } else { a }, 0, width);
        if less { self.subtract(&left, &right) } else { self.add(&left, &right) }
    }
}

/// `word * 2^shift` in `bits` bits.
fn shifted(word: &[Wire], shift: u32, bits: usize) -> Word {
    let zeros = std::iter::repeat_n(Wire::ZERO, shift as usize);
    let rest = std::iter::repeat(Wire::ZERO);
    zeros.chain(word.iter().copied()).chain(rest).take(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_short() {
        let mut chains = Chains::default();
        let third = |bits: u32| (1u64 << bits) / 3;
        for (number, most) in
            [(1, 0), (3, 1), (255, 1), (45, 2), (third(28), 5), (third(27), 5), (0xdead_beef, 11)]
        {
            let odd = number >> number.trailing_zeros();
            assert!(chains.length(odd) <= most, "{number}: {}", chains.length(odd));
        }
    }
}
