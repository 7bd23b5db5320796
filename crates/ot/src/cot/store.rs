//! A queue of secrets of which parts are taken without a copy.

use std::ops::{Deref, Range};
use std::sync::Arc;

use ring::Wiped;

/// Less than one part in so many of the memory is taken as a copy, so that a few items do not keep all others.
const FEW: usize = 8;

/// Items not taken yet, in order. Dereferences to them.
///
/// What is taken stays where it is. The memory is wiped when the last of its items is dropped.
pub(crate) struct Store<T: Copy + Default> {
    items: Arc<Wiped<T>>,
    range: Range<usize>,
}

impl<T: Copy + Default> Store<T> {
    pub(crate) fn new() -> Self {
        Self::from(Vec::new())
    }

    /// Removes the first `count` items, or all when there are fewer.
    pub(crate) fn take(&mut self, count: usize) -> Self {
        if count >= self.len() {
            return std::mem::replace(self, Self::new());
        }
        let taken = self.part(0..count);
        self.range.start += count;
        if count < self.items.len() / FEW {
            return taken.to_vec().into();
        }
        taken
    }

    /// Returns the items at `range` of those that are there. Whoever holds both uses each once.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let end = (self.range.start + range.end).min(self.range.end);
        let start = (self.range.start + range.start).min(end);
        Self { items: Arc::clone(&self.items), range: start..end }
    }
}

impl<T: Copy + Default> Deref for Store<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[self.range.clone()]
    }
}

impl<T: Copy + Default> From<Vec<T>> for Store<T> {
    fn from(items: Vec<T>) -> Self {
        Wiped::new(items).into()
    }
}

impl<T: Copy + Default> From<Wiped<T>> for Store<T> {
    fn from(items: Wiped<T>) -> Self {
        let range = 0..items.len();
        Self { items: Arc::new(items), range }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_in_order_without_a_copy() {
        let mut store = Store::from(vec![1u8, 2, 3, 4]);
        let place = store.as_ptr();
        let first = store.take(3);
        assert_eq!((&*first, first.as_ptr(), &*store), (&[1, 2, 3][..], place, &[4][..]));
        assert_eq!(&*first.part(1..3), &[2, 3]);
        assert!(first.part(3..5).is_empty());
        assert_eq!(&*store.take(100), &[4]);
        assert!(store.is_empty());
    }

    #[test]
    fn a_few_items_do_not_keep_all_others() {
        let mut store = Store::from((0..64u8).collect::<Vec<_>>());
        let few = store.take(7);
        assert_eq!((&*few, store[0]), (&[0, 1, 2, 3, 4, 5, 6][..], 7));
        assert_eq!(Arc::strong_count(&store.items), 1);
        let _many = store.take(8);
        assert_eq!(Arc::strong_count(&store.items), 2);
    }
}
