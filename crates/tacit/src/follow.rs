//! Connections of clients: to a server, or by way of the door of a fleet to the server that it names.

use std::time::Instant;

use runtime::{Asking, door_request};
use wire::fleet::Amount;
use wire::{
    Channel, ClientTls, Identity, Result, Role, Timeouts, Trust, ask_door, connect, following,
    plaintext, show_ticket,
};

/// How a server is known, and how long it may take.
pub(crate) struct Route<'a> {
    /// Whom the client trusts; nobody in plaintext on loopback.
    pub(crate) trust: Option<Trust>,
    /// PEM files of the client's own certificate and key.
    pub(crate) identity: Option<(&'a str, &'a str)>,
    pub(crate) timeouts: Timeouts,
    /// Go to the server that a door names.
    pub(crate) follow: bool,
}

/// Connects and authenticates. A door is asked for a server, for so much, and `told` how many
/// clients come before this one while it waits there.
pub(crate) fn reach(
    server: &str,
    route: &Route<'_>,
    (asking, amount): (Asking<'_>, Amount),
    told: &dyn Fn(u32),
) -> Result<Channel> {
    let (timeouts, request) = (route.timeouts, door_request(&asking, amount)?);
    let Some(trust) = &route.trust else {
        let stream = connect(server, timeouts)?;
        return match route.follow {
            true => following(stream, timeouts, &request),
            false => plaintext(Role::Client, stream, timeouts),
        };
    };
    let identity = route.identity.map(|(certificate, key)| Identity::from_files(certificate, key));
    let tls = ClientTls::new(trust, identity.transpose()?)?;
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = connect(server, timeouts)?;
    if !route.follow {
        return tls.channel(host, stream, timeouts);
    }
    let channel = tls.following().channel(host, stream, timeouts)?;
    if !channel.is_door() {
        return Ok(channel);
    }
    let since = Instant::now();
    let (ticket, received) = ask_door(channel, &request, told)?;
    // The server shows the same identity as the door.
    let stream = connect(&ticket.address, timeouts)?;
    show_ticket(tls.channel(host, stream, timeouts)?, &ticket, (since, received))
}
