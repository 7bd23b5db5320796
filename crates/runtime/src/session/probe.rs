//! The link between two parties, measured when they connect, in one round trip.
//!
//! The server sends a short message and a burst behind it, and the client says how much later the
//! burst was there. The time until it answers tells the round trip, the burst's delay the
//! bandwidth, as far as clocks and threads are exact. The burst fits the first window of TCP, so
//! that it never waits for the link. Bandwidths that few links of such a round trip have are
//! taken for the usual one. A client that dawdles or lies gets a plan for a slow link, and
//! nothing else follows from it.

use std::time::Duration;

use ring::host::Instant;
use wire::{Channel, Cost, Error, Link, Message, Result, Role, tags};

/// Bytes of a short message.
const SHORT: u64 = 8;
/// Bytes of a burst: ten segments of Ethernet, less what is sent before it, headers and TLS.
const BURST: u64 = 12_800;
/// How much later a burst may be there for other reasons than its bandwidth.
const JITTER: Duration = Duration::from_micros(200);
/// What no link is better than: a clock's tick, and a processor's copies.
const LEAST: Duration = Duration::from_micros(1);
/// Round trips in seconds, and the bandwidth in bits per second that a link of at least as much
/// has at most, as far as this can tell.
const USUAL: [(f64, f64); 4] = [(20e-3, 400e6), (3e-3, 1e9), (0.15e-3, 3e9), (0.0, 20e9)];

/// So many bytes that say nothing.
struct Filler(u64);

impl Message for Filler {
    type Shape = u64;
    const TAG: u8 = tags::PROBE;

    fn bounds(len: &u64) -> (u64, u64) {
        (*len, *len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + usize::try_from(self.0).unwrap_or(0), 0);
    }

    fn decode(body: &[u8], len: &u64) -> Result<Self> {
        if body.iter().all(|byte| *byte == 0) {
            return Ok(Self(*len));
        }
        Err(Error::peer("a probe of zeros", "other bytes"))
    }
}

/// How much later than the first message the burst was there, in nanoseconds.
struct Delay(u64);

impl Message for Delay {
    type Shape = ();
    const TAG: u8 = tags::PROBE;

    fn bounds((): &()) -> (u64, u64) {
        (SHORT, SHORT)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.to_le_bytes());
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let delay = body.try_into().map(u64::from_le_bytes);
        delay.map(Self).map_err(|_| Error::peer("a delay", format!("{} bytes", body.len())))
    }
}

/// Measures the link; the server's side.
pub(crate) fn measure(channel: &mut Channel) -> Result<Link> {
    // What is on its way already would count as the round trip's.
    channel.flush()?;
    let start = Instant::now();
    channel.send(&Filler(SHORT))?;
    channel.send(&Filler(BURST))?;
    let Delay(delay) = channel.receive(&())?;
    estimate(start.elapsed(), Duration::from_nanos(delay))
}

/// The link on which the burst was there `delay` after the short message, and the answer to it
/// `elapsed` after both were sent.
fn estimate(elapsed: Duration, delay: Duration) -> Result<Link> {
    let delay = delay.min(elapsed);
    let round_trip = (elapsed - delay).max(LEAST).as_secs_f64().min(60.0);
    let passing = delay.saturating_sub(JITTER).max(LEAST).as_secs_f64();
    let usual = USUAL.iter().find(|(least, _)| round_trip >= *least);
    let most = usual.map_or(f64::INFINITY, |(_, bandwidth)| *bandwidth);
    Link::new(round_trip, (8.0 * BURST as f64 / passing).min(most))
}

/// Lets the server measure; the client's side.
pub(crate) fn answer(channel: &mut Channel) -> Result<()> {
    channel.receive::<Filler>(&SHORT)?;
    let start = Instant::now();
    channel.receive::<Filler>(&BURST)?;
    let delay = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    channel.send(&Delay(delay))
}

/// What measuring costs.
pub(crate) fn cost() -> Cost {
    Cost::message(Role::Server, SHORT)
        .then(Cost::message(Role::Server, BURST))
        .then(Cost::message(Role::Client, SHORT))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn figures(elapsed: f64, delay: f64) -> (f64, f64) {
        let [elapsed, delay] = [elapsed, delay].map(Duration::from_secs_f64);
        estimate(elapsed, delay).unwrap().figures()
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.01
    }

    #[test]
    fn a_delay_tells_of_thin_links_and_otherwise_the_round_trip_does() {
        // 102,400 bits in 10.24 ms are 10 Mbit/s.
        let (round_trip, bandwidth) = figures(0.05044, 0.01044);
        assert!(near(round_trip, 0.04) && near(bandwidth, 10e6), "{round_trip} {bandwidth}");
        for (elapsed, usual) in [(0.04, 400e6), (0.01, 1e9), (0.0003, 3e9), (0.00005, 20e9)] {
            assert!(near(figures(elapsed, 0.0).1, usual), "{elapsed}");
        }
    }

    #[test]
    fn clients_that_lie_get_a_plan_for_a_slow_link() {
        let (round_trip, bandwidth) = figures(1.0, 1e9);
        assert!(round_trip <= 1.01e-6 && bandwidth < 2e5, "{round_trip} {bandwidth}");
        assert!(figures(1e6, 0.0).0 <= 60.0);
    }
}
