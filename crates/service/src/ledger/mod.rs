//! Budgets of inputs per client and model, in a file or database that outlives the server.

mod budget;
mod postgresql;
mod rows;
mod schema;
mod sqlite;
mod store;
mod tickets;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::identity::Client;
use crate::place::is_url;
use crate::refused::{Limit, Refused};

pub use self::budget::Budget;
use self::postgresql::Postgresql;
pub use self::postgresql::address::shown as ledger_name;
use self::rows::{budget_of, limit, limits, store, usage_of, used};
use self::sqlite::Sqlite;
use self::store::{Alone, Durable, Store, Transaction, Value};
pub use self::tickets::Reservation;
use self::tickets::too_much;

/// The inputs that clients have used, and the limits that operators have set.
///
/// A file is an SQLite database in WAL mode: beside `FILE` there are `FILE-wal` and `FILE-shm` while
/// it is open, on a disk of this machine. A URL, `postgresql://USER@HOST:PORT/DATABASE`, is the schema
/// `tacit` of a PostgreSQL database, which processes of several machines may share. Several threads
/// and processes may use either at the same time.
///
/// What is charged is never given back. A charge is on the disk before [`charge`](Ledger::charge)
/// returns, so that whatever happens to the process afterwards, an answer that left was paid for.
/// There is a row for every client and model that was ever charged.
#[derive(Debug)]
pub struct Ledger {
    store: Box<dyn Store>,
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
const CHOSEN: &str = "(?1 IS NULL OR named.client = ?1) AND (?2 IS NULL OR named.model = ?2)";

/// What is known of every client and model, of one moment.
const ROWS: &str = "
    SELECT named.client, named.model, used.total, used.day, used.minute, used.last,
        own.client, own.total, own.per_day, own.per_minute
    FROM (SELECT client, model FROM usage UNION SELECT client, model FROM budgets) AS named
    LEFT JOIN usage AS used ON used.client = named.client AND used.model = named.model
    LEFT JOIN budgets AS own ON own.client = named.client AND own.model = named.model";

impl Chosen {
    /// The values of [`CHOSEN`].
    fn values(&self) -> [Value; 2] {
        [self.client.as_ref().map(Client::key).into(), self.model.clone().into()]
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
    /// Opens a ledger by its path or URL, and makes an empty one that only its owner may read where
    /// there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Newer`] or [`Error::Foreign`] for a ledger that is refused as it is,
    /// [`Error::Unusable`] where the system does not let it be read and written, [`Error::Misuse`] for
    /// a URL that cannot be read or that would send what it says over a network without TLS.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), true)
    }

    /// Opens a ledger that there is.
    ///
    /// # Errors
    /// [`Error::Misuse`] where there is none, and those of [`open`](Ledger::open).
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self> {
        Self::opened(path.as_ref(), false)
    }

    fn opened(path: &Path, create: bool) -> Result<Self> {
        let store: Box<dyn Store> = match path.to_str().filter(|place| is_url(place)) {
            Some(url) => Box::new(Postgresql::open(url, create)?),
            None => Box::new(Sqlite::open(path, create)?),
        };
        Ok(Self { store })
    }

    /// Charges a client for so many inputs of a model, all or none, and returns what it has used.
    /// The limits are those that an operator [`set`](Ledger::set), or else `default`. When this
    /// returns, the charge is on the disk.
    ///
    /// # Errors
    /// [`Error::Refused`] where a limit has too little left, and then nothing is charged.
    /// [`Error::Unusable`] or [`Error::Damaged`] where the database fails: then the inputs may have been
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
            transaction.alone(Alone::Pair(&key, model))?;
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
            transaction.execute(sql, &[client.key().as_str().into(), model.into()])
        })?;
        Ok(removed > 0)
    }

    /// Forgets what the chosen clients have used, in all, today and in this minute, and returns of
    /// how many rows. Limits stay.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn reset(&self, chosen: &Chosen) -> Result<usize> {
        let rows = self.write(|transaction| {
            transaction.alone(Alone::Ledger)?;
            let sql = format!("DELETE FROM usage AS named WHERE {CHOSEN}");
            transaction.execute(&sql, &chosen.values())
        })?;
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// Returns the chosen rows in the order of client and model: those with inputs used, with limits
    /// of their own, or both.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn show(&self, chosen: &Chosen, now: SystemTime) -> Result<Vec<Row>> {
        let now = seconds(now);
        let sql = format!("{ROWS} WHERE {CHOSEN} ORDER BY 1, 2");
        let found = self.write(|transaction| transaction.query(&sql, &chosen.values()))?;
        let row = |row: &store::Found| {
            let named = |column| Ok(row.text(column)?.unwrap_or_default());
            let usage = used(row, 2)?;
            let (used, today) = usage.map_or((0, 0), |used| (used.total, used.at(now).day));
            let own = row.text(6)?.is_some();
            let budget = own.then(|| limits(row, 7)).transpose()?;
            let last_use = usage.map(|used| used.last);
            Ok(Row { client: named(0)?, model: named(1)?, budget, used, today, last_use })
        };
        found.iter().map(row).collect()
    }

    /// Runs a transaction and commits it to the disk.
    fn write<T>(&self, run: impl FnMut(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        self.commit(Durable::Now, run)
    }

    /// Runs a transaction. All processes see it at once, and it is on the disk with the next
    /// [`write`](Ledger::write), or lost when the machine of the ledger loses power before.
    fn write_soon<T>(&self, run: impl FnMut(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        self.commit(Durable::Soon, run)
    }

    fn commit<T>(
        &self,
        durable: Durable,
        mut run: impl FnMut(&mut dyn Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut result = None;
        self.store.commit(durable, &mut |transaction| {
            result = Some(run(transaction)?);
            Ok(())
        })?;
        result.ok_or_else(|| Error::misuse("the transaction was not run"))
    }
}

/// Seconds since 1970 (UTC).
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
