//! Following a door where nothing tells beforehand whether the peer is one, as ALPN does in native TLS: the
//! client asks for a server and begins its session, and begins it again with the server that a door names. A
//! server that is no door goes on with it.

#[cfg(not(target_arch = "wasm32"))]
use std::net::TcpStream;
use std::time::Duration;

use ring::host::Instant;
use zeroize::Zeroizing;

use crate::admission::Admission;
use crate::channel::{Channel, Transport};
use crate::cost::{HEADER_LEN, Role};
use crate::error::Result;
use crate::fleet::{DoorRequest, Followed, ShownTicket, Ticket};
use crate::frame::{body_len, encode_frame};
use crate::message::Message;
use crate::tags;
use crate::transport::link::Link;

/// How a client goes where a door says.
pub struct Way {
    /// Connects to HOST:PORT, a server that shows the same identity as the door.
    pub dial: Box<Dial>,
    /// Hears how many clients come before this one, while it waits at the door.
    pub told: Box<dyn Fn(u32) + Send>,
}

/// Connects to HOST:PORT.
pub type Dial = dyn FnMut(&str) -> Result<Box<dyn Transport>> + Send;

/// A connection that may turn out to lead to a door.
struct Following {
    inner: Box<dyn Transport>,
    way: Way,
    /// What the session has sent so far, until the peer has answered.
    begun: Option<Zeroizing<Vec<u8>>>,
    /// A header that was read to learn who answers.
    header: Vec<u8>,
    link: Option<Link>,
    since: Instant,
    asked: u64,
    followed: Option<Followed>,
}

/// Asks a door for a ticket, over a channel to it, and closes that; `told` hears how many clients come before this one. Returns
/// also how many bytes the door sent.
///
/// # Errors
/// The door's refusal as an error of its kind, as [`Channel::receive_unless_waiting`].
pub fn ask_door(
    mut channel: Channel,
    request: &DoorRequest,
    told: &dyn Fn(u32),
) -> Result<(Ticket, u64)> {
    channel.send(request)?;
    loop {
        if let Some(ticket) = channel.receive_unless_waiting::<Ticket>(&(), told)? {
            let received = channel.meter().total(None).cost.server_to_client;
            // The door closes in its turn, and nobody waits for it.
            let _ = channel.close();
            return Ok((ticket, received));
        }
    }
}

/// Shows a ticket over a fresh channel to its server, where the door was asked for it at `since` and sent so many bytes.
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) for a connection that is gone.
pub fn show_ticket(
    mut channel: Channel,
    ticket: &Ticket,
    (since, received): (Instant, u64),
) -> Result<Channel> {
    let seconds = since.elapsed().as_secs_f64();
    let shown = ShownTicket(ticket.ticket.clone());
    channel.preface(&shown)?;
    let (_, request) = DoorRequest::bounds(&());
    let sent = 2 * HEADER_LEN + request + shown.0.len() as u64;
    let server = ticket.address.clone();
    Ok(channel.after(Followed { server, sent, received, seconds }))
}

/// Returns a channel over `transport` to a server, or to a door that names one.
///
/// # Errors
/// [`Error::Transport`](crate::Error::Transport) for a connection that is gone.
pub fn following_by(
    mut transport: Box<dyn Transport>,
    way: Way,
    request: &DoorRequest,
) -> Result<Channel> {
    let frame = Zeroizing::new(encode_frame(request, 0)?);
    transport.send(&frame)?;
    let transport = Following {
        inner: transport,
        way,
        begun: Some(Zeroizing::default()),
        header: Vec::new(),
        link: None,
        since: Instant::now(),
        asked: frame.len() as u64,
        followed: None,
    };
    Ok(Channel::new(Role::Client, Box::new(transport)))
}

/// Returns a channel without encryption over `stream` to a server, or to a door that names one.
///
/// # Errors
/// [`Error::Misuse`](crate::Error::Misuse) unless both ends are on the loopback interface,
/// [`Error::Transport`](crate::Error::Transport).
#[cfg(not(target_arch = "wasm32"))]
pub fn following(
    stream: TcpStream,
    timeouts: super::tcp::Timeouts,
    request: &DoorRequest,
) -> Result<Channel> {
    let plain = move |stream| -> Result<Box<dyn Transport>> {
        Ok(Box::new(super::tcp::plain(stream, timeouts)?))
    };
    let dial = move |address: &str| plain(super::tcp::connect(address, timeouts)?);
    let way = Way { dial: Box::new(dial), told: Box::new(|_| ()) };
    following_by(plain(stream)?, way, request)
}

impl Following {
    /// Learns who answers: reads the first header, and goes where a door says.
    fn meet(&mut self, begun: &[u8]) -> Result<()> {
        let (mut position, mut received) = (0, 0);
        loop {
            let mut header = [0; HEADER_LEN as usize];
            self.inner.receive(&mut header)?;
            match header.first() {
                Some(&tags::TICKET) => {
                    let (ticket, length) = self.body::<Ticket>(header, position)?;
                    return self.go(&ticket, begun, received + length);
                }
                Some(&tags::ADMISSION) => {
                    let (admission, length) = self.body::<Admission>(header, position)?;
                    let Admission::Waiting { before } = admission else {
                        // The session reads the refusal as it reads that of a server.
                        self.header = encode_frame(&admission, 0)?;
                        return Ok(());
                    };
                    (self.way.told)(before);
                    received += length;
                }
                _ => {
                    self.header = header.to_vec();
                    return Ok(());
                }
            }
            position += 1;
        }
    }

    fn body<M: Message<Shape = ()>>(
        &mut self,
        header: [u8; HEADER_LEN as usize],
        position: u64,
    ) -> Result<(M, u64)> {
        let length = body_len::<M>(header, position, &())?;
        let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
        self.inner.receive(&mut body)?;
        Ok((M::decode(&body, &())?, u64::from(length) + HEADER_LEN))
    }

    /// Begins the session again with the server of `ticket`.
    fn go(&mut self, ticket: &Ticket, begun: &[u8], received: u64) -> Result<()> {
        // The door has closed the connection or will.
        let _ = self.inner.close();
        self.inner = (self.way.dial)(&ticket.address)?;
        if let Some(link) = self.link {
            self.inner.shape(link)?;
        }
        let seconds = self.since.elapsed().as_secs_f64();
        let shown = encode_frame(&ShownTicket(ticket.ticket.clone()), 0)?;
        let sent = self.asked + shown.len() as u64;
        self.inner.send(&shown)?;
        self.inner.send(begun)?;
        let server = ticket.address.clone();
        self.followed = Some(Followed { server, sent, received, seconds });
        Ok(())
    }
}

impl Transport for Following {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(begun) = &mut self.begun {
            begun.extend_from_slice(bytes);
        }
        self.inner.send(bytes)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        if let Some(begun) = self.begun.take() {
            self.meet(&begun)?;
        }
        let early = self.header.len().min(buffer.len());
        let (first, rest) = buffer.split_at_mut(early);
        for (to, from) in first.iter_mut().zip(self.header.drain(..early)) {
            *to = from;
        }
        if rest.is_empty() { Ok(()) } else { self.inner.receive(rest) }
    }

    fn is_ready(&mut self) -> bool {
        !self.header.is_empty() || self.inner.is_ready()
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }

    fn closed(&mut self, patience: Duration) -> Result<()> {
        self.inner.closed(patience)
    }

    fn expect_silence(&mut self, silent: bool) -> Result<()> {
        self.inner.expect_silence(silent)
    }

    fn detour(&self) -> Option<Followed> {
        self.followed.clone()
    }

    fn shape(&mut self, link: Link) -> Result<()> {
        self.link = Some(link);
        self.inner.shape(link)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
