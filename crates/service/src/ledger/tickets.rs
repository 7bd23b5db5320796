//! Inputs that are set aside for sessions which are about to begin.
//!
//! A reservation counts against budgets as a charge does, until it is redeemed, which makes a charge
//! of it, or over. It is redeemed once, whatever number of processes try.

use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension, Result as Sql, Row, Transaction, params};

use super::budget::{Budget, exceeded};
use super::rows::{budget_of, store, usage_of};
use super::{Charged, Ledger, seconds};
use crate::error::{Error, Result};
use crate::identity::Client;
use crate::refused::{Limit, Refused};

/// Longest wait that a client is told whose inputs are set aside for others, in seconds.
const SOON: u64 = 5;
/// How long a redeemed ticket is remembered after it is over, in seconds.
const REMEMBERED: u64 = 3600;

/// What is set aside.
#[derive(Clone, Copy, Debug)]
pub struct Reservation<'a> {
    /// The number of the ticket, which is never used for another.
    pub id: &'a [u8; 16],
    /// Who asks.
    pub client: &'a Client,
    /// The model's name.
    pub model: &'a str,
    /// How many inputs.
    pub inputs: u64,
    /// Until when.
    pub until: SystemTime,
}

impl Ledger {
    /// Sets inputs aside, all or none. What is set aside is lost when the machine loses power soon after, and then the
    /// ticket cannot be redeemed.
    ///
    /// # Errors
    /// [`Error::Refused`] where a limit has too little left, [`Error::Misuse`] for a number that was
    /// given out before, [`Error::Unusable`] or [`Error::Damaged`] where the file fails.
    pub fn reserve(
        &self,
        wanted: &Reservation<'_>,
        default: &Budget,
        now: SystemTime,
    ) -> Result<()> {
        let Reservation { id, client, model, inputs, until } = *wanted;
        let (key, now, until) = (client.key(), seconds(now), seconds(until));
        let outcome = self.write_soon(|transaction| {
            forget(transaction, now)?;
            if let Some(refused) = too_much(transaction, (&key, model), default, inputs, now)? {
                return Ok(Err(Error::Refused(named(refused, client, model))));
            }
            let sql = "INSERT INTO tickets (id, client, model, inputs, expiry)
                VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
            let values = params![id, key, model, integer(inputs), integer(until)];
            Ok(match transaction.execute(sql, values)? {
                1 => Ok(()),
                _ => Err(Error::misuse("a ticket of this number was given out before")),
            })
        })?;
        outcome
    }

    /// Charges `inputs` for what was set aside under this number, and the rest of it is free again. It
    /// works once. When this returns, the charge is on the disk.
    ///
    /// # Errors
    /// [`Error::Ticket`] for a ticket that was redeemed, released, or is over; [`Error::Refused`] where
    /// `inputs` are more than were set aside and than a limit has left, and then nothing is charged.
    pub fn redeem(
        &self,
        id: &[u8; 16],
        inputs: u64,
        default: &Budget,
        now: SystemTime,
    ) -> Result<Charged> {
        let now = seconds(now);
        self.write(|transaction| {
            let sql = "SELECT client, model, expiry, redeemed FROM tickets WHERE id = ?1";
            let read = |row: &Row<'_>| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
            };
            let found: Option<(String, String, i64, i64)> =
                transaction.query_row(sql, params![id], read).optional()?;
            let bad = |why: &str| Ok(Err(Error::Ticket(why.into())));
            let Some((key, model, expiry, redeemed)) = found else {
                return bad("the ticket is not, or no longer, in this ledger");
            };
            if redeemed != 0 {
                return bad("the ticket was used before");
            }
            if expiry <= integer(now) {
                return bad("the ticket is over");
            }
            // From here on it counts as used, so that its own inputs are not in its way.
            transaction.execute("UPDATE tickets SET redeemed = 1 WHERE id = ?1", params![id])?;
            if let Some(refused) = too_much(transaction, (&key, &model), default, inputs, now)? {
                transaction
                    .execute("UPDATE tickets SET redeemed = 0 WHERE id = ?1", params![id])?;
                let client = key.parse().map_err(|_| rusqlite::Error::InvalidQuery);
                let client: Client = client?;
                return Ok(Err(Error::Refused(named(refused, &client, &model))));
            }
            let budget = budget_of(transaction, &key, &model)?.unwrap_or(*default);
            let usage = usage_of(transaction, &key, &model)?.unwrap_or_default().at(now);
            let usage = usage.plus(inputs);
            store(transaction, &key, &model, &usage)?;
            let left = |(limit, allowed): (Limit, u64)| allowed.saturating_sub(usage.of(limit));
            let left = budget.limits().map(left).min();
            Ok(Ok(Charged { used: usage.total, today: usage.day, left }))
        })?
    }

    /// Keeps what was set aside for longer, for a session that waits; false where it is over.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn extend(&self, id: &[u8; 16], until: SystemTime, now: SystemTime) -> Result<bool> {
        let (until, now) = (integer(seconds(until)), integer(seconds(now)));
        let changed = self.write_soon(|transaction| {
            let sql = "UPDATE tickets SET expiry = max(expiry, ?2)
                WHERE id = ?1 AND redeemed = 0 AND expiry > ?3";
            transaction.execute(sql, params![id, until, now])
        })?;
        Ok(changed > 0)
    }

    /// Frees what was set aside and not redeemed.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn release(&self, id: &[u8; 16]) -> Result<()> {
        self.write_soon(|transaction| {
            transaction.execute("DELETE FROM tickets WHERE id = ?1 AND redeemed = 0", params![id])
        })?;
        Ok(())
    }
}

/// The refusal of `inputs` more than were used and are set aside, if they are too many.
pub(super) fn too_much(
    from: &Transaction<'_>,
    (client, model): (&str, &str),
    default: &Budget,
    inputs: u64,
    now: u64,
) -> Sql<Option<Refused>> {
    let budget = budget_of(from, client, model)?.unwrap_or(*default);
    let usage = usage_of(from, client, model)?.unwrap_or_default().at(now);
    if let Some(refused) = exceeded(&budget, &usage, inputs, now) {
        return Ok(Some(refused));
    }
    let (aside, until) = set_aside(from, client, model, now)?;
    let refused = exceeded(&budget, &usage.plus(aside), inputs, now);
    // It fits as soon as what is set aside is free again.
    let wait = Duration::from_secs(until.saturating_sub(now).clamp(1, SOON));
    Ok(refused.map(|refused| Refused { wait: Some(wait), ..refused }))
}

/// Inputs of tickets that are out, and when the first of them is over.
fn set_aside(from: &Transaction<'_>, client: &str, model: &str, now: u64) -> Sql<(u64, u64)> {
    let sql = "SELECT coalesce(sum(min(inputs, 1000000000000)), 0), coalesce(min(expiry), 0)
        FROM tickets WHERE client = ?1 AND model = ?2 AND redeemed = 0 AND expiry > ?3";
    let values = params![client, model, integer(now)];
    let number = |row: &Row<'_>, at: usize| -> Sql<u64> {
        Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
    };
    from.query_row(sql, values, |row| Ok((number(row, 0)?, number(row, 1)?)))
}

/// Takes rows away that nobody asks for any more.
fn forget(from: &Transaction<'_>, now: u64) -> Sql<()> {
    let sql = "DELETE FROM tickets WHERE expiry < ?1 - CASE redeemed WHEN 0 THEN 0 ELSE ?2 END";
    from.execute(sql, params![integer(now), integer(REMEMBERED)]).map(drop)
}

fn named(refused: Refused, client: &Client, model: &str) -> Refused {
    Refused { client: client.to_string(), model: model.into(), ..refused }
}

/// A number for a table, whose integers have 64 bits with a sign.
fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
