//! Tables whose entries lie where a share says.

use ot::{Column, Table};
use ring::Bits;
use zeroize::Zeroizing;

/// Moves entry `j xor s` of every element to place j, by conditional swaps of whole columns:
/// `shares` are planes of the bits of s, lowest first, so that no address depends on a share.
pub(super) fn turned(mut columns: Vec<Column>, shares: &[Bits]) -> Table {
    for (level, share) in shares.iter().enumerate() {
        let masks = Zeroizing::new(share.masks().collect::<Vec<u64>>());
        let step = 1usize << level;
        for pair in columns.chunks_mut(2 * step) {
            let (low, high) = pair.split_at_mut(step.min(pair.len()));
            for (low, high) in low.iter_mut().zip(high) {
                for (low, high) in low.words.iter_mut().zip(&mut high.words) {
                    for ((low, high), mask) in low.iter_mut().zip(high).zip(masks.iter()) {
                        let change = (*low ^ *high) & mask;
                        *low ^= change;
                        *high ^= change;
                    }
                }
            }
        }
    }
    Table(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_where_shares_say() {
        let shares: Vec<u64> = (0..8).collect();
        let planes: Vec<Bits> = (0..3).map(|bit| Bits::of_words(&shares, bit)).collect();
        let lists = |entry: u64| vec![vec![entry; 8], vec![entry + 100; 8]];
        let column = |entry| Column { planes: Vec::new(), words: lists(entry) };
        let table = turned((0..8).map(column).collect(), &planes);
        for (place, column) in table.0.iter().enumerate() {
            for (share, (first, second)) in column.words[0].iter().zip(&column.words[1]).enumerate()
            {
                assert_eq!(
                    (*first, *second),
                    ((place ^ share) as u64, (place ^ share) as u64 + 100)
                );
            }
        }
    }
}
