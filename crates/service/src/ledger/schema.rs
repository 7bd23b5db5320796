//! The file of a ledger: how it is opened, what is in it, and what is refused.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use crate::error::{Error, Result};

/// The version of the tables below, `PRAGMA user_version` of the file.
const VERSION: i64 = 1;

/// What marks a file as a ledger, `PRAGMA application_id` of the file: "TACT" in ASCII.
const APPLICATION: i64 = 0x5441_4354;

/// How long to wait for another thread or process that writes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to sleep between attempts to open a file that another process is creating.
const PAUSE: Duration = Duration::from_millis(5);

/// Both tables have a row for a client and a model: what it used, and its limits where it has some
/// of its own. Days and minutes are those of `last`, in seconds since 1970 (UTC).
const TABLES: &str = "
    CREATE TABLE usage (
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        total INTEGER NOT NULL CHECK (total >= 0),
        day INTEGER NOT NULL CHECK (day >= 0),
        minute INTEGER NOT NULL CHECK (minute >= 0),
        last INTEGER NOT NULL CHECK (last >= 0),
        PRIMARY KEY (client, model)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE budgets (
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        total INTEGER CHECK (total >= 0),
        per_day INTEGER CHECK (per_day >= 0),
        per_minute INTEGER CHECK (per_minute >= 0),
        PRIMARY KEY (client, model)
    ) STRICT, WITHOUT ROWID;
";

/// One row for each ticket of which inputs are set aside or were redeemed.
const TICKETS: &str = "
    CREATE TABLE IF NOT EXISTS tickets (
        id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
        client TEXT NOT NULL,
        model TEXT NOT NULL,
        inputs INTEGER NOT NULL CHECK (inputs >= 0),
        expiry INTEGER NOT NULL,
        redeemed INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS tickets_of ON tickets (client, model);
    CREATE INDEX IF NOT EXISTS tickets_over ON tickets (expiry);
";

/// Held while a thread of this process opens a ledger.
static OPENING: Mutex<()> = Mutex::new(());

/// Opens a ledger, and makes it where there is none and `create` says so.
pub(super) fn open(path: &Path, create: bool) -> Result<Connection> {
    // Whoever closes a file ends all locks that its process has on it, so that a thread must not make
    // a file while another one opens it.
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if create {
        make(path)?;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The file is not made here: `make` has given it its permissions.
        match connect(path, create) {
            // Two processes that create a file at the same time do not always wait for each other.
            Err(Failure::Busy) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(Failure::Busy) => return Err(busy(path)),
            Err(Failure::Other(error)) => return Err(error),
            Ok(connection) => return Ok(connection),
        }
    }
}

/// Why a file was not opened.
enum Failure {
    Busy,
    Other(Error),
}

fn busy(path: &Path) -> Error {
    let why = format!("another process holds it for more than {} s", PATIENCE.as_secs());
    Error::Unusable { path: path.into(), why }
}

/// Makes an empty file that only its owner may read, unless there is a file.
fn make(path: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::Unusable { path: path.into(), why: e.to_string() })
        }
        _ => Ok(()),
    }
}

fn connect(path: &Path, create: bool) -> Result<Connection, Failure> {
    let failed = |e: rusqlite::Error| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Busy,
        _ => Failure::Other(explain(path, &e)),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    // Nothing is written before the file is known to be a ledger of this version.
    let transaction = connection.transaction().map_err(failed)?;
    let is_new = recognise(path, &transaction, failed)?;
    transaction.commit().map_err(failed)?;
    if is_new && !create {
        let why = "it is empty".into();
        return Err(Failure::Other(Error::Damaged { path: path.into(), why }));
    }
    let unusable =
        |why: &str| Failure::Other(Error::Unusable { path: path.into(), why: why.into() });
    if connection.is_readonly(MAIN_DB).map_err(failed)? {
        return Err(unusable("it may only be read"));
    }
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        return Err(unusable(
            "its file system has no memory that processes share; move it to a disk",
        ));
    }
    // Every commit is on the disk before it is answered.
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    if is_new {
        let behavior = TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
        // Another process may have been first.
        if recognise(path, &transaction, failed)? {
            transaction.execute_batch(TABLES).map_err(failed)?;
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
            transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
    }
    // Ledgers of earlier releases have no tickets, and those releases take no notice of them.
    connection.execute_batch(TICKETS).map_err(failed)?;
    check(path, &connection, failed)?;
    Ok(connection)
}

/// Returns whether the file is empty at the time of a transaction; refuses one that is no ledger of a version that is known.
fn recognise(
    path: &Path,
    transaction: &Transaction<'_>,
    failed: impl Fn(rusqlite::Error) -> Failure,
) -> Result<bool, Failure> {
    let number = |sql| transaction.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(&failed);
    let application = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, found, tables) {
        (0, 0, 0) => Ok(true),
        (APPLICATION, VERSION, _) => Ok(false),
        (APPLICATION, found, _) if found > VERSION => {
            Err(Failure::Other(Error::Newer { path: path.into(), found, known: VERSION }))
        }
        (APPLICATION, found, _) => {
            let why = format!("its version is {found}");
            Err(Failure::Other(Error::Damaged { path: path.into(), why }))
        }
        _ => Err(Failure::Other(Error::Foreign { path: path.into() })),
    }
}

/// Refuses a file whose pages do not fit together.
fn check(
    path: &Path,
    connection: &Connection,
    failed: impl Fn(rusqlite::Error) -> Failure,
) -> Result<(), Failure> {
    let said = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let why = connection.query_row("PRAGMA quick_check(1)", [], said).map_err(&failed)?;
    if why != "ok" {
        return Err(Failure::Other(Error::Damaged { path: path.into(), why }));
    }
    let read = "SELECT (SELECT count(day) FROM usage) + (SELECT count(total) FROM budgets)";
    connection.query_row(read, [], |row| row.get::<_, i64>(0)).map(|_| ()).map_err(failed)
}

/// Says what an error of SQLite means for the file.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> Error {
    let (path, why) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(&path),
        Some(ErrorCode::CannotOpen) if !path.exists() => {
            Error::misuse(format!("the ledger {} does not exist", path.display()))
        }
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::OutOfMemory
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::NoLargeFileSupport,
        ) => Error::Unusable { path, why },
        // A table that is missing, a number out of range, a page that is none.
        _ => Error::Damaged { path, why },
    }
}
