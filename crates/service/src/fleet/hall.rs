//! What all threads of a door share, and how a client gets a ticket.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use mio::Waker;
use runtime::{MOST_INPUTS, PROTOCOL, token_digits};
use serde_json::{Value, json};
use wire::fleet::{Amount, DoorRequest, Ticket};
use wire::{Admission, Error, Result};

use crate::fleet::choice::{Choice, Chosen, Wanted};
use crate::fleet::options::AllocatorOptions;
use crate::fleet::queue::Queue;
use crate::fleet::roster::Roster;
use crate::fleet::secret::Secret;
use crate::fleet::talk::short;
use crate::fleet::ticket::{Claims, Id, seconds};
use crate::ledger::Reservation;
use crate::lock::locked;
use crate::options::Access;
use crate::policy::{Known, Policy, refusal_of};
use crate::telling::Telling;
use crate::watch::door::Counters;

/// When to come back to a door without a server.
const NO_SERVER: Duration = Duration::from_secs(2);
/// The time after a ticket's own for which its inputs stay set aside: a client that has shown the
/// ticket may still be in the handshake.
const HANDSHAKE: Duration = Duration::from_secs(90);

/// Why a client is refused: what it is told, and a word for programs.
pub(crate) type Refusal = (Admission, &'static str);

/// What a door knows.
pub(crate) struct Hall {
    pub(crate) options: AllocatorOptions,
    pub(crate) secret: Secret,
    pub(crate) policy: RwLock<Policy>,
    pub(crate) access: RwLock<Access>,
    pub(crate) floor: Mutex<Floor>,
    /// Told when a server may have room.
    pub(crate) changed: Condvar,
    pub(crate) counters: Counters,
    pub(crate) standing: AtomicUsize,
    pub(crate) relays: AtomicUsize,
    pub(crate) stopped: AtomicBool,
    pub(crate) events: Mutex<Sender<Value>>,
    pub(crate) telling: Mutex<Telling>,
    pub(crate) waker: Arc<Waker>,
}

/// Servers, those who wait for them, and tickets.
#[derive(Default)]
pub(crate) struct Floor {
    pub(crate) roster: Roster,
    pub(crate) queue: Queue,
    /// Tickets that are neither redeemed nor over.
    pub(crate) tickets: HashMap<Id, Out>,
    pub(crate) issued: u64,
    pub(crate) redeemed: u64,
    pub(crate) expired: u64,
}

/// A ticket that is out.
pub(crate) struct Out {
    until: Instant,
    /// The server has seen it, and says what becomes of it.
    shown: bool,
    server: String,
    reserved: bool,
}

/// A client that is known, and what it asks for.
pub(crate) struct Asker {
    pub(crate) known: Known,
    pub(crate) key: String,
    pub(crate) wanted: Wanted,
    pub(crate) amount: Amount,
}

impl Hall {
    pub(crate) fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells whoever watches.
    pub(crate) fn event(&self, event: Value) {
        // The receiver lives as long as the door.
        let _ = locked(&self.events).send(event);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Who asks, and for what.
    pub(crate) fn asker(
        &self,
        address: SocketAddr,
        (subject, browser): (Option<String>, bool),
        request: &DoorRequest,
    ) -> Result<Asker, Refusal> {
        if request.protocol != PROTOCOL {
            let why = format!(
                "this fleet speaks protocol version {PROTOCOL}, not {}; install the same release on both sides",
                request.protocol
            );
            return Err((Admission::denied(why), "release"));
        }
        let token = token_digits(&request.token);
        let token = token.as_ref().map(|token| token.as_str());
        let known = self.policy().identify(address.ip(), subject, token);
        let known = known.map_err(|refusal| (refusal, "token"))?;
        let kept = Some(request.kept).filter(|name| *name != [0; 32]).map(|name| short(&name));
        let wanted = Wanted { model: request.model, reveal: known.reveal, kept, browser };
        Ok(Asker { key: known.client.key(), known, wanted, amount: request.amount })
    }

    /// A ticket for a client whose turn it is, if a server has room: one without a `place` in the queue, or
    /// with one.
    pub(crate) fn serve(
        &self,
        asker: &Asker,
        place: Option<u64>,
    ) -> Result<Option<Ticket>, Refusal> {
        let id = fresh()
            .map_err(|_| (Admission::busy(NO_SERVER, "the door has no randomness now"), "other"))?;
        let now = Instant::now();
        let time = Duration::from_secs(self.options.ticket_seconds);
        let chosen = {
            let mut floor = self.floor();
            let Some(chosen) = floor.turn(asker, place, now)? else { return Ok(None) };
            floor.roster.give((&chosen.server, &chosen.run), id, now + time);
            let server = chosen.server.clone();
            let out = Out { until: now + time, shown: false, server, reserved: false };
            floor.tickets.insert(id, out);
            chosen
        };
        match self.promise(asker, &chosen, id, time) {
            Ok(ticket) => Ok(Some(ticket)),
            Err(refusal) => {
                let mut floor = self.floor();
                floor.tickets.remove(&id);
                floor.roster.take_back(&id);
                drop(floor);
                self.changed.notify_all();
                Err(refusal)
            }
        }
    }

    /// Sets inputs aside and makes the ticket.
    fn promise(
        &self,
        asker: &Asker,
        chosen: &Chosen,
        id: Id,
        time: Duration,
    ) -> Result<Ticket, Refusal> {
        let inputs = inputs_of(asker.amount, chosen).ok_or_else(|| {
            let why = format!("a session has 1 to {MOST_INPUTS} inputs");
            (Admission::denied(why), "model")
        })?;
        let (policy, now) = (self.policy(), SystemTime::now());
        if let Some(ledger) = &policy.ledger {
            let (client, model) = (&asker.known.client, chosen.model.name.as_str());
            let until = now + time + HANDSHAKE;
            let wanted = Reservation { id: &id, client, model, inputs, until };
            let budget = chosen.model.budget.unwrap_or(policy.budget);
            ledger.reserve(&wanted, &budget, now).map_err(|error| {
                let (refusal, broken) = refusal_of(error);
                if let Some(error) = &broken {
                    self.event(json!({"event": "ledger", "error": error.to_string()}));
                }
                (refusal, if broken.is_some() { "ledger" } else { "budget" })
            })?;
        }
        let claims = Claims {
            id,
            server: chosen.run,
            model: runtime::model_name(&chosen.model.name),
            reveal: asker.known.reveal,
            inputs,
            expiry: seconds(now + time),
            client: asker.key.clone(),
        };
        let mut floor = self.floor();
        floor.issued += 1;
        if let Some(out) = floor.tickets.get_mut(&id) {
            out.reserved = policy.ledger.is_some();
        }
        drop(floor);
        let address = chosen.address.clone();
        Ok(Ticket { address, ticket: claims.seal(&self.secret) })
    }

    /// Hears of tickets that were shown, redeemed, or came to nothing at a server.
    pub(crate) fn settle(&self, shown: &[Id], redeemed: &[Id], unused: &[Id]) {
        let mut floor = self.floor();
        for id in shown {
            if let Some(out) = floor.tickets.get_mut(id) {
                out.shown = true;
            }
        }
        for id in redeemed {
            floor.redeemed += u64::from(floor.tickets.remove(id).is_some());
        }
        for id in unused {
            floor.expired += u64::from(floor.tickets.remove(id).is_some());
        }
    }

    /// Releases what was set aside for tickets that are over, or whose server is `gone`.
    pub(crate) fn sweep(&self, gone: Option<&str>) {
        let now = Instant::now();
        let over: Vec<(Id, bool)> = {
            let mut floor = self.floor();
            let is_over = |out: &Out| match gone {
                Some(server) => out.server == server,
                // The clocks of servers may be late by a second.
                None => !out.shown && out.until + Duration::from_secs(1) < now,
            };
            let over: Vec<(Id, bool)> = floor
                .tickets
                .iter()
                .filter(|(_, out)| is_over(out))
                .map(|(id, out)| (*id, out.reserved))
                .collect();
            for (id, _) in &over {
                floor.tickets.remove(id);
                floor.roster.take_back(id);
            }
            floor.expired += over.len() as u64;
            over
        };
        if over.is_empty() {
            return;
        }
        if let Some(ledger) = self.policy().ledger {
            for (id, _) in over.iter().filter(|(_, reserved)| *reserved) {
                if let Err(error) = ledger.release(id) {
                    // It is over by itself in a while.
                    self.event(json!({"event": "ledger", "error": error.to_string()}));
                }
            }
        }
        self.changed.notify_all();
    }

    /// The fleet as others see it.
    pub(crate) fn state(&self) -> Value {
        let floor = self.floor();
        let (issued, redeemed, expired) = (floor.issued, floor.redeemed, floor.expired);
        json!({
            "servers": floor.roster.shown(Instant::now()),
            "waiting": floor.queue.len(),
            "waiting_by_model": floor.queue.by_model(&floor.roster.models()),
            "relayed": self.relays.load(Ordering::SeqCst),
            "tickets": {
                "issued": issued, "redeemed": redeemed, "expired": expired,
                "out": floor.tickets.len(),
            },
        })
    }
}

impl Floor {
    /// The server for a client, if it is its turn and one has room.
    fn turn(
        &self,
        asker: &Asker,
        place: Option<u64>,
        now: Instant,
    ) -> Result<Option<Chosen>, Refusal> {
        for (number, wanted) in self.queue.order() {
            if let Choice::Server(chosen) = self.roster.choose(wanted, now) {
                return Ok((Some(number) == place).then_some(chosen));
            }
        }
        match self.roster.choose(&asker.wanted, now) {
            Choice::Server(chosen) => Ok(place.is_none().then_some(chosen)),
            Choice::Full => Ok(None),
            Choice::NoWebSocket => {
                let why =
                    "no server of this fleet takes WebSockets: start the servers with --websocket";
                Err((Admission::denied(why), "model"))
            }
            Choice::Unknown(names) => {
                let names = names.join(", ");
                let why = if asker.wanted.model == [0; 32] {
                    format!("name a model; this fleet has {names}")
                } else {
                    format!("no such model; this fleet has {names}")
                };
                Err((Admission::denied(why), "model"))
            }
        }
    }

    /// How many come before this place in the queue.
    pub(crate) fn before(&self, place: u64) -> Option<u32> {
        let at = self.queue.order().iter().position(|(number, _)| *number == place)?;
        Some(u32::try_from(at).unwrap_or(u32::MAX))
    }
}

/// Inputs that are charged for so much at the server that was chosen.
fn inputs_of(amount: Amount, chosen: &Chosen) -> Option<u64> {
    let batch = chosen.model.batch.max(1);
    let runs = match amount {
        Amount::Values(values) => values.div_ceil(chosen.model.values.max(1)).div_ceil(batch),
        Amount::Runs(runs) => runs,
    };
    let most = u64::from(MOST_INPUTS).next_multiple_of(batch);
    runs.checked_mul(batch).filter(|inputs| (1..=most).contains(inputs))
}

/// A number that nobody can guess or has had before.
pub(crate) fn fresh() -> Result<Id> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|e| Error::transport(e.to_string()))?;
    Ok(id)
}
