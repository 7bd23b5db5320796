//! What a client may ask, and whether a request is within it: no file, no clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::refused::{Limit, Refused};

/// How many inputs a client may ask of a model. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Inputs in all, until an operator resets the count.
    pub total: Option<u64>,
    /// Inputs in a day of UTC.
    pub per_day: Option<u64>,
    /// Inputs in a minute of the clock, so that twice as many may come in any sixty seconds.
    pub per_minute: Option<u64>,
}

impl Budget {
    /// Returns the limits that there are, with the inputs that each allows.
    pub(super) fn limits(&self) -> impl Iterator<Item = (Limit, u64)> {
        let all = [Limit::Total, Limit::Day, Limit::Minute];
        let allowed = [self.total, self.per_day, self.per_minute];
        all.into_iter().zip(allowed).filter_map(|(limit, allowed)| Some((limit, allowed?)))
    }
}

/// What a client has used of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Inputs in all.
    pub(super) total: u64,
    /// Inputs in the day of `last`.
    pub(super) day: u64,
    /// Inputs in the minute of `last`.
    pub(super) minute: u64,
    /// When the last input was charged, in seconds since 1970 (UTC).
    pub(super) last: u64,
}

impl Usage {
    /// Returns the usage as it counts at `now`: a new day or minute begins with none. A clock that
    /// was put back stays in the day and minute of the last charge, so that it frees nothing.
    pub(super) fn at(self, now: u64) -> Self {
        let begun =
            |limit: Limit| limit.seconds().is_some_and(|period| now / period > self.last / period);
        let counted = |limit: Limit| if begun(limit) { 0 } else { self.of(limit) };
        Self {
            total: self.total,
            day: counted(Limit::Day),
            minute: counted(Limit::Minute),
            last: self.last.max(now),
        }
    }

    /// Returns the inputs that count against a limit.
    pub(super) const fn of(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Total => self.total,
            Limit::Day => self.day,
            Limit::Minute => self.minute,
        }
    }

    /// Returns the usage with so many more inputs.
    pub(super) const fn plus(self, inputs: u64) -> Self {
        Self {
            total: self.total.saturating_add(inputs),
            day: self.day.saturating_add(inputs),
            minute: self.minute.saturating_add(inputs),
            last: self.last,
        }
    }
}

/// Returns the limit that so many inputs exceed, as a refusal without names, or `None` where all
/// have room. Of several it is the one that holds longest: the total, then what has room for so many
/// at no time, then the day, then the minute. `usage` is that [`at`](Usage::at) `now`.
pub(super) fn exceeded(budget: &Budget, usage: &Usage, inputs: u64, now: u64) -> Option<Refused> {
    let over = budget
        .limits()
        .filter(|(limit, allowed)| inputs > allowed.saturating_sub(usage.of(*limit)));
    let (limit, allowed) =
        over.min_by_key(|(limit, allowed)| (*limit != Limit::Total, inputs <= *allowed))?;
    let period = limit.seconds().filter(|_| inputs <= allowed);
    let wait = period.map(|period| {
        let end = (usage.last / period).saturating_add(1).saturating_mul(period);
        Duration::from_secs(end.saturating_sub(now))
    });
    let used = usage.of(limit);
    Some(Refused { limit, allowed, used, asked: inputs, wait, ..Refused::default() })
}
