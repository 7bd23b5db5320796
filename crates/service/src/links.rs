//! The links to clients as they were measured not long ago, for those who come back.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use wire::Link;

use crate::lock::locked;

/// Clients that are remembered.
const MOST: usize = 4096;
/// How long a measurement is believed.
const FRESH: Duration = Duration::from_secs(600);

/// What is known of the links to clients, by who they are and where they come from.
#[derive(Default)]
pub(crate) struct Links(Mutex<HashMap<String, (Link, Instant)>>);

impl Links {
    /// The link to a client that was here not long ago.
    pub(crate) fn get(&self, client: &str) -> Option<Link> {
        let known = locked(&self.0);
        known.get(client).filter(|(_, since)| since.elapsed() < FRESH).map(|(link, _)| *link)
    }

    /// Remembers a measurement; the oldest gives way when there are too many.
    pub(crate) fn put(&self, client: String, link: Link) {
        let mut known = locked(&self.0);
        if known.len() >= MOST && !known.contains_key(&client) {
            let oldest = known.iter().min_by_key(|(_, (_, since))| *since);
            if let Some(oldest) = oldest.map(|(client, _)| client.clone()) {
                known.remove(&oldest);
            }
        }
        known.insert(client, (link, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_clients_is_forgotten() {
        let links = Links::default();
        for client in 0..=MOST {
            links.put(client.to_string(), Link::WAN);
        }
        assert_eq!(links.get("0"), None);
        assert_eq!(links.get(&MOST.to_string()), Some(Link::WAN));
        links.put("7".into(), Link::LAN);
        assert_eq!(links.get("7"), Some(Link::LAN));
        assert_eq!(locked(&links.0).len(), MOST);
    }

    #[test]
    fn what_was_measured_long_ago_is_measured_again() {
        let links = Links::default();
        links.put("a".into(), Link::LAN);
        if let (Some(entry), Some(before)) =
            (locked(&links.0).get_mut("a"), Instant::now().checked_sub(FRESH))
        {
            entry.1 = before;
        }
        assert_eq!(links.get("a"), None);
    }
}
