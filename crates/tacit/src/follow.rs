//! Connections of clients: to a server, or by way of the door of a fleet to the server that it names.

use std::time::Instant;

use runtime::{Asking, door_request};
use wire::fleet::{Amount, DoorRequest, ShownTicket, Ticket};
use wire::{
    Channel, ClientTls, Error, Followed, HEADER_LEN, Identity, Message, Result, Role, Timeouts,
    Trust, connect, following, plaintext,
};

use crate::session::PredictOptions;

/// Connects and authenticates as `options` say. A door is asked for a server, for so much, and `told` how many
/// clients come before this one while it waits there.
pub(crate) fn reach(
    server: &str,
    options: &PredictOptions,
    (asking, amount): (Asking<'_>, Amount),
    told: &dyn Fn(u32),
) -> Result<Channel> {
    let timeouts = options.timeouts.timeouts()?;
    let request = door_request(&asking, amount)?;
    let trust = match (&options.pin, &options.ca, options.plaintext) {
        (Some(pin), None, false) => Trust::Pin(pin.parse()?),
        (None, Some(file), false) => Trust::Authority(file.clone()),
        (None, None, true) => {
            let stream = connect(server, timeouts)?;
            return match options.follow {
                true => following(stream, timeouts, &request),
                false => plaintext(Role::Client, stream, timeouts),
            };
        }
        _ => return Err(Error::misuse("exactly one of pin, ca and plaintext")),
    };
    let identity = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => Some(Identity::from_files(certificate, key)?),
        (None, None) => None,
        _ => return Err(Error::misuse("a certificate and its key belong together")),
    };
    let tls = ClientTls::new(&trust, identity)?;
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = connect(server, timeouts)?;
    if !options.follow {
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
