//! A ledger in a file of SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::types::{ToSqlOutput, Value as Cell, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params_from_iter};

use super::schema;
use super::store::{Alone, Durable, Found, Run, Store, Transaction, Value};
use crate::error::Result;

/// The file, and a connection that the threads of this process take turns with.
#[derive(Debug)]
pub(super) struct Sqlite {
    path: PathBuf,
    pub(super) connection: Mutex<Connection>,
}

impl Sqlite {
    pub(super) fn open(path: &Path, create: bool) -> Result<Self> {
        let connection = Mutex::new(schema::open(path, create)?);
        Ok(Self { path: path.into(), connection })
    }
}

impl Store for Sqlite {
    fn commit(&self, durable: Durable, run: &mut Run<'_>) -> Result<()> {
        // A thread that failed has left no transaction open: they end with their scope.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |e: rusqlite::Error| schema::explain(&self.path, &e);
        let synchronous = match durable {
            Durable::Now => "FULL",
            Durable::Soon => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
        run(&mut Writing { path: &self.path, transaction: &transaction })?;
        transaction.commit().map_err(failed)
    }
}

/// A transaction, of which there is one at a time over all processes.
struct Writing<'a> {
    path: &'a Path,
    transaction: &'a Connection,
}

impl Transaction for Writing<'_> {
    fn alone(&mut self, _: Alone<'_>) -> Result<()> {
        Ok(())
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let changed = self.transaction.execute(sql, params_from_iter(values));
        changed.map(|rows| rows as u64).map_err(|e| schema::explain(self.path, &e))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Found>> {
        let read = || {
            let mut statement = self.transaction.prepare(sql)?;
            let columns = statement.column_count();
            let row = |row: &rusqlite::Row<'_>| {
                (0..columns).map(|column| Ok(value(row.get(column)?))).collect()
            };
            let rows = statement.query_map(params_from_iter(values), row)?;
            rows.map(|row| row.map(Found)).collect::<rusqlite::Result<_>>()
        };
        read().map_err(|e| schema::explain(self.path, &e))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Integer(Some(integer)) => ValueRef::Integer(*integer),
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Integer(None) | Self::Text(None) => ValueRef::Null,
        }))
    }
}

/// A cell as a value. No table here has numbers with a point; one would be read as bytes, which nothing takes.
fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Text(None),
        Cell::Integer(integer) => Value::Integer(Some(integer)),
        Cell::Text(text) => Value::Text(Some(text)),
        Cell::Blob(bytes) => Value::Bytes(bytes),
        Cell::Real(number) => Value::Bytes(number.to_be_bytes().to_vec()),
    }
}
