//! Tickets: what the door of a fleet promises a client, in bytes that only the fleet can make.

use std::time::{SystemTime, UNIX_EPOCH};

use runtime::Reveal;

use crate::fleet::secret::Secret;

/// The version of the layout below.
const VERSION: u8 = 1;
const PURPOSE: &str = "tacit ticket v1";
/// Bytes before the client's key.
const FIXED: usize = 1 + 8 + 16 + 16 + 32 + 1 + 8 + 8;
/// Longest key of a client.
const MOST_CLIENT: usize = 512;
const CODE: usize = 32;

/// The number of a ticket, uniform.
pub(crate) type Id = [u8; 16];

/// What a ticket says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Its number.
    pub(crate) id: Id,
    /// The run of the server that it is for: another run has another.
    pub(crate) server: [u8; 16],
    /// Hash of the model's name.
    pub(crate) model: [u8; 32],
    /// What the client learns, where the server does not say so for all.
    pub(crate) reveal: Option<Reveal>,
    /// Inputs that are set aside for it.
    pub(crate) inputs: u64,
    /// When it is over, in seconds since 1970 (UTC).
    pub(crate) expiry: u64,
    /// Who the client is, as a ledger names it.
    pub(crate) client: String,
}

/// Why a ticket admits nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// The fleet did not make it, or not for this run of this server.
    Foreign,
    /// Its time is over.
    Over,
}

impl Claims {
    /// The ticket.
    pub(crate) fn seal(&self, secret: &Secret) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(secret.name());
        out.extend(self.id);
        out.extend(self.server);
        out.extend(self.model);
        out.push(reveal_code(self.reveal));
        out.extend(self.inputs.to_le_bytes());
        out.extend(self.expiry.to_le_bytes());
        out.extend(self.client.as_bytes());
        let code = secret.code(PURPOSE, &[&out]);
        out.extend(code);
        out
    }

    /// What a ticket says that `secret` made for this run of a server, and that is not over.
    pub(crate) fn open(
        ticket: &[u8],
        secret: &Secret,
        server: &[u8; 16],
        now: u64,
    ) -> Result<Self, Bad> {
        let (said, code) = ticket
            .len()
            .checked_sub(CODE)
            .and_then(|at| ticket.split_at_checked(at))
            .ok_or(Bad::Foreign)?;
        // Nothing is read that the fleet has not written.
        if !secret.verifies(PURPOSE, &[said], code) {
            return Err(Bad::Foreign);
        }
        let claims = Self::parse(said, secret).ok_or(Bad::Foreign)?;
        if claims.server != *server {
            return Err(Bad::Foreign);
        }
        if claims.expiry <= now { Err(Bad::Over) } else { Ok(claims) }
    }

    fn parse(said: &[u8], secret: &Secret) -> Option<Self> {
        let (fixed, client) = said.split_at_checked(FIXED)?;
        let (version, rest) = fixed.split_first()?;
        let (key, rest) = rest.split_first_chunk::<8>()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let (server, rest) = rest.split_first_chunk::<16>()?;
        let (model, rest) = rest.split_first_chunk::<32>()?;
        let (reveal, rest) = rest.split_first()?;
        let (inputs, rest) = rest.split_first_chunk::<8>()?;
        let expiry = rest.first_chunk::<8>()?;
        let client = std::str::from_utf8(client).ok()?;
        let fits = *version == VERSION && *key == secret.name() && client.len() <= MOST_CLIENT;
        fits.then_some(())?;
        Some(Self {
            id: *id,
            server: *server,
            model: *model,
            reveal: reveal_of(*reveal)?,
            inputs: u64::from_le_bytes(*inputs),
            expiry: u64::from_le_bytes(*expiry),
            client: client.into(),
        })
    }
}

const fn reveal_code(reveal: Option<Reveal>) -> u8 {
    match reveal {
        None => 0,
        Some(Reveal::Output) => 1,
        Some(Reveal::Label) => 2,
        Some(Reveal::Probability) => 3,
        Some(Reveal::Bucket) => 4,
    }
}

const fn reveal_of(code: u8) -> Option<Option<Reveal>> {
    Some(match code {
        0 => None,
        1 => Some(Reveal::Output),
        2 => Some(Reveal::Label),
        3 => Some(Reveal::Probability),
        4 => Some(Reveal::Bucket),
        _ => return None,
    })
}

/// Seconds since 1970 (UTC).
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            id: [1; 16],
            server: [2; 16],
            model: [3; 32],
            reveal: Some(Reveal::Label),
            inputs: 7,
            expiry: 1000,
            client: "token:ward-3".into(),
        }
    }

    #[test]
    fn a_ticket_is_good_for_its_server_and_its_time() {
        let secret = Secret::of([9; 32]);
        for reveal in [None, Some(Reveal::Output), Some(Reveal::Probability), Some(Reveal::Bucket)]
        {
            let claims = Claims { reveal, ..claims() };
            let ticket = claims.seal(&secret);
            assert!(ticket.len() <= wire::fleet::MOST_TICKET);
            assert_eq!(Claims::open(&ticket, &secret, &[2; 16], 999), Ok(claims));
        }
        let ticket = claims().seal(&secret);
        assert_eq!(Claims::open(&ticket, &secret, &[2; 16], 1000), Err(Bad::Over));
        assert_eq!(Claims::open(&ticket, &secret, &[4; 16], 0), Err(Bad::Foreign));
        let other = Secret::of([8; 32]);
        assert_eq!(Claims::open(&ticket, &other, &[2; 16], 0), Err(Bad::Foreign));
    }

    #[test]
    fn no_byte_of_a_ticket_can_be_changed_and_none_left_out() {
        let secret = Secret::of([9; 32]);
        let ticket = claims().seal(&secret);
        for at in 0..ticket.len() {
            let mut spoilt = ticket.clone();
            spoilt[at] ^= 1;
            assert_eq!(Claims::open(&spoilt, &secret, &[2; 16], 0), Err(Bad::Foreign), "{at}");
            assert_eq!(Claims::open(&ticket[..at], &secret, &[2; 16], 0), Err(Bad::Foreign));
        }
    }
}
