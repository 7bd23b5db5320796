//! Why a client is refused, in words for it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// A limit of a [`Budget`](crate::Budget).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// On inputs in all.
    #[default]
    Total,
    /// On inputs in a day of UTC.
    Day,
    /// On inputs in a minute.
    Minute,
}

impl Limit {
    /// Returns the seconds after which the count begins anew; none for the total.
    pub(crate) const fn seconds(self) -> Option<u64> {
        match self {
            Self::Total => None,
            Self::Day => Some(24 * 3600),
            Self::Minute => Some(60),
        }
    }
}

/// The refusal of a request, with a text for people as its `Display`. Nothing was charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The client's name for people.
    pub client: String,
    /// The model's name.
    pub model: String,
    /// Which limit the request would exceed.
    pub limit: Limit,
    /// Inputs that the limit allows.
    pub allowed: u64,
    /// Inputs that count against it so far.
    pub used: u64,
    /// Inputs that were asked for.
    pub asked: u64,
    /// After what time the same request fits, if nothing else is asked; `None` where waiting does
    /// not help: for the total, and for more inputs than the limit ever allows.
    #[serde(rename = "wait_seconds", serialize_with = "seconds")]
    pub wait: Option<Duration>,
}

fn seconds<S: serde::Serializer>(wait: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    wait.map(|wait| wait.as_secs()).serialize(to)
}

impl Refused {
    /// Returns how many inputs the limit has left.
    pub const fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, model, limit, allowed, used, asked, wait } = self;
        write!(f, "the budget of client `{client}` for model `{model}` ")?;
        let period = match limit {
            Limit::Total => None,
            Limit::Day => Some("day"),
            Limit::Minute => Some("minute"),
        };
        if let Some(period) = period.filter(|_| *allowed > 0 && asked > allowed) {
            let never = format!("never has room for {asked} inputs at once");
            return write!(f, "{never}: {allowed} inputs a {period}; ask for fewer at once");
        }
        match self.left() {
            0 => write!(f, "is used up: ")?,
            _ => write!(f, "has no room for {asked} inputs: ")?,
        }
        write!(f, "{used} of {allowed} inputs ")?;
        f.write_str(match limit {
            Limit::Total => "in all",
            Limit::Day => "today",
            Limit::Minute => "in this minute",
        })?;
        match wait {
            Some(wait) => write!(f, "; again in {}", spoken(*wait)),
            None => write!(f, "; ask the operator"),
        }
    }
}

/// A time for people, in whole seconds, minutes or hours and never too short.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}
