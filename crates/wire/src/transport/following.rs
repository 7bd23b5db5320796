//! Following a door in plaintext: the client asks for a server and begins its session at once, and
//! begins it again with the server that a door names. A server that is no door goes on with it.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::admission::Admission;
use crate::channel::{Channel, Transport};
use crate::cost::{HEADER_LEN, Role};
use crate::error::{Error, Result};
use crate::fleet::{DoorRequest, Followed, ShownTicket, Ticket};
use crate::frame::{body_len, encode_frame};
use crate::message::Message;
use crate::tags;
use crate::transport::link::Link;
use crate::transport::tcp::{Tcp, Timeouts, connect};

/// A connection that may turn out to lead to a door.
struct Following {
    inner: Tcp,
    timeouts: Timeouts,
    /// What was sent so far, until the peer has answered.
    begun: Option<Zeroizing<Vec<u8>>>,
    /// A header that was read to learn who answers.
    header: Vec<u8>,
    link: Option<Link>,
    since: Instant,
    asked: u64,
    followed: Option<Followed>,
}

/// Returns a channel without encryption over `stream` to a server, or to a door that names one.
///
/// # Errors
/// [`Error::Misuse`] unless both ends are on the loopback interface, [`Error::Transport`].
pub fn following(stream: TcpStream, timeouts: Timeouts, request: &DoorRequest) -> Result<Channel> {
    let mut inner = plain(stream, timeouts)?;
    let frame = Zeroizing::new(encode_frame(request, 0)?);
    inner.send(&frame)?;
    let transport = Following {
        inner,
        timeouts,
        begun: Some(Zeroizing::default()),
        header: Vec::new(),
        link: None,
        since: Instant::now(),
        asked: frame.len() as u64,
        followed: None,
    };
    Ok(Channel::new(Role::Client, Box::new(transport)))
}

fn plain(stream: TcpStream, timeouts: Timeouts) -> Result<Tcp> {
    let loopback = stream.peer_addr().is_ok_and(|address| address.ip().is_loopback());
    if !loopback {
        return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
    }
    Tcp::new(stream, None, Zeroizing::default(), timeouts)
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
                    if !matches!(admission, Admission::Waiting { .. }) {
                        // The session reads the refusal as it reads that of a server.
                        self.header = encode_frame(&admission, 0)?;
                        return Ok(());
                    }
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
        self.inner = plain(connect(&ticket.address, self.timeouts)?, self.timeouts)?;
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
