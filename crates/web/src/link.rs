//! The transport: bytes that the thread which owns the WebSocket passes on.

use std::time::Duration;

use ring::host::Instant;
use wasm_bindgen::prelude::*;
use wire::{Error, Phase, Result, Transport, TransportKind};

use crate::options::Options;

#[wasm_bindgen(raw_module = "../link.js")]
extern "C" {
    /// Queues bytes.
    fn send(bytes: &[u8]);
    /// Hands over what is queued.
    fn flush();
    /// Hands over what is queued, and closes the connection after it.
    fn close();
    /// Hands over what is queued, and returns whether [`receive`] would not wait.
    fn ready() -> bool;
    /// Waits up to so many milliseconds for bytes. Returns how many it has put into `buffer`, or [`ENDED`], [`LOST`] or
    /// [`LATE`].
    fn receive(buffer: &mut [u8], milliseconds: f64) -> i32;
    /// Goes on with the server at HOST:PORT, over another connection.
    fn redirect(address: &str);
    /// Why the connection was lost.
    fn reason() -> String;
    /// Tells the page of what happens: `waiting` (sessions before this one), `done` (inputs, and of how many), or the
    /// name of a phase (a layer of the plan, or [`NO_LAYER`]).
    pub(crate) fn told(what: &str, first: u32, second: u32);
}

/// The server has closed the connection.
const ENDED: i32 = 0;
/// The connection broke off.
const LOST: i32 = -1;
/// What follows is for no layer alone.
const NO_LAYER: u32 = u32::MAX;
/// Nothing has come in time.
const LATE: i32 = -2;

/// The worker's end of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    idle: Duration,
    total: Duration,
    since: Instant,
    /// Whether the server may be silent for as long as the session may take.
    silent: bool,
}

impl Link {
    /// The link of a session that begins now.
    pub(crate) fn new(options: &Options) -> Self {
        let (idle, total) = options.patience();
        Self { idle, total, since: Instant::now(), silent: false }
    }

    /// The link to the server at `address`, which a door has named.
    ///
    /// # Errors
    /// [`Error::Peer`] for what is no HOST:PORT.
    pub(crate) fn to(self, address: &str) -> Result<Self> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
        let parts = address.rsplit_once(':');
        let parts = parts.filter(|(host, _)| !host.is_empty() && host.bytes().all(known));
        if parts.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
            return Err(Error::peer("HOST:PORT of a server", "another address"));
        }
        redirect(address);
        Ok(self)
    }

    /// How long to wait for the next byte.
    fn patience(&self) -> Result<Duration> {
        let left = self.total.saturating_sub(self.since.elapsed());
        if left.is_zero() {
            return Err(late("the session took longer than its time limit".into()));
        }
        Ok(if self.silent { left } else { left.min(self.idle) })
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        let patience = self.patience()?;
        let lost = |why| Err(Error::connection(TransportKind::Closed, why));
        match receive(buffer, patience.as_secs_f64() * 1e3) {
            ENDED => lost("the peer closed the connection".into()),
            LATE => Err(late(format!("the peer sent nothing for {} s", patience.as_secs_f32()))),
            LOST => lost(reason()),
            read => usize::try_from(read).map_err(|_| Error::internal("a read of no length")),
        }
    }
}

fn late(why: String) -> Error {
    Error::connection(TransportKind::TimedOut, why)
}

impl Transport for Link {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.patience()?;
        send(bytes);
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut rest = buffer;
        while !rest.is_empty() {
            let read = self.read(rest)?;
            rest = rest.get_mut(read..).unwrap_or_default();
        }
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        ready()
    }

    fn flush(&mut self) -> Result<()> {
        flush();
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        close();
        Ok(())
    }

    fn expect_silence(&mut self, silent: bool) -> Result<()> {
        self.silent = silent;
        Ok(())
    }

    fn entered(&mut self, phase: Phase, layer: Option<usize>) {
        told(phase.name(), layer.map_or(NO_LAYER, |layer| layer as u32), 0);
    }
}
