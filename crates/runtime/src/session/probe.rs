//! The link between two parties, measured when they connect.
//!
//! The server sends bytes, the client says that it has them. Short messages tell the round
//! trip, a long one the bandwidth on top; a long one before it opens TCP's window. The parties'
//! time on the processor counts as the link's. A client that dawdles gets a plan for a slow
//! link, and nothing else follows from it.

use std::time::{Duration, Instant};

use wire::{Channel, Cost, Error, Link, Message, Result, Role, tags};

/// Bytes of a short message.
const SHORT: u64 = 8;
/// Bytes of a long one.
const LONG: u64 = 1 << 18;
/// What the server sends, in this order.
const BODIES: [u64; 5] = [SHORT, SHORT, SHORT, LONG, LONG];
/// What no link is better than: a clock's tick, and a processor's copies.
const LEAST: Duration = Duration::from_micros(1);

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

/// Measures the link; the server's side.
pub(crate) fn measure(channel: &mut Channel) -> Result<Link> {
    let mut times = Vec::with_capacity(BODIES.len());
    for body in BODIES {
        let start = Instant::now();
        channel.send(&Filler(body))?;
        channel.receive::<Filler>(&SHORT)?;
        times.push((body, start.elapsed()));
    }
    let short = times.iter().filter(|(body, _)| *body == SHORT).map(|(_, time)| *time).min();
    let long = times.last().map(|(_, time)| *time);
    let (short, long) = (short.unwrap_or(LEAST), long.unwrap_or(LEAST));
    let passing = long.saturating_sub(short).max(LEAST);
    Link::new(short.as_secs_f64().min(60.0), 8.0 * LONG as f64 / passing.as_secs_f64())
}

/// Lets the server measure; the client's side.
pub(crate) fn answer(channel: &mut Channel) -> Result<()> {
    for body in BODIES {
        channel.receive::<Filler>(&body)?;
        channel.send(&Filler(SHORT))?;
    }
    Ok(())
}

/// What measuring costs.
pub(crate) fn cost() -> Cost {
    let turn =
        |body: &u64| Cost::message(Role::Server, *body).then(Cost::message(Role::Client, SHORT));
    BODIES.iter().map(turn).collect()
}
