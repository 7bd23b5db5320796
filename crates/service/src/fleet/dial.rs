//! How a server reaches the door of its fleet.

use std::time::Duration;

use wire::fleet::{News, Order};
use wire::{Channel, ClientTls, Error, Result, Role, Timeouts, Trust, connect, plaintext};

use crate::fleet::membership::Membership;
use crate::fleet::secret::Secret;
use crate::fleet::talk::{Answers, Says, prove};

/// A control connection has no end of its own.
pub(crate) const EVER: Duration = Duration::from_secs(1_000_000_000);

/// Connects to the door and proves what is to be proved.
pub(crate) fn dial(fleet: &Membership, secret: &Secret, timeouts: Timeouts) -> Result<Channel> {
    let stream = connect(&fleet.control, timeouts)?;
    let mut channel = match fleet.pin {
        Some(pin) => {
            let tls = ClientTls::new(&Trust::Pin(pin), None)?;
            tls.channel("tacit", stream, timeouts)?
        }
        None => plaintext(Role::Client, stream, timeouts)?,
    };
    prove(&mut channel, secret, false)?;
    Ok(channel)
}

/// Says something and waits for the answer.
pub(crate) fn ask(channel: &mut Channel, says: &Says) -> Result<Answers> {
    let text = serde_json::to_string(says).map_err(|e| Error::internal(e.to_string()))?;
    channel.send(&News { json: text })?;
    let Order { json: text } = channel.receive(&())?;
    let bad = |e: serde_json::Error| Error::peer("an answer of a door", e.to_string());
    serde_json::from_str(&text).map_err(bad)
}
