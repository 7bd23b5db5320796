//! Residues that are erased, in memory that is used again.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use zeroize::optimization_barrier;

/// Residues that may tell a party's secrets. Erased on drop, all at once: one volatile
/// write after another would take as long as some operations on ciphertexts.
pub(crate) struct Values(Vec<f64>);

/// Most numbers that a thread keeps for later.
const KEPT: usize = 1 << 21;

thread_local! {
    /// Lists of zeros. Memory from the system for every operation would take longer than
    /// the operation.
    static FREE: RefCell<Free> = const { RefCell::new(Free { lists: Vec::new(), numbers: 0 }) };
}

struct Free {
    lists: Vec<Vec<f64>>,
    numbers: usize,
}

impl Free {
    /// A list of so many zeros.
    fn take(&mut self, count: usize) -> Option<Vec<f64>> {
        let place = self.lists.iter().rposition(|list| list.len() == count)?;
        self.numbers -= count;
        Some(self.lists.swap_remove(place))
    }

    fn give(&mut self, zeros: Vec<f64>) {
        if self.numbers + zeros.len() <= KEPT && !zeros.is_empty() {
            self.numbers += zeros.len();
            self.lists.push(zeros);
        }
    }
}

impl Values {
    pub(crate) fn zero(count: usize) -> Self {
        let kept = FREE.try_with(|free| free.borrow_mut().take(count)).ok().flatten();
        Self(kept.unwrap_or_else(|| vec![0.0; count]))
    }

    /// A copy.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut copy = Self::zero(values.len());
        copy.copy_from_slice(values);
        copy
    }
}

impl Clone for Values {
    fn clone(&self) -> Self {
        Self::of(self)
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        self.0.fill(0.0);
        optimization_barrier(self.0.as_slice());
        let zeros = std::mem::take(&mut self.0);
        // At the end of a thread there is nothing to keep.
        let _ = FREE.try_with(|free| free.borrow_mut().give(zeros));
    }
}

impl Deref for Values {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_zero_whatever_they_held() {
        for count in [64, 64, 128, 64] {
            let mut values = Values::zero(count);
            assert!(values.len() == count && values.iter().all(|x| *x == 0.0));
            values.fill(3.0);
            let copy = values.clone();
            drop(values);
            assert!(copy.iter().all(|x| *x == 3.0));
        }
        let kept = FREE.with(|free| free.borrow().numbers);
        assert_eq!(kept, FREE.with(|free| free.borrow().lists.iter().map(Vec::len).sum()));
    }

    #[test]
    fn no_more_is_kept_than_stated() {
        let all: Vec<Values> = (0..5).map(|_| Values::zero(KEPT / 4)).collect();
        drop(all);
        assert!(FREE.with(|free| free.borrow().numbers) <= KEPT);
    }
}
