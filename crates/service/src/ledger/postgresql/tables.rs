//! The tables of a ledger in PostgreSQL: how they are made, and what is refused.

use std::path::Path;

use ::postgres::{Client, Error as Failure};

use super::faults::{PATIENCE, explain};
use super::locks::number;
use crate::error::{Error, Result};

/// The version of the tables below, the one row of `tacit.ledger`.
const VERSION: i64 = 1;

/// `usage` and `budgets` have a row for a client and a model: what it used, and its limits where it has some of its own.
/// Days and minutes are those of `last`, in seconds since 1970 (UTC). `tickets` has one for each ticket of which inputs
/// are set aside or were redeemed. Names compare by their bytes, as in files.
const TABLES: &str = r#"
    CREATE TABLE tacit.ledger (version BIGINT NOT NULL);
    INSERT INTO tacit.ledger VALUES (1);
    CREATE TABLE tacit.usage (
        client TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        total BIGINT NOT NULL CHECK (total >= 0),
        day BIGINT NOT NULL CHECK (day >= 0),
        minute BIGINT NOT NULL CHECK (minute >= 0),
        last BIGINT NOT NULL CHECK (last >= 0),
        PRIMARY KEY (client, model)
    );
    CREATE TABLE tacit.budgets (
        client TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        total BIGINT CHECK (total >= 0),
        per_day BIGINT CHECK (per_day >= 0),
        per_minute BIGINT CHECK (per_minute >= 0),
        PRIMARY KEY (client, model)
    );
    CREATE TABLE tacit.tickets (
        id BYTEA PRIMARY KEY CHECK (length(id) = 16),
        client TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        inputs BIGINT NOT NULL CHECK (inputs >= 0),
        expiry BIGINT NOT NULL,
        redeemed BIGINT NOT NULL DEFAULT 0
    );
    CREATE INDEX tickets_of ON tacit.tickets (client, model);
    CREATE INDEX tickets_over ON tacit.tickets (expiry);
"#;

/// What there is where a ledger should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    Schema,
    Ledger,
}

/// Refuses what is no ledger of a version that is known, and makes the tables where there is nothing and `create` says
/// so.
pub(super) fn open(client: &mut Client, shown: &Path, create: bool) -> Result<()> {
    let failed = |e: Failure| explain(shown, &e);
    if recognise(client, shown)? != There::Ledger {
        if !create {
            return Err(Error::misuse(format!("the ledger {} does not exist", shown.display())));
        }
        let begin = format!("BEGIN; SET LOCAL lock_timeout TO '{}s'", PATIENCE.as_secs());
        client.batch_execute(&begin).map_err(failed)?;
        let made = make(client, shown);
        let end = if made.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = client.batch_execute(end).map_err(failed);
        made.and(ended)?;
    }
    check(client).map_err(failed)
}

/// Makes the tables. Another process may have been first.
fn make(client: &mut Client, shown: &Path) -> Result<()> {
    let failed = |e: Failure| explain(shown, &e);
    let lock = format!("SELECT pg_advisory_xact_lock({})", number(&[b"tables"]));
    client.batch_execute(&lock).map_err(failed)?;
    let there = recognise(client, shown)?;
    if there == There::Nothing {
        client.batch_execute("CREATE SCHEMA tacit").map_err(failed)?;
    }
    if there != There::Ledger {
        client.batch_execute(TABLES).map_err(failed)?;
    }
    Ok(())
}

/// Returns what there is, and refuses a schema of another program or version.
fn recognise(client: &mut Client, shown: &Path) -> Result<There> {
    let failed = |e: Failure| explain(shown, &e);
    let sql = "SELECT count(*), count(class.oid), count(*) FILTER (WHERE class.relname = 'ledger')
        FROM pg_catalog.pg_namespace AS space
        LEFT JOIN pg_catalog.pg_class AS class ON class.relnamespace = space.oid
        WHERE space.nspname = 'tacit'";
    let row = client.query_typed_one(sql, &[]).map_err(failed)?;
    let number = |column| row.try_get::<_, i64>(column).map_err(failed);
    match (number(0)?, number(1)?, number(2)?) {
        (0, ..) => return Ok(There::Nothing),
        (_, 0, _) => return Ok(There::Schema),
        (_, _, 0) => return Err(Error::Foreign { path: shown.into() }),
        _ => {}
    }
    let rows = client.query_typed("SELECT version FROM tacit.ledger", &[]).map_err(failed)?;
    let versions = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>();
    match versions.map_err(failed)?[..] {
        [VERSION] => Ok(There::Ledger),
        [found] if found > VERSION => {
            Err(Error::Newer { path: shown.into(), found, known: VERSION })
        }
        ref other => {
            let why = format!("its versions are {other:?}");
            Err(Error::Damaged { path: shown.into(), why })
        }
    }
}

/// Refuses a ledger whose tables lack what is asked of them.
fn check(client: &mut Client) -> Result<(), Failure> {
    for sql in [
        "SELECT client, model, total, day, minute, last FROM tacit.usage LIMIT 1",
        "SELECT client, model, total, per_day, per_minute FROM tacit.budgets LIMIT 1",
        "SELECT id, client, model, inputs, expiry, redeemed FROM tacit.tickets LIMIT 1",
    ] {
        client.query_typed(sql, &[])?;
    }
    Ok(())
}
