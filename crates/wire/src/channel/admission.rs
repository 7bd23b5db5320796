//! A client that waits for its turn, or is refused.

use std::time::Duration;

use ring::host::Instant;

use super::Channel;
use crate::admission::Admission;
use crate::cost::HEADER_LEN;
use crate::error::{Error, Result};
use crate::frame::body_len;
use crate::message::Message;

impl Channel {
    /// Receives an `M`, or nothing but how many sessions begin before this one, which `told` hears.
    ///
    /// # Errors
    /// As [`Channel::receive`]; of a refusal the error that it is.
    pub fn receive_unless_waiting<M: Message>(
        &mut self,
        shape: &M::Shape,
        told: &dyn Fn(u32),
    ) -> Result<Option<M>> {
        let header = self.header()?;
        if header[0] != Admission::TAG {
            return self.body(header, shape).map(Some);
        }
        let admission: Admission = self.body(header, &())?;
        match admission.outcome()? {
            None => {
                if let Admission::Waiting { before } = admission {
                    told(before);
                }
                Ok(None)
            }
            Some(_) => Err(Error::peer(M::NAME, "an admission").about(M::TAG)),
        }
    }

    /// The error of a server that refuses the session in the place of another message.
    pub(super) fn refusal(&mut self, header: [u8; HEADER_LEN as usize]) -> Result<Error> {
        let len = body_len::<Admission>(header, self.received, &())?;
        let mut body = vec![0; usize::try_from(len).map_err(|_| Error::misuse("16-bit host"))?];
        self.transport.receive(&mut body)?;
        let refused = Admission::decode(&body, &())?.outcome();
        Ok(refused.err().unwrap_or_else(|| Error::peer("a refusal", "an admission")))
    }

    /// Sends a refusal in the place of the next message and ends the connection, so that the
    /// client reads it: what it sends meanwhile is thrown away for up to `patience`.
    ///
    /// # Errors
    /// [`Error::Transport`] when the client is gone.
    pub fn refuse(&mut self, refusal: &Admission, patience: Duration) -> Result<()> {
        self.send(refusal)?;
        self.transport.close()?;
        let until = Instant::now() + patience;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match self.transport.closed(left) {
                Err(Error::Peer { .. }) => {}
                _ => break,
            }
        }
        Ok(())
    }
}
