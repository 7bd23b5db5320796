//! The channel: frames of typed messages, counted.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use crate::admission::Admission;
use crate::cost::{Cost, HEADER_LEN, Role};
use crate::error::{Error, Result};
use crate::fleet::Followed;
use crate::frame::{any_len, append_frame, body_len, encode_frame};
use crate::meanwhile::{Meanwhile, Works};
use crate::message::Message;
use crate::meter::{Meter, Phase};
use crate::transport::link::Link;
use aside::Asides;

/// An ordered, reliable pipe of bytes to the other party. Sending never waits
/// for the peer to read.
pub trait Transport: Send {
    /// Queues bytes.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone.
    fn send(&mut self, bytes: &[u8]) -> Result<()>;

    /// Waits for exactly `buffer.len()` bytes.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone or the time is up.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<()>;

    /// Waits until everything queued has been handed to the network.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone or the time is up.
    fn flush(&mut self) -> Result<()>;

    /// Says that nothing follows and that all is well, after what is queued.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone or the time is up.
    fn close(&mut self) -> Result<()> {
        self.flush()
    }

    /// Waits up to `patience` for the peer to close in its turn. What cannot know says
    /// that it did.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection broke off or stays open,
    /// [`Error::Peer`] when the peer goes on sending.
    fn closed(&mut self, _patience: Duration) -> Result<()> {
        Ok(())
    }

    /// Whether the next byte may take as long as the session does, because the peer has much
    /// to compute, or as long as ever.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone or the time is up.
    fn expect_silence(&mut self, _silent: bool) -> Result<()> {
        Ok(())
    }

    /// Is told which layer of which phase what follows is for, to show it to those who wait.
    fn entered(&mut self, _phase: Phase, _layer: Option<usize>) {}

    /// Returns the name of the group in which TLS exchanged keys; none without TLS.
    fn key_exchange(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether the peer said in the handshake of TLS that it is the door of a fleet.
    fn is_door(&self) -> bool {
        false
    }

    /// Returns a value that only the two ends of this connection share, by which a proof holds for
    /// no other connection (RFC 9266); none without TLS.
    fn binding(&self) -> Option<[u8; 32]> {
        None
    }

    /// Returns what it cost to ask a door for this connection, and the server's address; none
    /// where no door was asked.
    fn detour(&self) -> Option<Followed> {
        None
    }

    /// Returns whether something can be received without waiting, or the connection is gone. What
    /// cannot know says that it can.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Delays everything sent from now on as `link` would.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a transport that cannot.
    fn shape(&mut self, link: Link) -> Result<()> {
        Err(Error::misuse(format!("this transport cannot imitate {link:?}")))
    }
}

/// Bytes that are received at a time where there is work to do between them.
const PIECE: usize = 1 << 16;

/// Bytes of the longest frame whose memory is kept for the next one: fresh memory for every
/// large message would take as long as encrypting it.
const KEPT: usize = 1 << 22;

/// One party's end of a session.
pub struct Channel {
    role: Role,
    transport: Box<dyn Transport>,
    meter: Meter,
    /// Frames sent and received so far.
    sent: u64,
    received: u64,
    detour: Option<Followed>,
    /// What can be done while this party waits.
    works: Works,
    asides: Asides,
    /// Memory of the last frame sent and of the last body received.
    frame: Vec<u8>,
    body: Vec<u8>,
}

impl Channel {
    /// Makes the end that `role` holds.
    pub fn new(role: Role, transport: Box<dyn Transport>) -> Self {
        let (frame, body) = (Vec::new(), Vec::new());
        let (meter, detour, works) = (Meter::new(), None, Works::default());
        let (sent, received, asides) = (0, 0, Asides::default());
        Self { role, transport, meter, sent, received, detour, works, asides, frame, body }
    }

    /// Returns which party holds this end.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the name of the group in which TLS exchanged keys, as IANA registers it
    /// (`X25519MLKEM768` between parties of this release); none without TLS.
    pub fn key_exchange(&self) -> Option<&'static str> {
        self.transport.key_exchange()
    }

    /// Returns whether the server said in the handshake of TLS that it is the door of a fleet.
    pub fn is_door(&self) -> bool {
        self.transport.is_door()
    }

    /// Returns a value that only the two ends of this connection share, by which a proof holds for
    /// no other connection (RFC 9266); none without TLS.
    pub fn binding(&self) -> Option<[u8; 32]> {
        self.transport.binding()
    }

    /// Returns what it cost to ask a door for this connection, and the server's address; none
    /// where no door was asked.
    pub fn detour(&self) -> Option<Followed> {
        self.detour.clone().or_else(|| self.transport.detour())
    }

    /// Notes that a door was asked for this connection.
    #[must_use]
    pub fn after(self, detour: Followed) -> Self {
        Self { detour: Some(detour), ..self }
    }

    /// Sends `message` before the first frame. No meter counts it, as none counts the handshake of TLS.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn preface<M: Message>(&mut self, message: &M) -> Result<()> {
        self.transport.send(&encode_frame(message, 0)?)
    }

    /// Returns what has been counted.
    pub fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// Delays what this party sends as `link` would; both parties shape their own.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a transport that cannot.
    pub fn shape(&mut self, link: Link) -> Result<()> {
        if link == Link::LOOPBACK {
            return Ok(());
        }
        self.transport.shape(link)
    }

    /// Does all of `works` by turns where this party waits for the other, after what was registered before, until
    /// nothing is left of them or they are dropped.
    pub fn meanwhile(&mut self, works: VecDeque<Weak<dyn Meanwhile>>) {
        self.works.add(works);
    }

    /// Waits for exactly `buffer.len()` bytes, and works meanwhile.
    fn fetch(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut rest = buffer;
        while !self.works.is_empty() && !rest.is_empty() {
            while !self.transport.is_ready() && self.works.work() {}
            let now = rest.len().min(PIECE);
            let (piece, later) = rest.split_at_mut(now);
            self.transport.receive(piece)?;
            rest = later;
        }
        self.transport.receive(rest)
    }

    /// Attributes what follows to `layer` in `phase`.
    pub fn enter(&mut self, phase: Phase, layer: Option<usize>) {
        self.meter.enter(phase, layer);
        self.transport.entered(phase, layer);
    }

    /// Sends `message`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a body above [`MOST_BODY`](crate::MOST_BODY), [`Error::Transport`] when the
    /// peer is gone.
    pub fn send<M: Message>(&mut self, message: &M) -> Result<()> {
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        let len = append_frame(&mut frame, message, self.sent)?;
        self.sent += 1;
        self.meter.count(Cost::message(self.role, len));
        self.transport.send(&frame)?;
        self.frame = kept(frame);
        Ok(())
    }

    /// Receives an `M` of the given shape.
    ///
    /// # Errors
    /// [`Error::Peer`] with the tag of `M` and what arrived instead; [`Error::Transport`].
    pub fn receive<M: Message>(&mut self, shape: &M::Shape) -> Result<M> {
        let header = self.header()?;
        if header[0] == Admission::TAG && M::TAG != Admission::TAG && self.role == Role::Client {
            return Err(self.refusal(header)?);
        }
        self.body(header, shape)
    }

    /// The message after its header.
    fn body<M: Message>(
        &mut self,
        header: [u8; HEADER_LEN as usize],
        shape: &M::Shape,
    ) -> Result<M> {
        let len = body_len::<M>(header, self.received, shape)?;
        let mut body = std::mem::take(&mut self.body);
        body.resize(usize::try_from(len).map_err(|_| Error::misuse("16-bit host"))?, 0);
        self.fetch(&mut body)?;
        self.received += 1;
        self.meter.count(Cost::message(!self.role, u64::from(len)));
        let message = M::decode(&body, shape);
        self.body = kept(body);
        message.map_err(|e| e.about(M::TAG))
    }

    /// Receives frames of `bytes` bytes together, headers included, and throws them away as they
    /// come.
    ///
    /// # Errors
    /// [`Error::Peer`] when the last of them does not end there, [`Error::Transport`].
    pub fn skip(&mut self, bytes: u64) -> Result<()> {
        let (mut left, mut piece) = (bytes, [0; 1 << 12]);
        while left > 0 {
            let len = any_len(self.header()?, self.received)?;
            let rest = left.checked_sub(HEADER_LEN + u64::from(len));
            left = rest.ok_or_else(|| Error::peer(format!("{left} bytes to skip"), "more"))?;
            let mut body = usize::try_from(len).map_err(|_| Error::misuse("16-bit host"))?;
            while body > 0 {
                let now = body.min(piece.len());
                self.transport.receive(piece.get_mut(..now).unwrap_or_default())?;
                body -= now;
            }
            self.received += 1;
            self.meter.count(Cost::message(!self.role, u64::from(len)));
        }
        Ok(())
    }

    /// Waits until everything sent has left this process.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn flush(&mut self) -> Result<()> {
        self.transport.flush()
    }

    /// Says that nothing follows and that all is well. A channel that is dropped
    /// without it breaks off, as far as its transport can tell the two apart.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn close(&mut self) -> Result<()> {
        self.transport.close()
    }

    /// Waits up to `patience` for the peer to close in its turn.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection broke off or stays open,
    /// [`Error::Peer`] when the peer goes on sending.
    pub fn closed(&mut self, patience: Duration) -> Result<()> {
        self.transport.closed(patience)
    }

    /// Lets the peer compute for as long as the session may take, or again only as long as
    /// it may ever be silent.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone or the time is up.
    pub fn expect_silence(&mut self, silent: bool) -> Result<()> {
        self.transport.expect_silence(silent)
    }

    /// The next header of a message of the protocol.
    fn header(&mut self) -> Result<[u8; HEADER_LEN as usize]> {
        self.wait_aside()?;
        loop {
            let header = self.next_header()?;
            if !self.is_aside(header[0]) {
                return Ok(header);
            }
            self.keep(header)?;
        }
    }

    fn next_header(&mut self) -> Result<[u8; HEADER_LEN as usize]> {
        let mut header = [0; HEADER_LEN as usize];
        self.fetch(&mut header)?;
        Ok(header)
    }
}

/// `memory` for the next message, unless it is too much to hold.
fn kept(memory: Vec<u8>) -> Vec<u8> {
    if memory.capacity() > KEPT { Vec::new() } else { memory }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({:?})", self.role)
    }
}

mod admission;
mod aside;
mod crossing;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
