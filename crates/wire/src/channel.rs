//! The channel: frames of typed messages, counted.

use std::fmt;

use crate::cost::{Cost, HEADER_LEN, Role};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::message::Message;
use crate::meter::{Meter, Phase};

/// An ordered, reliable pipe of bytes to the other party. Sending never waits
/// for the peer to read.
pub trait Transport: Send {
    /// Queues bytes.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone.
    fn send(&mut self, bytes: Vec<u8>) -> Result<()>;

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

    /// Delays everything sent from now on as `link` would.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a transport that cannot.
    fn shape(&mut self, link: Link) -> Result<()> {
        Err(Error::misuse(format!("this transport cannot imitate {link:?}")))
    }
}

/// One party's end of a session.
pub struct Channel {
    role: Role,
    transport: Box<dyn Transport>,
    meter: Meter,
}

impl Channel {
    /// The end that `role` holds.
    pub fn new(role: Role, transport: Box<dyn Transport>) -> Self {
        Self { role, transport, meter: Meter::new() }
    }

    /// Which party holds this end.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What has been counted.
    pub fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// Delays what this party sends as `link` would; both parties shape their own.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a transport that cannot.
    pub fn shape(&mut self, link: Link) -> Result<()> {
        self.transport.shape(link)
    }

    /// Attributes what follows to `layer` in `phase`.
    pub fn enter(&mut self, phase: Phase, layer: Option<usize>) {
        self.meter.enter(phase, layer);
    }

    /// Sends `message`.
    ///
    /// # Errors
    /// [`Error::Misuse`] above 4 GiB, [`Error::Transport`] when the peer is gone.
    pub fn send<M: Message>(&mut self, message: &M) -> Result<()> {
        let header = usize::try_from(HEADER_LEN).unwrap_or(usize::MAX);
        let mut frame = vec![0; header];
        message.encode(&mut frame);
        let body = frame.len().saturating_sub(header);
        let len = u32::try_from(body).map_err(|_| Error::misuse("a message above 4 GiB"))?;
        if let Some((tag, rest)) = frame.split_first_mut() {
            *tag = M::TAG;
            for (to, from) in rest.iter_mut().zip(len.to_le_bytes()) {
                *to = from;
            }
        }
        self.meter.count(Cost::message(self.role, u64::from(len)));
        self.transport.send(frame)
    }

    /// Receives an `M` of the given shape.
    ///
    /// # Errors
    /// [`Error::Peer`] with what arrived instead; [`Error::Transport`].
    pub fn receive<M: Message>(&mut self, shape: &M::Shape) -> Result<M> {
        let [tag, len @ ..] = self.header()?;
        if tag != M::TAG {
            let wanted = format!("message `{}` (tag {:#04x})", M::NAME, M::TAG);
            return Err(Error::peer(wanted, format!("a message with tag {tag:#04x}")));
        }
        let len = u32::from_le_bytes(len);
        let (least, most) = M::bounds(shape);
        if !(least..=most).contains(&u64::from(len)) {
            let wanted = format!("message `{}` of {least} to {most} bytes", M::NAME);
            return Err(Error::peer(wanted, format!("{len} bytes")));
        }
        let mut body = vec![0; usize::try_from(len).map_err(|_| Error::misuse("32-bit host"))?];
        self.transport.receive(&mut body)?;
        self.meter.count(Cost::message(!self.role, u64::from(len)));
        M::decode(&body, shape)
    }

    /// Waits until everything sent has left this process.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn flush(&mut self) -> Result<()> {
        self.transport.flush()
    }

    fn header(&mut self) -> Result<[u8; HEADER_LEN as usize]> {
        let mut header = [0; HEADER_LEN as usize];
        self.transport.receive(&mut header)?;
        Ok(header)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({:?})", self.role)
    }
}
