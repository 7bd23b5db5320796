//! Randomness and threads of one party.

use std::collections::VecDeque;

use ring::Random;

use crate::parallel;

/// What a party works with.
pub struct Worker<'a> {
    /// The party's own randomness.
    pub rng: &'a mut Random,
    /// Threads for its own work; what it sends does not depend on them.
    pub threads: usize,
}

impl Worker<'_> {
    /// Maps items in their order, each with a generator of its own, a batch at a time on all
    /// threads: no more results are held than a batch.
    pub(super) fn map<'a, T: Send, U: Send + 'a>(
        &'a mut self,
        mut items: impl Iterator<Item = T> + 'a,
        make: impl Fn((T, Random)) -> U + Sync + 'a,
    ) -> impl Iterator<Item = U> + 'a {
        let threads = self.threads;
        let mut ready = VecDeque::new();
        std::iter::from_fn(move || {
            if ready.is_empty() {
                let some = items.by_ref().take(parallel::batch(threads));
                let some = some.map(|item| (item, self.rng.child())).collect();
                ready.extend(parallel::map(threads, some, &make));
            }
            ready.pop_front()
        })
    }
}
