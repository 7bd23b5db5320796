//! A slower link than the real one: each party delays what it sends.
//!
//! Bytes leave one after the other at the link's bandwidth and arrive half a round
//! trip later: `departure = max(now, link free) + bytes / bandwidth`, `arrival =
//! departure + round trip / 2`. The two directions do not share bandwidth. With both
//! parties shaped alike, n bytes one way take `n / bandwidth + round trip / 2`, and k
//! messages to and fro take k times that.

use std::str::FromStr;
use std::time::Duration;

use ring::host::Instant;

use crate::error::{Error, Result};

/// Bytes that are scheduled together, so that a long message trickles as it would on
/// a real link.
const SLICE: usize = 1 << 16;
/// Longest round trip, so that a shaped link stays within the patience of its users.
const MOST_ROUND_TRIP: f64 = 60.0;

/// Latency and bandwidth, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    round_trip: Duration,
    bytes_per_second: f64,
}

impl Link {
    /// Both parties on one machine: no delay, 20 Gbit/s in estimates. Nothing is imitated.
    pub const LOOPBACK: Self = Self { round_trip: Duration::ZERO, bytes_per_second: 20e9 / 8.0 };
    /// A local network: 3 Gbit/s, 0.3 ms.
    pub const LAN: Self =
        Self { round_trip: Duration::from_micros(300), bytes_per_second: 3e9 / 8.0 };
    /// A wide network: 400 Mbit/s, 40 ms.
    pub const WAN: Self =
        Self { round_trip: Duration::from_millis(40), bytes_per_second: 400e6 / 8.0 };

    /// Makes a link of this round-trip time (seconds) and bandwidth (bits per second).
    ///
    /// # Errors
    /// [`Error::Misuse`] unless 0 <= round trip <= 60 s and the bandwidth is positive
    /// and finite.
    pub fn new(round_trip_seconds: f64, bits_per_second: f64) -> Result<Self> {
        let usable = (0.0..=MOST_ROUND_TRIP).contains(&round_trip_seconds)
            && bits_per_second.is_finite()
            && bits_per_second >= 1.0;
        if !usable {
            return Err(Error::misuse("a link with this round-trip time or bandwidth"));
        }
        let round_trip = Duration::from_secs_f64(round_trip_seconds);
        Ok(Self { round_trip, bytes_per_second: bits_per_second / 8.0 })
    }

    /// Returns the time from the first byte's departure to the last one's arrival.
    pub fn one_way(&self, bytes: usize) -> Duration {
        self.occupied(bytes) + self.round_trip / 2
    }

    /// Returns the round trip in seconds and bandwidth in bits per second.
    pub fn figures(&self) -> (f64, f64) {
        (self.round_trip.as_secs_f64(), self.bytes_per_second * 8.0)
    }

    fn occupied(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_second)
    }
}

impl FromStr for Link {
    type Err = Error;

    /// `loopback`, `lan`, `wan` or `RTTms,Mbps` such as `20ms,100`.
    fn from_str(text: &str) -> Result<Self> {
        let read = || -> Option<Self> {
            let (time, rate) = text.split_once(',')?;
            let time: f64 = time.strip_suffix("ms").unwrap_or(time).parse().ok()?;
            let rate: f64 = rate.strip_suffix("Mbps").unwrap_or(rate).parse().ok()?;
            Self::new(time / 1e3, rate * 1e6).ok()
        };
        match text {
            "loopback" => Ok(Self::LOOPBACK),
            "lan" => Ok(Self::LAN),
            "wan" => Ok(Self::WAN),
            _ => read().ok_or_else(|| {
                let why = "is neither loopback, lan, wan nor RTTms,Mbps such as 20ms,100";
                Error::misuse(format!("--network {text} {why}"))
            }),
        }
    }
}

/// One direction of a link over time. Pure: the caller says what time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    link: Link,
    free: Instant,
}

/// Part of a message and when its last byte arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) end: usize,
    pub(crate) arrival: Instant,
}

impl Lane {
    pub(crate) fn new(link: Link, now: Instant) -> Self {
        Self { link, free: now }
    }

    /// Puts `bytes` on the link at `now`; returns when each part arrives, in order.
    pub(crate) fn send(&mut self, now: Instant, bytes: usize) -> Vec<Slice> {
        let start = self.free.max(now);
        self.free = start + self.link.occupied(bytes);
        let ends = (0..bytes.div_ceil(SLICE)).map(|i| bytes.min((i + 1) * SLICE));
        ends.map(|end| Slice { end, arrival: start + self.link.one_way(end) }).collect()
    }

    /// How long after `now` the last byte on the link arrives.
    pub(crate) fn backlog(&self, now: Instant) -> Duration {
        (self.free + self.link.round_trip / 2).saturating_duration_since(now)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn arrival(lane: &mut Lane, now: Instant, bytes: usize) -> Instant {
        lane.send(now, bytes).last().unwrap().arrival
    }

    #[test]
    fn one_transfer_takes_half_a_round_trip_and_its_bytes() {
        let start = Instant::now();
        for (link, bytes, seconds) in [
            (Link::WAN, 50_000_000, 1.02),
            (Link::LAN, 375_000, 0.00115),
            (Link::new(0.0, 8e6).unwrap(), 1_000_000, 1.0),
            (Link::new(0.1, 1e9).unwrap(), 0, 0.05),
        ] {
            let wanted = Duration::from_secs_f64(seconds);
            assert_eq!(link.one_way(bytes), wanted);
            if bytes > 0 {
                let got = arrival(&mut Lane::new(link, start), start, bytes) - start;
                assert!(got.abs_diff(wanted) < Duration::from_nanos(10), "{got:?}");
            }
        }
    }

    #[test]
    fn messages_queue_behind_each_other_and_the_link_drains_while_nobody_sends() {
        let link = Link::new(0.02, 8e6).unwrap();
        let start = Instant::now();
        let mut lane = Lane::new(link, start);
        let ms = Duration::from_millis;
        assert_eq!(arrival(&mut lane, start, 10_000), start + ms(20));
        assert_eq!(arrival(&mut lane, start + ms(2), 10_000), start + ms(30));
        assert_eq!(lane.backlog(start + ms(4)), ms(26));
        assert_eq!(arrival(&mut lane, start + ms(100), 10_000), start + ms(120));
        assert_eq!(lane.backlog(start + ms(500)), Duration::ZERO);
    }

    #[test]
    fn a_ping_pong_of_k_messages_takes_k_half_round_trips() {
        let start = Instant::now();
        let lanes = || Lane::new(Link::WAN, start);
        let (mut there, mut back) = (lanes(), lanes());
        let mut now = start;
        for k in 0..10 {
            now = arrival(if k % 2 == 0 { &mut there } else { &mut back }, now, 5);
        }
        let latency = 10 * Duration::from_millis(20);
        assert!((now - start).abs_diff(latency) < Duration::from_micros(2));
    }

    #[test]
    fn a_long_message_trickles_in_order() {
        let start = Instant::now();
        let slices = Lane::new(Link::LAN, start).send(start, 3 * SLICE + 1);
        let ends: Vec<usize> = slices.iter().map(|slice| slice.end).collect();
        assert_eq!(ends, [SLICE, 2 * SLICE, 3 * SLICE, 3 * SLICE + 1]);
        assert!(slices.is_sorted_by(|a, b| a.arrival < b.arrival));
    }

    #[test]
    fn links_parse() {
        assert_eq!("lan".parse(), Ok(Link::LAN));
        assert_eq!("40ms,400".parse(), Ok(Link::WAN));
        assert_eq!("0.3,3000Mbps".parse(), Ok(Link::LAN));
        assert_eq!(Link::WAN.figures(), (0.04, 400e6));
        for bad in ["", "fast", "20ms", "20ms,0", "-1,10", "nan,10", "1,inf", "1,2,3", "1e9,1"] {
            assert!(bad.parse::<Link>().is_err(), "{bad}");
        }
    }
}
