//! Two ends in one process.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use crate::channel::{Channel, Transport};
use crate::cost::Role;
use crate::error::{Error, Result, TransportKind};

pub(crate) struct Memory {
    out: Sender<Vec<u8>>,
    inn: Receiver<Vec<u8>>,
    pending: VecDeque<u8>,
    patience: Duration,
}

impl Transport for Memory {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .send(bytes.to_vec())
            .map_err(|_| Error::connection(TransportKind::Closed, "the peer closed the connection"))
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        while self.pending.len() < buffer.len() {
            let frame = self.inn.recv_timeout(self.patience);
            let frame = frame.map_err(|e| {
                let kind = match e {
                    RecvTimeoutError::Timeout => TransportKind::TimedOut,
                    RecvTimeoutError::Disconnected => TransportKind::Closed,
                };
                Error::connection(kind, format!("the peer is gone: {e}"))
            })?;
            self.pending.extend(frame);
        }
        let ready = self.pending.drain(..buffer.len());
        for (to, from) in buffer.iter_mut().zip(ready) {
            *to = from;
        }
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        match self.inn.try_recv() {
            Ok(frame) => self.pending.extend(frame),
            Err(TryRecvError::Empty) => return !self.pending.is_empty(),
            Err(TryRecvError::Disconnected) => {}
        }
        true
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A connected pair of transports, the client's first.
pub(crate) fn transports(patience: Duration) -> (Memory, Memory) {
    let (to_server, from_client) = mpsc::channel();
    let (to_client, from_server) = mpsc::channel();
    let end = |out, inn| Memory { out, inn, pending: VecDeque::new(), patience };
    (end(to_server, from_server), end(to_client, from_client))
}

/// Returns two connected ends: the client's and the server's.
pub fn memory_pair() -> (Channel, Channel) {
    let (client, server) = transports(Duration::from_secs(120));
    (Channel::new(Role::Client, Box::new(client)), Channel::new(Role::Server, Box::new(server)))
}
