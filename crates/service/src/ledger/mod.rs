//! Budgets of inputs per client and model, in a file that outlives the server.

mod budget;
mod rows;
mod schema;
mod tickets;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::identity::Client;
use crate::refused::{Limit, Refused};

pub use self::budget::Budget;
use self::rows::{budget_of, limit, store, usage_of};
pub use self::tickets::Reservation;
use self::tickets::too_much;

/// The inputs that clients have used, and the limits that operators have set.
///
/// The file is an SQLite database in WAL mode: beside `FILE` there are `FILE-wal` and `FILE-shm` while
/// it is open, on a disk of this machine. Several threads and processes may use it at the same time.
///
/// What is charged is never given back. A charge is on the disk before [`charge`](Ledger::charge)
/// returns, so that whatever happens to the process afterwards, an answer that left was paid for.
/// There is a row for every client and model that was ever charged.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    connection: Mutex<Connection>,
}

/// What a client has used after a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Charged {
    /// Inputs in all.
    pub used: u64,
    /// Inputs in this day of UTC.
    pub today: u64,
    /// How many inputs could be charged now; `None` where there is no limit.
    pub left: Option<u64>,
}

/// Which rows of a ledger are meant: those of a client, of a model, of both, or all.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Only rows of this client.
    pub client: Option<Client>,
    /// Only rows of this model.
    pub model: Option<String>,
}

/// The condition for rows that are [`Chosen`].
const CHOSEN: &str = "(?1 IS NULL OR client = ?1) AND (?2 IS NULL OR model = ?2)";

impl Chosen {
    /// The values of [`CHOSEN`].
    fn values(&self) -> [Option<String>; 2] {
        [self.client.as_ref().map(Client::key), self.model.clone()]
    }
}

/// What a ledger knows of a client and a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The client's [key](Client::key).
    pub client: String,
    /// The model's name.
    pub model: String,
    /// The limits that an operator set; `None` where the server's defaults hold.
    pub budget: Option<Budget>,
    /// Inputs in all.
    pub used: u64,
    /// Inputs in this day of UTC.
    pub today: u64,
    /// When the last input was charged, in seconds since 1970 (UTC); `None` where none was.
    pub last_use: Option<u64>,
}

impl Ledger {
    /// Opens a ledger, and makes an empty one that only its owner may read where there is no file.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Newer`] or [`Error::Foreign`] for a file that is refused as it is,
    /// [`Error::Unusable`] where the system does not let it be read and written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), true)
    }

    /// Opens a ledger that there is.
    ///
    /// # Errors
    /// [`Error::Misuse`] where there is no file, and those of [`open`](Ledger::open).
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), false)
    }

    fn opened(path: &Path, create: bool) -> Result<Self> {
        let connection = Mutex::new(schema::open(path, create)?);
        Ok(Self { path: path.into(), connection })
    }

    /// Charges a client for so many inputs of a model, all or none, and returns what it has used.
    /// The limits are those that an operator [`set`](Ledger::set), or else `default`. When this
    /// returns, the charge is on the disk.
    ///
    /// # Errors
    /// [`Error::Refused`] where a limit has too little left, and then nothing is charged.
    /// [`Error::Unusable`] or [`Error::Damaged`] where the file fails: then the inputs may have been
    /// charged or not, and must not be answered.
    pub fn charge(
        &self,
        client: &Client,
        model: &str,
        inputs: u64,
        default: &Budget,
        now: SystemTime,
    ) -> Result<Charged> {
        let (key, now) = (client.key(), seconds(now));
        let outcome = self.write(|transaction| {
            let budget = budget_of(transaction, &key, model)?.unwrap_or(*default);
            let usage = usage_of(transaction, &key, model)?.unwrap_or_default().at(now);
            if let Some(refused) = too_much(transaction, (&key, model), default, inputs, now)? {
                return Ok(Err(refused));
            }
            let usage = usage.plus(inputs);
            if inputs > 0 {
                store(transaction, &key, model, &usage)?;
            }
            let left = |(limit, allowed): (Limit, u64)| allowed.saturating_sub(usage.of(limit));
            let left = budget.limits().map(left).min();
            Ok(Ok(Charged { used: usage.total, today: usage.day, left }))
        })?;
        outcome.map_err(|refused| {
            Error::Refused(Refused { client: client.to_string(), model: model.into(), ..refused })
        })
    }

    /// Gives a client limits of its own for a model, in place of all that it had. What it has used
    /// stays.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn set(&self, client: &Client, model: &str, budget: &Budget) -> Result<()> {
        self.write(|transaction| limit(transaction, &client.key(), model, budget))
    }

    /// Takes back limits that were [`set`](Ledger::set), so that the server's defaults hold again,
    /// and returns whether there were any.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn unset(&self, client: &Client, model: &str) -> Result<bool> {
        let removed = self.write(|transaction| {
            let sql = "DELETE FROM budgets WHERE client = ?1 AND model = ?2";
            transaction.execute(sql, params![client.key(), model])
        })?;
        Ok(removed > 0)
    }

    /// Forgets what the chosen clients have used, in all, today and in this minute, and returns of
    /// how many rows. Limits stay.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn reset(&self, chosen: &Chosen) -> Result<usize> {
        self.write(|transaction| {
            let sql = format!("DELETE FROM usage WHERE {CHOSEN}");
            transaction.execute(&sql, chosen.values())
        })
    }

    /// Returns the chosen rows in the order of client and model: those with inputs used, with limits
    /// of their own, or both.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn show(&self, chosen: &Chosen, now: SystemTime) -> Result<Vec<Row>> {
        let now = seconds(now);
        self.write(|transaction| {
            let tables = "SELECT client, model FROM usage UNION SELECT client, model FROM budgets";
            let sql = format!("SELECT * FROM ({tables}) WHERE {CHOSEN} ORDER BY client, model");
            let mut found = transaction.prepare(&sql)?;
            let names = found.query_map(chosen.values(), |row| Ok((row.get(0)?, row.get(1)?)))?;
            let row = |names: rusqlite::Result<(String, String)>| {
                let (client, model) = names?;
                let usage = usage_of(transaction, &client, &model)?;
                let (used, today) = usage.map_or((0, 0), |used| (used.total, used.at(now).day));
                let budget = budget_of(transaction, &client, &model)?;
                let last_use = usage.map(|used| used.last);
                Ok(Row { client, model, budget, used, today, last_use })
            };
            names.map(row).collect()
        })
    }

    /// Runs a transaction that no other writer comes between, and commits it to the disk.
    fn write<T>(&self, run: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        self.commit("FULL", run)
    }

    /// Runs a transaction that no other writer comes between. All processes see it at once, and it is
    /// on the disk with the next [`write`](Ledger::write), or lost when the machine loses power before.
    fn write_soon<T>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.commit("NORMAL", run)
    }

    fn commit<T>(
        &self,
        synchronous: &str,
        run: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        // A thread that failed has left no transaction open: they end with their scope.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || {
            connection.pragma_update(None, "synchronous", synchronous)?;
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = run(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|e| schema::explain(&self.path, &e))
    }
}

/// Seconds since 1970 (UTC).
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
