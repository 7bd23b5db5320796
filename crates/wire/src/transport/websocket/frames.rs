//! Frames of RFC 6455 as a server reads and writes them: a stream of bytes inside binary ones.
//!
//! Payloads are unmasked as they arrive, so that no length which a client names makes a server
//! hold anything.

use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use crate::error::{Error, Result};

/// Longest frame that is read.
pub(crate) const MOST_FRAME: u64 = 1 << 24;
/// Longest payload of pings, pongs and closes.
const MOST_CONTROL: u64 = 125;
/// Pings that are answered in a session: one that a proxy sends every second, for an hour.
const MOST_PINGS: usize = 3600;
/// Codes of closes: all is well, the protocol is broken.
const NORMAL: u16 = 1000;
const BROKEN: u16 = 1002;
/// What this side expects.
const EXPECTED: &str = "a masked binary frame of WebSocket";

/// What has been read of a client's frames.
#[derive(Default)]
pub(crate) struct Frames {
    /// A header that is not whole yet.
    header: Vec<u8>,
    /// The frame whose payload is being read.
    current: Option<Payload>,
    /// The payload of a control frame.
    control: Vec<u8>,
    /// Whether the last frame of a message is still to come.
    fragmented: bool,
    pings: usize,
    /// Frames that answer those of the client.
    replies: Vec<u8>,
    /// Whether the client has closed the connection, and whether this side has.
    closed: bool,
    said_goodbye: bool,
}

/// A payload that is being read.
struct Payload {
    control: Option<Control>,
    mask: [u8; 4],
    done: u64,
    length: u64,
}

impl Frames {
    /// Decodes what has arrived in place; returns how many bytes of the stream now stand first.
    ///
    /// # Errors
    /// [`Error::Peer`] for frames that a client of Tacit does not send.
    fn open(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let (mut read, mut written) = (0, 0);
        while read < bytes.len() && !self.closed {
            let Some(mut payload) = self.current.take() else {
                self.header.extend(bytes.get(read));
                read += 1;
                self.current = self.begin()?;
                self.end()?;
                continue;
            };
            let left = usize::try_from(payload.length - payload.done).unwrap_or(usize::MAX);
            let now = left.min(bytes.len() - read);
            for at in read..read + now {
                let Some(byte) = bytes.get_mut(at) else { break };
                let clear = *byte ^ payload.mask[(payload.done % 4) as usize];
                payload.done += 1;
                if payload.control.is_some() {
                    self.control.push(clear);
                } else if let Some(out) = bytes.get_mut(written) {
                    *out = clear;
                    written += 1;
                }
            }
            read += now;
            self.current = Some(payload);
            self.end()?;
        }
        Ok(written)
    }

    /// Decodes as [`Frames::open`]. Returns the frames that are to be sent at once, too: they answer
    /// the client's, or say that its frames are refused.
    pub(crate) fn exchange(&mut self, bytes: &mut [u8]) -> (Result<usize>, Vec<u8>) {
        let opened = self.open(bytes);
        let answer = match &opened {
            Ok(_) => std::mem::take(&mut self.replies),
            Err(error) => self.refusal(error),
        };
        (opened, answer)
    }

    /// The frame of the header, if that is whole.
    fn begin(&mut self) -> Result<Option<Payload>> {
        let garbage = |got: &str| Error::peer(EXPECTED, got);
        let parsed = FrameHeader::parse(&mut Cursor::new(&self.header));
        let parsed = parsed.map_err(|e| garbage(&format!("a frame that is none: {e}")))?;
        let Some((header, length)) = parsed else { return Ok(None) };
        self.header.clear();
        let mask = header.mask.ok_or_else(|| garbage("one without a mask"))?;
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(garbage("one of an extension that was not agreed on"));
        }
        let (control, most) = match header.opcode {
            OpCode::Data(Data::Binary) if !self.fragmented => (None, MOST_FRAME),
            OpCode::Data(Data::Continue) if self.fragmented => (None, MOST_FRAME),
            OpCode::Data(Data::Text) => return Err(garbage("a text frame")),
            OpCode::Data(_) => return Err(garbage("a part of another message")),
            OpCode::Control(_) if !header.is_final => {
                return Err(garbage("a control frame in parts"));
            }
            OpCode::Control(control) => (Some(control), MOST_CONTROL),
        };
        if length > most {
            return Err(Error::peer(
                format!("a frame of at most {most} bytes"),
                length.to_string(),
            ));
        }
        if control.is_none() {
            self.fragmented = !header.is_final;
        }
        Ok(Some(Payload { control, mask, done: 0, length }))
    }

    /// Ends the frame if all of it is here, and answers it if it asks for that.
    fn end(&mut self) -> Result<()> {
        let Some(ended) = self.current.take_if(|payload| payload.done == payload.length) else {
            return Ok(());
        };
        let payload = std::mem::take(&mut self.control);
        match ended.control {
            Some(Control::Ping) => {
                self.pings += 1;
                if self.pings > MOST_PINGS {
                    return Err(Error::peer(format!("at most {MOST_PINGS} pings"), "more"));
                }
                self.reply(OpCode::Control(Control::Pong), &payload);
            }
            Some(Control::Close) => {
                self.closed = true;
                if !std::mem::replace(&mut self.said_goodbye, true) {
                    let code = payload.get(..2).unwrap_or_default().to_vec();
                    self.reply(OpCode::Control(Control::Close), &code);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn reply(&mut self, opcode: OpCode, payload: &[u8]) {
        append(opcode, payload, &mut self.replies);
    }

    /// Whether the client has closed the connection.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Puts bytes into a binary frame.
    pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(bytes.len() + 10);
        append(OpCode::Data(Data::Binary), bytes, &mut frame);
        frame
    }

    /// The frame that says that nothing follows; empty if that was said.
    pub(crate) fn goodbye(&mut self) -> Vec<u8> {
        self.close(NORMAL, "")
    }

    /// The frame that ends the connection of a client which breaks the protocol.
    fn refusal(&mut self, error: &Error) -> Vec<u8> {
        self.close(BROKEN, &error.to_string())
    }

    fn close(&mut self, code: u16, reason: &str) -> Vec<u8> {
        let (mut frame, mut payload) = (Vec::new(), code.to_be_bytes().to_vec());
        if !std::mem::replace(&mut self.said_goodbye, true) {
            payload.extend(reason.bytes().filter(u8::is_ascii).take(MOST_CONTROL as usize - 2));
            append(OpCode::Control(Control::Close), &payload, &mut frame);
        }
        frame
    }
}

/// Appends a frame without a mask, which only clients use.
fn append(opcode: OpCode, payload: &[u8], out: &mut Vec<u8>) {
    let header = FrameHeader { opcode, ..FrameHeader::default() };
    // Writing to memory does not fail.
    let _ = header.format(payload.len() as u64, out);
    out.extend_from_slice(payload);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
