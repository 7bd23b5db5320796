//! How many sessions begin while others run: as many as there is processor time for.
//!
//! Sessions that compute at the same time slow each other down, and those that begin later add
//! nothing but that. One more session than there are cores keeps them busy while one waits for
//! its client. More begin only while processors have nothing to do, as when clients or links are
//! slow: then the number doubles with each look, up to what the operator allows.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Shortest time between two looks at the processors.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// Part of all cores with which this process has all that it can get.
const ALL: f64 = 0.9;
/// Part of all cores below which sessions wait for something else than processors.
const LITTLE: f64 = 0.25;
/// Idle cores in which one more session runs without slowing others much.
const IDLE: f64 = 0.5;
/// The kernel's unit of time in /proc/stat, in seconds.
const TICK: f64 = 0.01;

/// What processors had done at a moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    /// Seconds that this process computed, on all cores.
    own: f64,
    /// Seconds that the usable processors had nothing to do; none where the system does not tell.
    idle: Option<f64>,
}

/// What processors did between two looks, in cores.
#[derive(Clone, Copy, Debug)]
struct Use {
    own: f64,
    idle: f64,
}

/// The number of sessions that may run now.
#[derive(Debug)]
pub(crate) struct Pace {
    cores: usize,
    most: usize,
    now: usize,
    /// Whether processors no longer count.
    all: bool,
    /// Most sessions that ran at a time since the last look.
    peak: usize,
    /// The processors that this process may use, as /proc/stat names them.
    usable: Vec<String>,
    seen: Seen,
}

impl Pace {
    /// For so many cores, and at most so many sessions.
    pub(crate) fn new(cores: usize, most: usize) -> Self {
        let now = least(cores, most);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let usable = usable(&status).unwrap_or_default();
        let seen = Seen::now(&usable);
        Self { cores, most: most.max(1), now, all: false, peak: 0, usable, seen }
    }

    /// Sessions that may run now.
    pub(crate) const fn sessions(&self) -> usize {
        if self.all { self.most } else { self.now }
    }

    /// Lets as many run as the operator allows, whatever the processors do.
    pub(crate) const fn let_all_run(&mut self) {
        self.all = true;
    }

    /// Takes notice that so many sessions run.
    pub(crate) fn running(&mut self, sessions: usize) {
        self.peak = self.peak.max(sessions);
    }

    /// Looks at the processors again, unless that was just done, while so many sessions run
    /// and, maybe, others wait.
    pub(crate) fn look(&mut self, running: usize, wait: bool) {
        if self.seen.at.elapsed() >= LOOK {
            let before = std::mem::replace(&mut self.seen, Seen::now(&self.usable));
            self.decide(self.seen.since(before), running, wait);
        }
    }

    fn decide(&mut self, used: Use, running: usize, wait: bool) {
        let least = least(self.cores, self.most);
        let peak = std::mem::replace(&mut self.peak, running);
        self.now = if !has_time(used, self.cores as f64) {
            (self.now - 1).max(least)
        } else if wait {
            (2 * self.now).min(self.most)
        } else {
            // What was allowed once and nobody needs is no reason to allow it all at once.
            (peak + 1).clamp(least, self.now.max(least))
        };
    }
}

/// Sessions that may always run.
fn least(cores: usize, most: usize) -> usize {
    (cores + 1).min(most).max(1)
}

/// Whether another session would find processor time.
fn has_time(used: Use, cores: f64) -> bool {
    used.own < ALL * cores && (used.idle >= IDLE || used.own < LITTLE * cores)
}

impl Seen {
    fn now(usable: &[String]) -> Self {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own = own.tv_sec as f64 + own.tv_nsec as f64 * 1e-9;
        let text = fs::read_to_string("/proc/stat").ok();
        Self { at: Instant::now(), own, idle: text.and_then(|text| idle(&text, usable)) }
    }

    fn since(self, before: Self) -> Use {
        let seconds = self.at.duration_since(before.at).as_secs_f64().max(1e-9);
        let idle = self.idle.zip(before.idle).map_or(0.0, |(now, then)| now - then);
        Use { own: (self.own - before.own) / seconds, idle: idle / seconds }
    }
}

/// The processors that a process may use, out of its /proc/PID/status: `cpu0` and so on.
fn usable(status: &str) -> Option<Vec<String>> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut names = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range = first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?;
        names.extend(range.map(|number| format!("cpu{number}")));
    }
    Some(names)
}

/// Seconds that these processors had nothing to do or waited for disks, out of /proc/stat.
fn idle(stat: &str, usable: &[String]) -> Option<f64> {
    let mut sum = None;
    for line in stat.lines() {
        let mut fields = line.split_whitespace();
        if fields.next().is_some_and(|name| usable.iter().any(|cpu| cpu == name)) {
            let mut fields = fields.skip(3);
            let mut ticks = || fields.next()?.parse::<f64>().ok();
            sum = Some(sum.unwrap_or(0.0) + (ticks()? + ticks()?) * TICK);
        }
    }
    sum
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Both cores of a machine busy, half of it with this process's sessions.
    const BUSY: Use = Use { own: 1.0, idle: 0.1 };
    /// Clients or links are slow.
    const QUIET: Use = Use { own: 0.6, idle: 1.2 };

    #[test]
    fn busy_processors_take_one_session_more_than_there_are_cores() {
        let mut pace = Pace::new(2, 16);
        assert_eq!(pace.sessions(), 3);
        for _ in 0..9 {
            pace.decide(BUSY, 3, true);
        }
        assert_eq!(pace.sessions(), 3);
        // Fewer where the operator says so.
        assert_eq!(Pace::new(2, 1).sessions(), 1);
    }

    #[test]
    fn sessions_that_wait_for_their_clients_make_room_for_others() {
        let mut pace = Pace::new(2, 16);
        let mut seen = Vec::new();
        for _ in 0..4 {
            pace.decide(QUIET, pace.sessions(), true);
            seen.push(pace.sessions());
        }
        assert_eq!(seen, [6, 12, 16, 16]);
        for _ in 0..20 {
            pace.decide(BUSY, 16, true);
        }
        assert_eq!(pace.sessions(), 3);
    }

    #[test]
    fn room_that_nobody_needs_goes() {
        let mut pace = Pace::new(2, 16);
        (0..3).for_each(|_| pace.decide(QUIET, 16, true));
        pace.decide(QUIET, 4, false);
        assert_eq!(pace.sessions(), 16, "as many ran since the last look");
        pace.running(9);
        pace.decide(QUIET, 4, false);
        assert_eq!(pace.sessions(), 10);
        pace.decide(QUIET, 0, false);
        assert_eq!(pace.sessions(), 5);
        pace.decide(QUIET, 0, false);
        assert_eq!(pace.sessions(), 3);
    }

    #[test]
    fn time_that_others_take_or_a_quota_withholds_is_told_apart() {
        // Another program has the machine, and sessions wait for their clients all the same.
        assert!(has_time(Use { own: 0.1, idle: 0.0 }, 2.0));
        // The machine is idle, but this process has all of the one core that it may have.
        assert!(!has_time(Use { own: 0.95, idle: 60.0 }, 1.0));
    }

    #[test]
    fn this_machine_says_what_it_does() {
        let status = "Name:\ttacit\nCpus_allowed_list:\t0-1,12\n";
        let cpus = usable(status).unwrap();
        assert_eq!(cpus, ["cpu0", "cpu1", "cpu12"]);
        assert!(usable("Cpus_allowed_list:\tall").is_none() && usable("Name:\ttacit").is_none());
        let stat = "cpu  0 0 0 999 9\ncpu0 1 2 3 400 50 6\ncpu1 0 0 0 1 0\ncpu2 0 0 0 7 7\n";
        assert_eq!(idle(stat, &cpus), Some(4.51));
        assert_eq!(idle("intr 7", &cpus), None);
        let before = Seen::now(&[]);
        let mut spun = 0u64;
        while before.at.elapsed() < LOOK {
            spun = std::hint::black_box(spun + 1);
        }
        let used = Seen::now(&[]).since(before);
        assert!(used.own > 0.05 && used.idle == 0.0, "{used:?}");
        let pace = Pace::new(2, 16);
        assert!(pace.seen.idle.is_some() && !pace.usable.is_empty());
    }
}
