//! Whole sessions that are tried again.
//!
//! A session is tried again from its beginning, with fresh keys, masks and correlations: nothing
//! of one that failed is ever used twice.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Error, Result, TransportKind};

/// The first wait for a server that is gone; each further one is twice as long.
const FIRST: f64 = 0.5;
/// The longest wait for a server that is gone.
const LONGEST: f64 = 30.0;
/// Waits are this part shorter or longer, at random, so that clients do not come back together.
const JITTER: f64 = 0.25;

/// Runs `session` until it succeeds or fails for a reason that waiting does not change, for up to
/// `seconds`; `tell` hears of each wait in seconds and its reason.
pub(crate) fn until<T>(
    seconds: f64,
    tell: &dyn Fn(f64, String),
    mut session: impl FnMut() -> Result<T>,
) -> Result<T> {
    let patience = Duration::try_from_secs_f64(seconds);
    let patience = patience.map_err(|_| {
        Error::misuse(format!("a session is tried again for 0 s or more, not {seconds}"))
    })?;
    let began = Instant::now();
    for attempt in 0.. {
        let error = match session() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let left = patience.saturating_sub(began.elapsed());
        let Some(wait) = wait(&error, attempt).filter(|wait| *wait <= left) else {
            return Err(error);
        };
        tell(wait.as_secs_f64(), error.to_string());
        thread::sleep(wait);
    }
    Err(Error::internal("more attempts than numbers"))
}

/// How long to wait after `error`; not at all where another attempt ends the same.
fn wait(error: &Error, attempt: i32) -> Option<Duration> {
    let Error::Transport(error) = error else { return None };
    let seconds = match error.kind {
        TransportKind::Busy { again } => f64::from(again),
        TransportKind::Refused | TransportKind::Unreachable | TransportKind::Closed => {
            (FIRST * 2f64.powi(attempt.min(16))).min(LONGEST)
        }
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds * (1.0 - JITTER + 2.0 * JITTER * fraction())).ok()
}

/// A number from 0 to 1 that differs from process to process and call to call; nothing depends
/// on it but when a client comes back.
fn fraction() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn failing(kind: TransportKind) -> Error {
        Error::connection(kind, "on purpose")
    }

    #[test]
    fn what_may_pass_is_tried_again_and_nothing_else() {
        let told = RefCell::new(Vec::new());
        let tell = |seconds, why| told.borrow_mut().push((seconds, why));
        let left = Cell::new(2);
        let session = || match left.replace(left.get() - 1) {
            0 => Ok(7),
            _ => Err(failing(TransportKind::Busy { again: 0 })),
        };
        assert_eq!(until(5.0, &tell, session), Ok(7));
        assert_eq!(told.borrow().len(), 2);
        for kind in [TransportKind::Denied, TransportKind::TimedOut, TransportKind::NotAuthentic] {
            assert_eq!(until::<()>(5.0, &tell, || Err(failing(kind))), Err(failing(kind)));
        }
        let lost = Error::peer("one", "another");
        assert_eq!(until::<()>(5.0, &tell, || Err(lost.clone())), Err(lost.clone()));
        assert_eq!(told.borrow().len(), 2);
    }

    #[test]
    fn the_time_is_bounded_and_waits_grow() {
        let full = failing(TransportKind::Busy { again: 100 });
        let began = Instant::now();
        assert_eq!(until::<()>(1.0, &|_, _| (), || Err(full.clone())), Err(full.clone()));
        assert!(began.elapsed() < Duration::from_secs(1), "a wait beyond the limit is none");
        let seconds = |attempt| wait(&failing(TransportKind::Closed), attempt).unwrap();
        assert!(seconds(0) <= Duration::from_millis(625) && seconds(3) >= Duration::from_secs(3));
        assert!(seconds(1000) <= Duration::from_secs_f64(LONGEST * (1.0 + JITTER)));
        assert!(until(f64::NAN, &|_, _| (), || Ok(())).is_err());
    }
}
