//! Processor time by session: what all threads that work for one of them have had.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

thread_local! {
    static CURRENT: RefCell<Option<CpuTime>> = const { RefCell::new(None) };
}

/// Processor time that several threads add to.
///
/// A thread that works for a session counts its time with [`CpuTime::count`]; threads that it
/// starts find the same total by [`CpuTime::current`].
#[derive(Clone, Debug, Default)]
pub struct CpuTime(Arc<AtomicU64>);

/// The time of one thread, which is added to a total until this is dropped on the same thread.
#[derive(Debug)]
pub struct Counting {
    total: CpuTime,
    before: Option<CpuTime>,
    since: Duration,
}

impl CpuTime {
    /// Returns what was added so far.
    pub fn spent(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Counts the time of this thread from now on.
    pub fn count(&self) -> Counting {
        let before = CURRENT.with_borrow_mut(|current| current.replace(self.clone()));
        Counting { total: self.clone(), before, since: thread_time() }
    }

    /// Returns the total that this thread counts towards.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }
}

impl Counting {
    /// Adds the time so far.
    pub fn settle(&mut self) {
        let now = thread_time();
        let spent = now.saturating_sub(self.since).as_nanos();
        self.total.0.fetch_add(u64::try_from(spent).unwrap_or(0), Ordering::Relaxed);
        self.since = now;
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.settle();
        CURRENT.set(self.before.take());
    }
}

/// Time that this thread has had the processor; zero on systems that do not tell.
#[cfg(unix)]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

#[cfg(not(unix))]
fn thread_time() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    fn work() {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(20) {}
    }

    #[test]
    fn helping_threads_count_for_the_one_that_asks() {
        let (total, other) = (CpuTime::default(), CpuTime::default());
        {
            let _own = total.count();
            let shared = CpuTime::current();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _counting = shared.as_ref().map(CpuTime::count);
                    work();
                });
                scope.spawn(work);
            });
        }
        assert!(CpuTime::current().is_none());
        assert!(total.spent() > Duration::from_millis(1), "{:?}", total.spent());
        assert_eq!(other.spent(), Duration::ZERO);
    }

    #[test]
    fn settling_adds_once() {
        let total = CpuTime::default();
        let mut counting = total.count();
        work();
        counting.settle();
        let spent = total.spent();
        assert!(spent > Duration::from_millis(1));
        drop(counting);
        assert!(total.spent() < spent + Duration::from_millis(15));
    }
}
