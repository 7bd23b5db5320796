//! How a file is made, and which ones are refused.

use rusqlite::Connection;

use super::*;

#[test]
fn files_that_are_no_ledgers_are_refused_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.db");
    let refusal = |path: &Path| Ledger::open(path).unwrap_err();
    let absent = Ledger::open_existing(&path).unwrap_err();
    assert!(absent.to_string().ends_with("does not exist") && !path.exists(), "{absent}");
    std::fs::write(&path, "no database, but long enough to be one".repeat(40)).unwrap();
    assert!(matches!(refusal(&path), Error::Damaged { .. }));
    std::fs::remove_file(&path).unwrap();

    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE other (x)").unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    assert_eq!(refusal(&path), Error::Foreign { path: path.clone() });
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(matches!(refusal(folder.path()), Error::Unusable { .. }));
    assert!(matches!(refusal(&path.join("below")), Error::Unusable { .. }));
}

#[test]
fn a_newer_ledger_is_refused_and_stays() {
    let desk = desk();
    desk.charge(1, &total(1), EVENING).unwrap();
    let path = desk.path();
    drop(desk.ledger);
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    let error = Ledger::open(&path).unwrap_err();
    assert_eq!(error, Error::Newer { path: path.clone(), found: 7, known: 1 });
    assert!(error.to_string().contains("has version 7, and this program knows versions up to 1"));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_ledger_is_refused_with_what_to_do() {
    let desk = desk();
    for client in 0..300 {
        let client = Client::Certificate(format!("CN=client {client} of many"));
        desk.ledger.set(&client, "mnist", &total(1)).unwrap();
    }
    let path = desk.path();
    drop(desk.ledger);
    let whole = std::fs::read(&path).unwrap();
    let mut torn = whole.clone();
    torn[3 * 4096..5 * 4096].fill(0x5a);
    std::fs::write(&path, torn).unwrap();
    let error = Ledger::open(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("l.db is damaged (") && text.contains("restore it from a backup"));
    std::fs::write(&path, &whole[..4096]).unwrap();
    assert!(matches!(Ledger::open(&path), Err(Error::Damaged { .. })));
    std::fs::write(&path, &whole).unwrap();
    Ledger::open(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    assert!(Ledger::open_existing(&path).unwrap_err().to_string().contains("it is empty"));
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_new_ledger() {
    use std::os::unix::fs::PermissionsExt;
    let desk = desk();
    desk.charge(1, &total(1), EVENING).unwrap();
    for name in ["l.db", "l.db-wal", "l.db-shm"] {
        let mode = std::fs::metadata(desk.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn every_charge_is_synchronised_with_the_disk() {
    let desk = desk();
    let store = crate::ledger::sqlite::Sqlite::open(&desk.path(), false).unwrap();
    let connection = store.connection.lock().unwrap();
    let text = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((number("PRAGMA synchronous"), number("PRAGMA user_version")), (2, 1));
}

#[test]
fn ledgers_of_earlier_releases_get_what_tickets_need() {
    let desk = desk();
    {
        let connection = Connection::open(desk.path()).unwrap();
        connection.execute_batch("DROP TABLE tickets").unwrap();
    }
    let ledger = Ledger::open(desk.path()).unwrap();
    super::tickets::reserve(&ledger, 1, 1, &Budget::default(), EVENING).unwrap();
}
