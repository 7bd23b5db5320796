//! Work that a party does while it waits for the other.

use std::collections::VecDeque;
use std::sync::Weak;

/// Work that a party can do while it waits for the other.
pub trait Meanwhile: Send + Sync {
    /// Does a part that takes about a millisecond; returns whether there was one.
    fn work(&self) -> bool;
}

/// All that can be done: the first first, what is in one by turns.
#[derive(Default)]
pub(crate) struct Works(VecDeque<VecDeque<Weak<dyn Meanwhile>>>);

impl Works {
    /// Adds what is done after all that is there.
    pub(crate) fn add(&mut self, works: VecDeque<Weak<dyn Meanwhile>>) {
        self.0.push_back(works);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does a part; returns whether there was anything.
    pub(crate) fn work(&mut self) -> bool {
        while let Some(works) = self.0.front_mut() {
            while let Some(work) = works.pop_front() {
                if work.upgrade().is_some_and(|work| work.work()) {
                    works.push_back(work);
                    return true;
                }
            }
            self.0.pop_front();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    /// Names itself as often as it has parts.
    struct Named<'a>(&'a Mutex<String>, char, Mutex<usize>);

    impl Meanwhile for Named<'static> {
        fn work(&self) -> bool {
            let mut left = self.2.lock().unwrap_or_else(PoisonError::into_inner);
            if *left == 0 {
                return false;
            }
            *left -= 1;
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.1);
            true
        }
    }

    #[test]
    fn what_began_first_is_done_first_and_what_began_together_by_turns() {
        static SAID: Mutex<String> = Mutex::new(String::new());
        let named =
            |name, parts| -> Arc<dyn Meanwhile> { Arc::new(Named(&SAID, name, Mutex::new(parts))) };
        let (a, b, c, d) = (named('a', 3), named('b', 1), named('c', 2), named('d', 9));
        let mut works = Works::default();
        assert!(!works.work());
        for some in [vec![&a, &b], vec![&c, &d]] {
            works.add(some.into_iter().map(Arc::downgrade).collect());
        }
        drop(d);
        while works.work() {}
        assert!(works.is_empty());
        let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*said, "abaacc", "what was dropped is not done");
    }
}
