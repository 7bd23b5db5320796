//! Weights in the fewest bytes that hold them.

use std::ops::Range;

use zeroize::Zeroizing;

/// Integers of one width: 1, 2 or 4 bytes each.
pub(super) enum Narrow {
    Bytes(Zeroizing<Vec<i8>>),
    Words(Zeroizing<Vec<i16>>),
    Whole(Zeroizing<Vec<i32>>),
}

impl Narrow {
    /// Returns `count` zeros that may be replaced by integers of magnitude at most `largest`,
    /// which is public: the width must tell nothing of the integers.
    pub(super) fn zeros(count: usize, largest: u64) -> Self {
        match largest {
            0..=0x7f => Self::Bytes(Zeroizing::new(vec![0; count])),
            0x80..=0x7fff => Self::Words(Zeroizing::new(vec![0; count])),
            _ => Self::Whole(Zeroizing::new(vec![0; count])),
        }
    }

    /// Returns how many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(all) => all.len(),
            Self::Words(all) => all.len(),
            Self::Whole(all) => all.len(),
        }
    }

    /// Replaces the integer at `place`, if there is one, by one of the values that the width was
    /// chosen for.
    pub(super) fn set(&mut self, place: usize, value: i32) {
        match self {
            Self::Bytes(all) => all.get_mut(place).map(|to| *to = value as i8),
            Self::Words(all) => all.get_mut(place).map(|to| *to = value as i16),
            Self::Whole(all) => all.get_mut(place).map(|to| *to = value),
        };
    }

    /// Returns the integers in `range`; `None` where there are not so many.
    pub(super) fn get(&self, range: Range<usize>) -> Option<Zeroizing<Vec<i32>>> {
        let wide = match self {
            Self::Bytes(all) => all.get(range)?.iter().copied().map(i32::from).collect(),
            Self::Words(all) => all.get(range)?.iter().copied().map(i32::from).collect(),
            Self::Whole(all) => all.get(range)?.to_vec(),
        };
        Some(Zeroizing::new(wide))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_gives_back_what_was_put_in() {
        for most in [0x7f, 0x80, 0x7fff, 0x8000, i32::MAX] {
            let values = [0, 1, -1, most, -most];
            let mut all = Narrow::zeros(values.len(), most as u64);
            values.iter().enumerate().for_each(|(place, value)| all.set(place, *value));
            assert_eq!(all.get(0..values.len()).map(|got| got.to_vec()), Some(values.to_vec()));
            assert!(all.get(1..values.len() + 1).is_none());
        }
    }

    #[test]
    fn the_width_is_the_least_that_holds_the_largest() {
        let bytes = |largest| match Narrow::zeros(1, largest) {
            Narrow::Bytes(_) => 1,
            Narrow::Words(_) => 2,
            Narrow::Whole(_) => 4,
        };
        assert_eq!([0, 127, 128, 32767, 32768].map(bytes), [1, 1, 2, 2, 4]);
    }
}
