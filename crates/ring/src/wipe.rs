//! Secrets that are wiped as fast as memory is written.
//!
//! The vectors of [`zeroize`] are wiped with volatile writes, a word of an element and a byte of the room behind
//! the elements at a time. Here they are filled with zeros, which a compiler turns into the widest writes there are,
//! and a barrier tells it that the zeros are read.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop, optimization_barrier};

/// Overwrites `items` with zeros, or what is the default of `T`.
pub fn wipe<T: Copy + Default>(items: &mut [T]) {
    items.fill(T::default());
    optimization_barrier(items);
}

/// Overwrites all that `items` has room for, and leaves it empty.
pub fn wipe_all<T: Copy + Default>(items: &mut Vec<T>) {
    items.clear();
    let room = items.spare_capacity_mut();
    room.fill(MaybeUninit::new(T::default()));
    optimization_barrier(room);
}

/// A vector of secrets that is wiped when it is dropped, its room included. Prints only its length.
///
/// A vector that grows beyond its room leaves a copy behind, so that it is made with room for all that it will
/// hold.
pub struct Wiped<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Wiped<T> {
    /// Holds `items`.
    pub const fn new(items: Vec<T>) -> Self {
        Self(items)
    }
}

impl<T: Copy + Default> Deref for Wiped<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Copy + Default> Zeroize for Wiped<T> {
    fn zeroize(&mut self) {
        wipe_all(&mut self.0);
    }
}

impl<T: Copy + Default> Drop for Wiped<T> {
    fn drop(&mut self) {
        wipe_all(&mut self.0);
    }
}

impl<T: Copy + Default> ZeroizeOnDrop for Wiped<T> {}

impl<T: Copy + Default> fmt::Debug for Wiped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wiped(<{} items>)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wiped_items_are_zero_and_a_wiped_vector_keeps_its_room() {
        let mut items = [1u64, 2, 3, 4];
        wipe(&mut items[1..3]);
        assert_eq!(items, [1, 0, 0, 4]);
        let mut secrets: Wiped<u8> = Wiped::new(Vec::with_capacity(100));
        secrets.extend([7; 60]);
        secrets.truncate(10);
        assert_eq!(format!("{secrets:?}"), "Wiped(<10 items>)");
        secrets.zeroize();
        assert!(secrets.is_empty() && secrets.capacity() >= 100);
    }
}
