//! Messages beside those of a protocol: prepared data that is sent while this party waits for the other, and takes no
//! rounds.
//!
//! A message that is sent aside goes behind another one of this party, before it waits for the peer's next one. The peer
//! knows which will come and in which order, and keeps each until it needs it. How much goes at a time depends on the
//! order of messages alone, so that what crosses is the same in every run.

use std::collections::VecDeque;

use super::Channel;
use crate::cost::{Cost, HEADER_LEN};
use crate::error::{Error, Result};
use crate::frame::{append_frame, body_len};
use crate::message::Message;

/// Bytes that are sent aside at a time: they pass in half of a round trip of 40 ms at 400 Mbit/s.
const AT_A_TIME: usize = 1 << 20;

/// Bytes that wait to be sent aside, at most.
const MOST_HELD: usize = 64 << 20;

/// Writes the frame of a message; returns the length of its body.
type Write = Box<dyn FnOnce(&mut Vec<u8>, u64) -> Result<u64> + Send>;

/// Messages that are sent aside, and those of the peer.
#[derive(Default)]
pub(super) struct Asides {
    /// The messages that are still to be sent, with the lengths of their bodies.
    unsent: VecDeque<(usize, Write)>,
    held: usize,
    /// How many have been sent.
    sent: u64,
    /// Tags and lengths of those to come.
    awaited: VecDeque<(u8, u64)>,
    /// Bodies of those that have come and were not taken.
    arrived: VecDeque<(u8, Vec<u8>)>,
}

impl Channel {
    /// Sends `message`, whose body has `len` bytes, aside; returns how many messages are sent aside up to it
    /// ([`Channel::send_asides`]).
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_aside<M: Message + Send + 'static>(
        &mut self,
        message: M,
        len: usize,
    ) -> Result<u64> {
        let write = move |frame: &mut Vec<u8>, position| append_frame(frame, &message, position);
        self.asides.unsent.push_back((len, Box::new(write)));
        self.asides.held += len;
        while self.asides.held > MOST_HELD {
            self.send_next_aside()?;
        }
        Ok(self.asides.sent + self.asides.unsent.len() as u64)
    }

    /// Sends the first `count` of all messages that are sent aside, as far as they wait.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_asides(&mut self, count: u64) -> Result<()> {
        while self.asides.sent < count && self.send_next_aside()? {}
        Ok(())
    }

    /// Expects the peer to send an `M` aside whose body has `len` bytes, after those that it was expected to.
    pub fn await_aside<M: Message>(&mut self, len: u64) {
        self.asides.awaited.push_back((M::TAG, len));
    }

    /// Returns the next `M` that the peer sent aside, in the order in which they are expected.
    ///
    /// # Errors
    /// As [`Channel::receive`], and [`Error::Internal`] for one that was not expected.
    pub fn receive_aside<M: Message>(&mut self, shape: &M::Shape) -> Result<M> {
        if self.asides.arrived.is_empty() {
            if self.asides.awaited.front().is_none_or(|(tag, _)| *tag != M::TAG) {
                return Err(Error::internal(format!("message `{}` is not sent aside", M::NAME)));
            }
            let header = self.next_header()?;
            body_len::<M>(header, self.received, shape)?;
            self.keep(header)?;
        }
        match self.asides.arrived.pop_front() {
            Some((tag, body)) if tag == M::TAG => {
                M::decode(&body, shape).map_err(|e| e.about(M::TAG))
            }
            _ => Err(Error::internal(format!("message `{}` is asked for out of turn", M::NAME))),
        }
    }

    /// Sends some of what is sent aside, where this party has just said something and is about to wait.
    pub(super) fn wait_aside(&mut self) -> Result<()> {
        if self.asides.unsent.is_empty() || !self.meter.ends_with(self.role) {
            return Ok(());
        }
        let mut left = AT_A_TIME;
        while left > 0 {
            let held = self.asides.held;
            if !self.send_next_aside()? {
                break;
            }
            left = left.saturating_sub(held - self.asides.held);
        }
        Ok(())
    }

    /// Whether a frame with this tag is one that the peer sends aside.
    pub(super) fn is_aside(&self, tag: u8) -> bool {
        self.asides.awaited.front().is_some_and(|(awaited, _)| *awaited == tag)
    }

    /// Keeps the body that follows this header until it is asked for.
    pub(super) fn keep(&mut self, header: [u8; HEADER_LEN as usize]) -> Result<()> {
        let Some((tag, len)) = self.asides.awaited.pop_front() else { return Ok(()) };
        let found = crate::frame::any_len(header, self.received).map_err(|e| e.about(tag))?;
        if u64::from(found) != len {
            let wanted = format!("a message of {len} bytes");
            return Err(Error::peer(wanted, format!("{found} bytes")).about(tag));
        }
        let mut body = vec![0; usize::try_from(len).map_err(|_| Error::misuse("16-bit host"))?];
        self.fetch(&mut body)?;
        self.received += 1;
        self.meter.count_aside(Cost::message(!self.role, len));
        self.asides.arrived.push_back((tag, body));
        Ok(())
    }

    /// Sends the next; returns whether there was one.
    fn send_next_aside(&mut self) -> Result<bool> {
        let Some((len, write)) = self.asides.unsent.pop_front() else { return Ok(false) };
        self.asides.held -= len;
        self.asides.sent += 1;
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        let len = write(&mut frame, self.sent)?;
        self.sent += 1;
        self.meter.count_aside(Cost::message(self.role, len));
        self.transport.send(&frame)?;
        self.frame = super::kept(frame);
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cost::Role;
    use crate::message::{Packed, Segment};
    use crate::meter::Phase;
    use crate::tags;
    use crate::testing::{Outcome, Tamper, run_pair, run_tampered};

    type Test = Packed<{ tags::TESTS }>;
    type Table = Packed<{ tags::GARBLED_TABLES }>;
    /// Bytes of a table: four are more than go at a time.
    const LEN: usize = 300_000;
    const TABLES: u64 = 10;

    fn shape(count: usize) -> Vec<Segment> {
        vec![Segment { count, bits: 8 }]
    }

    /// Tables of the client go aside; the last ones are needed soon.
    fn client(ch: &mut Channel, aside: bool) -> Result<()> {
        ch.enter(Phase::Preprocess, None);
        for i in 0..TABLES {
            let table = Table::one(vec![i; LEN], 8);
            if aside {
                assert_eq!(ch.send_aside(table, LEN)?, i + 1);
            } else {
                ch.send(&table)?;
            }
        }
        ch.enter(Phase::Online, Some(0));
        for i in 0..2 {
            let _: Test = ch.receive(&shape(3))?;
            ch.send(&Test::one(vec![i], 8))?;
        }
        let _: Test = ch.receive(&shape(3))?;
        ch.send_asides(TABLES)?;
        ch.send(&Test::one(vec![2], 8))
    }

    fn server(ch: &mut Channel) -> Result<Vec<u64>> {
        (0..TABLES).for_each(|_| ch.await_aside::<Table>(LEN as u64));
        ch.enter(Phase::Online, Some(0));
        for i in 0..3 {
            ch.send(&Test::one(vec![1, 2, 3], 8))?;
            let got: Test = ch.receive(&shape(1))?;
            assert_eq!(got.concat(), [i]);
        }
        let first = |ch: &mut Channel| Ok(ch.receive_aside::<Table>(&shape(LEN))?.concat()[0]);
        (0..TABLES).map(|_| first(ch)).collect()
    }

    /// The tags of the frames of one direction.
    fn tags_of<T>(outcome: &Outcome<T>) -> Vec<u8> {
        outcome.frames.iter().map(|frame| frame[0]).collect()
    }

    #[test]
    fn what_is_sent_aside_goes_where_its_party_waits() {
        let (ours, theirs) = run_pair(|ch| client(ch, true), server);
        assert_eq!(theirs.value.unwrap(), (0..TABLES).collect::<Vec<_>>());
        let (table, test) = (tags::GARBLED_TABLES, tags::TESTS);
        // The client waits before it has said anything; then four tables are a bit more than a mebibyte.
        let wanted =
            [vec![test], vec![table; 4], vec![test], vec![table; 4], vec![table; 2], vec![test]];
        assert_eq!(tags_of(&ours), wanted.concat());
        let all = TABLES * (HEADER_LEN + LEN as u64);
        assert_eq!(ours.cost, theirs.cost);
        assert_eq!((ours.cost.rounds, ours.cost.first), (6, Some(Role::Server)));
        assert_eq!(ours.cost.client_to_server, all + 3 * (HEADER_LEN + 1));
    }

    #[test]
    fn lies_about_what_is_sent_aside_are_errors() {
        let (honest, _) = run_pair(|ch| client(ch, true), server);
        for (at, tag) in tags_of(&honest).into_iter().enumerate() {
            for tamper in [Tamper::Oversize, Tamper::Close, Tamper::Drop] {
                let spoilt = Some((Role::Client, at, tamper));
                let (_, server) = run_tampered(spoilt, |ch| client(ch, true).is_ok(), server);
                assert!(server.value.is_err(), "{at} {tag}");
            }
        }
    }

    #[test]
    fn what_nobody_expects_is_an_error_and_so_is_what_is_asked_for_out_of_turn() {
        let (_, theirs) = run_pair(
            |ch| client(ch, false).is_ok(),
            |ch| ch.receive::<Test>(&shape(1)).map(drop).unwrap_err(),
        );
        assert!(matches!(theirs.value, Error::Peer { .. }), "{}", theirs.value);
        let (error, _) =
            run_pair(|ch| ch.receive_aside::<Table>(&shape(1)).map(drop).unwrap_err(), |_| ());
        assert!(matches!(error.value, Error::Internal { .. }), "{}", error.value);
    }
}
