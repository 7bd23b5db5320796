//! Connections whose bytes come in frames of a WebSocket, as those of browsers do.

use super::Incoming;
use crate::error::Result;
use crate::transport::tcp::closed;
use crate::transport::websocket::{Frames, Origins, Upgrade, WebSocket};

impl Incoming {
    /// Waits for a request to open a WebSocket first, of a program or of a page of one of `origins`; then
    /// all bytes come in its frames.
    #[must_use]
    pub fn websocket(self, origins: &Origins) -> Self {
        let asked = Upgrade::new(origins.clone(), self.tls.is_none());
        Self { websocket: Some(WebSocket::Asked(asked)), ..self }
    }

    /// Whether its client came to where WebSockets are served.
    pub const fn is_websocket(&self) -> bool {
        self.websocket.is_some()
    }

    /// Takes bytes that have arrived inside TLS, out of the frames of a WebSocket if there is one.
    pub(super) fn take(&mut self, part: &mut [u8]) -> Result<()> {
        match &mut self.websocket {
            None => self.early.extend_from_slice(part),
            Some(_) if part.is_empty() => {}
            Some(WebSocket::Asked(upgrade)) => match upgrade.advance(part) {
                None => {}
                Some(Ok((response, mut rest))) => {
                    self.websocket = Some(WebSocket::Open(Frames::default()));
                    self.write(&response)?;
                    return self.take(&mut rest);
                }
                Some(Err((response, error))) => {
                    let page = self.pages.as_ref().and_then(|pages| upgrade.page(pages));
                    if let Some(page) = page {
                        self.websocket = Some(WebSocket::Page(page));
                        return Ok(());
                    }
                    self.websocket = None;
                    self.end(&response);
                    return Err(error);
                }
            },
            Some(WebSocket::Page(_)) => {}
            Some(WebSocket::Open(frames)) => {
                let (opened, answer) = frames.exchange(part);
                let is_closed = frames.is_closed();
                match opened {
                    Ok(read) => self.early.extend_from_slice(part.get(..read).unwrap_or_default()),
                    Err(error) => {
                        self.end(&answer);
                        return Err(error);
                    }
                }
                self.write(&answer)?;
                if is_closed {
                    return Err(closed());
                }
            }
        }
        Ok(())
    }

    /// Sends `bytes` and leaves the connection open, for one who waits. A client that does not take
    /// them is gone.
    ///
    /// # Errors
    /// [`Error::Transport`].
    pub fn tell(&mut self, bytes: &[u8]) -> Result<()> {
        match self.websocket {
            None => self.write(bytes),
            Some(_) => self.write(&Frames::seal(bytes)),
        }
    }

    /// Sends `bytes` and ends the connection, without waiting for a peer that does not read.
    pub fn answer(mut self, bytes: &[u8]) {
        let framed = match &mut self.websocket {
            Some(WebSocket::Open(frames)) => [Frames::seal(bytes), frames.goodbye()].concat(),
            _ => bytes.to_vec(),
        };
        self.end(&framed);
    }
}
