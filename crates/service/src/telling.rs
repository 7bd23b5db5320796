//! A limit on what an operator is told of clients that came to nothing: as many events as a person can read.

use std::time::Instant;

/// Events of such clients: so many at once, and so many a second.
const BURST: f64 = 64.0;
const PER_SECOND: f64 = 16.0;

/// How many clients that came to nothing are still told of.
pub(crate) struct Telling {
    left: f64,
    since: Instant,
    untold: u64,
}

impl Telling {
    pub(crate) fn new() -> Self {
        Self { left: BURST, since: Instant::now(), untold: 0 }
    }

    /// Whether one more is told of, which counts if it came to nothing; with how many others were not since the last one.
    pub(crate) fn tells(&mut self, came_to_nothing: bool) -> Option<u64> {
        let now = Instant::now();
        let passed = now.duration_since(self.since).as_secs_f64();
        self.left = (self.left + passed * PER_SECOND).min(BURST);
        self.since = now;
        if came_to_nothing {
            if self.left < 1.0 {
                self.untold += 1;
                return None;
            }
            self.left -= 1.0;
        }
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_told_in_part_and_counted() {
        let mut telling = Telling::new();
        let told = (0..1000).filter(|_| telling.tells(true).is_some()).count();
        assert!((64..200).contains(&told), "{told}");
        assert_eq!(telling.tells(false).unwrap(), 1000 - told as u64);
        assert_eq!(telling.tells(false).unwrap(), 0);
    }
}
