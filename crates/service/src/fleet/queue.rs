//! Clients that wait at the door until a server has room.
//!
//! Clients take turns, as they do at a server: whoever has fewer before it in the queue comes first,
//! and among those the one that has waited longest. When the queue is full, a client of whom few wait
//! displaces the latest of the client of whom most do.

use std::collections::{BTreeMap, HashMap};

use crate::fleet::choice::Wanted;

/// One who waits.
struct Waiting {
    number: u64,
    client: String,
    wanted: Wanted,
}

/// All who wait.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    next: u64,
}

impl Queue {
    /// A place in a queue of at most so many; `None` where there is none for this client.
    pub(crate) fn enter(&mut self, client: &str, wanted: Wanted, most: usize) -> Option<u64> {
        if self.waiting.len() >= most && !self.displace(client) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.waiting.push(Waiting { number, client: client.into(), wanted });
        Some(number)
    }

    /// Makes room for a client of whom fewer wait than of another.
    fn displace(&mut self, client: &str) -> bool {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for one in &self.waiting {
            *counts.entry(&one.client).or_default() += 1;
        }
        let own = counts.get(client).copied().unwrap_or(0);
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((most, _)) = most.filter(|(_, count)| own + 1 < *count) else { return false };
        let latest = self.waiting.iter().rposition(|one| one.client == most);
        latest.map(|latest| self.waiting.remove(latest)).is_some()
    }

    pub(crate) fn leave(&mut self, number: u64) {
        self.waiting.retain(|one| one.number != number);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many wait for each of `models` by name; who names none wants the only one.
    pub(crate) fn by_model(&self, models: &[String]) -> BTreeMap<String, usize> {
        let count = |name: &String| {
            let hash = runtime::model_name(name);
            let wants = |one: &&Waiting| {
                one.wanted.model == hash || (one.wanted.model == [0; 32] && models.len() == 1)
            };
            (name.clone(), self.waiting.iter().filter(wants).count())
        };
        models.iter().map(count).collect()
    }

    /// Those who wait in the order of their turns: number and wish.
    pub(crate) fn order(&self) -> Vec<(u64, &Wanted)> {
        let mut ahead: HashMap<&str, usize> = HashMap::new();
        let mut keys = Vec::with_capacity(self.waiting.len());
        for one in &self.waiting {
            let ahead = ahead.entry(&one.client).or_default();
            keys.push((*ahead, one.number, &one.wanted));
            *ahead += 1;
        }
        keys.sort_by_key(|(ahead, number, _)| (*ahead, *number));
        keys.into_iter().map(|(_, number, wanted)| (number, wanted)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted { model: [0; 32], reveal: None, kept: None, browser: false }
    }

    #[test]
    fn those_who_wait_are_counted_by_model() {
        let mut queue = Queue::default();
        let of = |name: &str| Wanted { model: runtime::model_name(name), ..wanted() };
        for wish in [of("digits"), of("digits"), of("letters"), of("others"), wanted()] {
            queue.enter("a", wish, 9).unwrap();
        }
        let both = queue.by_model(&["digits".into(), "letters".into()]);
        assert_eq!(
            both.into_iter().collect::<Vec<_>>(),
            [("digits".into(), 2), ("letters".into(), 1)]
        );
        let only = queue.by_model(&["digits".into()]);
        assert_eq!(only.get("digits"), Some(&3), "whoever names no model wants the only one");
    }

    fn numbers(queue: &Queue) -> Vec<u64> {
        queue.order().into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn clients_take_turns_and_nobody_fills_the_queue_for_others() {
        let mut queue = Queue::default();
        let of_a: Vec<u64> = (0..3).map(|_| queue.enter("a", wanted(), 4).unwrap()).collect();
        let of_b = queue.enter("b", wanted(), 4).unwrap();
        assert_eq!(numbers(&queue), [of_a[0], of_b, of_a[1], of_a[2]]);
        assert_eq!(queue.enter("a", wanted(), 4), None, "full, and of its own making");
        let of_c = queue.enter("c", wanted(), 4).unwrap();
        assert_eq!(numbers(&queue), [of_a[0], of_b, of_c, of_a[1]], "the latest of a had to go");
        queue.leave(of_a[0]);
        assert_eq!(numbers(&queue), [of_a[1], of_b, of_c]);
        assert_eq!(queue.len(), 3);
    }
}
