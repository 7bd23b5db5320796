//! What a ledger asks of the database that keeps it. Each kind of database is one file that implements [`Store`], and
//! one line where [`Ledger`](super::Ledger) is opened.
//!
//! Statements are of the SQL that all of them read: parameters are `?1`, `?2` and so on, integers have 64 bits, and
//! texts compare by their bytes.

use std::fmt::Debug;

use crate::error::{Error, Result};

/// A value of a table, or of a parameter; `None` is NULL.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

impl From<&[u8; 16]> for Value {
    fn from(value: &[u8; 16]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

/// A row that a query found.
#[derive(Debug)]
pub(super) struct Found(pub(super) Vec<Value>);

impl Found {
    /// The integer in a column.
    pub(super) fn integer(&self, column: usize) -> Result<Option<i64>> {
        match self.0.get(column) {
            Some(Value::Integer(integer)) => Ok(*integer),
            Some(Value::Text(None)) => Ok(None),
            _ => Err(Error::misuse("a column of the ledger is no integer")),
        }
    }

    /// The text in a column.
    pub(super) fn text(&self, column: usize) -> Result<Option<String>> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(Value::Integer(None)) => Ok(None),
            _ => Err(Error::misuse("a column of the ledger is no text")),
        }
    }
}

/// Whom a transaction must be alone with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alone<'a> {
    /// What a client has used of a model.
    Pair(&'a str, &'a str),
    /// Everything.
    Ledger,
}

/// A transaction that is under way.
pub(super) trait Transaction {
    /// Waits until no other transaction is under way that is alone with the same, and keeps others out until the end.
    /// What is read afterwards is what they have left. No transaction asks for two of them.
    fn alone(&mut self, with: Alone<'_>) -> Result<()>;

    /// Runs a statement, and returns how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64>;

    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Found>>;
}

/// When a transaction outlives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durable {
    /// Before its commit returns.
    Now,
    /// With the next commit that is durable now. All processes see it at once.
    Soon,
}

/// What a transaction does; it may be run again where the database gave it up.
pub(super) type Run<'a> = dyn FnMut(&mut dyn Transaction) -> Result<()> + 'a;

/// A database with the tables of a ledger.
pub(super) trait Store: Debug + Send + Sync {
    /// Runs a transaction and commits it. After an error nothing of it was done, or the commit itself failed and it is
    /// not known.
    fn commit(&self, durable: Durable, run: &mut Run<'_>) -> Result<()>;
}
