//! The base OTs that sessions left for those after them, of clients who may come back.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use runtime::Kept;

use crate::fleet::talk::short;
use crate::lock::locked;

/// Sessions for which base OTs are kept, of all clients and of each.
const MOST: usize = 2048;
const MOST_EACH: usize = 256;
/// How long they are kept.
const FRESH: Duration = Duration::from_secs(3600);
/// Bytes that they take at most.
pub(crate) const BYTES: u64 = (MOST * Kept::BYTES) as u64;

/// Base OTs by their names. Only the client with whom they were made gets them, and once.
pub(crate) struct KeptKeys<T = Kept>(Mutex<HashMap<[u8; 32], Entry<T>>>);

struct Entry<T> {
    client: String,
    kept: T,
    since: Instant,
}

impl<T> Default for KeptKeys<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl KeptKeys {
    /// Keeps what was made with `client`.
    pub(crate) fn keep(&self, client: &str, kept: Kept) {
        self.put(client, kept.name(), kept);
    }
}

impl<T> KeptKeys<T> {
    /// Short hashes of the names of all that are kept.
    pub(crate) fn names(&self) -> Vec<String> {
        locked(&self.0).keys().map(short).collect()
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        locked(&self.0).len()
    }

    /// Takes what was made with `client` under this name, if it is still there.
    pub(crate) fn take(&self, client: &str, name: &[u8; 32]) -> Option<T> {
        let mut all = locked(&self.0);
        all.retain(|_, entry| entry.since.elapsed() < FRESH);
        all.get(name).filter(|entry| entry.client == client)?;
        all.remove(name).map(|entry| entry.kept)
    }

    /// Keeps what was made with `client` under a name. When there is too much, the oldest of this
    /// client goes, or of all.
    fn put(&self, client: &str, name: [u8; 32], kept: T) {
        let mut all = locked(&self.0);
        all.retain(|_, entry| entry.since.elapsed() < FRESH);
        let own = all.values().filter(|entry| entry.client == client).count();
        if own >= MOST_EACH || all.len() >= MOST {
            let in_the_way = |entry: &Entry<T>| own < MOST_EACH || entry.client == client;
            let old = all.iter().filter(|(_, entry)| in_the_way(entry));
            let oldest = old.min_by_key(|(_, entry)| entry.since).map(|(name, _)| *name);
            oldest.and_then(|name| all.remove(&name));
        }
        let entry = Entry { client: client.into(), kept, since: Instant::now() };
        all.insert(name, entry);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn name(number: usize) -> [u8; 32] {
        let mut name = [0; 32];
        name[..8].copy_from_slice(&number.to_le_bytes());
        name
    }

    #[test]
    fn each_is_given_once_and_to_its_client_alone() {
        let keys = KeptKeys::default();
        keys.put("a", name(1), 7);
        assert_eq!(keys.take("b", &name(1)), None);
        assert_eq!(keys.take("a", &name(1)), Some(7));
        assert_eq!(keys.take("a", &name(1)), None);
        keys.put("a", name(1), 7);
        let before = Instant::now().checked_sub(FRESH).unwrap();
        locked(&keys.0).get_mut(&name(1)).unwrap().since = before;
        assert_eq!(keys.take("a", &name(1)), None, "too old");
        assert!(locked(&keys.0).is_empty());
    }

    #[test]
    fn nobody_keeps_more_than_a_share_and_the_oldest_go_first() {
        let keys = KeptKeys::default();
        for number in 0..=MOST_EACH {
            keys.put("a", name(number), ());
        }
        assert_eq!(locked(&keys.0).len(), MOST_EACH);
        assert!(keys.take("a", &name(0)).is_none());
        for number in MOST_EACH + 1..MOST + 2 * MOST_EACH {
            keys.put(&format!("client {}", number % 100), name(number), ());
        }
        assert_eq!(locked(&keys.0).len(), MOST);
        assert!(keys.take("a", &name(1)).is_none());
    }
}
