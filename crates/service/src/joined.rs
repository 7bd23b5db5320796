//! A server's end of the control connection: how it is made, and what goes over it.

use std::net::SocketAddr;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Error, Result, Timeouts};

use crate::fleet::dial::{EVER, ask, dial};
use crate::fleet::member::{Member, Unheard};
use crate::fleet::membership::Membership;
use crate::fleet::talk::{Answers, Beat, Join, Says};
use crate::lock::locked;
use crate::shared::Shared;
use crate::tokens::hexadecimal;

/// Time between beats when nothing happens.
const BEAT: Duration = Duration::from_millis(200);
/// Time between beats with metrics.
const METRICS: Duration = Duration::from_secs(1);
/// Waits before the door is dialled again.
const AGAIN: Duration = Duration::from_millis(200);
const LONGEST_AGAIN: Duration = Duration::from_secs(2);

/// Keeps a server's door informed until the server is gone.
pub(crate) fn run(shared: &Weak<Shared>, nudged: &Receiver<()>) {
    let mut wait = AGAIN;
    loop {
        let Some(member) = shared.upgrade().and_then(|shared| shared.fleet.clone()) else { return };
        let began = Instant::now();
        let ended = attend(shared, &member, nudged);
        member.welcomed.store(false, Ordering::SeqCst);
        if member.over.load(Ordering::SeqCst) || shared.strong_count() == 0 {
            return;
        }
        if let (Err(error), Some(shared)) = (ended, shared.upgrade()) {
            shared.metrics.count_lost_door();
            *locked(&shared.door_error) = Some(error.to_string());
        }
        wait = if began.elapsed() > LONGEST_AGAIN { AGAIN } else { (2 * wait).min(LONGEST_AGAIN) };
        thread::sleep(wait);
    }
}

/// One control connection, from its beginning to its end.
fn attend(shared: &Weak<Shared>, member: &Member, nudged: &Receiver<()>) -> Result<()> {
    let seconds = Duration::from_secs;
    let timeouts = Timeouts { connect: seconds(2), idle: seconds(5), total: EVER };
    let mut channel = dial(&member.membership, &member.secret, timeouts)?;
    let join = {
        let Some(shared) = shared.upgrade() else { return Ok(()) };
        let fleet = &member.membership;
        // The list is whole, so that what was told before counts for nothing.
        locked(&member.unheard).kept.clear();
        Join {
            server: fleet.server.clone(),
            run: hexadecimal(&member.run),
            address: fleet.advertise.clone().unwrap_or_else(|| shared.address.to_string()),
            websocket: shared.websocket.map(|there| shown(fleet, there)),
            models: shared.model_news(),
            limit: shared.gate.sessions(),
            kept: shared.kept.names(),
        }
    };
    match ask(&mut channel, &Says::Join(join))? {
        Answers::Welcome { counts, asks } => {
            member.counts.store(counts, Ordering::SeqCst);
            member.asks.store(asks, Ordering::SeqCst);
            member.welcomed.store(true, Ordering::SeqCst);
        }
        Answers::Sent { why } => return Err(Error::misuse(why)),
        other => return Err(Error::peer("a welcome", format!("{other:?}"))),
    }
    let mut metrics = Instant::now();
    loop {
        let Some(now) = shared.upgrade() else { return Ok(()) };
        let news = std::mem::take(&mut *locked(&member.unheard));
        let with_metrics = metrics <= Instant::now();
        let says = Says::Beat(beat(&now, news.clone(), with_metrics));
        if with_metrics {
            metrics = Instant::now() + METRICS;
        }
        drop(now);
        let answer = ask(&mut channel, &says).inspect_err(|_| {
            // It was not heard, as far as is known; hearing it twice changes nothing.
            let mut unheard = locked(&member.unheard);
            unheard.shown.splice(0..0, news.shown.clone());
            unheard.redeemed.splice(0..0, news.redeemed.clone());
            unheard.unused.splice(0..0, news.unused.clone());
        })?;
        let Says::Beat(said) = &says else { return Ok(()) };
        match answer {
            Answers::Heard { drain, out } => {
                if said.draining && out == 0 {
                    member.released.store(true, Ordering::SeqCst);
                }
                let Some(shared) = shared.upgrade() else { return Ok(()) };
                if let Some(seconds) = drain.filter(|_| !said.draining) {
                    shared.drain(Duration::try_from_secs_f64(seconds).unwrap_or(EVER));
                }
                if said.draining {
                    shared.wake();
                }
            }
            Answers::Sent { why } => return Err(Error::misuse(why)),
            other => return Err(Error::peer("that the beat was heard", format!("{other:?}"))),
        }
        match nudged.recv_timeout(BEAT) {
            Ok(()) => while nudged.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if member.over.load(Ordering::SeqCst) {
            return Ok(());
        }
    }
}

/// Where browsers reach a server that listens for them `there`.
fn shown(fleet: &Membership, there: SocketAddr) -> String {
    match &fleet.advertise_websocket {
        Some(address) => match address.strip_suffix(":0") {
            Some(host) => format!("{host}:{}", there.port()),
            None => address.clone(),
        },
        None => there.to_string(),
    }
}

/// What a server does now.
fn beat(shared: &Shared, news: Unheard, with_metrics: bool) -> Beat {
    let (running, waiting) = shared.gate.counts();
    let sessions = shared.sessions.sessions();
    Beat {
        running,
        waiting,
        allowed: shared.gate.allowed(),
        prepared: sessions.iter().map(|session| session.prepared).sum(),
        mean: shared.gate.mean(),
        memory: crate::limits::resident(),
        sessions: shared.next.load(Ordering::SeqCst),
        draining: shared.is_draining(),
        keeps: shared.kept.len(),
        kept: news.kept,
        shown: news.shown,
        redeemed: news.redeemed,
        unused: news.unused,
        metrics: with_metrics.then(|| shared.answer("/metrics").body),
        list: with_metrics.then(|| serde_json::to_value(&sessions).unwrap_or_default()),
        models: news.models.then(|| shared.model_news()),
    }
}
