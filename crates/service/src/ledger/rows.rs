//! The rows of a ledger's tables as values. What does not fit saturates.

use rusqlite::{OptionalExtension, Result, Row, Transaction, params};

use super::budget::{Budget, Usage};

/// Returns the limits that a client has of its own.
pub(super) fn budget_of(
    from: &Transaction<'_>,
    client: &str,
    model: &str,
) -> Result<Option<Budget>> {
    let sql = "SELECT total, per_day, per_minute FROM budgets WHERE client = ?1 AND model = ?2";
    let limit = |row: &Row<'_>, index| row.get(index).map(|limit: Option<i64>| limit.map(count));
    let read = |row: &Row<'_>| {
        let (total, per_day, per_minute) = (limit(row, 0)?, limit(row, 1)?, limit(row, 2)?);
        Ok(Budget { total, per_day, per_minute })
    };
    from.query_row(sql, params![client, model], read).optional()
}

/// Returns what a client has used, if anything.
pub(super) fn usage_of(from: &Transaction<'_>, client: &str, model: &str) -> Result<Option<Usage>> {
    let sql = "SELECT total, day, minute, last FROM usage WHERE client = ?1 AND model = ?2";
    let number = |row: &Row<'_>, index: usize| row.get(index).map(count);
    let read = |row: &Row<'_>| {
        let (total, day) = (number(row, 0)?, number(row, 1)?);
        Ok(Usage { total, day, minute: number(row, 2)?, last: number(row, 3)? })
    };
    from.query_row(sql, params![client, model], read).optional()
}

/// Writes what a client has used.
pub(super) fn store(to: &Transaction<'_>, client: &str, model: &str, usage: &Usage) -> Result<()> {
    let [total, day, minute, last] =
        [usage.total, usage.day, usage.minute, usage.last].map(integer);
    let values = params![client, model, total, day, minute, last];
    to.execute("REPLACE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6)", values).map(|_| ())
}

/// Writes the limits that a client has of its own.
pub(super) fn limit(
    to: &Transaction<'_>,
    client: &str,
    model: &str,
    budget: &Budget,
) -> Result<()> {
    let limits = [budget.total, budget.per_day, budget.per_minute];
    let [total, per_day, per_minute] = limits.map(|limit| limit.map(integer));
    let values = params![client, model, total, per_day, per_minute];
    to.execute("REPLACE INTO budgets VALUES (?1, ?2, ?3, ?4, ?5)", values).map(|_| ())
}

/// A number for a table, whose integers have 64 bits with a sign.
fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A number from a table. There are none below 0; one that was put there counts as much as can be.
fn count(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(i64::MAX.unsigned_abs())
}
