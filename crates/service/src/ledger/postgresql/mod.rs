//! A ledger in the schema `tacit` of a PostgreSQL database.
//!
//! Transactions are READ COMMITTED and take turns by advisory locks that end with them: one per client and model, and
//! one for the whole ledger that operators take who reset it. A statement sees what was committed before it began, so
//! what is read after the lock is what the last holder left.

pub(super) mod address;
mod faults;
mod locks;
mod tables;

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Row};

use self::address::Address;
use self::faults::{PATIENCE, explain, is_given_up};
use self::locks::number;
use super::store::{Alone, Durable, Found, Run, Store, Transaction, Value};
use crate::error::{Error, Result};

/// How every transaction begins, up to the value of `synchronous_commit`. Nothing is set beyond its end, so that poolers
/// which share connections by transactions may stand between. Names are those of the schema alone.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL search_path TO tacit, pg_temp;
    SET LOCAL lock_timeout TO '10s';
    SET LOCAL statement_timeout TO '10s';
    SET LOCAL idle_in_transaction_session_timeout TO '10s';
    SET LOCAL synchronous_commit TO ";

/// The database, and a connection that the threads of this process take turns with.
pub(super) struct Postgresql {
    address: Address,
    connection: Mutex<Option<Connection>>,
}

/// A connection between two transactions.
struct Connection {
    client: Client,
    /// The value of `synchronous_commit` that makes a commit wait for the disk, and for replicas where there are such.
    durable: &'static str,
}

impl Postgresql {
    /// Opens the ledger of a URL, and makes it where there is none and `create` says so.
    pub(super) fn open(url: &str, create: bool) -> Result<Self> {
        let address = Address::read(url)?;
        let mut connection = connect(&address)?;
        tables::open(&mut connection.client, &address.shown, create)?;
        Ok(Self { address, connection: Mutex::new(Some(connection)) })
    }

    /// A connection on which a transaction has begun. A kept one may have died, and nothing was asked on it then.
    fn begun(&self, kept: Option<Connection>, durable: Durable) -> Result<Connection> {
        if let Some(mut connection) = kept.filter(|connection| !connection.client.is_closed())
            && connection.begin(durable).is_ok()
        {
            return Ok(connection);
        }
        let mut connection = connect(&self.address)?;
        connection.begin(durable).map_err(|e| explain(&self.address.shown, &e))?;
        Ok(connection)
    }
}

impl Connection {
    fn begin(&mut self, durable: Durable) -> Result<(), ::postgres::Error> {
        let synchronous = match durable {
            Durable::Now => self.durable,
            Durable::Soon => "off",
        };
        self.client.batch_execute(&format!("{BEGIN}{synchronous}"))
    }
}

impl fmt::Debug for Postgresql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgresql").field("address", &self.address.shown).finish_non_exhaustive()
    }
}

impl Store for Postgresql {
    fn commit(&self, durable: Durable, run: &mut Run<'_>) -> Result<()> {
        let shown = &self.address.shown;
        let deadline = Instant::now() + PATIENCE;
        // A connection is put back when its transaction has ended; one that is dropped ends it.
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut connection = self.begun(held.take(), durable)?;
            let client = &mut connection.client;
            let mut writing = Writing { shown, client, failure: None, given_up: false };
            let ran = run(&mut writing);
            let Writing { failure, mut given_up, .. } = writing;
            // A COMMIT after a statement that failed undoes everything, and says that it went well.
            let ended = ran.and(failure.map_or(Ok(()), Err)).and_then(|()| {
                connection.client.batch_execute("COMMIT").map_err(|e| {
                    given_up = is_given_up(&e);
                    explain(shown, &e)
                })
            });
            if ended.is_ok() || connection.client.batch_execute("ROLLBACK").is_ok() {
                *held = Some(connection);
            }
            match ended {
                // The database says that nothing of it was done.
                Err(_) if given_up && Instant::now() < deadline => {}
                other => return other,
            }
        }
    }
}

/// A transaction that is under way.
struct Writing<'a> {
    shown: &'a Path,
    client: &'a mut Client,
    /// The last statement that failed.
    failure: Option<Error>,
    /// The database has given it up for another one, and it may be run again.
    given_up: bool,
}

impl Writing<'_> {
    fn failed(&mut self, error: &::postgres::Error) -> Error {
        self.given_up |= is_given_up(error);
        let error = explain(self.shown, error);
        self.failure = Some(error.clone());
        error
    }
}

impl Transaction for Writing<'_> {
    fn alone(&mut self, with: Alone<'_>) -> Result<()> {
        let ledger = number(&[b"ledger"]).into();
        match with {
            Alone::Ledger => self.execute("SELECT pg_advisory_xact_lock(?1)", &[ledger]),
            Alone::Pair(client, model) => {
                let length = (client.len() as u64).to_le_bytes();
                let pair = number(&[b"pair", &length, client.as_bytes(), model.as_bytes()]).into();
                self.execute("SELECT pg_advisory_xact_lock_shared(?1)", &[ledger])?;
                self.execute("SELECT pg_advisory_xact_lock(?1)", &[pair])
            }
        }
        .map(drop)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let sql = sql.replace('?', "$");
        self.client.execute_typed(&sql, &typed(values)).map_err(|e| self.failed(&e))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Found>> {
        let sql = sql.replace('?', "$");
        let rows = self.client.query_typed(&sql, &typed(values)).map_err(|e| self.failed(&e))?;
        rows.iter().map(|row| found(row).map_err(|e| explain(self.shown, &e))).collect()
    }
}

fn connect(address: &Address) -> Result<Connection> {
    let failed = |e: ::postgres::Error| explain(&address.shown, &e);
    let mut client = address.connect()?;
    let sql = "SELECT current_setting('fsync'), current_setting('synchronous_commit')";
    let row = client.query_typed_one(sql, &[]).map_err(failed)?;
    let setting = |column| row.try_get::<_, &str>(column).map_err(failed);
    if setting(0)? != "on" {
        let why = "its server does not write to the disk: set fsync = on".into();
        return Err(Error::Unusable { path: address.shown.clone(), why });
    }
    let durable = if setting(1)? == "remote_apply" { "remote_apply" } else { "on" };
    Ok(Connection { client, durable })
}

fn typed(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    fn of(value: &Value) -> (&(dyn ToSql + Sync), Type) {
        match value {
            Value::Integer(integer) => (integer, Type::INT8),
            Value::Text(text) => (text, Type::TEXT),
            Value::Bytes(bytes) => (bytes, Type::BYTEA),
        }
    }
    values.iter().map(of).collect()
}

fn found(row: &Row) -> Result<Found, ::postgres::Error> {
    let value = |(column, described): (usize, &::postgres::Column)| match *described.type_() {
        Type::TEXT => row.try_get(column).map(Value::Text),
        Type::BYTEA => row.try_get(column).map(Value::Bytes),
        _ => row.try_get(column).map(Value::Integer),
    };
    row.columns().iter().enumerate().map(value).collect::<Result<_, _>>().map(Found)
}
