//! What a server says of whether it serves a client, and when.

use std::time::Duration;

use crate::error::{Error, Result, TransportKind};
use crate::message::Message;
use crate::tags;

/// Longest text of a refusal in bytes.
const MOST_TEXT: usize = 1024;
/// Bytes before the text: the verdict and two numbers.
const FIXED: usize = 1 + 4 + 4;

/// The server's answer to a request. Before the one that admits or refuses any number may come
/// that tell the place in the queue. One that refuses may also come later, in the place of any
/// message of the setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The session begins.
    Admitted(Admitted),
    /// The client waits for other sessions to end, and will be told more.
    Waiting {
        /// Sessions that begin before this one.
        before: u32,
    },
    /// There is no room, or the server is about to stop: the client may come back.
    Busy {
        /// Seconds after which it is worth it.
        again: u32,
        /// The reason, for people; up to 1024 bytes.
        why: String,
    },
    /// The client gets no session, now or later, or not before an operator changes something.
    Denied {
        /// The reason, for people; up to 1024 bytes.
        why: String,
    },
}

/// How a session begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Whether the server first measures the link.
    pub measures: bool,
    /// Whether the server has the base OTs that the client named, and uses them.
    pub resumes: bool,
    /// Whether the server offers what the client expects and goes on with what it has sent for
    /// that; only with the base OTs that the client named.
    pub follows: bool,
}

impl Admission {
    /// Makes a refusal of a client who may come back after `wait`, rounded up to seconds.
    pub fn busy(wait: Duration, why: impl Into<String>) -> Self {
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        Self::Busy { again: u32::try_from(seconds).unwrap_or(u32::MAX), why: short(why.into()) }
    }

    /// Makes a refusal for good.
    pub fn denied(why: impl Into<String>) -> Self {
        Self::Denied { why: short(why.into()) }
    }

    /// Returns the error that a client has of a refusal, and how its session begins where it is
    /// admitted; `None` while it waits.
    ///
    /// # Errors
    /// [`Error::Transport`] of kind [`TransportKind::Busy`] or [`TransportKind::Denied`].
    pub fn outcome(&self) -> Result<Option<Admitted>> {
        match self {
            Self::Admitted(admitted) => Ok(Some(*admitted)),
            Self::Waiting { .. } => Ok(None),
            Self::Busy { again, why } => {
                let kind = TransportKind::Busy { again: *again };
                Err(Error::connection(kind, format!("{why}; try again in {again} s")))
            }
            Self::Denied { why } => {
                Err(Error::connection(TransportKind::Denied, format!("the server refuses: {why}")))
            }
        }
    }

    fn parts(&self) -> (u8, u32, &str) {
        match self {
            Self::Admitted(Admitted { measures, resumes, follows }) => {
                (u8::from(*measures), u32::from(*resumes) + 2 * u32::from(*follows), "")
            }
            Self::Waiting { before } => (2, *before, ""),
            Self::Busy { again, why } => (3, *again, why),
            Self::Denied { why } => (4, 0, why),
        }
    }
}

/// Text that fits the message and a terminal: cut at a character's end, without control
/// characters.
fn short(text: String) -> String {
    let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
    while text.len() > MOST_TEXT {
        text.pop();
    }
    text
}

impl Message for Admission {
    type Shape = ();
    const TAG: u8 = tags::ADMISSION;

    fn bounds((): &()) -> (u64, u64) {
        (FIXED as u64, (FIXED + MOST_TEXT) as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let (verdict, number, text) = self.parts();
        out.push(verdict);
        out.extend(number.to_le_bytes());
        out.extend([0; 4]);
        out.extend(text.as_bytes());
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        let other = || Error::peer("an admission", format!("another {} bytes", body.len()));
        let (verdict, rest) = body.split_first().ok_or_else(other)?;
        let (number, rest) = rest.split_first_chunk().ok_or_else(other)?;
        let (reserved, text) = rest.split_first_chunk::<4>().ok_or_else(other)?;
        let text = std::str::from_utf8(text).map_err(|_| other())?.to_owned();
        let number = u32::from_le_bytes(*number);
        let read = match *verdict {
            0 | 1 if number != 2 => Self::Admitted(Admitted {
                measures: *verdict == 1,
                resumes: number & 1 == 1,
                follows: number & 2 == 2,
            }),
            2 => Self::Waiting { before: number },
            3 => Self::Busy { again: number, why: text.clone() },
            4 => Self::Denied { why: text.clone() },
            _ => return Err(other()),
        };
        let printable = !text.chars().any(char::is_control);
        if !printable || *reserved != [0; 4] || read.parts() != (*verdict, number, &text) {
            return Err(other());
        }
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn encoded(admission: &Admission) -> Vec<u8> {
        let mut out = Vec::new();
        admission.encode(&mut out);
        out
    }

    #[test]
    fn admissions_come_back_and_nothing_else_is_one() {
        let all = [
            Admission::Admitted(Admitted::default()),
            Admission::Admitted(Admitted { measures: true, resumes: true, follows: false }),
            Admission::Admitted(Admitted { measures: false, resumes: true, follows: true }),
            Admission::Waiting { before: 7 },
            Admission::busy(Duration::from_millis(1500), "12 sessions wait"),
            Admission::denied("no budget\n\x1b[31m"),
            Admission::denied("ä".repeat(1000)),
        ];
        for admission in all {
            let mut bytes = encoded(&admission);
            assert_eq!(Admission::decode(&bytes, &()), Ok(admission.clone()));
            bytes[5] = 1;
            assert!(Admission::decode(&bytes, &()).is_err());
            bytes[5] = 0;
            bytes[0] += 5;
            assert!(Admission::decode(&bytes, &()).is_err());
        }
        let mut spoilt = encoded(&Admission::Admitted(Admitted::default()));
        spoilt.push(b'a');
        assert!(Admission::decode(&spoilt, &()).is_err(), "a text where none is");
        let mut spoilt = encoded(&Admission::denied("x"));
        spoilt.push(7);
        assert!(Admission::decode(&spoilt, &()).is_err(), "a control character");
    }

    #[test]
    fn refusals_say_what_to_do() {
        let busy = Admission::busy(Duration::from_millis(1500), "12 sessions wait");
        let error = busy.outcome().unwrap_err();
        assert_eq!(error.to_string(), "connection: 12 sessions wait; try again in 2 s");
        let Error::Transport(error) = error else { unreachable!() };
        assert_eq!(error.kind, TransportKind::Busy { again: 2 });
        assert_eq!(Admission::Waiting { before: 3 }.outcome(), Ok(None));
    }
}
