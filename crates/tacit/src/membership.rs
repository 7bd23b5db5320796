//! The fleet that a server belongs to, by its options.

use std::time::SystemTime;

use service::Membership;
use wire::{Error, Pin, Result};

use crate::access::TlsFiles;
use crate::serving::ServeOptions;

/// The fleet that a server belongs to, whose door shows the same key.
pub(crate) fn membership(options: &ServeOptions, pin: Option<Pin>) -> Result<Option<Membership>> {
    let (control, secret) = match (&options.fleet, &options.fleet_secret) {
        (Some(control), Some(secret)) => (control.clone(), secret.into()),
        (None, None) if options.advertise.is_none() && options.server_id.is_none() => {
            return Ok(None);
        }
        _ => return Err(Error::misuse("--fleet and --fleet-secret belong together")),
    };
    if options.proxy_protocol {
        return Err(Error::misuse(
            "the door of a fleet sends headers of its own: leave --proxy-protocol out",
        ));
    }
    if options.tls.as_ref().is_some_and(TlsFiles::makes_key) {
        return Err(Error::misuse(
            "a server of a fleet shows the door's key: give it the same --key-file",
        ));
    }
    let server = match &options.server_id {
        Some(server) => server.clone(),
        None => format!("server-{}-{}", std::process::id(), since_1970()),
    };
    Ok(Some(Membership { control, secret, server, advertise: options.advertise.clone(), pin }))
}

/// Milliseconds since 1970, by which servers with the same process number on other machines differ.
fn since_1970() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
