//! A queue of secrets: what is taken out is wiped behind.

use std::ops::{Deref, Range};

use zeroize::{DefaultIsZeroes, Zeroize, Zeroizing};

/// Items not taken yet, in order. Dereferences to them.
pub(crate) struct Store<T: DefaultIsZeroes> {
    items: Zeroizing<Vec<T>>,
    taken: usize,
}

impl<T: DefaultIsZeroes> Store<T> {
    pub(crate) fn new() -> Self {
        Self::from(Vec::new())
    }

    /// Removes the first `count` items, or all (without a copy) when there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Self {
        if count >= self.len() {
            return std::mem::replace(self, Self::new());
        }
        let end = self.taken + count;
        let source = &mut self.items[self.taken..end];
        let items = source.to_vec();
        source.zeroize();
        self.taken = end;
        Self::from(items)
    }
}

impl<T: DefaultIsZeroes> Deref for Store<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[self.taken..]
    }
}

impl<T: DefaultIsZeroes> From<Vec<T>> for Store<T> {
    fn from(items: Vec<T>) -> Self {
        Zeroizing::new(items).into()
    }
}

impl<T: DefaultIsZeroes> From<Zeroizing<Vec<T>>> for Store<T> {
    fn from(items: Zeroizing<Vec<T>>) -> Self {
        Self { items, taken: 0 }
    }
}

/// Moves the items at `range` to the end of `into`, which is empty or has room for them (a growing vector leaves
/// copies behind), and leaves zeros.
pub(crate) fn move_to<T: DefaultIsZeroes>(
    items: &mut Zeroizing<Vec<T>>,
    range: Range<usize>,
    into: &mut Zeroizing<Vec<T>>,
) {
    if into.capacity() <= range.len() && into.is_empty() && range.len() == items.len() {
        std::mem::swap(items, into);
        return;
    }
    into.extend_from_slice(&items[range.clone()]);
    items[range].zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_what_was_taken_is_wiped() {
        let mut store = Store::from(vec![1u8, 2, 3, 4]);
        let first = store.take(3);
        assert_eq!((&*first, &*store), (&[1, 2, 3][..], &[4][..]));
        assert_eq!(store.items[..3], [0; 3]);
        assert_eq!(&*store.take(100), &[4]);
        assert!(store.is_empty());
    }

    #[test]
    fn what_is_moved_leaves_zeros() {
        let mut items = Zeroizing::new(vec![1u8, 2, 3, 4]);
        let mut into = Zeroizing::new(Vec::with_capacity(4));
        move_to(&mut items, 1..3, &mut into);
        assert_eq!((&**into, &**items), (&[2, 3][..], &[1, 0, 0, 4][..]));
        move_to(&mut items, 3..4, &mut into);
        assert_eq!((&**into, &**items), (&[2, 3, 4][..], &[1, 0, 0, 0][..]));
        let mut all = Zeroizing::new(Vec::new());
        move_to(&mut into, 0..3, &mut all);
        assert_eq!(&**all, &[2, 3, 4]);
        assert!(into.is_empty());
    }
}
