//! Both parties in one process, watched or tampered with. Never in a release.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::channel::{Channel, Transport};
use crate::cost::{Cost, Role};
use crate::error::{Error, Result, TransportKind};
use crate::tags;
use crate::transport::memory::transports;

/// What one party ended with.
#[derive(Debug)]
pub struct Outcome<T> {
    /// The closure's value.
    pub value: T,
    /// Everything its channel counted (rounds are this party's own view).
    pub cost: Cost,
    /// Digest of the bytes it sent, first eight bytes in hexadecimal. The frames'
    /// running numbers are left out: they follow from the order, and a step's digest
    /// does not depend on what was sent before it.
    pub transcript: String,
    /// The frames it sent, header included, before any tampering.
    pub frames: Vec<Vec<u8>>,
}

/// What an attacker in the middle does to one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    /// Inverts the last bit of the frame.
    Flip,
    /// Cuts the last byte off and closes the connection.
    Truncate,
    /// Sends the frame twice.
    Repeat,
    /// Replaces the tag.
    Retag,
    /// Claims the greatest length there is.
    Oversize,
    /// Closes the connection in its place.
    Close,
    /// Leaves the frame out.
    Drop,
    /// Sends the frame after the next one.
    Swap,
}

impl Tamper {
    /// Every kind that shows in the frame itself, and [`Tamper::Repeat`].
    pub const ALL: [Self; 6] =
        [Self::Flip, Self::Truncate, Self::Repeat, Self::Retag, Self::Oversize, Self::Close];
}

type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

struct Watched<T> {
    inner: T,
    sent: Frames,
    frame: usize,
    tamper: Option<(usize, Tamper)>,
    held: Option<Vec<u8>>,
}

impl<T: Transport> Transport for Watched<T> {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let mut bytes = bytes.to_vec();
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(bytes.clone());
        let now = self.tamper.filter(|(at, _)| *at == self.frame).map(|(_, how)| how);
        self.frame += 1;
        match now {
            Some(Tamper::Flip) => {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
            }
            Some(Tamper::Truncate) => {
                bytes.pop();
            }
            Some(Tamper::Repeat) => self.inner.send(&bytes)?,
            Some(Tamper::Retag) => {
                if let Some(tag) = bytes.first_mut() {
                    *tag ^= 0x80;
                }
            }
            Some(Tamper::Oversize) => {
                if let Some(len) = bytes.get_mut(1..5) {
                    len.iter_mut().zip([0xff, 0xff, 0xff, 0x0f]).for_each(|(to, ones)| *to |= ones);
                }
            }
            Some(Tamper::Drop) => return Ok(()),
            Some(Tamper::Swap) => {
                self.held = Some(bytes);
                return Ok(());
            }
            Some(Tamper::Close) => {
                return Err(Error::connection(
                    TransportKind::Closed,
                    "the test closed the connection",
                ));
            }
            None => {}
        }
        self.inner.send(&bytes)?;
        self.held.take().map_or(Ok(()), |late| self.inner.send(&late))
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.inner.receive(buffer)
    }

    fn is_ready(&mut self) -> bool {
        self.inner.is_ready()
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

struct Rewritten<T, F> {
    inner: T,
    rewrite: F,
}

impl<T: Transport, F: FnMut(&mut Vec<u8>) + Send> Transport for Rewritten<T, F> {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let mut bytes = bytes.to_vec();
        (self.rewrite)(&mut bytes);
        self.inner.send(&bytes)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.inner.receive(buffer)
    }

    fn is_ready(&mut self) -> bool {
        self.inner.is_ready()
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

/// Returns two connected ends, the client's and the server's. What the client sends passes through
/// `rewrite` frame by frame: a tag, four bytes of length and number, and the body.
pub fn rewritten_pair(rewrite: impl FnMut(&mut Vec<u8>) + Send + 'static) -> (Channel, Channel) {
    let (inner, server) = transports(Duration::from_secs(120));
    let client = Rewritten { inner, rewrite };
    (Channel::new(Role::Client, Box::new(client)), Channel::new(Role::Server, Box::new(server)))
}

/// Runs both parties of a protocol and returns both outcomes.
pub fn run_pair<A: Send, B: Send>(
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    run_tampered(None, client, server)
}

/// Like [`run_pair`], with frame number `.1` sent by `.0` tampered with.
#[allow(clippy::panic)]
pub fn run_tampered<A: Send, B: Send>(
    tamper: Option<(Role, usize, Tamper)>,
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    // A missing part can leave both parties waiting; after other faults one of them hangs up.
    let patience = match tamper {
        Some((.., Tamper::Truncate | Tamper::Drop | Tamper::Swap)) => Duration::from_millis(300),
        Some(_) => Duration::from_secs(20),
        None => Duration::from_secs(120),
    };
    let (left, right) = transports(patience);
    let of = |role| tamper.filter(|(who, ..)| *who == role).map(|(_, at, how)| (at, how));
    thread::scope(|scope| {
        let client = scope.spawn(move || watch(Role::Client, left, of(Role::Client), client));
        let server = watch(Role::Server, right, of(Role::Server), server);
        match client.join() {
            Ok(client) => (client, server),
            Err(cause) => std::panic::resume_unwind(cause),
        }
    })
}

fn watch<T: Transport + 'static, A>(
    role: Role,
    inner: T,
    tamper: Option<(usize, Tamper)>,
    run: impl FnOnce(&mut Channel) -> A,
) -> Outcome<A> {
    let sent = Frames::default();
    let watched = Watched { inner, sent: sent.clone(), frame: 0, tamper, held: None };
    let mut channel = Channel::new(role, Box::new(watched));
    let value = run(&mut channel);
    let cost = channel.meter().cost();
    let frames = std::mem::take(&mut *sent.lock().unwrap_or_else(PoisonError::into_inner));
    frames.iter().for_each(|frame| in_registry(role, frame));
    let digest =
        frames.iter().fold(Sha256::new(), |hash, frame| unnumbered(hash, frame)).finalize();
    let transcript = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Outcome { value, cost, transcript, frames }
}

/// Holds a frame against the registry of tags.
fn in_registry(role: Role, frame: &[u8]) {
    let tag = frame.first().and_then(|number| tags::find(*number));
    let allowed = tag.is_some_and(|tag| tag.direction.allows(role));
    assert!(allowed, "{role:?} sent {tag:?}");
}

/// Hashes `frame` without its running number.
fn unnumbered(hash: Sha256, frame: &[u8]) -> Sha256 {
    let mut frame = frame.to_vec();
    if let Some(high) = frame.get_mut(4) {
        *high &= 0x0f;
    }
    hash.chain_update(frame)
}
