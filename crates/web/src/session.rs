//! Sessions that stay open between inputs, and prepare while they wait for one.

use runtime::{Plan, Provenance, Session};
use wasm_bindgen::prelude::*;
use wire::fleet::Amount;
use wire::{Error, Result};

use crate::failure::thrown;
use crate::{Answer, Client, link, report};

#[wasm_bindgen]
impl Client {
    /// Opens a session of at most `inputs` inputs, or batches where the server takes them, and gives its report so far. One that
    /// was open breaks off.
    ///
    /// # Errors
    /// The JSON of an error, as all methods here.
    pub fn open(&self, inputs: usize) -> Result<String, JsValue> {
        let opened = self.begin(inputs);
        opened.and_then(|()| self.with(|open| report(open.plan(), open.report()))).map_err(thrown)
    }

    /// Runs the next input of the session that is open, or up to a batch of them, after what is still to be prepared. The report is
    /// that of the session so far.
    pub fn next(&self, values: &[f32], shape: &[usize]) -> Result<Answer, JsValue> {
        let next = |session: &mut Session| {
            if values.iter().any(|value| !value.is_finite()) {
                return Err(Error::misuse("the input has NaN or infinite values"));
            }
            let results = session.predict(values, shape)?;
            let columns = results.first().map_or(0, Vec::len);
            let report = report(session.plan(), session.report())?;
            Ok(Answer { outputs: results.concat(), columns, report })
        };
        self.with(next).map_err(thrown)
    }

    /// Prepares one run, if the server has it prepared now; says whether one more can follow before the next input.
    pub fn prepare(&self) -> Result<bool, JsValue> {
        self.with(Session::prepare).map_err(thrown)
    }

    /// Prepared runs that wait for their inputs.
    pub fn ready(&self) -> usize {
        self.open.borrow().as_ref().map_or(0, Session::ready)
    }

    /// Says goodbye, and gives the report of the whole session.
    pub fn finish(&self) -> Result<String, JsValue> {
        let finished = self.with(|session| {
            session.finish()?;
            report(session.plan(), session.report())
        });
        self.abandon();
        finished.map_err(thrown)
    }

    /// Breaks the session off that is open, if there is one.
    pub fn abandon(&self) {
        self.open.replace(None);
    }
}

impl Client {
    fn begin(&self, inputs: usize) -> Result<()> {
        self.abandon();
        let trusts = |plan: &Plan, provenance: &Provenance| self.options.check(plan, provenance);
        let waiting = |before| link::told("waiting", before, 0);
        let asking = self.asking(&waiting, &trusts);
        let opened = self.channel(&asking, Amount::Runs(inputs as u64)).and_then(|channel| {
            let is_door = channel.detour().is_some();
            let leakage = self.options.accept_leakage;
            let session = Session::open(channel, inputs, 1, leakage, None, asking)?;
            self.is_door.set(is_door);
            Ok(session)
        });
        let session = opened.inspect_err(|error| self.doubt(error))?;
        self.open.replace(Some(session));
        Ok(())
    }

    fn with<T>(&self, run: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        match &mut *self.open.borrow_mut() {
            Some(session) => run(session),
            None => Err(Error::misuse("no session is open")),
        }
    }
}
