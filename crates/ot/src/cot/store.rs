//! A queue of secrets: what is taken out is wiped behind.

use std::ops::Deref;

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

    /// The list to append to, after [`Store::make_room`].
    pub(crate) fn items(&mut self) -> &mut Vec<T> {
        &mut self.items
    }

    /// Appends `count` default items, for which there is room, and returns them.
    pub(crate) fn grow(&mut self, count: usize) -> &mut [T] {
        let before = self.items.len();
        self.items.resize(before + count, T::default());
        &mut self.items[before..]
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

    /// Makes room for `count` more, so that appending them never grows the list (a
    /// growing vector leaves copies behind). Memory is reused when it suffices.
    pub(crate) fn make_room(&mut self, count: usize) {
        let needed = self.len() + count;
        if self.items.capacity() < needed {
            let mut items = Vec::with_capacity(needed);
            items.extend_from_slice(self);
            self.items = Zeroizing::new(items);
        } else {
            self.items.drain(..self.taken);
        }
        self.taken = 0;
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
        Self { items: Zeroizing::new(items), taken: 0 }
    }
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
        store.make_room(3);
        let capacity = store.items.capacity();
        store.items().extend([5, 6, 7]);
        assert_eq!(&*store, &[4, 5, 6, 7]);
        assert_eq!(store.items.capacity(), capacity);
        assert_eq!(&*store.take(100), &[4, 5, 6, 7]);
        assert!(store.is_empty());
    }
}
