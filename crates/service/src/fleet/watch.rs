//! What those see who watch a fleet.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::Value;

use crate::fleet::hall::Hall;
use crate::fleet::merge;
use crate::watch::http::Answer;
use crate::watch::metrics::KIND;

/// What is answered to a path.
pub(crate) fn watch(hall: &Hall, path: &str) -> Answer {
    match path {
        "/metrics" => Answer { status: "200 OK", kind: KIND, body: metrics(hall) },
        "/healthz" => Answer::text("200 OK", "ok\n"),
        "/readyz" => match hall.floor().roster.choose_any(false, Instant::now()) {
            Some(_) => Answer::text("200 OK", "ready\n"),
            None => Answer::text("503 Service Unavailable", "no server takes sessions now\n"),
        },
        "/sessions" => json_answer(&sessions(hall)),
        "/fleet" => json_answer(&hall.state()),
        _ => Answer::text(
            "404 Not Found",
            "there are /metrics, /healthz, /readyz, /sessions and /fleet\n",
        ),
    }
}

fn json_answer(value: &Value) -> Answer {
    Answer { status: "200 OK", kind: "application/json", body: value.to_string() }
}

/// The sessions of all servers, each with its server's name.
fn sessions(hall: &Hall) -> Value {
    let floor = hall.floor();
    let mut all = Vec::new();
    for entry in floor.roster.present() {
        for session in entry.list.as_array().into_iter().flatten() {
            let mut session = session.clone();
            if let Some(fields) = session.as_object_mut() {
                fields.insert("server".into(), entry.id.clone().into());
            }
            all.push(session);
        }
    }
    Value::Array(all)
}

fn metrics(hall: &Hall) -> String {
    let floor = hall.floor();
    let tickets = [
        ("issued", floor.issued),
        ("redeemed", floor.redeemed),
        ("expired", floor.expired),
        ("out", floor.tickets.len() as u64),
    ];
    let clients = [
        ("connected", hall.standing.load(Ordering::SeqCst)),
        ("waiting", floor.queue.len()),
        ("relayed", hall.relays.load(Ordering::SeqCst)),
    ];
    let own = hall.counters.render(&tickets, &clients, &floor.roster.states(Instant::now()));
    let servers = floor.roster.present().map(|entry| (entry.id.as_str(), entry.metrics.as_str()));
    merge::joined(std::iter::once(("door", own.as_str())).chain(servers))
}
