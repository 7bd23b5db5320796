//! A server as one of a fleet: what it knows of its door, and which tickets were shown to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use wire::{Admission, Error, Result};

use crate::fleet::books::Books;
use crate::fleet::membership::Membership;
use crate::fleet::secret::Secret;
use crate::fleet::ticket::{Bad, Claims, Id, seconds};
use crate::fleet::voucher;
use crate::identity::Client;
use crate::ledger::{Budget, Ledger};
use crate::lock::locked;
use crate::policy::{Known, refusal_of};
use crate::tokens::hexadecimal;

/// Longest time for which a ticket is out, by the server's own reckoning.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// A server's part in its fleet.
pub(crate) struct Member {
    pub(crate) membership: Membership,
    pub(crate) secret: Secret,
    /// This run of the server.
    pub(crate) run: [u8; 16],
    /// Numbers of tickets and vouchers that were shown to this run, until they are over anyway.
    shown: Mutex<HashMap<Id, Instant>>,
    /// What the door has not heard yet.
    pub(crate) unheard: Mutex<Unheard>,
    nudge: Mutex<Sender<()>>,
    pub(crate) nudged: Mutex<Option<Receiver<()>>>,
    /// What the door has said.
    pub(crate) counts: AtomicBool,
    pub(crate) asks: AtomicBool,
    pub(crate) welcomed: AtomicBool,
    /// The door gives no tickets for this server any more, and none is out.
    pub(crate) released: AtomicBool,
    pub(crate) over: AtomicBool,
    books: Books,
}

/// What the door is told with the next beat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unheard {
    pub(crate) kept: Vec<String>,
    pub(crate) shown: Vec<String>,
    pub(crate) redeemed: Vec<String>,
    pub(crate) unused: Vec<String>,
    pub(crate) models: bool,
}

/// The right that a ticket gives, until it is redeemed.
pub(crate) struct Pass {
    member: Arc<Member>,
    pub(crate) id: Id,
    redeemed: AtomicBool,
    ledger: Option<Arc<Ledger>>,
}

impl Member {
    /// # Errors
    /// [`Error::Misuse`] for a secret that cannot be read.
    pub(crate) fn new(membership: Membership) -> Result<Arc<Self>> {
        let secret = Secret::from_file(&membership.secret, false)?;
        let mut run = [0; 16];
        getrandom::fill(&mut run).map_err(|e| Error::transport(e.to_string()))?;
        let (nudge, nudged) = mpsc::channel();
        Ok(Arc::new(Self {
            membership,
            secret,
            run,
            shown: Mutex::default(),
            unheard: Mutex::default(),
            nudge: Mutex::new(nudge),
            nudged: Mutex::new(Some(nudged)),
            counts: AtomicBool::new(false),
            asks: AtomicBool::new(true),
            welcomed: AtomicBool::new(false),
            released: AtomicBool::new(false),
            over: AtomicBool::new(false),
            books: Books::default(),
        }))
    }

    /// Where the door is, and what it shares with this server.
    const fn door(&self) -> (&Membership, &Secret) {
        (&self.membership, &self.secret)
    }

    /// Has the door hear at once what is new.
    pub(crate) fn tell(&self, change: impl FnOnce(&mut Unheard)) {
        change(&mut locked(&self.unheard));
        // The receiver lives as long as the thread that beats.
        let _ = locked(&self.nudge).send(());
    }

    /// Notes a number as shown; false where it was before.
    fn first(&self, id: Id) -> bool {
        let now = Instant::now();
        let mut shown = locked(&self.shown);
        shown.retain(|_, until| *until > now);
        shown.insert(id, now + LONGEST + Duration::from_secs(60)).is_none()
    }

    /// Who shows this ticket, for the first time, with a certificate of this `subject` if with any.
    ///
    /// # Errors
    /// What the client is told.
    pub(crate) fn admit(
        self: &Arc<Self>,
        ticket: &[u8],
        subject: Option<&str>,
        ledger: Option<Arc<Ledger>>,
    ) -> Result<(Known, Claims, Pass), Admission> {
        let again = Duration::from_secs(1);
        let now = seconds(SystemTime::now());
        let claims =
            Claims::open(ticket, &self.secret, &self.run, now).map_err(|bad| match bad {
                // The ticket is for a run that has ended, or from before the fleet's secret was
                // changed: the door gives another.
                Bad::Foreign => {
                    Admission::busy(again, "the ticket is not for this server; ask the door")
                }
                Bad::Over => Admission::busy(again, "the ticket is over; ask the door for another"),
            })?;
        let client: Client = claims
            .client
            .parse()
            .map_err(|_| Admission::denied("the ticket names no client of this release"))?;
        if let Client::Certificate(named) = &client
            && subject != Some(named)
        {
            return Err(Admission::denied("the ticket is for the owner of another certificate"));
        }
        if !self.first(claims.id) {
            return Err(Admission::denied("the ticket was shown before"));
        }
        let id = claims.id;
        self.tell(|news| news.shown.push(hexadecimal(&id)));
        let known = Known { client, reveal: claims.reveal };
        let pass = Pass { member: self.clone(), id, redeemed: AtomicBool::new(false), ledger };
        Ok((known, claims, pass))
    }

    /// Whether the door of this fleet vouches for a PROXY header that says `source`, for the first
    /// time.
    pub(crate) fn vouches(&self, voucher: &[u8], source: std::net::SocketAddr) -> bool {
        let now = seconds(SystemTime::now());
        let Some(id) = voucher::open(voucher, &self.secret, &self.run, source, now) else {
            return false;
        };
        let first = self.first(id);
        if first {
            self.tell(|news| news.shown.push(hexadecimal(&id)));
        }
        first
    }

    /// Counts inputs of a client without a ticket in the door's ledger, where the door counts.
    ///
    /// # Errors
    /// What the client is told, and what the operator has to know.
    pub(crate) fn charge(
        &self,
        client: &Client,
        model: &str,
        budget: Option<Budget>,
        inputs: u64,
    ) -> Result<(), (Admission, Option<Box<crate::error::Error>>)> {
        if !self.counts.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.books.charge(self.door(), client, model, budget, inputs).map_err(refusal_of)
    }
}

impl Pass {
    /// Makes a charge of what was set aside for the ticket: of `inputs`, durably, before anything of an
    /// answer leaves. `Ok(false)` where the door counts nothing.
    ///
    /// # Errors
    /// What the client is told, and what the operator has to know.
    pub(crate) fn redeem(
        &self,
        inputs: u64,
        budget: Option<Budget>,
        own: Budget,
    ) -> Result<bool, (Admission, Option<Box<crate::error::Error>>)> {
        let member = &self.member;
        let counts = member.counts.load(Ordering::SeqCst);
        if counts {
            let now = SystemTime::now();
            match &self.ledger {
                Some(ledger) => ledger
                    .redeem(&self.id, inputs, &budget.unwrap_or(own), now)
                    .map(drop)
                    .map_err(refusal_of)?,
                None => {
                    member
                        .books
                        .redeem(member.door(), &self.id, inputs, budget)
                        .map_err(refusal_of)?;
                }
            }
        }
        self.redeemed.store(true, Ordering::SeqCst);
        runtime::audit::ticket(&self.id);
        member.tell(|news| news.redeemed.push(hexadecimal(&self.id)));
        Ok(counts)
    }

    /// Keeps what was set aside while the session waits.
    pub(crate) fn extend(&self) {
        if !self.member.counts.load(Ordering::SeqCst) {
            return;
        }
        // Where that fails the ticket cannot be redeemed either, which says why.
        let now = SystemTime::now();
        let _ = match &self.ledger {
            Some(ledger) => ledger.extend(&self.id, now + super::EXTENDED, now).map(drop),
            None => self.member.books.extend(self.member.door(), &self.id),
        };
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.redeemed.load(Ordering::SeqCst) {
            return;
        }
        if self.member.counts.load(Ordering::SeqCst) {
            // A ticket that cannot be released now runs out by itself.
            let _ = match &self.ledger {
                Some(ledger) => ledger.release(&self.id),
                None => self.member.books.release(self.member.door(), &self.id),
            };
        }
        let id = hexadecimal(&self.id);
        self.member.tell(|news| news.unused.push(id));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::thread;

    use super::*;

    fn member(folder: &std::path::Path) -> Arc<Member> {
        let secret = folder.join("secret");
        Secret::from_file(&secret, true).unwrap();
        let (control, server) = ("127.0.0.1:1".into(), "one".into());
        let (advertise, advertise_websocket, pin) = (None, None, None);
        let fleet = Membership { control, secret, server, advertise, advertise_websocket, pin };
        Member::new(fleet).unwrap()
    }

    fn ticket(member: &Member, id: u8, client: &str, run: [u8; 16], expiry: u64) -> Vec<u8> {
        let (id, client, inputs) = ([id; 16], client.into(), 1);
        let claims =
            Claims { id, server: run, model: [3; 32], reveal: None, inputs, expiry, client };
        claims.seal(&member.secret)
    }

    #[test]
    fn a_ticket_admits_its_client_once_however_many_show_it() {
        let folder = tempfile::tempdir().unwrap();
        let member = member(folder.path());
        let later = seconds(SystemTime::now()) + 30;
        let good = ticket(&member, 1, "token:ward-3", member.run, later);
        let admitted: usize = thread::scope(|scope| {
            let show = || usize::from(member.admit(&good, None, None).is_ok());
            let shown: Vec<_> = (0..16).map(|_| scope.spawn(show)).collect();
            shown.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1);
        assert!(matches!(member.admit(&good, None, None), Err(Admission::Denied { .. })));
        assert_eq!(locked(&member.unheard).shown.len(), 1);
    }

    #[test]
    fn tickets_of_others_and_late_ones_are_worth_asking_the_door_again() {
        let folder = tempfile::tempdir().unwrap();
        let member = member(folder.path());
        let now = seconds(SystemTime::now());
        let busy = [
            ticket(&member, 2, "token:a", [9; 16], now + 30),
            ticket(&member, 3, "token:a", member.run, now),
            b"no ticket".to_vec(),
        ];
        for ticket in busy {
            assert!(matches!(member.admit(&ticket, None, None), Err(Admission::Busy { .. })));
        }
        let certified = ticket(&member, 4, "cert:CN=ward", member.run, now + 30);
        assert!(matches!(
            member.admit(&certified, Some("CN=other"), None),
            Err(Admission::Denied { .. })
        ));
        let (known, claims, pass) = member.admit(&certified, Some("CN=ward"), None).unwrap();
        assert_eq!((known.client.key().as_str(), claims.inputs), ("cert:CN=ward", 1));
        drop(pass);
        assert_eq!(locked(&member.unheard).unused.len(), 1, "it was not redeemed");
    }

    #[test]
    fn the_door_vouches_for_an_address_once() {
        let folder = tempfile::tempdir().unwrap();
        let member = member(folder.path());
        let source = std::net::SocketAddr::from(([10, 0, 0, 1], 80));
        let now = seconds(SystemTime::now());
        let voucher = voucher::seal(&member.secret, &[5; 16], &member.run, source, now);
        assert!(member.vouches(&voucher, source) && !member.vouches(&voucher, source));
        assert!(!member.vouches(&[], source));
    }
}
