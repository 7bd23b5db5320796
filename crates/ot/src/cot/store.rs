//! A queue of secrets: what is taken out is wiped behind.

use std::ops::{Deref, Range};

use ring::Wiped;
use ring::wipe::wipe;

/// Items not taken yet, in order. Dereferences to them.
pub(crate) struct Store<T: Copy + Default> {
    items: Wiped<T>,
    taken: usize,
}

impl<T: Copy + Default> Store<T> {
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
        wipe(source);
        self.taken = end;
        Self::from(items)
    }
}

impl<T: Copy + Default> Deref for Store<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[self.taken..]
    }
}

impl<T: Copy + Default> From<Vec<T>> for Store<T> {
    fn from(items: Vec<T>) -> Self {
        Wiped::new(items).into()
    }
}

impl<T: Copy + Default> From<Wiped<T>> for Store<T> {
    fn from(items: Wiped<T>) -> Self {
        Self { items, taken: 0 }
    }
}

/// Moves the items at `range` to the end of `into`, which is empty or has room for them (a growing vector leaves
/// copies behind), and leaves zeros.
pub(crate) fn move_to<T: Copy + Default>(
    items: &mut Wiped<T>,
    range: Range<usize>,
    into: &mut Wiped<T>,
) {
    if into.capacity() <= range.len() && into.is_empty() && range.len() == items.len() {
        std::mem::swap(items, into);
        return;
    }
    into.extend_from_slice(&items[range.clone()]);
    wipe(&mut items[range]);
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
        let mut items = Wiped::new(vec![1u8, 2, 3, 4]);
        let mut into = Wiped::new(Vec::with_capacity(4));
        move_to(&mut items, 1..3, &mut into);
        assert_eq!((&**into, &**items), (&[2, 3][..], &[1, 0, 0, 4][..]));
        move_to(&mut items, 3..4, &mut into);
        assert_eq!((&**into, &**items), (&[2, 3, 4][..], &[1, 0, 0, 0][..]));
        let mut all = Wiped::new(Vec::new());
        move_to(&mut into, 0..3, &mut all);
        assert_eq!(&**all, &[2, 3, 4]);
        assert!(into.is_empty());
    }
}
