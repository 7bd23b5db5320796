//! The client for browsers and Node: sessions over bytes that the page passes on.
//!
//! The protocols read from a channel and wait, so this code runs in a worker that may wait. The page, or the main thread of
//! Node, owns the WebSocket; `web/src/link.js` passes bytes between the two.

mod failure;
mod link;
mod options;
#[cfg(feature = "rates")]
pub mod rates;
mod session;

use std::cell::{Cell, RefCell};

use ring::host::Instant;
use runtime::{
    Asking, KeptKeys, Plan, Provenance, Report, Request, Reveal, Session, Trusts, door_request,
};
use wasm_bindgen::prelude::*;
use wire::fleet::Amount;
use wire::{
    Channel, Error, Result, Role, Transport, TransportKind, Way, ask_door, following_by,
    show_ticket,
};

use crate::failure::thrown;
use crate::link::Link;
use crate::options::{Options, Token};

/// Told how many sessions come before this one.
type Waits = dyn Fn(u32);

/// A client of one server, or of the door of a fleet.
#[wasm_bindgen]
pub struct Client {
    options: Options,
    kept: KeptKeys,
    /// Whether the last session came by way of a door.
    is_door: Cell<bool>,
    /// The session that stays open between inputs, if there is one.
    open: RefCell<Option<Session>>,
}

/// What a session gave.
#[wasm_bindgen]
pub struct Answer {
    outputs: Vec<i64>,
    columns: usize,
    report: String,
}

/// A report, and how to read the results.
#[derive(serde::Serialize)]
struct Reported<'a> {
    #[serde(flatten)]
    session: &'a Report,
    output_scale: f64,
    labels: &'a [String],
    /// The second output is this by the probability, where that is revealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    certain: Option<u64>,
    plan: serde_json::Value,
}

#[wasm_bindgen]
impl Client {
    /// Makes a client from options in JSON.
    ///
    /// # Errors
    /// The JSON of an error, as all methods here.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str) -> Result<Self, JsValue> {
        let options = Options::parse(options).map_err(thrown)?;
        let (kept, is_door, open) = (KeptKeys::default(), Cell::new(false), RefCell::default());
        Ok(Self { options, kept, is_door, open })
    }

    /// Runs one session over `values` of the given shape: one input, or several with a leading axis, in the
    /// model's units.
    ///
    /// # Errors
    /// The JSON of an error.
    pub fn predict(&self, values: &[f32], shape: &[usize]) -> Result<Answer, JsValue> {
        self.run(values, shape).map_err(thrown)
    }
}

impl Client {
    fn run(&self, values: &[f32], shape: &[usize]) -> Result<Answer> {
        if values.iter().any(|value| !value.is_finite()) {
            return Err(Error::misuse("the input has NaN or infinite values"));
        }
        let options = &self.options;
        let trusts = |plan: &Plan, provenance: &Provenance| options.check(plan, provenance);
        let waiting = |before| link::told("waiting", before, 0);
        let done = |done: usize, all: usize| link::told("done", done as u32, all as u32);
        let asking = self.asking(&waiting, &trusts);
        let request = Request {
            values,
            shape,
            threads: 1,
            accept_leakage: options.accept_leakage,
            keys: None,
            asking,
            progress: &mut { done },
        };
        let amount = Amount::Values(values.len() as u64);
        let answer = self.channel(&asking, amount).and_then(|mut channel| {
            let answer = runtime::predict(&mut channel, request)?;
            self.is_door.set(channel.detour().is_some());
            Ok(answer)
        });
        let answer = answer.inspect_err(|error| self.doubt(error))?;
        let columns = answer.results.first().map_or(0, Vec::len);
        let (report, outputs) = (report(&answer.plan, &answer.report)?, answer.results.concat());
        Ok(Answer { outputs, columns, report })
    }
}

impl Client {
    /// Returns the request for a session that the options describe.
    fn asking<'a>(&'a self, waiting: &'a Waits, trusts: &'a Trusts<'a>) -> Asking<'a> {
        Asking {
            model: self.options.model.as_deref(),
            token: self.options.token.as_ref().map(Token::text),
            keys: self.options.keep_keys.then_some(&self.kept),
            waiting: Some(waiting),
            trust: Some(trusts),
        }
    }

    /// A door that has become a server waits for a session, as the client waits for its answer.
    fn doubt(&self, error: &Error) {
        if matches!(error, Error::Transport(lost) if lost.kind == TransportKind::TimedOut) {
            self.is_door.set(false);
        }
    }

    /// A channel to the server, or to the one that a door names. A peer that is known as a door is asked before the session
    /// begins, so that base OTs which were kept are not given up for a refusal.
    fn channel(&self, asking: &Asking<'_>, amount: Amount) -> Result<Channel> {
        let request = door_request(asking, amount)?;
        let link = Link::new(&self.options);
        let told = |before| link::told("waiting", before, 0);
        if self.is_door.get() {
            let since = Instant::now();
            let door = Channel::new(Role::Client, Box::new(link));
            let (ticket, received) = ask_door(door, &request, &told)?;
            let server = Channel::new(Role::Client, Box::new(link.to(&ticket.address)?));
            return show_ticket(server, &ticket, (since, received));
        }
        let dial =
            move |address: &str| -> Result<Box<dyn Transport>> { Ok(Box::new(link.to(address)?)) };
        let way = Way { dial: Box::new(dial), told: Box::new(told) };
        following_by(Box::new(link), way, &request)
    }
}

fn report(plan: &Plan, session: &Report) -> Result<String> {
    let graph = plan.graph();
    let scale = graph.tensors.get(graph.output).map_or(1.0, |tensor| tensor.format.scale);
    let reported = Reported {
        session,
        output_scale: if plan.settings().reveal == Reveal::Output { scale } else { 1.0 },
        labels: &graph.labels,
        certain: plan.certain(),
        plan: serde_json::from_str(&plan.offer()).unwrap_or_default(),
    };
    serde_json::to_string(&reported).map_err(|e| Error::internal(e.to_string()))
}

#[wasm_bindgen]
impl Answer {
    /// The outputs of all inputs, one input after another.
    #[wasm_bindgen(getter)]
    pub fn outputs(&self) -> Vec<i64> {
        self.outputs.clone()
    }

    /// The number of outputs of each input.
    #[wasm_bindgen(getter)]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The report in JSON.
    #[wasm_bindgen(getter)]
    pub fn report(&self) -> String {
        self.report.clone()
    }
}
