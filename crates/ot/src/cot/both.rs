//! The setup of both directions of a session at once.
//!
//! The last flight goes from the server to the client, and the client needs nothing of it to make
//! the correlations of which it is the receiver. So the setup is in two parts, between which a
//! session may send what it has: [`Setup::begin`] and [`Begun::finish`].

use ring::{Random, Seed};
use wire::{Channel, Cost, Result, Role};

use super::batch::{ReceiverBatch, SenderBatch};
use super::kept::Kept;
use super::proof::{Expected, TreeProof, proof_cost};
use super::schedule::Sourcing;
use super::setup::{self, Accepting, Offered, TreeSums, sums_layout};
use super::softspoken::{Corrections, corrections_layout};
use super::{CotReceiver, CotSender};
use crate::audit;
use crate::base::hybrid::{Request, request_cost};
use crate::session::{Domain, SessionId};

/// How both directions of a session are set up; both parties say the same.
pub struct Setup {
    /// The session.
    pub session: SessionId,
    /// Where its correlations come from.
    pub sourcing: Sourcing,
    /// Base OTs of an earlier session, in the place of new ones.
    pub kept: Option<Kept>,
    /// Whether base OTs for a later session are made.
    pub keeps: bool,
}

/// A setup of which the last flight, from the server to the client, is still to come.
pub struct Begun {
    session: SessionId,
    sourcing: Sourcing,
    keeps: bool,
    receiver: CotReceiver,
    /// The part of the first direction in what is kept: the client's as its receiver, the server's
    /// as its sender.
    first: Option<Grain>,
    last: Last,
}

/// Correlations of which base OTs for a later session are made.
enum Grain {
    Sent(SenderBatch),
    Received(ReceiverBatch),
}

/// What the last flight brings.
enum Last {
    /// The server says it.
    Said(Box<CotSender>, Saying),
    /// The client hears the proof that the server's base OTs are right.
    Proved(Box<CotSender>, Expected),
    /// The client hears the sums of the server's trees.
    Summed(Accepting, Vec<Seed>),
}

/// What the server says last.
enum Saying {
    Proof(TreeProof),
    Sums(TreeSums),
}

impl Setup {
    /// A setup that has nothing of an earlier session and leaves nothing to a later one.
    pub fn new(session: SessionId, source: impl Into<Sourcing>) -> Self {
        Self { session, sourcing: source.into(), kept: None, keeps: false }
    }

    /// Sets both directions up at once, in four rounds, or two with kept base OTs; both parties
    /// call it. The sender returned holds this party's Delta.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub fn run(
        self,
        ch: &mut Channel,
        rng: &mut Random,
    ) -> Result<(CotSender, CotReceiver, Option<Kept>)> {
        self.begin(ch, rng)?.finish(ch)
    }

    /// All but the last flight, after which the client is a receiver of correlations and the
    /// server a sender.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub fn begin(mut self, ch: &mut Channel, rng: &mut Random) -> Result<Begun> {
        match self.kept.take() {
            Some(kept) => {
                audit::kept(&kept.name());
                self.resume(ch, rng, &kept)
            }
            None => self.fresh(ch, rng),
        }
    }

    /// The domains of the direction in which this party is the COT sender, and of the other.
    fn domains(&self, role: Role) -> (Domain, Domain) {
        (Domain::new(self.session, role), Domain::new(self.session, !role))
    }

    /// With new base OTs. Each party sends its choices, what it offers, and its proof; the client
    /// begins, and all that one party can say at a time is one round. Both compute their offers at the
    /// same time, which are most of the work, and then their proofs.
    fn fresh(&self, ch: &mut Channel, rng: &mut Random) -> Result<Begun> {
        let Self { sourcing, keeps, .. } = *self;
        let (field, role) = (sourcing.source.field(), ch.role());
        let (ours, theirs) = self.domains(role);
        let (accepting, chooser, request) = setup::accept(ours, sourcing, rng);
        let their_request = if role == Role::Client {
            request.send(ch)?;
            Request::receive(ch, sourcing.base)?
        } else {
            let their_request = Request::receive(ch, sourcing.base)?;
            request.send(ch)?;
            their_request
        };
        let (trees, expected, offered) = setup::offer(&theirs, field, rng, &their_request)?;
        if role == Role::Server {
            offered.send(ch)?;
        }
        let their_offer = Offered::receive(ch, sourcing)?;
        if role == Role::Client {
            offered.send(ch)?;
        }
        let (our_trees, proof) = accepting.finish(chooser, their_offer)?;
        let mut sender = Box::new(CotSender::with_trees(ours, sourcing, role, our_trees));
        let mut receiver = CotReceiver::with_trees(theirs, sourcing, !role, trees);
        let (first, last) = if role == Role::Client {
            let first = say(ch, &mut receiver, keeps, &Saying::Proof(proof))?;
            (first.map(Grain::Received), Last::Proved(sender, expected))
        } else {
            let first = hear(ch, &mut sender, keeps)?;
            setup::verify(ch, &expected)?;
            (first.map(Grain::Sent), Last::Said(sender, Saying::Proof(proof)))
        };
        Ok(Begun { session: self.session, sourcing, keeps, receiver, first, last })
    }

    /// With base OTs of an earlier session: only the sums of trees cross.
    fn resume(&self, ch: &mut Channel, rng: &mut Random, kept: &Kept) -> Result<Begun> {
        let Self { session, sourcing, keeps, .. } = *self;
        let (field, role) = (sourcing.source.field(), ch.role());
        let (ours, theirs) = self.domains(role);
        let accepting = Accepting::new(ours, field, kept.delta());
        let keys = kept.accepted(&ours, field);
        let (trees, sums) = setup::resume(&theirs, field, rng, &kept.offered(&theirs, field));
        let mut receiver = CotReceiver::with_trees(theirs, sourcing, !role, trees);
        let (first, last) = if role == Role::Client {
            let first = say(ch, &mut receiver, keeps, &Saying::Sums(sums))?;
            (first.map(Grain::Received), Last::Summed(accepting, keys))
        } else {
            let trees = accepting.resume(&keys, ch.receive(&sums_layout().to_vec())?)?;
            let mut sender = Box::new(CotSender::with_trees(ours, sourcing, role, trees));
            let first = hear(ch, &mut sender, keeps)?;
            (first.map(Grain::Sent), Last::Said(sender, Saying::Sums(sums)))
        };
        Ok(Begun { session, sourcing, keeps, receiver, first, last })
    }
}

impl Begun {
    /// Returns the end of the direction in which the server is the sender, which the setup has
    /// brought about already: of the client the receiver, of the server the sender.
    pub fn first(&mut self) -> (Option<&mut CotSender>, Option<&mut CotReceiver>) {
        match &mut self.last {
            Last::Said(sender, _) => (Some(sender), None),
            Last::Proved(..) | Last::Summed(..) => (None, Some(&mut self.receiver)),
        }
    }

    /// Lets extensions use so many threads; 1 at first.
    pub fn set_threads(&mut self, threads: usize) {
        self.receiver.set_threads(threads);
        if let Last::Said(sender, _) | Last::Proved(sender, _) = &mut self.last {
            sender.set_threads(threads);
        }
    }

    /// The last flight.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub fn finish(self, ch: &mut Channel) -> Result<(CotSender, CotReceiver, Option<Kept>)> {
        let Self { session, sourcing, keeps, mut receiver, first, last } = self;
        let (sender, grains) = match last {
            Last::Said(sender, saying) => {
                let received = say(ch, &mut receiver, keeps, &saying)?;
                (*sender, (first, received.map(Grain::Received)))
            }
            Last::Proved(mut sender, expected) => {
                let sent = hear(ch, &mut sender, keeps)?;
                setup::verify(ch, &expected)?;
                (*sender, (first, sent.map(Grain::Sent)))
            }
            Last::Summed(accepting, keys) => {
                let domain = Domain::new(session, ch.role());
                let trees = accepting.resume(&keys, ch.receive(&sums_layout().to_vec())?)?;
                let mut sender = CotSender::with_trees(domain, sourcing, ch.role(), trees);
                let sent = hear(ch, &mut sender, keeps)?;
                (sender, (first, sent.map(Grain::Sent)))
            }
        };
        let kept = match grains {
            (Some(Grain::Sent(sent)), Some(Grain::Received(received)))
            | (Some(Grain::Received(received)), Some(Grain::Sent(sent))) => {
                Some(Kept::new(&session, sent, received))
            }
            _ => None,
        };
        Ok((sender, receiver, kept))
    }
}

/// Sends what a party says last: the sums of its trees, corrections to keep, if any, and its proof.
fn say(
    ch: &mut Channel,
    receiver: &mut CotReceiver,
    keeps: bool,
    saying: &Saying,
) -> Result<Option<ReceiverBatch>> {
    if let Saying::Sums(sums) = saying {
        ch.send(sums)?;
    }
    let grain = keeps.then(|| receiver.make_grain(ch)).transpose()?;
    if let Saying::Proof(proof) = saying {
        ch.send(proof)?;
    }
    Ok(grain)
}

/// Receives the other party's corrections to keep, if any.
fn hear(ch: &mut Channel, sender: &mut CotSender, keeps: bool) -> Result<Option<SenderBatch>> {
    keeps.then(|| sender.make_grain(ch)).transpose()
}

/// What [`Setup::run`] costs.
pub fn setup_cost(sourcing: impl Into<Sourcing>, kept: bool, keeps: bool) -> Cost {
    let [begin, last] = setup_costs(sourcing, kept, keeps);
    begin.then(last)
}

/// What [`Setup::begin`] and [`Begun::finish`] cost.
pub fn setup_costs(sourcing: impl Into<Sourcing>, kept: bool, keeps: bool) -> [Cost; 2] {
    let (client, server, sourcing) = (Role::Client, Role::Server, sourcing.into());
    let field = sourcing.source.field();
    let corrections = Corrections::body_len(&corrections_layout(field, 1));
    let grain = |role| if keeps { Cost::message(role, corrections) } else { Cost::NONE };
    if kept {
        return [client, server].map(|role| setup::sums_cost(role).then(grain(role)));
    }
    let last = |role| grain(role).then(proof_cost(role));
    let begin = request_cost(client, sourcing.base)
        .then(request_cost(server, sourcing.base))
        .then(setup::offered_cost(server, sourcing))
        .then(setup::offered_cost(client, sourcing))
        .then(last(client));
    [begin, last(server)]
}
