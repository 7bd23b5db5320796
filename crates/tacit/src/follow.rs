//! Connections of clients: to a server, or by way of the door of a fleet to the server that it names.

use std::time::Instant;

use runtime::{Asking, door_request};
use wire::fleet::{Amount, DoorRequest, ShownTicket, Ticket};
use wire::{
    Channel, ClientTls, Followed, HEADER_LEN, Identity, Message, Result, Role, Timeouts, Trust,
    connect, following, plaintext,
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
    let (ticket, received) = ask(channel, &request, told)?;
    follow(&tls, host, &ticket, timeouts, (since, received))
}

/// Asks a door for a ticket; returns also how many bytes it sent.
fn ask(mut channel: Channel, request: &DoorRequest, told: &dyn Fn(u32)) -> Result<(Ticket, u64)> {
    channel.send(request)?;
    loop {
        if let Some(ticket) = channel.receive_unless_waiting::<Ticket>(&(), told)? {
            let received = channel.meter().total(None).cost.server_to_client;
            // The door closes in its turn, and nobody waits for it.
            let _ = channel.close();
            return Ok((ticket, received));
        }
    }
}

/// Goes to the server of a ticket, which shows the same identity as the door, and shows the ticket.
fn follow(
    tls: &ClientTls,
    host: &str,
    ticket: &Ticket,
    timeouts: Timeouts,
    (since, received): (Instant, u64),
) -> Result<Channel> {
    let stream = connect(&ticket.address, timeouts)?;
    let mut channel = tls.channel(host, stream, timeouts)?;
    let seconds = since.elapsed().as_secs_f64();
    let shown = ShownTicket(ticket.ticket.clone());
    channel.preface(&shown)?;
    let (_, request) = DoorRequest::bounds(&());
    let sent = 2 * HEADER_LEN + request + shown.0.len() as u64;
    let server = ticket.address.clone();
    Ok(channel.after(Followed { server, sent, received, seconds }))
}
