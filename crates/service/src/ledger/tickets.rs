//! Inputs that are set aside for sessions which are about to begin.
//!
//! A reservation counts against budgets as a charge does, until it is redeemed, which makes a charge
//! of it, or over. It is redeemed once, whatever number of processes try.

use std::time::{Duration, SystemTime};

use super::budget::{Budget, exceeded};
use super::rows::{budget_of, integer, store, usage_of};
use super::store::{Alone, Found, Transaction};
use super::{Charged, Ledger, seconds};
use crate::error::{Error, Result};
use crate::identity::Client;
use crate::refused::{Limit, Refused};

/// Longest wait that a client is told whose inputs are set aside for others, in seconds.
const SOON: u64 = 5;
/// Inputs of one ticket that are counted, so that no sum overflows.
const MOST: i64 = 1_000_000_000_000;
/// Why a ticket that is nowhere admits nobody.
const UNKNOWN: &str = "the ticket is not, or no longer, in this ledger";
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
    /// given out before, [`Error::Unusable`] or [`Error::Damaged`] where the database fails.
    pub fn reserve(
        &self,
        wanted: &Reservation<'_>,
        default: &Budget,
        now: SystemTime,
    ) -> Result<()> {
        let Reservation { id, client, model, inputs, until } = *wanted;
        let (key, now, until) = (client.key(), seconds(now), seconds(until));
        self.write_soon(|transaction| {
            forget(transaction, now)?;
            transaction.alone(Alone::Pair(&key, model))?;
            if let Some(refused) = too_much(transaction, (&key, model), default, inputs, now)? {
                return Ok(Err(Error::Refused(named(refused, client, model))));
            }
            let sql = "INSERT INTO tickets (id, client, model, inputs, expiry)
                VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
            let (inputs, until) = (integer(inputs).into(), integer(until).into());
            let values = [id.into(), key.as_str().into(), model.into(), inputs, until];
            Ok(match transaction.execute(sql, &values)? {
                1 => Ok(()),
                _ => Err(Error::misuse("a ticket of this number was given out before")),
            })
        })?
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
            let bad = |why: &str| Ok(Err(Error::Ticket(why.into())));
            let Some(ticket) = found(transaction, id)? else { return bad(UNKNOWN) };
            // Others may have changed it meanwhile, but never whose it is.
            transaction.alone(Alone::Pair(&ticket.client, &ticket.model))?;
            let Some(ticket) = found(transaction, id)? else { return bad(UNKNOWN) };
            let (key, model) = (ticket.client, ticket.model);
            if ticket.redeemed {
                return bad("the ticket was used before");
            }
            if ticket.expiry <= integer(now) {
                return bad("the ticket is over");
            }
            // From here on it counts as used, so that its own inputs are not in its way.
            let sql = "UPDATE tickets SET redeemed = 1 WHERE id = ?1 AND redeemed = 0";
            if transaction.execute(sql, &[id.into()])? != 1 {
                return bad(UNKNOWN);
            }
            if let Some(refused) = too_much(transaction, (&key, &model), default, inputs, now)? {
                let sql = "UPDATE tickets SET redeemed = 0 WHERE id = ?1";
                transaction.execute(sql, &[id.into()])?;
                let client: Client = key.parse()?;
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
            let sql = "UPDATE tickets SET expiry = CASE WHEN expiry < ?2 THEN ?2 ELSE expiry END
                WHERE id = ?1 AND redeemed = 0 AND expiry > ?3";
            transaction.execute(sql, &[id.into(), until.into(), now.into()])
        })?;
        Ok(changed > 0)
    }

    /// Frees what was set aside and not redeemed.
    ///
    /// # Errors
    /// [`Error::Unusable`], [`Error::Damaged`].
    pub fn release(&self, id: &[u8; 16]) -> Result<()> {
        self.write_soon(|transaction| {
            let sql = "DELETE FROM tickets WHERE id = ?1 AND redeemed = 0";
            transaction.execute(sql, &[id.into()])
        })?;
        Ok(())
    }
}

/// The refusal of `inputs` more than were used and are set aside, if they are too many.
pub(super) fn too_much(
    from: &mut dyn Transaction,
    (client, model): (&str, &str),
    default: &Budget,
    inputs: u64,
    now: u64,
) -> Result<Option<Refused>> {
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
fn set_aside(
    from: &mut dyn Transaction,
    client: &str,
    model: &str,
    now: u64,
) -> Result<(u64, u64)> {
    let sql = "SELECT
            CAST(coalesce(sum(CASE WHEN inputs > ?4 THEN ?4 ELSE inputs END), 0) AS BIGINT),
            coalesce(min(expiry), 0)
        FROM tickets WHERE client = ?1 AND model = ?2 AND redeemed = 0 AND expiry > ?3";
    let values = [client.into(), model.into(), integer(now).into(), MOST.into()];
    let found = from.query(sql, &values)?;
    let number = |column| -> Result<u64> {
        let integer = found.first().map(|row| row.integer(column)).transpose()?.flatten();
        Ok(u64::try_from(integer.unwrap_or(0)).unwrap_or(0))
    };
    Ok((number(0)?, number(1)?))
}

/// What a ticket says.
struct Ticket {
    client: String,
    model: String,
    expiry: i64,
    redeemed: bool,
}

fn found(from: &mut dyn Transaction, id: &[u8; 16]) -> Result<Option<Ticket>> {
    let sql = "SELECT client, model, expiry, redeemed FROM tickets WHERE id = ?1";
    let found = from.query(sql, &[id.into()])?;
    let read = |row: &Found| {
        let (client, model) = (row.text(0)?.unwrap_or_default(), row.text(1)?.unwrap_or_default());
        let (expiry, redeemed) = (row.integer(2)?.unwrap_or(0), row.integer(3)? != Some(0));
        Ok(Ticket { client, model, expiry, redeemed })
    };
    found.first().map(read).transpose()
}

/// Takes rows away that nobody asks for any more.
fn forget(from: &mut dyn Transaction, now: u64) -> Result<()> {
    let sql = "DELETE FROM tickets WHERE expiry < ?1 - CASE redeemed WHEN 0 THEN 0 ELSE ?2 END";
    from.execute(sql, &[integer(now).into(), integer(REMEMBERED).into()]).map(drop)
}

fn named(refused: Refused, client: &Client, model: &str) -> Refused {
    Refused { client: client.to_string(), model: model.into(), ..refused }
}
