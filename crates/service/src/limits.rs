//! What this process may use: descriptors and memory.

use std::fs;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Part of the memory that is there which a server takes unless it is told.
const SHARE: f64 = 0.8;
/// Descriptors that are left for files, the listener and what the runtime opens.
const OTHER_DESCRIPTORS: u64 = 64;
/// Connections whose clients have not yet said what they want, at most.
const MOST_CONNECTIONS: u64 = 4096;

/// How much a server takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sessions at the same time; by cores and memory where absent.
    pub sessions: Option<usize>,
    /// Sessions that wait for others to end, at most.
    pub waiting: usize,
    /// Bytes of memory for the whole process; most of what is there where absent.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: None, waiting: 256, memory: None }
    }
}

/// Returns the number of files and sockets that this process may hold.
pub(crate) fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the number of files and sockets that this process may hold to the most that the
/// system allows it; returns how many that are.
pub fn raise_descriptors() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if let Some(most) = limit.maximum {
        let wanted = rustix::process::Rlimit { current: Some(most), ..limit };
        // What the system refuses leaves the limit as it was.
        if setrlimit(Resource::Nofile, wanted).is_ok() {
            limit.current = Some(most);
        }
    }
    limit.current.unwrap_or(u64::MAX)
}

/// Connections that may wait at the door when this process may hold `descriptors`, of which
/// `sessions` sessions need two each.
pub(crate) fn connections(descriptors: u64, sessions: usize) -> usize {
    let sessions = 2 * sessions as u64;
    let left = descriptors.saturating_sub(sessions.saturating_add(OTHER_DESCRIPTORS)) / 2;
    usize::try_from(left.clamp(16, MOST_CONNECTIONS)).unwrap_or(16)
}

/// Returns the bytes that this process may have of the machine's memory, or of its control
/// group's where that is less: what it holds and most of what is free. `None` where the system
/// does not tell.
pub fn free_memory() -> Option<u64> {
    let free = field("/proc/meminfo", "MemAvailable:")?;
    let held = resident();
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    let all = free.saturating_add(held).min(group);
    Some((all as f64 * SHARE) as u64)
}

/// Bytes that this process holds in memory; 0 where the system does not tell.
pub(crate) fn resident() -> u64 {
    field("/proc/self/status", "VmRSS:").unwrap_or(0)
}

/// A field in kB of a file of /proc, in bytes.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_leaves_descriptors_for_sessions() {
        assert_eq!(connections(1024, 16), 464);
        assert_eq!(connections(64, 64), 16);
        assert_eq!(connections(u64::MAX, 64), 4096);
    }

    #[test]
    fn this_machine_has_memory_and_descriptors() {
        assert!(free_memory().is_some_and(|bytes| bytes > resident()) && resident() > 1 << 20);
        assert!(raise_descriptors() >= 64);
    }
}
