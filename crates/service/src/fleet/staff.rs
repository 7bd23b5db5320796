//! The door's end of control connections: servers come, beat and go, and have inputs counted.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use wire::fleet::{News, Order};
use wire::{Channel, Error, Result, Role, ServerTls, Timeouts, plaintext};

use crate::error::Error as Refused;
use crate::fleet::EXTENDED;
use crate::fleet::dial::EVER;
use crate::fleet::hall::Hall;
use crate::fleet::roster::State;
use crate::fleet::talk::{Answers, Beat, Count, Counted, Join, Says, number, prove};
use crate::fleet::ticket::Id;
use crate::identity::is_token_name;
use crate::ledger::{Budget, Ledger};

/// Control connections at a time.
const MOST: usize = 8192;
/// Control connections of those who have not proved that they belong to the fleet.
const STRANGERS: usize = 64;
/// Time for TLS and the proof.
const PROOF: Duration = Duration::from_secs(3);
/// A server that is silent for so long is gone.
const GONE: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be accepted.
const AGAIN: Duration = Duration::from_millis(20);
/// Models of one server, at most.
const MODELS: usize = 4096;

/// Accepts control connections until the door is over.
pub(crate) fn run(hall: &Arc<Hall>, listener: &TcpListener, tls: Option<&ServerTls>) {
    let (all, strangers) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    while !hall.is_over() {
        match listener.accept() {
            Ok((stream, _)) => {
                let full = all.load(Ordering::SeqCst) >= MOST
                    || strangers.load(Ordering::SeqCst) >= STRANGERS;
                if full {
                    // The connection ends here.
                    continue;
                }
                let counted = [Held::new(&all), Held::new(&strangers)];
                let (hall, tls) = (hall.clone(), tls.cloned());
                let run = move || {
                    if let Err(error) = attend(&hall, stream, tls.as_ref(), counted) {
                        hall.counters.control(&error);
                    }
                };
                // Without a thread the connection ends.
                let _ = thread::Builder::new().name("tacit-staff".into()).spawn(run);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => thread::sleep(AGAIN),
        }
    }
}

/// One of a number that is limited.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn attend(
    hall: &Hall,
    stream: TcpStream,
    tls: Option<&ServerTls>,
    [held, stranger]: [Held; 2],
) -> Result<()> {
    let timeouts = Timeouts { connect: PROOF, idle: GONE, total: EVER };
    // Strangers get no longer than this, byte by byte or not.
    let stop = Watch::over(&stream, PROOF)?;
    let mut channel = match tls {
        Some(tls) => tls.channel(stream, timeouts)?,
        None => plaintext(Role::Server, stream, timeouts)?,
    };
    prove(&mut channel, &hall.secret, true)?;
    stop.end();
    drop(stranger);
    let ended = match hear(&mut channel)? {
        Says::Join(join) => server(hall, &mut channel, join),
        Says::Ledger { server } => books(hall, &mut channel, &server),
        _ => Err(Error::peer("a server that joins", "other news")),
    };
    drop(held);
    ended
}

/// Ends a connection after a time, unless it is told to leave it.
struct Watch(std::sync::mpsc::Sender<()>);

impl Watch {
    fn over(stream: &TcpStream, patience: Duration) -> Result<Self> {
        let failed = |e: std::io::Error| Error::transport(e.to_string());
        let stream = stream.try_clone().map_err(failed)?;
        let (end, ended) = std::sync::mpsc::channel();
        let run = move || {
            if ended.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // One that has ended by itself needs no end.
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        };
        thread::Builder::new().name("tacit-watch".into()).spawn(run).map_err(failed)?;
        Ok(Self(end))
    }

    fn end(self) {
        // The other end waits for this or the end of time.
        let _ = self.0.send(());
    }
}

fn hear(channel: &mut Channel) -> Result<Says> {
    let News { json: text } = channel.receive(&())?;
    serde_json::from_str(&text).map_err(|e| Error::peer("news of a server", e.to_string()))
}

fn answer(channel: &mut Channel, answers: &Answers) -> Result<()> {
    let text = serde_json::to_string(answers).map_err(|e| Error::internal(e.to_string()))?;
    channel.send(&Order { json: text })
}

/// What is wrong with a server that joins.
fn unfit(join: &Join) -> Option<String> {
    if !is_token_name(&join.server) {
        return Some("a server's name has 1 to 64 letters, digits, and `.`, `_`, `-`".into());
    }
    let is_address = |address: &String| {
        let graphic = address.bytes().all(|byte| byte.is_ascii_graphic());
        address.len() <= 300 && address.contains(':') && graphic
    };
    if !is_address(&join.address) || !join.websocket.as_ref().is_none_or(is_address) {
        return Some("a server's address is HOST:PORT".into());
    }
    (join.models.is_empty() || join.models.len() > MODELS).then(|| "no models, or too many".into())
}

/// A server, from its coming to its end.
fn server(hall: &Hall, channel: &mut Channel, join: Join) -> Result<()> {
    let (name, address) = (join.server.clone(), join.address.clone());
    let joined = match unfit(&join) {
        Some(why) => Err(why),
        None => hall.floor().roster.join(join, Instant::now()),
    };
    let run = match joined {
        Ok(run) => run,
        Err(why) => return answer(channel, &Answers::Sent { why }),
    };
    hall.event(json!({"event": "joined", "server": name, "address": address}));
    let policy = hall.policy();
    let (counts, asks) = (policy.ledger.is_some(), policy.tokens.is_some());
    let ended = answer(channel, &Answers::Welcome { counts, asks })
        .and_then(|()| beats(hall, channel, &name, &run));
    if hall.floor().roster.leave(&name, &run) {
        let why = ended.as_ref().err().map(ToString::to_string);
        hall.event(json!({"event": "gone", "server": name, "error": why}));
        hall.sweep(Some(&name));
    }
    ended
}

fn beats(hall: &Hall, channel: &mut Channel, name: &str, run: &[u8; 16]) -> Result<()> {
    loop {
        let Says::Beat(beat) = hear(channel)? else {
            return Err(Error::peer("a beat of a server", "other news"));
        };
        let ids = |list: &[String]| list.iter().filter_map(|id| number(id)).collect::<Vec<Id>>();
        hall.settle(&ids(&beat.shown), &ids(&beat.redeemed), &ids(&beat.unused));
        match heard(hall, name, run, beat) {
            Some(answers) => answer(channel, &answers)?,
            None => {
                let why = "another server has this name now".into();
                return answer(channel, &Answers::Sent { why });
            }
        }
        hall.changed.notify_all();
        if hall.is_over() {
            return Ok(());
        }
    }
}

fn heard(hall: &Hall, name: &str, run: &[u8; 16], beat: Beat) -> Option<Answers> {
    let (changed, drain, out) = hall.floor().roster.beat(name, run, beat, Instant::now())?;
    match changed {
        Some(State::Ready) => hall.event(json!({"event": "ready", "server": name})),
        Some(State::Draining) => hall.event(json!({"event": "draining", "server": name})),
        _ => {}
    }
    Some(Answers::Heard { drain, out })
}

/// A connection on which is counted.
fn books(hall: &Hall, channel: &mut Channel, server: &str) -> Result<()> {
    let policy = hall.policy();
    let (counts, asks) = (policy.ledger.is_some(), policy.tokens.is_some());
    answer(channel, &Answers::Welcome { counts, asks })?;
    // A server may have nothing to count for long.
    channel.expect_silence(true)?;
    loop {
        let Says::Count(what) = hear(channel)? else {
            return Err(Error::peer("something to count", "other news"));
        };
        let policy = hall.policy();
        let counted = match &policy.ledger {
            Some(ledger) => count(ledger, &policy.budget, what),
            None => Counted::Done,
        };
        if let Counted::Unusable { why } = &counted {
            hall.event(json!({"event": "ledger", "server": server, "error": why}));
        }
        answer(channel, &Answers::Counted(counted))?;
    }
}

fn count(ledger: &Ledger, default: &Budget, what: Count) -> Counted {
    let now = SystemTime::now();
    let unknown = || Refused::Ticket("the ticket has no such number".into());
    let counted = match what {
        Count::Redeem { ticket, inputs, budget } => number(&ticket)
            .ok_or_else(unknown)
            .and_then(|id| ledger.redeem(&id, inputs, &budget.unwrap_or(*default), now).map(drop)),
        Count::Charge { client, model, inputs, budget } => client.parse().and_then(|client| {
            let budget = budget.unwrap_or(*default);
            ledger.charge(&client, &model, inputs, &budget, now).map(drop)
        }),
        Count::Extend { ticket } => number(&ticket)
            .ok_or_else(unknown)
            .and_then(|id| ledger.extend(&id, now + EXTENDED, now).map(drop)),
        Count::Release { ticket } => {
            number(&ticket).ok_or_else(unknown).and_then(|id| ledger.release(&id))
        }
    };
    match counted {
        Ok(()) => Counted::Done,
        Err(Refused::Refused(refused)) => Counted::refused(&refused),
        Err(Refused::Ticket(why)) => Counted::Ticket { why },
        Err(error) => Counted::Unusable { why: error.to_string() },
    }
}
