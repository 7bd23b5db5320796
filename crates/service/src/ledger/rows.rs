//! The rows of a ledger's tables as values. What does not fit saturates.

use super::budget::{Budget, Usage};
use super::store::{Found, Transaction, Value};
use crate::error::Result;

/// Returns the limits that a client has of its own.
pub(super) fn budget_of(
    from: &mut dyn Transaction,
    client: &str,
    model: &str,
) -> Result<Option<Budget>> {
    let sql = "SELECT total, per_day, per_minute FROM budgets WHERE client = ?1 AND model = ?2";
    let found = from.query(sql, &[client.into(), model.into()])?;
    found.first().map(|row| limits(row, 0)).transpose()
}

/// Returns what a client has used, if anything.
pub(super) fn usage_of(
    from: &mut dyn Transaction,
    client: &str,
    model: &str,
) -> Result<Option<Usage>> {
    let sql = "SELECT total, day, minute, last FROM usage WHERE client = ?1 AND model = ?2";
    let found = from.query(sql, &[client.into(), model.into()])?;
    Ok(found.first().map(|row| used(row, 0)).transpose()?.flatten())
}

/// Reads the limits in the columns from `first` on.
pub(super) fn limits(row: &Found, first: usize) -> Result<Budget> {
    let limit = |column| Ok(row.integer(first + column)?.map(count));
    Ok(Budget { total: limit(0)?, per_day: limit(1)?, per_minute: limit(2)? })
}

/// Reads what was used in the columns from `first` on, where it is not NULL.
pub(super) fn used(row: &Found, first: usize) -> Result<Option<Usage>> {
    let number = |column| Ok(row.integer(first + column)?.map(count));
    let all = (number(0)?, number(1)?, number(2)?, number(3)?);
    let (Some(total), Some(day), Some(minute), Some(last)) = all else { return Ok(None) };
    Ok(Some(Usage { total, day, minute, last }))
}

/// Writes what a client has used.
pub(super) fn store(
    to: &mut dyn Transaction,
    client: &str,
    model: &str,
    usage: &Usage,
) -> Result<()> {
    let sql = "INSERT INTO usage (client, model, total, day, minute, last)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (client, model) DO UPDATE SET total = excluded.total, day = excluded.day,
            minute = excluded.minute, last = excluded.last";
    let [total, day, minute, last] =
        [usage.total, usage.day, usage.minute, usage.last].map(|n| Value::from(integer(n)));
    let values = [client.into(), model.into(), total, day, minute, last];
    to.execute(sql, &values).map(drop)
}

/// Writes the limits that a client has of its own.
pub(super) fn limit(
    to: &mut dyn Transaction,
    client: &str,
    model: &str,
    budget: &Budget,
) -> Result<()> {
    let sql = "INSERT INTO budgets (client, model, total, per_day, per_minute)
        VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (client, model) DO UPDATE SET total = excluded.total,
            per_day = excluded.per_day, per_minute = excluded.per_minute";
    let limits = [budget.total, budget.per_day, budget.per_minute];
    let [total, per_day, per_minute] = limits.map(|limit| Value::from(limit.map(integer)));
    to.execute(sql, &[client.into(), model.into(), total, per_day, per_minute]).map(drop)
}

/// A number for a table, whose integers have 64 bits with a sign.
pub(super) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A number from a table. There are none below 0; one that was put there counts as much as can be.
fn count(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(i64::MAX.unsigned_abs())
}
