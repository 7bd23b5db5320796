//! Passing clients on who do not follow doors: bytes, not messages. What they are is between client and server.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use wire::{Error, Incoming, Result, Timeouts, connect, proxy_header};

use crate::fleet::hall::{Hall, fresh};
use crate::fleet::ticket::seconds;
use crate::fleet::voucher;

/// Clients that are passed on at a time.
pub(crate) const MOST: usize = 1024;
/// How long one waits for a server.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest silence of both ends.
const SILENCE: Duration = Duration::from_secs(3600);
/// Bytes that are passed on at a time.
const PART: usize = 1 << 16;

/// Passes a client on to a server, on a thread of its own, to the end of its session.
pub(crate) fn begin(hall: &Arc<Hall>, incoming: Incoming, address: SocketAddr) {
    let (browser, stream) = (incoming.is_websocket(), incoming.into_stream());
    if hall.relays.fetch_add(1, Ordering::SeqCst) >= MOST {
        hall.relays.fetch_sub(1, Ordering::SeqCst);
        hall.counters.refuse("busy");
        return;
    }
    let staff = hall.clone();
    let run = move || {
        if let Err(error) = pass(&staff, stream, (address, browser)) {
            staff.event(json!({
                "event": "relay failed", "client": address.to_string(), "error": error.to_string(),
            }));
        }
        staff.relays.fetch_sub(1, Ordering::SeqCst);
    };
    if thread::Builder::new().name("tacit-relay".into()).spawn(run).is_err() {
        hall.relays.fetch_sub(1, Ordering::SeqCst);
    }
}

fn pass(hall: &Hall, mut client: TcpStream, whose: (SocketAddr, bool)) -> Result<()> {
    let failed = |e: std::io::Error| Error::transport(e.to_string());
    client.set_nonblocking(false).map_err(failed)?;
    let mut server = reach(hall, whose)?;
    hall.counters.relay();
    for stream in [&client, &server] {
        let set = stream.set_read_timeout(Some(SILENCE));
        set.and_then(|()| stream.set_write_timeout(Some(SILENCE))).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
    }
    let mut back = (server.try_clone().map_err(failed)?, client.try_clone().map_err(failed)?);
    let begun = thread::Builder::new().name("tacit-relay".into()).spawn(move || {
        copy(&mut back.0, &mut back.1);
    });
    let begun = begun.map_err(failed)?;
    copy(&mut client, &mut server);
    // It ends when the server does, whose session ends with its client.
    let _ = begun.join();
    Ok(())
}

/// A connection to a server, which is told whose it is.
fn reach(hall: &Hall, (address, browser): (SocketAddr, bool)) -> Result<TcpStream> {
    let until = Instant::now() + PATIENCE;
    let timeouts = Timeouts { connect: Duration::from_secs(2), ..Timeouts::default() };
    loop {
        let id = fresh()?;
        let chosen = {
            let mut floor = hall.floor();
            let chosen = floor.roster.choose_any(browser, Instant::now());
            if let Some((server, run, _)) = &chosen {
                let until = Instant::now() + Duration::from_secs(hall.options.ticket_seconds);
                floor.roster.give((server, run), id, until);
            }
            chosen
        };
        if let Some((_, run, target)) = chosen {
            let reached = connect(&target, timeouts).and_then(|mut stream| {
                let failed = |e: std::io::Error| Error::transport(e.to_string());
                let now = seconds(SystemTime::now());
                let voucher = voucher::seal(&hall.secret, &id, &run, address, now);
                let to = stream.peer_addr().map_err(failed)?;
                stream.write_all(&proxy_header(address, to, &voucher)).map_err(failed)?;
                Ok(stream)
            });
            match reached {
                Ok(stream) => return Ok(stream),
                // The door will hear that it is gone.
                Err(_) => hall.floor().roster.take_back(&id),
            }
        }
        if Instant::now() > until || hall.is_over() {
            let what = if browser { "WebSockets" } else { "sessions" };
            return Err(Error::transport(format!("no server of this fleet takes {what}")));
        }
        let floor = hall.floor();
        // Whether it was woken or the time was up, it looks again.
        drop(hall.changed.wait_timeout(floor, Duration::from_millis(100)));
    }
}

/// Passes bytes on until one end closes, which the other then hears.
fn copy(from: &mut TcpStream, to: &mut TcpStream) {
    let mut part = vec![0; PART];
    loop {
        match from.read(&mut part) {
            Ok(0) => {
                // The other end may be gone too.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(read) => {
                if to.write_all(part.get(..read).unwrap_or_default()).is_err() {
                    let _ = from.shutdown(Shutdown::Both);
                    return;
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => {
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}
